"""Regions of interest to vectors: stain, Sobol patches, proximity graph, graph encoder.

>>> from ml.roi import load_encoder
>>> vector = load_encoder("default").embed(image, polygon=None, mpp=0.5)
"""

from __future__ import annotations

from ml.roi.embed import RoiEncoder
from ml.roi.embedded import Embedded
from ml.roi.keypoints.encoder import KeypointEncoder
from ml.roi.load import (
    EncoderInfo,
    encoder_of_file,
    list_encoders,
    load_encoder,
    load_graph_encoder,
)
from ml.roi.protocol import RegionEncoder
from ml.roi.several import SlideRegions, frames_ahead, regions_together
from ml.roi.weights import encoder_from_file

__all__ = [
    "Embedded",
    "EncoderInfo",
    "KeypointEncoder",
    "RegionEncoder",
    "RoiEncoder",
    "SlideRegions",
    "encoder_from_file",
    "encoder_of_file",
    "frames_ahead",
    "list_encoders",
    "load_encoder",
    "load_graph_encoder",
    "regions_together",
]
