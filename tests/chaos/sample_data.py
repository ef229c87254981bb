"""Sample data that people send: outlines, stills, a short video."""

from __future__ import annotations

import io
import random
from typing import Any

import av
import numpy as np
from PIL import Image


def square(rng: random.Random) -> dict[str, Any]:
    left, top, side = rng.randrange(100), rng.randrange(100), rng.randrange(80, 140)
    right, bottom = left + side, top + side
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


def still(rng: random.Random) -> bytes:
    blocks = np.random.default_rng(rng.getrandbits(32)).integers(0, 255, (16, 16, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(np.kron(blocks, np.ones((16, 16, 1), np.uint8))).save(file, "PNG")
    return file.getvalue()


def video() -> bytes:
    """A camera that moves over a texture: 1.2 s."""
    texture = np.random.default_rng(5).integers(0, 255, (40, 90, 3), np.uint8)
    scene = np.asarray(Image.fromarray(texture).resize((720, 320), Image.Resampling.BICUBIC))
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for step in range(30):
            view = np.ascontiguousarray(scene[step : step + 240, 6 * step : 6 * step + 320])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(view, format="rgb24")))
        container.mux(stream.encode())
    return file.getvalue()
