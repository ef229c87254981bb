"""Training schemes: a room for each family, over what all runs share."""
