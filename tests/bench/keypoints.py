"""One pair of frames matched by every descriptor that loads, against OpenCV's SIFT."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from ml.evaluation.common.descriptors import ALL_NAMES, load_descriptors
from ml.imaging.samples.packaged import packaged_image
from ml.keypoints import load_descriptor, match_images
from ml.types import ImageU8
from tests.bench.measure import Row, Section, each, median_ms

PAIR_SHAPE = (576, 720)
KEYPOINTS = 1_000
REPEATS = 5
AGAINST = "OpenCV SIFT: detect, describe, cross-checked match"


def pair_by_descriptor() -> Section:
    """Detect, describe, match and reject, for each descriptor, on one pair of one run."""
    pair = endoscopic_pair()
    loaded, skipped = load_descriptors(ALL_NAMES)
    default = load_descriptor("default").name
    plain = median_ms(each(sift_alone(pair), range(REPEATS)))
    rows = [Row(AGAINST, plain, "ms")]
    for name in loaded:
        count = len(match_images(*pair, descriptor=name, max_keypoints=KEYPOINTS))

        def ours(_: int, name: str = name) -> None:
            match_images(*pair, descriptor=name, max_keypoints=KEYPOINTS)

        milliseconds = median_ms(each(ours, range(REPEATS)))
        rows.append(
            Row(
                f"{name}{' (the default)' if name == default else ''}, {count} matches",
                milliseconds,
                "ms",
                AGAINST,
                plain / milliseconds,
                "under 500 ms on 2 cores" if name == default else "",
            )
        )
    left_out = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
    return Section(
        f"One {PAIR_SHAPE[0]} x {PAIR_SHAPE[1]} pair, {KEYPOINTS:,} key points",
        "`match_images` with each descriptor: detection, description, matching, rejection and"
        " sub-pixel positions. A packaged picture of a retina under a small known viewpoint change."
        + (f" Not measured: {left_out}." if left_out else ""),
        rows,
    )


def endoscopic_pair() -> tuple[ImageU8, ImageU8]:
    """Two (576, 720, 3) RGB views of one retina, a few degrees and pixels apart."""
    height, width = PAIR_SHAPE
    image = packaged_image("retina.jpg")
    first = np.ascontiguousarray(image[400 : 400 + height, 350 : 350 + width])
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), 6.0, 1.05)
    turn[:, 2] += (7.0, -5.0)
    second = cv2.warpAffine(first, turn, (width, height), borderMode=cv2.BORDER_REFLECT_101)
    return first, np.asarray(second, np.uint8)


def sift_alone(pair: tuple[ImageU8, ImageU8]) -> Callable[[int], None]:
    """The work of OpenCV's SIFT on a pair, nothing of ours in it."""

    def match(_: int) -> None:
        detector = cv2.SIFT_create(KEYPOINTS)
        grey = [cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in pair]
        (_, a), (_, b) = (detector.detectAndCompute(plane, None) for plane in grey)
        cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(a, b)

    return match
