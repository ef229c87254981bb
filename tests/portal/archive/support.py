"""Helpers shared by tests of the archive: small files, and jobs run in this process."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from portal.jobs.models import Job


def picture(width: int = 300, height: int = 200, seed: int = 0) -> bytes:
    """A PNG with a gradient and noise: no two seeds give the same bytes."""
    rng = np.random.default_rng(seed)
    pixels = np.linspace(0, 200, width)[None, :, None] + rng.integers(0, 50, (height, width, 3))
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def make_video(path: Path, *, codec: str, frames: int = 30) -> Path:
    """A moving gradient, a key frame every ten frames."""
    import av

    ramp = np.linspace(0, 255, 160, dtype=np.uint8)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = 160, 120, "yuv420p", 10
        for index in range(frames):
            row = np.roll(ramp, 4 * index)
            image = np.repeat(np.repeat(row[None, :, None], 120, 0), 3, 2)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def run_job(job: Job) -> Job:
    """Run the job in this process."""
    from portal.jobs.worker.runner import job_run

    job_run(job.pk)
    job.refresh_from_db()
    return job


def files_below(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


def png(name: str = "a.png", seed: int = 0) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, picture(40, 30, seed=seed))


def text_of(response: Any) -> str:
    return str(response.content.decode())
