"""Faces and frames outside the body, measured on pictures of scikit-image."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import cv2
import numpy as np

from ml.evaluation.phi.stills import clean_stills, frames_of, operations, small
from ml.extras import require_extra
from ml.imaging.phi_detection.faces import face_boxes
from ml.imaging.phi_detection.outside_body import outside_frames
from ml.training.common.stills import read_still
from ml.types import ImageU8, Progress

SIDES_PX = (40, 60, 90, 140)
"""Sides of a face in a picture of 640 x 480."""
TURNS_DEG = (0, 10, 20, 30)
_FACE = (170, 60, 290, 180)
"""Left, top, right and bottom of the astronaut's face."""
OTHERS = ("coffee", "chelsea", "rocket", "astronaut", "brick", "grass", "motorcycle_left")
"""Pictures from outside the body, by their files in scikit-image; two have warm colours."""
_FRAME = (640, 480)


class FlaggedPictures(TypedDict):
    """Pictures of a set, and how many were flagged."""

    pictures: int
    flagged: int


class TurnedFace(TypedDict):
    """Number of faces found in one portrait at one size and angle."""

    side_px: int
    turned_deg: int
    found: int


class SmallPortraits(TypedDict):
    """Numbers of portraits and of pieces without a face, and of faces found in each."""

    faces: int
    found: int
    no_faces: int
    flagged: int


class FaceScores(TypedDict):
    """Scores of face detection."""

    astronaut: list[TurnedFace]
    small_portraits: SmallPortraits
    without: FlaggedPictures


class OutsideFrames(TypedDict):
    """A video: its flagged frames, and the inserted pictures that were found."""

    video: str
    frames: int
    flagged: int
    found_of_put_in: list[str]


class PersonScores(TypedDict):
    """Scores of face detection and of frames outside the body."""

    faces: FaceScores
    outside: list[OutsideFrames]


def measure_persons(data: Path, *, progress: Progress) -> PersonScores:
    """Measure detected and falsely flagged faces and frames outside the body.

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
    """Scores of one portrait (public domain) in several sizes and rotations."""
    from skimage.data import astronaut

    picture = np.asarray(astronaut(), np.uint8)
    middle = ((_FACE[0] + _FACE[2]) / 2, (_FACE[1] + _FACE[3]) / 2)
    rows: list[TurnedFace] = []
    for side in SIDES_PX:
        for turn in TURNS_DEG:
            about = cv2.getRotationMatrix2D(middle, turn, side / (_FACE[2] - _FACE[0]))
            about[:, 2] = about[:, 2] + np.array(_FRAME) / 2 - np.array(middle)
            turned = cv2.warpAffine(picture, about, _FRAME, borderValue=(60, 60, 60))
            rgb = np.asarray(turned, np.uint8)
            rows.append({"side_px": side, "turned_deg": turn, "found": len(face_boxes(rgb))})
    return rows


def _portraits() -> SmallPortraits:
    """Scores of a hundred enlarged faces of Labeled Faces in the Wild, and of non-faces."""
    from skimage.data import lfw_subset

    flagged = [0, 0]
    pictures = np.asarray(lfw_subset() * 255, np.uint8)
    half = len(pictures) // 2
    for at, grey in enumerate(pictures):
        frame = np.full((_FRAME[1], _FRAME[0], 3), 90, np.uint8)
        frame[100:200, 200:300] = cv2.resize(grey, (100, 100), interpolation=cv2.INTER_CUBIC)[
            ..., None
        ]
        flagged[at >= half] += bool(face_boxes(frame))
    return {
        "faces": half,
        "found": flagged[0],
        "no_faces": len(pictures) - half,
        "flagged": flagged[1],
    }


def _faceless(data: Path) -> FlaggedPictures:
    pictures = list(clean_stills(data))
    pictures += [image for stills in operations(data).values() for image in stills]
    return {
        "pictures": len(pictures),
        "flagged": sum(bool(face_boxes(picture)) for picture in pictures),
    }


def _outside(data: Path) -> list[OutsideFrames]:
    """Scores of each video without and with inserted pictures from outside."""
    videos = operations(data)
    videos |= {name: frames_of(data, name) for name in ("fetoscopy", "sinus")}
    pictures = [_picture(name) for name in OTHERS]
    rows: list[OutsideFrames] = []
    for name, frames in videos.items():
        outside = outside_frames([*frames, *pictures])
        put_in = [OTHERS[at - len(frames)] for at in outside if at >= len(frames)]
        flagged = len(outside_frames(frames))
        rows.append(
            {"video": name, "frames": len(frames), "flagged": flagged, "found_of_put_in": put_in}
        )
    return rows


def _picture(name: str) -> ImageU8:
    import skimage.data

    path = next(Path(skimage.data.__file__).parent.glob(f"{name}.*"))
    return small(read_still(path))
