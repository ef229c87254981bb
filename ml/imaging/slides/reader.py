"""The process that reads patches ahead of another, see ``ml.imaging.slides.ahead``.

Each line of its standard input asks for a region, in JSON. It answers with how many patches lie in
the shared memory, each time that is full, and with 0 at the end or where it cannot read. It ends
when its input does, so it never outlives its parent.
"""

from __future__ import annotations

import json
import mmap
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ml.errors import MlError
from ml.imaging.slides.patches import SlidePatches
from ml.imaging.slides.slide import SlideImage, open_slide
from ml.types import DisplayRange

BUFFER_BYTES = 64 * 224 * 224 * 3
"""Of a reader: 64 patches of 224 px."""
SLIDES = 2
"""Slides kept open: jobs of one batch are often of two slides."""
GO, STOP = "go", "stop"
_Key = tuple[str, int, int, DisplayRange | None]


def main(descriptor: int) -> None:
    """Serve until the input ends."""
    cv2.setNumThreads(1)  # its siblings use the other cores
    memory = np.frombuffer(mmap.mmap(descriptor, BUFFER_BYTES), np.uint8)
    slides: OrderedDict[_Key, SlideImage] = OrderedDict()
    for line in sys.stdin:
        try:
            _serve(json.loads(line), memory, slides)
        except (MlError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                return
        _tell(0)


def _serve(asked: dict[str, Any], memory: Any, slides: OrderedDict[_Key, SlideImage]) -> None:
    side, corners = asked["patch_px"], [(x, y) for x, y in asked["corners"]]
    size = side * side * 3
    most = BUFFER_BYTES // size
    if not most:
        return  # one patch alone is larger: its owner reads it
    stated = asked["display_range"]
    slide = _opened(asked["path"], DisplayRange(**stated) if stated else None, slides)
    source = SlidePatches(slide, downsample=asked["downsample"], corners_px=corners, patch_px=side)
    for start in range(0, len(corners), most):
        part = corners[start : start + most]
        for at, corner in enumerate(part):
            memory[at * size : (at + 1) * size] = source.read(corner, side).reshape(-1)
        _tell(len(part))
        if sys.stdin.readline().strip() != GO:
            return


def _tell(count: int) -> None:
    sys.stdout.write(f"{count}\n")
    sys.stdout.flush()


def _opened(
    path: str, display_range: DisplayRange | None, slides: OrderedDict[_Key, SlideImage]
) -> SlideImage:
    state = Path(path).stat()
    key = (path, state.st_mtime_ns, state.st_size, display_range)
    if key not in slides:
        slides[key] = open_slide(path, display_range=display_range)
    slides.move_to_end(key)
    while len(slides) > SLIDES:
        slides.popitem(last=False)[1].close()
    return slides[key]


if __name__ == "__main__":
    main(int(sys.argv[1]))
