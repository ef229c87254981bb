"""Descriptors of key points: the hand-crafted four, and the learned ones with their weights."""
