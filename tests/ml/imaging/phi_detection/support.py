"""Pictures with and without what may reveal somebody."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ml.types import ImageU8


def tissue(width: int = 640, height: int = 400, seed: int = 0) -> ImageU8:
    """Red and soft, without an edge."""
    rng = np.random.default_rng(seed)
    soft = cv2.GaussianBlur(rng.normal(0, 60, (height, width)).astype(np.float32), (0, 0), 8)
    return np.clip(np.array([170, 70, 60]) + soft[..., None], 0, 255).astype(np.uint8)


def named(image: ImageU8, text: str = "Jane Doe 12/03/1961", xy: tuple[int, int] = (30, 40)) -> Any:
    """The same with a white line of 18 px."""
    image = image.copy()
    cv2.putText(image, text, xy, cv2.FONT_HERSHEY_SIMPLEX, 0.8, (255, 255, 255), 2, cv2.LINE_AA)
    return image


def write_frames(path: Path, frames: list[ImageU8], *, first: int = 0) -> Path:
    """A video, a key frame every ten frames; ``first``: the number of its first frame."""
    import av

    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=25)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt, stream.gop_size = "yuv420p", 10
        for number, pixels in enumerate(frames, start=first):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path
