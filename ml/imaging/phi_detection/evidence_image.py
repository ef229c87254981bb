"""Picture of the findings for a manager: an overview, and the places enlarged."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from ml.imaging.results import PixelFinding
from ml.imaging.slides.jpeg import encode_jpeg
from ml.types import ImageU8

WIDTH_PX = 640
"""A column of the page, for screens of double density."""
MAX_PLACES = 4
"""Places shown enlarged."""
_MARGIN = 0.5  # around a place, as a share of its height, so that its surroundings are visible
_MAX_ENLARGEMENT = 4.0  # beyond that only the JPEG's blocks grow
_PLACE_HEIGHT_PX = 240  # of one place
_OVERVIEW_HEIGHT_PX = 960  # of a picture that is higher than wide
_COLOR = (255, 210, 0)  # seen on tissue and on black


def evidence(pictures: Sequence[tuple[PixelFinding, ImageU8]]) -> bytes:
    """Encode a JPEG: the first finding's picture, and below it the places, enlarged.

    Args:
        pictures: findings, each with the picture (H, W, 3) that shows it; one or more.
    """
    first = pictures[0][1]
    findings = [finding for finding, image in pictures if image is first]
    parts = [_overview(first, findings)]
    parts += [
        _place(image, finding) for finding, image in pictures[:MAX_PLACES] if finding.width < 1
    ]
    widest = max(part.shape[1] for part in parts)
    rows = [np.pad(part, ((0, 8), (0, widest - part.shape[1]), (0, 0))) for part in parts]
    return encode_jpeg(np.vstack(rows), quality=80)


def _overview(image: ImageU8, findings: Sequence[PixelFinding]) -> ImageU8:
    small = _scale(image, min(WIDTH_PX / image.shape[1], _OVERVIEW_HEIGHT_PX / image.shape[0]))
    high, wide = small.shape[:2]
    for finding in findings:
        corner = (round(finding.x * wide) - 2, round(finding.y * high) - 2)
        other = (
            round((finding.x + finding.width) * wide) + 2,
            round((finding.y + finding.height) * high) + 2,
        )
        cv2.rectangle(small, corner, other, _COLOR, 2)
    return small


def _place(image: ImageU8, finding: PixelFinding) -> ImageU8:
    high, wide = image.shape[:2]
    margin = max(8.0, _MARGIN * finding.height * high)
    top = max(0, round(finding.y * high - margin))
    left = max(0, round(finding.x * wide - margin))
    bottom = round((finding.y + finding.height) * high + margin)
    right = round((finding.x + finding.width) * wide + margin)
    cut = image[top : max(bottom, top + 1), left : max(right, left + 1)]
    return _scale(
        cut, min(WIDTH_PX / cut.shape[1], _PLACE_HEIGHT_PX / cut.shape[0], _MAX_ENLARGEMENT)
    )


def _scale(image: ImageU8, scale: float) -> ImageU8:
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    return np.ascontiguousarray(cv2.resize(image, size, interpolation=method), np.uint8)
