"""Training of the ROI encoders and of what they are made of."""
