"""Faces, and frames outside the body. Pictures of scikit-image stand for both."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import cv2
import numpy as np

from ml.evaluation.revealing.grounds import clean_grounds, frames_of, operations, small
from ml.evaluation.revealing.text import FlaggedPictures
from ml.extras import require_extra
from ml.imaging.revealing.faces import face_boxes
from ml.imaging.revealing.outside import outside_frames
from ml.training.common.stills import read_still
from ml.types import ImageU8, Progress

SIDES_PX = (40, 60, 90, 140)
"""Of a face in a picture of 640 x 480."""
TURNS_DEG = (0, 10, 20, 30)
_FACE = (170, 60, 290, 180)
"""Left, top, right and bottom of the astronaut's face."""
OTHERS = ("coffee", "chelsea", "rocket", "astronaut", "brick", "grass", "motorcycle_left")
"""Pictures of a world outside, by their files in scikit-image; two of them are warm in colour."""
_FRAME = (640, 480)


class TurnedFace(TypedDict):
    """One portrait at one size and angle: how many faces were found in it."""

    side_px: int
    turned_deg: int
    found: int


class SmallPortraits(TypedDict):
    """Portraits, and pieces without a face: how many of each were taken for a face."""

    faces: int
    found: int
    no_faces: int
    flagged: int


class FaceScores(TypedDict):
    """All figures on faces."""

    astronaut: list[TurnedFace]
    small_portraits: SmallPortraits
    without: FlaggedPictures


class OutsideFrames(TypedDict):
    """A video: its own frames that were flagged, and which of the pictures put in were found."""

    video: str
    frames: int
    flagged: int
    found_of_put_in: list[str]


class PersonScores(TypedDict):
    """Faces, and frames outside the body."""

    faces: FaceScores
    outside: list[OutsideFrames]


def measure_persons(data: Path, *, progress: Progress) -> PersonScores:
    """Faces and frames outside the body, found and falsely flagged.

    Raises:
        MissingDependencyError: no scikit-image.
    """
    require_extra("skimage", extra="demo")
    progress(0, 2, "faces")
    faces: FaceScores = {
        "astronaut": _astronaut(),
        "small_portraits": _portraits(),
        "without": _faceless(data),
    }
    progress(1, 2, "frames outside the body")
    return {"faces": faces, "outside": _outside(data)}


def _astronaut() -> list[TurnedFace]:
    """One portrait, in the public domain, in several sizes and turned."""
    from skimage.data import astronaut

    picture = np.asarray(astronaut(), np.uint8)
    middle = ((_FACE[0] + _FACE[2]) / 2, (_FACE[1] + _FACE[3]) / 2)
    rows: list[TurnedFace] = []
    for side in SIDES_PX:
        for turn in TURNS_DEG:
            about = cv2.getRotationMatrix2D(middle, turn, side / (_FACE[2] - _FACE[0]))
            about[:, 2] = about[:, 2] + np.array(_FRAME) / 2 - np.array(middle)
            turned = cv2.warpAffine(picture, about, _FRAME, borderValue=(60, 60, 60))
            seen = np.asarray(turned, np.uint8)
            rows.append({"side_px": side, "turned_deg": turn, "found": len(face_boxes(seen))})
    return rows


def _portraits() -> SmallPortraits:
    """A hundred faces of 25 px out of Labeled Faces in the Wild, enlarged, and non-faces."""
    from skimage.data import lfw_subset

    found = [0, 0]
    pictures = np.asarray(lfw_subset() * 255, np.uint8)
    half = len(pictures) // 2
    for at, grey in enumerate(pictures):
        frame = np.full((_FRAME[1], _FRAME[0], 3), 90, np.uint8)
        frame[100:200, 200:300] = cv2.resize(grey, (100, 100), interpolation=cv2.INTER_CUBIC)[
            ..., None
        ]
        found[at >= half] += bool(face_boxes(frame))
    return {"faces": half, "found": found[0], "no_faces": len(pictures) - half, "flagged": found[1]}


def _faceless(data: Path) -> FlaggedPictures:
    pictures = [image for _, image in clean_grounds(data)]
    pictures += [image for stills in operations(data).values() for image in stills]
    return {"pictures": len(pictures), "flagged": sum(bool(face_boxes(one)) for one in pictures)}


def _outside(data: Path) -> list[OutsideFrames]:
    """Each video as it is, and with pictures of another world among its frames."""
    videos = operations(data)
    videos |= {name: frames_of(data, name) for name in ("fetoscopy", "sinus")}
    others = [_picture(name) for name in OTHERS]
    rows: list[OutsideFrames] = []
    for name, frames in videos.items():
        found = outside_frames([*frames, *others])
        put_in = [OTHERS[at - len(frames)] for at in found if at >= len(frames)]
        told = len(outside_frames(frames))
        rows.append(
            {"video": name, "frames": len(frames), "flagged": told, "found_of_put_in": put_in}
        )
    return rows


def _picture(name: str) -> ImageU8:
    import skimage.data

    path = next(Path(skimage.data.__file__).parent.glob(f"{name}.*"))
    return small(read_still(path))
