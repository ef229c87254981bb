"""Process that reads patches in advance for another, see ``ml.imaging.slides.prefetch``.

Each line of its standard input asks for a region, in JSON. It answers with the number of patches in
the shared memory, each time that is full, and with 0 at the end or where it cannot read. It ends
when its input does, so it never outlives its parent.
"""

from __future__ import annotations

import json
import mmap
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from cachetools import LRUCache

from ml.errors import MlError
from ml.imaging.slides.patches import SlidePatches
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.types import DisplayRange

BUFFER_BYTES = 64 * 224 * 224 * 3
"""Size of a reader's buffer: 64 patches of 224 px."""
SLIDES = 2
"""Number of open slides: jobs of one batch are often of two slides."""
GO, STOP = "go", "stop"
_Key = tuple[str, int, int, DisplayRange | None]


class _OpenSlides(LRUCache[_Key, SlideImage]):
    """Slides that close when they are dropped."""

    def popitem(self) -> tuple[_Key, SlideImage]:
        """Drop and close the slide unused for longest."""
        key, slide = super().popitem()
        slide.close()
        return key, slide


def main(descriptor: int) -> None:
    """Serve until the input ends."""
    cv2.setNumThreads(1)  # its siblings use the other cores
    memory = np.frombuffer(mmap.mmap(descriptor, BUFFER_BYTES), np.uint8)
    slides = _OpenSlides(SLIDES)
    for line in sys.stdin:
        try:
            _serve(json.loads(line), memory, slides)
        except (MlError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                return
        _reply(0)


def _serve(request: dict[str, Any], memory: Any, slides: _OpenSlides) -> None:
    side, corners = request["patch_px"], [(x, y) for x, y in request["corners"]]
    size = side * side * 3
    capacity = BUFFER_BYTES // size
    if not capacity:
        return  # a single patch is larger than the buffer: the caller reads it
    display_range = request["display_range"]
    slide = _open_slide(
        request["path"], DisplayRange(**display_range) if display_range else None, slides
    )
    source = SlidePatches(
        slide, downsample=request["downsample"], corners_px=corners, patch_px=side
    )
    for start in range(0, len(corners), capacity):
        part = corners[start : start + capacity]
        for at, corner in enumerate(part):
            memory[at * size : (at + 1) * size] = source.read(corner, side).reshape(-1)
        _reply(len(part))
        if sys.stdin.readline().strip() != GO:
            return


def _reply(count: int) -> None:
    sys.stdout.write(f"{count}\n")
    sys.stdout.flush()


def _open_slide(path: str, display_range: DisplayRange | None, slides: _OpenSlides) -> SlideImage:
    state = Path(path).stat()
    key = (path, state.st_mtime_ns, state.st_size, display_range)
    if key not in slides:
        slides[key] = open_slide(path, display_range=display_range)
    return slides[key]


if __name__ == "__main__":
    main(int(sys.argv[1]))
