"""Mosaics on a GPU: warping and blending there, agreeing with the processor's picture."""
