"""Mosaics. ``make bench`` measures them; ``python -m tests.bench.mosaics --write`` only them."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

from ml.imaging.samples.video import make_sample_video
from ml.imaging.videos.video import iter_frames
from ml.keypoints import match_images
from ml.mosaic import build_mosaic
from tests.bench import report
from tests.bench.measure import Row, Section, each, median_ms

TITLE = "Mosaics"
PAIR_SHAPE = (576, 720)


def mosaic_of_frames(folder: Path) -> Section:
    """A mosaic of 100 frames, against matching a pair of them."""
    video = folder / "sweep.mp4"
    make_sample_video(video)
    frames = [frame for _, _, frame in iter_frames(video)][:100]
    height, width = PAIR_SHAPE
    pair = [cv2.resize(frame, (width, height)) for frame in (frames[10], frames[12])]

    def ours(_: int) -> None:
        match_images(*pair)

    ours(0)
    matching = each(ours, range(5))
    began = time.perf_counter()
    mosaic = build_mosaic(np.stack(frames), folder / "mosaic")
    seconds = time.perf_counter() - began
    return Section(
        TITLE,
        "Frames of the sample video (a simulated sweep over a retina), the default descriptor.",
        [
            Row(
                f"mosaic of {len(frames)} frames, a frame ({mosaic.registered_count} registered)",
                1e3 * seconds / len(frames),
                "ms a frame",
                f"matching one pair of its frames at {height} x {width} px",
                median_ms(matching) / (1e3 * seconds / len(frames)),
                "100 frames under 60 s (600 ms a frame)",
            ),
        ],
    )


def main() -> int:
    """Measure, print, write the section into the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        section = mosaic_of_frames(Path(name))
    report.tell(section, after=TITLE, write=options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
