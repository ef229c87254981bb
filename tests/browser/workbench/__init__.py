"""The workbench under the hand, in a real browser."""
