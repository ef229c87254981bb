"""Key points of endoscopic images: detect, describe, match, and the geometry between two views."""

from __future__ import annotations

from ml.keypoints.descriptors.registry import (
    DESCRIPTOR_NAMES,
    Descriptor,
    load_descriptor,
)
from ml.keypoints.detect import DETECTOR_NAMES, DetectorConfig, detect_keypoints
from ml.keypoints.features import ImageFeatures, extract
from ml.keypoints.masks import scope_mask, specular_mask
from ml.keypoints.match import match_descriptors
from ml.keypoints.pipeline import MatchConfig, match_features, match_images
from ml.keypoints.verification.estimation import (
    MODEL_NAMES,
    estimate_fundamental,
    estimate_transform,
    symmetric_epipolar_px,
)
from ml.keypoints.verification.pose import Pose, estimate_pose

__all__ = [
    "DESCRIPTOR_NAMES",
    "DETECTOR_NAMES",
    "MODEL_NAMES",
    "Descriptor",
    "DetectorConfig",
    "ImageFeatures",
    "MatchConfig",
    "Pose",
    "detect_keypoints",
    "estimate_fundamental",
    "estimate_pose",
    "estimate_transform",
    "extract",
    "load_descriptor",
    "match_descriptors",
    "match_features",
    "match_images",
    "scope_mask",
    "specular_mask",
    "symmetric_epipolar_px",
]
