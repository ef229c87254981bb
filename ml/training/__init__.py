"""Training schemes: a package for each family, over what all runs share."""
