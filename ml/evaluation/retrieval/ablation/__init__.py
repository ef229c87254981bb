"""Supervised and self-supervised graph networks against the mean: table III of the paper."""
