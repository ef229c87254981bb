"""Lines of text, read by RapidOCR."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.imaging.phi_detection.text import TextLine, read_text
from tests.ml.imaging.phi_detection.support import named, tissue


def test_a_line_is_read_at_its_position() -> None:
    (line,) = read_text(named(tissue()))
    assert line.text == "Jane Doe 12/03/1961"
    assert line.overlap(TextLine("", 1, 30 / 640, 22 / 400, 260 / 640, 20 / 400)) > 0.5


@pytest.mark.parametrize("turn", [cv2.ROTATE_90_CLOCKWISE, cv2.ROTATE_90_COUNTERCLOCKWISE])
def test_a_line_rotated_by_90_degrees_is_read(turn: int) -> None:
    turned = np.asarray(cv2.rotate(named(tissue()), turn), np.uint8)
    assert "12/03/1961" in read_text(turned)[0].text


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 3_000])
def test_boxes_are_relative_to_the_image_size(width: int) -> None:
    strip = named(tissue(width, 60), "12/03/1961")
    (line,) = read_text(strip)
    assert line.text == "12/03/1961"
    assert line.x * width == pytest.approx(30, abs=12)
    assert (line.y + line.height / 2) * 60 == pytest.approx(31, abs=12)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3_000), (3_000, 2)])
def test_an_image_too_small_for_text_has_none(shape: tuple[int, int]) -> None:
    assert read_text(np.full((*shape, 3), 90, np.uint8)) == []
