"""Costs of slow and long videos in the mosaic engine: ``python -m tests.bench.slow_video``.

A sweep over a real retina is filmed at its pace and ten times as slowly, or for longer and longer.
Seconds of one CPU core by phase; "decode" is one bare pass over the file; "peak MiB" is the largest
resident memory of the process, Python and its libraries ("libraries MiB") included.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import av
import cv2
import numpy as np

from ml.evaluation.common.memory import peak_mib
from ml.evaluation.mosaic.simulate import SweepConfig, simulate_sweep
from ml.imaging.samples.packaged import packaged_image
from ml.mosaic import build_mosaic
from ml.mosaic.frames.sources import open_source
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.types import ImageU8

SIZE_PX = 400
PHASES = ("survey", "register", "loops", "align", "blend", "write")


def main() -> None:
    """Film the sweeps, build each in a process of its own, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[300], help="at the sweep's pace")
    parser.add_argument("--slowness", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--card", type=Path, help="write the table into this page")
    parser.add_argument("--figures", default="slow-video", help="the name in the page's mark")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(measure(args.one)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for frames, slowness in itertools.product(args.frames, args.slowness):
            video = film(Path(folder) / f"sweep-{frames}-{slowness}.mp4", frames, slowness)
            command = [sys.executable, "-m", "tests.bench.slow_video", "--one", str(video)]
            run = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append(json.loads(run.stdout))
    print(table(rows))
    if args.card is not None:
        update_card(args.card, args.figures, table(rows))


def film(path: Path, frames: int, slowness: int) -> Path:
    """Write a sweep of so many frames with ``slowness`` frames for each of them."""
    truth = simulate_sweep(SweepConfig(frames=frames, size_px=SIZE_PX, path="loops-slow")).truth
    rng, retina = np.random.default_rng(0), packaged_image("retina.jpg")
    y, x = np.mgrid[:SIZE_PX, :SIZE_PX] - (SIZE_PX - 1) / 2
    disc = (np.hypot(x, y) < 0.48 * SIZE_PX)[..., None]
    with av.open(str(path), "w") as target:
        stream = target.add_stream("libx264", rate=25, options={"crf": "18"})
        stream.width, stream.height, stream.pix_fmt = SIZE_PX, SIZE_PX, "yuv420p"
        for step in range(frames * slowness):
            at = min(step / slowness, frames - 1)
            low = min(int(at), frames - 2)
            pose = truth[low] + (at - low) * (truth[low + 1] - truth[low])
            rgb = _filmed(retina, pose, rng) * disc
            target.mux(stream.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24")))
        target.mux(stream.encode(None))
    return path


def _filmed(retina: ImageU8, pose: np.ndarray, rng: np.random.Generator) -> ImageU8:
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    seen = cv2.warpPerspective(retina, pose, (SIZE_PX, SIZE_PX), flags=flags)
    noise = rng.normal(0, 1.5, (SIZE_PX, SIZE_PX, 1))
    return np.asarray(np.clip(seen + noise, 0, 255), np.uint8)


def measure(video: Path) -> dict[str, float]:
    """CPU seconds of each phase of a build, and what it used."""
    began, frames = time.process_time(), 0
    for _ in open_source(video).frames():
        frames += 1
    row: dict[str, float] = defaultdict(float)
    row |= {"frames": frames, "decode": time.process_time() - began, "libraries MiB": peak_mib()}
    last, phase = time.process_time(), "survey"

    def progress(done: int, total: int, at: str) -> None:
        nonlocal last, phase
        now = time.process_time()
        row[phase] += now - last
        last, phase = now, at

    with tempfile.TemporaryDirectory() as folder:
        mosaic = build_mosaic(video, Path(folder) / "m", progress=progress)
    row[phase] += time.process_time() - last
    row |= {
        "keys": sum(frame.is_key for frame in mosaic.frames),
        "registered": mosaic.registered_count,
        "peak MiB": peak_mib(),
        "whole": sum(row[name] for name in PHASES),
    }
    return dict(row)


def table(rows: list[dict[str, float]]) -> str:
    """The rows as a Markdown table."""
    counted = ("frames", "registered", "keys", "libraries MiB", "peak MiB")
    names = (*counted[:3], "decode", *PHASES, "whole", *counted[3:])
    cells = [[f"{row.get(n, 0):.{0 if n in counted else 1}f}" for n in names] for row in rows]
    return markdown_table(names, cells)


if __name__ == "__main__":
    main()
