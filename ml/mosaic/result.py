"""Types of a finished mosaic, as in ``mosaic.json``.

One build writes a folder::

    mosaic.json                        the manifest: everything below
    mosaic.tif, preview.jpg            component 0, the one with the most frames
    mosaic-2.tif, preview-2.jpg        component 1 and so on: each in a separate plane
    layer-count.png, layer-count-2.png a layer of component 0, of component 1 (see MosaicLayer)
    layer-count.tif                    the same values, 16 bits, as a small pyramid

Coordinates. ``H_mosaic_from_frame`` maps full-resolution frame px to px of the mosaic *of that
frame's component* (``FrameResult.component``), pixel centres at integers, x right, y down: a point
is ``p = H (x, y, 1)``, ``xy = p[:2] / p[2]``: the best homography. Where the scene is not a plane a
frame has a ``mesh`` as well, and its exact map is ``ml.geometry.FrameMaps``: mosaic point ``q``
is at ``y + mesh(y)`` with ``y = inv(H) q``. A frame saw ``q`` when it is of ``q``'s component
and that point is inside its view: the polygon ``view_outline`` of the manifest, frame px,
convex. ``sharpness`` orders those that saw it. A polygon is mapped vertex by vertex; without a
mesh its straight edges stay straight, with one they bend, so cut them into short ones first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ml.types import ArrayF64

MANIFEST_NAME = "mosaic.json"
PYRAMID_NAME = "mosaic.tif"
PREVIEW_NAME = "preview.jpg"
FORMAT_VERSION = 1
"""Version of the manifest, increased by every change that an older reader would misread."""

REGISTERED, SKIPPED, FAILED = "registered", "skipped", "failed"

REASON_CODES: dict[str, str] = {
    "unreadable": "the frame could not be decoded",
    "size": "its size differs from the other frames'",
    "dark": "too dark",
    "bright": "overexposed",
    "glare": "covered by highlights",
    "blurred": "blurred",
    "uniform": "no structure",
    "smoke": "veiled by smoke or water",
    "instrument": "covered by an instrument",
    "no-match": "too few points agree with the frames around it",
    "disagrees": "its position disagrees with the frames around it",
    "small-component": "its component holds too few frames for a mosaic",
}
"""Why a frame is not registered: code -> words. ``reason`` may say more, with numbers."""

LAYER_NAMES = ("coverage", "count", "uncertainty", "time", "time_last")


@dataclass(frozen=True, slots=True)
class FrameResult:
    """One frame of the source.

    Attributes:
        index: position in the source.
        pts: presentation time stamp (the index for folders).
        H_mosaic_from_frame: (3, 3) float64, frame px to px of its component's mosaic; None unless
            registered.
        status: "registered", "skipped" (unusable) or "failed" (usable, not placed).
        reason: why not registered, fit for a user; "" where registered.
        links: pairs that hold the frame; 0 for a frame that is not a keyframe.
        error_px: median residual of these, frame px.
        reason_code: a key of ``REASON_CODES``; "" where registered.
        time_s: seconds from the time base; None for folders and arrays, which have no clock.
        component: which mosaic, 0 for ``mosaic.tif``; None unless registered.
        is_key: True if the frame itself was linked to others and blended; False if it moved
            so little since a keyframe that it was tracked from it.
        covariance: (3, 3) float64 of (x, y, rotation) of the middle of the view in the mosaic,
            px, px, radians, against the component's anchor, where it is zero.
        uncertainty_px: root mean square standard deviation of the view's four corners, mosaic px.
        sharpness: high-frequency energy over brightness; larger is sharper; compare within a video.
        brightness: mean grey of the view, 0 to 255.
        mesh: (9, 9, 2) float64, frame px: how what is not a plane is displaced, at nodes evenly
            from the first to the last px, bilinear between them; None if the homography is all.
        name: of the frame's file in a folder of images; "" for videos and arrays.
    """

    index: int
    pts: int
    H_mosaic_from_frame: ArrayF64 | None
    status: str
    reason: str = ""
    links: int = 0
    error_px: float | None = None
    reason_code: str = ""
    time_s: float | None = None
    component: int | None = None
    is_key: bool = False
    covariance: ArrayF64 | None = None
    uncertainty_px: float | None = None
    sharpness: float | None = None
    brightness: float | None = None
    mesh: ArrayF64 | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class MosaicLayer:
    """One number for each spot of a mosaic, at reduced size.

    ``png`` is 8-bit grey for a browser: 0 if no frame saw the spot, else byte b means
    ``minimum + (b - 1) / 254 * (maximum - minimum)``. ``tiff`` is a tiled, pyramidal, lossless
    16-bit grey TIFF, with 65534 for 254. Layer px (i, j) covers the mosaic px
    ``i * downsample`` to ``(i + 1) * downsample``.

    Attributes:
        name: "coverage" (what was seen: minimum = maximum = 1, stored as the largest value),
            "count" (frames that saw it), "uncertainty" (standard deviation of its position in
            px, of the best-known frame that saw it), "time" and "time_last" (when it was first and
            last seen).
        unit: "", "frames", "px", or "s" ("frames" for a source without a clock: the index).
        downsample: mosaic px per layer px.
    """

    name: str
    png: str
    tiff: str
    unit: str
    minimum: float
    maximum: float
    width_px: int
    height_px: int
    downsample: float


@dataclass(frozen=True, slots=True)
class MosaicSpan:
    """A run of frames, both ends inclusive; seconds are None for a source without a clock."""

    first_index: int
    last_index: int
    first_s: float | None = None
    last_s: float | None = None


@dataclass(frozen=True, slots=True)
class MosaicGap:
    """Frames in no mosaic, between two that are (or at an end), named by seconds.

    Attributes:
        reason_code: the commonest among its frames.
        text: a sentence for a user, such as
            "0:12.4 to 0:14.0 (40 frames): blurred".
    """

    span: MosaicSpan
    frames: int
    reason_code: str
    text: str


@dataclass(frozen=True, slots=True)
class MosaicQuality:
    """Accuracy of a mosaic.

    Attributes:
        registered_share: registered frames over all frames of the span.
        median_error_px: median over keyframes of ``error_px``. None without a link.
        loops_closed: links between frames far apart in time that overlap in space.
        max_uncertainty_px: largest ``uncertainty_px`` of a registered frame.
    """

    registered_share: float
    median_error_px: float | None
    loops_closed: int
    max_uncertainty_px: float | None


@dataclass(frozen=True, slots=True)
class ComponentResult:
    """Mosaic of one connected component.

    Attributes:
        index: 0 for the component with the most frames, the others by size, then by time.
        pyramid, preview: file names in the folder.
        anchor_index: index of the frame whose px are the mosaic's px in the middle of its view.
        spans: its runs of registered frames, in order.
        seconds: time between its first and its last frame; None without a clock.
    """

    index: int
    pyramid: str
    preview: str
    width_px: int
    height_px: int
    anchor_index: int
    registered_count: int
    spans: tuple[MosaicSpan, ...]
    layers: tuple[MosaicLayer, ...]
    quality: MosaicQuality
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class MosaicResult:
    """A finished build; ``path``, ``preview`` and the sizes are those of component 0.

    Attributes:
        path: the pyramidal TIFF.
        preview: a small JPEG.
        manifest: ``mosaic.json``.
        motion_model: "translation", "similarity", "affine" or "homography".
        view_outline: (P, 2) float64, convex outline of what the scope sees, frame px.
        frame_size_px: (width, height) of the frames.
        engine: version of the engine that wrote it.
        distortion: the camera whose distortion was removed, as ``MosaicConfig.distortion``,
            given or estimated; "frame px" are then those of the corrected frames. () if none was.
    """

    frames: tuple[FrameResult, ...]
    path: Path
    preview: Path
    manifest: Path
    width_px: int
    height_px: int
    motion_model: str
    anchor_index: int
    config_hash: str
    components: tuple[ComponentResult, ...]
    gaps: tuple[MosaicGap, ...]
    quality: MosaicQuality
    view_outline: ArrayF64
    frame_size_px: tuple[int, int]
    engine: str
    distortion: tuple[float, ...] = ()

    @property
    def registered_count(self) -> int:
        """Number of frames in any mosaic."""
        return sum(frame.status == REGISTERED for frame in self.frames)


def component_name(stem: str, suffix: str, component: int) -> str:
    """``mosaic.tif`` for component 0, ``mosaic-2.tif`` for component 1, and so on."""
    return f"{stem}{suffix}" if component == 0 else f"{stem}-{component + 1}{suffix}"
