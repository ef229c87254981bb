"""Labs, memberships and tokens."""
