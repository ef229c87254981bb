"""A demo video: a simulated scope swept over real vessels, with the exact motion of every frame."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np

from ml.files import replacing
from ml.imaging.samples.packaged import packaged_image
from ml.imaging.samples.scope import Highlights, light_view, scope_light, scope_pose, scope_view
from ml.types import ArrayBool, ArrayF64, ImageU8, Progress, no_progress

FPS = 25  # of endoscopes in Europe
_CRF = 18  # visually lossless for x264, so that coding does not change the simulation
_BLURRED_SHARE = 0.05  # of the frames, for a steady hand
_SPECULAR_SPOTS = 9  # highlights of a wet surface
_EXPOSURE = 1.15  # compensates for the lamp's fall-off
_NOISE_SD = 1.5  # grey levels, of a good sensor


@dataclass(frozen=True, slots=True)
class SampleVideo:
    """A written sample video and its truth.

    Attributes:
        H_retina_from_frame: (N, 3, 3) float64, frame pixels to pixels of ``retina.jpg``.
        blurred: (N,) bool, frames blurred on purpose.
        mask: (size, size) uint8, 255 where the scope sees.
    """

    path: Path
    H_retina_from_frame: ArrayF64
    blurred: ArrayBool
    mask: ImageU8


def make_sample_video(
    out_path: str | Path,
    *,
    frames: int = 100,
    size_px: int = 470,
    seed: int = 7,
    truth_path: str | Path | None = None,
    progress: Progress = no_progress,
) -> SampleVideo:
    """Write an h264 mp4 of a scope swept over ``retina.jpg`` in a closed path.

    Planar motion (shift, turn, zoom, slight tilt) with hand tremor, vignetting, a round field of
    view, specular spots that stay with the scope's light, and a few frames blurred by motion.

    Args:
        size_px: side of the square frames, even.
        truth_path: where to write the truth as ``.npz`` (H_retina_from_frame, blurred, mask).
    """
    out_path = Path(out_path)
    retina = packaged_image("retina.jpg")
    rng = np.random.default_rng(seed)
    H_retina_from_frame = _path_of_scope(rng, frames, size_px, retina.shape[0])
    blurred = _blurred_frames(rng, frames)
    light, mask = scope_light(size_px)
    highlights = _highlights(rng, size_px)
    options = {"movflags": "+faststart"}
    with (
        replacing(out_path) as new,
        av.open(str(new), "w", format="mp4", options=options) as target,
    ):
        # with its macroblock tree x264 does not give the same bytes from run to run
        options = {"crf": str(_CRF), "x264-params": "mbtree=0"}
        stream = target.add_stream("libx264", rate=FPS, options=options)
        stream.width = stream.height = size_px
        stream.pix_fmt = "yuv420p"
        stream.codec_context.thread_count = 1  # threads would change the bytes
        stream.codec_context.gop_size = FPS
        for n, H in enumerate(H_retina_from_frame):
            view = scope_view(retina, H, size_px)
            view = _motion_blurred(view, angle=float(n)) if blurred[n] else view
            bright = view.astype(np.float32) * _EXPOSURE
            picture = light_view(bright, light, highlights.glare(n, size_px))
            picture += rng.normal(0, _NOISE_SD, picture.shape).astype(np.float32)
            rgb = np.clip(picture, 0, 255).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(rgb, format="rgb24")
            frame.pts, frame.time_base = n, Fraction(1, FPS)
            target.mux(stream.encode(frame))
            progress(n + 1, frames, "filming")
        target.mux(stream.encode(None))
    if truth_path is not None:
        np.savez(truth_path, H_retina_from_frame=H_retina_from_frame, blurred=blurred, mask=mask)
    return SampleVideo(out_path, H_retina_from_frame, blurred, mask)


def _path_of_scope(rng: np.random.Generator, frames: int, size_px: int, retina_px: int) -> ArrayF64:
    """A closed loop inside the fundus disc, at most about 12 px a frame at 100 frames."""
    phase = np.linspace(0, 2 * np.pi, frames, endpoint=False)
    reach = retina_px * 0.5 - size_px * 0.62
    tremor = [_smooth_noise(rng, frames) for _ in range(6)]
    centre_x = retina_px / 2 + reach * 0.62 * np.sin(phase) + 3.0 * tremor[0]
    centre_y = retina_px / 2 + reach * 0.42 * np.sin(2 * phase) + 3.0 * tremor[1]
    angle = 0.12 * np.sin(phase + 0.7) + 0.01 * tremor[2]
    zoom = 0.92 + 0.07 * np.cos(phase) + 0.004 * tremor[3]
    tilt = np.stack([tremor[4], tremor[5]], axis=1) * 1.2e-5
    return np.stack(
        [
            scope_pose((centre_x[n], centre_y[n]), angle[n], zoom[n], tilt[n], size_px=size_px)
            for n in range(frames)
        ]
    )


def _smooth_noise(rng: np.random.Generator, count: int) -> ArrayF64:
    """Unit-variance noise with a correlation of about three frames, closed end to start."""
    taps = np.exp(-0.5 * (np.arange(-6, 7) / 2.0) ** 2)
    noise = np.convolve(np.tile(rng.standard_normal(count), 3), taps, mode="same")
    noise = noise[count : 2 * count]
    return np.asarray(noise / max(float(noise.std()), 1e-9), np.float64)


def _blurred_frames(rng: np.random.Generator, frames: int) -> ArrayBool:
    blurred: ArrayBool = np.zeros(frames, np.bool_)
    count = max(1, round(frames * _BLURRED_SHARE)) if frames >= 10 else 0
    if count:
        blurred[rng.choice(np.arange(2, frames - 2), count, replace=False)] = True
    return blurred


def _highlights(rng: np.random.Generator, size_px: int) -> Highlights:
    angle = rng.uniform(0, 2 * np.pi, _SPECULAR_SPOTS)
    reach = rng.uniform(0.05, 0.35, _SPECULAR_SPOTS) * size_px
    radius = rng.uniform(0.004, 0.012, _SPECULAR_SPOTS) * size_px
    phase = rng.uniform(0, 2 * np.pi, _SPECULAR_SPOTS)
    x, y = size_px / 2 + reach * np.cos(angle), size_px / 2 + reach * np.sin(angle)
    return Highlights(x, y, radius, flicker=phase, wander=phase)


def _motion_blurred(rgb: ImageU8, *, angle: float) -> ImageU8:
    kernel = np.zeros((21, 21), np.float32)
    direction = np.array([np.cos(angle), np.sin(angle)])
    for t in np.linspace(-10, 10, 41):
        column, row = np.round(10 + t * direction).astype(int)
        kernel[row, column] = 1
    return np.asarray(cv2.filter2D(rgb, -1, kernel / kernel.sum()), np.uint8)
