"""Explanations of a similarity: the patches or key points of both regions that add most to it."""
