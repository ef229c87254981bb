"""Regions of interest to vectors: stain, Sobol patches, proximity graph, graph encoder.

>>> from ml.roi import load_encoder
>>> vector = load_encoder("default").embed(image, polygon=None, mpp=0.5)
"""

from __future__ import annotations

from ml.roi.load import load_encoder

__all__ = ["load_encoder"]
