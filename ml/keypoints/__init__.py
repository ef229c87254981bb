"""Key points of endoscopic images: detection, description, matching, two-view geometry."""

from __future__ import annotations

from ml.keypoints.descriptors.registry import load_descriptor
from ml.keypoints.pipeline import match_images

__all__ = ["load_descriptor", "match_images"]
