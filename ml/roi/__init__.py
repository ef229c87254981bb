"""Regions of interest to vectors: stain, Sobol patches, proximity graph, graph encoder.

>>> from ml.roi import load_encoder
>>> vector = load_encoder("default").embed(image, polygon=None, mpp=0.5)
"""

from __future__ import annotations

from ml.roi.embed import Embedded, RoiEncoder
from ml.roi.weights import EncoderInfo, encoder_from_file, list_encoders, load_encoder

__all__ = [
    "Embedded",
    "EncoderInfo",
    "RoiEncoder",
    "encoder_from_file",
    "list_encoders",
    "load_encoder",
]
