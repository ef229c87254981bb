"""Every choice of a mosaic, one comment each."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass

from ml.errors import BadInputError, UnknownNameError
from ml.keypoints import DESCRIPTOR_NAMES, MODEL_NAMES


@dataclass(frozen=True, slots=True)
class MosaicConfig:
    """How a mosaic is made. Lengths in px refer to the working image unless said otherwise.

    Attributes:
        step: every step-th frame of the source is used.
        start_pts, end_pts: first and last time stamp used of a video, both inclusive.
        work_px: frames are registered at this longest side; blending uses full resolution.
        descriptor: name of ``ml.keypoints.load_descriptor``.
        max_keypoints: at most so many a frame.
        model: "similarity", "affine", "homography", or "auto" (chosen by evidence).
        skips: a frame is registered to the frames so many usable frames before it.
        threshold_px: largest reprojection error of an inlier.
        min_inliers, min_inlier_share: a pair with less is not linked.
        min_focus: sharpness under this share of the neighbours' median is blurred.
        min_brightness: mean grey inside the scope under this is too dark.
        sample_frames: frames from which the scope's mask and fixed pattern are estimated.
        max_key_frames: features kept for long-range links; bounds memory.
        revisit_links: long-range links tried for each key frame.
        max_canvas_px: largest mosaic, in pixels (120 million: 0.36 GB of RGB).
        max_side_px: largest side of the mosaic.
        quality: JPEG quality of the pyramid.
        preview_px: longest side of preview.jpg.
    """

    step: int = 1
    start_pts: int | None = None
    end_pts: int | None = None
    work_px: int = 720
    descriptor: str = "akaze"
    max_keypoints: int = 800
    model: str = "auto"
    skips: tuple[int, ...] = (1, 2, 3, 5, 8)
    threshold_px: float = 3.0
    min_inliers: int = 16
    min_inlier_share: float = 0.2
    min_focus: float = 0.68
    min_brightness: float = 18.0
    sample_frames: int = 41
    max_key_frames: int = 300
    revisit_links: int = 6
    max_canvas_px: int = 120_000_000
    max_side_px: int = 30_000
    quality: int = 90
    preview_px: int = 1600

    def __post_init__(self) -> None:
        """Refuse what can never work."""
        if self.model != "auto" and self.model not in MODEL_NAMES:
            raise UnknownNameError("motion model", self.model, [*MODEL_NAMES, "auto"])
        if self.descriptor not in DESCRIPTOR_NAMES:
            raise UnknownNameError("descriptor", self.descriptor, list(DESCRIPTOR_NAMES))
        for name in ("step", "max_keypoints", "min_inliers", "sample_frames", "max_canvas_px"):
            if getattr(self, name) < 1:
                raise BadInputError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.work_px < 64:
            raise BadInputError(f"work_px: expected at least 64, got {self.work_px}")
        if not self.skips or min(self.skips) < 1:
            raise BadInputError(f"skips: expected positive steps, got {self.skips}")

    def hash(self) -> str:
        """First 16 hex digits of SHA-256 over the sorted JSON of all choices."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
