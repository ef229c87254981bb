"""What the limited child process runs after a file was inspected: does its picture reveal somebody?

Time and memory depend on no claim of the file: one picture of at most ``LONG_SIDE_PX``, or
``FRAMES_MOST`` frames of at most ``FRAME_SIDE_PX``, are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import cv2
import numpy as np

from ml.imaging.inspections import LookedThrough, Revealing
from ml.imaging.revealing.evidence import evidence
from ml.imaging.revealing.faces import FaceBox, face_boxes
from ml.imaging.revealing.letters import (
    SURE,
    SURE_ONCE,
    TextBox,
    boxes_of,
    standing_heat,
    text_heat,
)
from ml.imaging.revealing.outside import outside_frames
from ml.imaging.slides import open_slide
from ml.imaging.videos import load_frame_table
from ml.imaging.videos.filmstrip import DECODED_WHOLE, evenly, frames_near
from ml.types import ArrayF32, FrameTable, ImageU8, JsonObject, Progress, no_progress

LONG_SIDE_PX = 2_560
"""Of a slide's overview or a still; capitals of a 365th of it are found."""
FRAME_SIDE_PX = 1_280
FRAMES_MOST = 16
"""Of a video, at even steps: five seconds of work."""
MOST_FOUND = 20
"""Places reported; a page of text has more."""
EVIDENCE_NAME = "evidence.jpg"
_STANDING_LEAST = 3  # frames of one size among others: fewer cannot show that text stands still
_DECODED_PIXELS = DECODED_WHOLE * 1_920 * 1_080  # its frames, of 1080p
_WHOLE = (0.0, 0.0, 1.0, 1.0)
_KINDS = ("face", "text", "outside")

Frame = tuple[float, ImageU8]


def look_at_slide(
    *, path: str, out_dir: str, faces: bool, text: bool, progress: Progress = no_progress
) -> JsonObject:
    """Look at a slide's overview or a still.

    Args:
        faces, text: what to look for.
    Returns:
        ``LookedThrough`` as JSON; a picture of what was found, if any, is written into ``out_dir``.
    """
    with open_slide(path) as slide:
        picture = slide.thumbnail(LONG_SIDE_PX)
    progress(1, 2, "looking for text")
    found = [_of_text(box, None) for box in boxes_of(text_heat(picture), sure=SURE)] if text else []
    found += [_of_face(box, None) for box in face_boxes(picture)] if faces else []
    return _answer([(one, picture) for one in found], Path(out_dir))


def look_at_video(
    *,
    path: str,
    out_dir: str,
    frames: str,
    is_long: bool,
    faces: bool,
    text: bool,
    progress: Progress = no_progress,
) -> JsonObject:
    """Look at frames of a video: text that stands still, text of a moment, faces, the outside.

    Args:
        frames: path of the video's frame table; frames at even steps are taken.
        is_long: take the key frames before them instead.
        faces: look for faces and for frames outside the body.
    Returns, Raises: as ``look_at_slide``, and as ``filmstrip``.
    """
    taken = _frames(path, load_frame_table(frames), is_long=is_long)
    shown: list[tuple[Revealing, ImageU8]] = []
    if text:
        for box, at in text_of_frames([frame for _, frame in taken], progress):
            at_s = None if at is None else taken[at][0]
            shown.append((_of_text(box, at_s), taken[at or 0][1]))
    if faces:
        for at_s, frame in taken:
            shown += [(_of_face(box, at_s), frame) for box in face_boxes(frame)]
        for at in outside_frames([frame for _, frame in taken]):
            at_s, frame = taken[at]
            shown.append((Revealing("outside", *_WHOLE, at_s=at_s), frame))
    return _answer(shown, Path(out_dir))


def is_looked_at_by_key_frames(frame_count: int, frame_pixels: int) -> bool:
    """Whether a video is too long to be decoded from end to end for a look."""
    return frame_count > DECODED_WHOLE or frame_count * frame_pixels > _DECODED_PIXELS


def _frames(path: str, table: FrameTable, *, is_long: bool) -> list[Frame]:
    """Frames with their seconds from the first; none twice."""
    found: dict[int, ImageU8] = {}
    indices = sorted(set(evenly(table, FRAMES_MOST)))
    for index, rgb in frames_near(path, table, indices, is_long=is_long):
        if index not in found:
            found[index] = _reduced(rgb)
    time_s = table.time_s
    return [(float(time_s[index] - time_s[0]), rgb) for index, rgb in found.items()]


def _reduced(rgb: ImageU8) -> ImageU8:
    scale = FRAME_SIDE_PX / max(rgb.shape[:2])
    if scale >= 1:
        return rgb
    size = (max(1, round(rgb.shape[1] * scale)), max(1, round(rgb.shape[0] * scale)))
    return np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), np.uint8)


def text_of_frames(
    frames: Sequence[ImageU8], progress: Progress = no_progress
) -> list[tuple[TextBox, int | None]]:
    """Text that stands over all frames, with None, then that of single frames, with their number.

    Args:
        frames: (H, W, 3) each. Of several sizes, text that stands over those of one has the number
            of the first of them.
    """
    heats: dict[tuple[int, ...], dict[int, list[ArrayF32]]] = {}
    for at, frame in enumerate(frames):
        progress(at, len(frames) + 1, "looking for text")
        heats.setdefault(frame.shape, {})[at] = text_heat(frame)
    standing: list[tuple[TextBox, int | None]] = []
    passing: list[tuple[TextBox, int | None]] = []
    for of_size in heats.values():
        known: list[TextBox] = []
        if len(of_size) >= _STANDING_LEAST or len(heats) == 1:
            known = boxes_of(standing_heat(list(of_size.values())), sure=SURE)
            standing += [(box, None if len(heats) == 1 else min(of_size)) for box in known]
        for at, heat in of_size.items():
            for box in boxes_of(heat, sure=SURE_ONCE):
                if all(box.overlap(other) == 0 for other in known):
                    known.append(box)
                    passing.append((box, at))
    return [*standing, *passing]


def _of_text(box: TextBox, at_s: float | None) -> Revealing:
    return Revealing("text", box.x, box.y, box.width, box.height, at_s=at_s)


def _of_face(box: FaceBox, at_s: float | None) -> Revealing:
    return Revealing("face", box.x, box.y, box.width, box.height, at_s=at_s)


def _answer(shown: Sequence[tuple[Revealing, ImageU8]], folder: Path) -> JsonObject:
    shown = _by_turns(shown)
    if shown:
        (folder / EVIDENCE_NAME).write_bytes(evidence(shown))
    found = tuple(one for one, _ in shown[:MOST_FOUND])
    return asdict(LookedThrough(found, EVIDENCE_NAME if shown else None))


def _by_turns(shown: Sequence[tuple[Revealing, ImageU8]]) -> list[tuple[Revealing, ImageU8]]:
    """The first of each kind, then the second, so that a kind with many hides no other."""
    turns: Counter[str] = Counter()
    ranked = []
    for one in shown:
        kind = one[0].kind
        ranked.append((turns[kind], _KINDS.index(kind), one))
        turns[kind] += 1
    return [one for *_, one in sorted(ranked, key=lambda row: row[:2])]
