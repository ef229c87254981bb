"""Colour deconvolution, stain estimation of a slide, and stain normalisation of patches."""
