"""Adjacent sections, on encoders whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError
from ml.evaluation.retrieval.sections.pairs import adjacent_sections, section_pairs


def test_the_same_place_is_found_in_the_next_section(tmp_path, mean_colour, section):
    pair = (section(tmp_path / "a.png", 0, 0.0), section(tmp_path / "b.png", 40, 0.4))
    found = adjacent_sections(mean_colour, [pair], cell_um=70.0, mpp=1.0)
    assert found["pairs"][0]["overlap"] > 0.9 and found["pairs"][0]["cells"] >= 15
    assert found["recall_at_1"] > 0.8 > 2 * found["chance_at_1"]
    assert section_pairs(tmp_path) == [pair]


def test_sections_are_neighbours_in_the_order_of_their_numbers(tmp_path):
    for number in (1, 2, 9, 10):
        (tmp_path / f"cut_{number}.png").write_bytes(b"x")
    names = [(a.name, b.name) for a, b in section_pairs(tmp_path)]
    assert names == [
        ("cut_1.png", "cut_2.png"),
        ("cut_2.png", "cut_9.png"),
        ("cut_9.png", "cut_10.png"),
    ]


def test_an_encoder_that_sees_nothing_is_at_chance(tmp_path, section):
    class Noise:
        rng = np.random.default_rng(0)

        def embed(self, image, polygon=None, mpp=None):
            return self.rng.random(3).astype(np.float32)

    pair = (section(tmp_path / "a.png", 0, 0.0), section(tmp_path / "b.png", 0, 0.0))
    found = adjacent_sections(Noise(), [pair], cell_um=40.0, mpp=1.0)
    assert found["recall_at_1"] == pytest.approx(found["chance_at_1"], abs=0.15)


def test_sections_that_do_not_belong_together_are_refused(tmp_path, mean_colour, section):
    image = np.full((900, 900, 3), 240, np.uint8)
    image[440:460, 50:850] = 60
    Image.fromarray(image).save(tmp_path / "line.png")
    with pytest.raises(BadInputError, match="not adjacent sections"):
        adjacent_sections(
            mean_colour, [(tmp_path / "line.png", section(tmp_path / "a.png", 0, 0))], mpp=1.0
        )
    with pytest.raises(BadInputError, match="two sections or more"):
        adjacent_sections(mean_colour, [])
