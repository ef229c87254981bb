"""Evaluation of the proposed modality of images."""
