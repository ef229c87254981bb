"""Scores of encoders and baselines over many sets, with a stain swap and a rule of choice."""
