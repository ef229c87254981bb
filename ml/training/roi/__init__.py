"""Training of the ROI encoders and their parts."""
