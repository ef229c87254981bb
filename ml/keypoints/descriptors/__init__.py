"""Descriptors of key points, hand-crafted and learned."""
