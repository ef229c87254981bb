"""Boxes of text, by the network that comes with Tessera."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ml.imaging.revealing.letters import TextBox, boxes_of, standing_heat, text_boxes, text_heat
from tests.ml.imaging.revealing.support import named, tissue


def test_a_name_is_found_where_it_stands() -> None:
    found = text_boxes(named(tissue()))
    truth = TextBox(30 / 640, 22 / 400, 260 / 640, 20 / 400, 1.0)
    assert found
    assert found[0].overlap(truth) > 0.5


def test_large_letters_are_found_in_a_reduced_picture() -> None:
    image = tissue(1200, 800)
    cv2.putText(image, "JANE DOE", (60, 500), cv2.FONT_HERSHEY_SIMPLEX, 6, (255, 255, 0), 16)
    assert any(box.width > 0.5 and box.height > 0.1 for box in text_boxes(image))


@pytest.mark.parametrize("seed", range(4))
def test_noise_stripes_and_shapes_are_no_text(seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, (200, 300, 3), np.uint8)
    stripes = np.repeat(np.tile(np.arange(300) // (seed + 3) % 2 * 255, (200, 1))[..., None], 3, 2)
    shapes = tissue(seed=seed)
    cv2.rectangle(shapes, (20, 30), (150, 120), (255, 255, 255), 2)
    cv2.circle(shapes, (400, 200), 150, (0, 255, 0), 3)
    cv2.line(shapes, (50, 350), (150, 350), (255, 255, 255), 6)
    for image in (noise, stripes.astype(np.uint8), shapes, np.zeros((60, 60, 3), np.uint8)):
        assert text_boxes(image) == []


def test_faint_text_stands_out_of_moving_frames() -> None:
    heats = [text_heat(named(tissue(seed=seed))) for seed in range(4)]
    moving = [text_heat(named(tissue(seed=seed), xy=(30, 60 + 80 * seed))) for seed in range(4)]
    assert boxes_of(standing_heat(heats), sure=0.88)
    assert not boxes_of(standing_heat(moving), sure=0.88)


def test_lines_over_each_other_are_told_once() -> None:
    one, other = TextBox(0, 0, 0.5, 0.1, 1), TextBox(0.1, 0, 0.2, 0.1, 0.9)
    assert one.overlap(other) == pytest.approx(1.0)
    assert one.overlap(TextBox(0.6, 0, 0.2, 0.1, 0.9)) == 0
