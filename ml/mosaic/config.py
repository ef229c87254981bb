"""Configuration of a mosaic."""

from __future__ import annotations

from dataclasses import dataclass

from ml.errors import BadInputError, UnknownNameError
from ml.keypoints.descriptors.registry import DESCRIPTOR_NAMES
from ml.keypoints.verification.estimation import MODEL_NAMES

MODEL_CHOICES = ("auto", "translation", *MODEL_NAMES)


@dataclass(frozen=True, slots=True)
class MosaicConfig:
    """Configuration of a mosaic. Lengths in px refer to the working image unless stated otherwise.

    Attributes:
        step: one frame in this many of the source is used.
        start_pts, end_pts: first and last time stamp used of a video, both inclusive.
        work_px: frames are registered at a size at which the longest side of what the scope shows
            is this long, but the frame at most twice that; blending uses full resolution.
        descriptor: name of ``ml.keypoints.load_descriptor``.
        max_keypoints: at most this many a frame.
        motion_model: "translation", "similarity", "affine", "homography", or "auto" (by evidence).
        pick_share: a frame that moved less than this share of the frame is placed by the keyframe
            before it instead of being registered itself, where one motion explains it.
        loop_keyframe_share: keyframes this share of the frame apart are kept for loops.
        max_loop_keyframes: bounds what loop search costs.
        loop_candidates: look-alikes tried for each loop keyframe.
        skips: a keyframe is registered to the keyframes this many before it.
        threshold_px: largest reprojection error of an inlier.
        min_inliers, min_inlier_share: a pair with less is not linked.
        min_sharpness: sharpness under this share of the neighbours' median is blurred.
        min_brightness: mean grey inside the scope under this is too dark.
        fixed_pattern_frames: the fixed pattern is learned from this many frames, the first that
            moved; frames that come later change nothing in it.
        sample_frames: this many of these are used, evenly chosen.
        revisit_links: links tried between a loop keyframe and earlier ones that it overlaps.
        min_component_frames: a component with fewer frames gets no mosaic, unless it is the
            largest.
        max_components: at most this many mosaics of one video, the largest.
        layer_px: longest side of the layers.
        distortion: the camera as fx, fy, cx, cy, then k1, k2, p1, p2, then k3, full-resolution px;
            () corrects nothing.
        estimate_distortion: where ``distortion`` is not given, radial distortion is estimated from
            the frames and removed where that measures better (see
            ``ml.mosaic.registration.distortion``). Off by default: "frame px" are then
            corrected ones, as with ``distortion``.
        local_fit: fit parallax as one mesh a frame (see ``ml.mosaic.local_mesh.fit``).
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
    motion_model: str = "auto"
    pick_share: float = 0.008
    loop_keyframe_share: float = 0.12
    max_loop_keyframes: int = 300
    loop_candidates: int = 3
    skips: tuple[int, ...] = (1, 2, 3, 5, 8, 13, 20)
    threshold_px: float = 3.0
    min_inliers: int = 16
    min_inlier_share: float = 0.2
    min_sharpness: float = 0.68
    min_brightness: float = 18.0
    fixed_pattern_frames: int = 300
    sample_frames: int = 41
    revisit_links: int = 3
    min_component_frames: int = 4
    max_components: int = 12
    layer_px: int = 2048
    distortion: tuple[float, ...] = ()
    estimate_distortion: bool = False
    local_fit: bool = True
    max_canvas_px: int = 120_000_000
    max_side_px: int = 30_000
    quality: int = 90
    preview_px: int = 1600

    def __post_init__(self) -> None:
        """Check the names and bounds."""
        if self.motion_model not in MODEL_CHOICES:
            raise UnknownNameError("motion model", self.motion_model, list(MODEL_CHOICES))
        if self.descriptor not in DESCRIPTOR_NAMES:
            raise UnknownNameError("descriptor", self.descriptor, list(DESCRIPTOR_NAMES))
        counts = ("step", "max_keypoints", "min_inliers", "sample_frames", "fixed_pattern_frames")
        for name in (*counts, "max_canvas_px"):
            if getattr(self, name) < 1:
                raise BadInputError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.work_px < 64:
            raise BadInputError(f"work_px: expected at least 64, got {self.work_px}")
        if not self.skips or min(self.skips) < 1:
            raise BadInputError(f"skips: expected positive steps, got {self.skips}")
