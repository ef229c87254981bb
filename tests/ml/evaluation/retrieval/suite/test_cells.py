"""Adjacent sections as a set of a suite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from ml.errors import BadInputError
from ml.evaluation.retrieval.suite.cells import section_pairs, section_set
from ml.evaluation.retrieval.suite.config import SetConfig
from ml.types import no_progress
from tests.ml.evaluation.retrieval.suite.conftest import stained_dots

CONFIG = SetConfig(name="s", kind="sections", path="sections", patient="C", cell_um=64.0)


@pytest.fixture(scope="module")
def sections(tmp_path_factory):
    """Two sections of the same block: an oblong of tissue on glass, 0.5 um per pixel."""
    folder = tmp_path_factory.mktemp("block")
    (folder / "sections").mkdir()
    for number in range(2):
        image = np.full((900, 1300, 3), 245, np.uint8)
        image[100:800, 100:1200] = np.tile(stained_dots(5, seed=number), (4, 5, 1))[:700, :1100]
        Image.fromarray(image).save(folder / "sections" / f"{number}.png")
    return folder


def test_the_same_place_and_its_neighbours_are_correct_answers_in_the_next_section(sections):
    suite_set = section_set(CONFIG, sections, no_progress)
    (task,) = suite_set.tasks
    count = len(task.queries)
    assert len(suite_set.items) == 2 * count and len(suite_set.gallery) == count >= 20
    for query in task.queries:
        assert query.item not in set(query.gallery.tolist())
        assert query.relevant[query.item]  # the cell itself
        assert 2 <= query.relevant.sum() <= 9
        assert query.label == "0 in 1"
    assert {item.patient for item in suite_set.items} == {"s/C"}
    assert {item.stained for item in suite_set.items} == {"s/0", "s/1"}


def test_cells_within_half_a_side_are_correct_answers(sections):
    config = replace(CONFIG, cell_um=128.0, stride_um=32.0)
    (task,) = section_set(config, sections, no_progress).tasks
    assert len(task.queries) > len(section_set(CONFIG, sections, no_progress).tasks[0].queries)
    # Cells at 0, 32 and 64 um to either side, in both directions: 25 but at the rim.
    assert max(query.relevant.sum() for query in task.queries) == 25
    assert min(query.relevant.sum() for query in task.queries) > 1


def test_only_the_cell_itself_is_correct_among_cells_of_other_patients(sections):
    others = {"sections/1.png": "B"}
    suite_set = section_set(replace(CONFIG, single=True, others=others), sections, no_progress)
    (task,) = suite_set.tasks
    count = len(section_set(CONFIG, sections, no_progress).tasks[0].queries)
    other_items = [n for n, item in enumerate(suite_set.items) if item.patient == "s/B"]
    assert task.name == "one place" and len(task.queries) == count and len(other_items) > 10
    for query in task.queries:
        assert query.gallery.tolist()[count:] == other_items
        assert query.relevant.sum() == 1 and query.relevant[query.item - len(other_items)]
    assert set(suite_set.gallery) == set(task.queries[0].gallery.tolist())
    assert suite_set.items[other_items[0]].read().pixels.shape == (64, 64, 3)


def test_a_missing_slide_of_another_patient_raises_an_error(sections):
    with pytest.raises(BadInputError, match=r"^no\.png: no such slide"):
        section_set(replace(CONFIG, others={"no.png": "B"}), sections, no_progress)


def test_cells_are_sampled_per_millimetre(sections):
    task = section_set(CONFIG, sections, no_progress).tasks[0]
    assert len({query.group for query in task.queries}) == 1  # all of it is within one


def test_a_cell_is_read_at_a_micron_per_pixel(sections):
    suite_set = section_set(CONFIG, sections, no_progress)
    region = suite_set.items[0].read()
    assert region.pixels.shape == (64, 64, 3) and region.mpp == 1.0


def test_a_folder_of_one_section_raises_an_error(tmp_path):
    (tmp_path / "sections").mkdir()
    with pytest.raises(BadInputError, match=r"^sections: "):
        section_set(CONFIG, tmp_path, no_progress)


def test_sections_are_neighbours_in_the_order_of_their_numbers(tmp_path):
    for number in (1, 2, 9, 10):
        (tmp_path / f"cut_{number}.png").write_bytes(b"x")
    names = [(a.name, b.name) for a, b in section_pairs(tmp_path)]
    assert names == [
        ("cut_1.png", "cut_2.png"),
        ("cut_2.png", "cut_9.png"),
        ("cut_9.png", "cut_10.png"),
    ]


def test_sections_with_incompatible_outlines_raise_an_error(sections, tmp_path):
    folder = tmp_path / "sections"
    folder.mkdir()
    (folder / "b.png").write_bytes((sections / "sections" / "0.png").read_bytes())
    line = np.full((900, 900, 3), 240, np.uint8)
    line[440:460, 50:850] = 60
    Image.fromarray(line).save(folder / "a.png")
    with pytest.raises(BadInputError, match="adjacent"):
        section_set(CONFIG, tmp_path, no_progress)


def test_rearranged_cells_are_incorrect_answers(sections):
    plain = section_set(CONFIG, sections, no_progress)
    suite_set = section_set(replace(CONFIG, rearranged=1), sections, no_progress)
    assert len(suite_set.gallery) == 2 * len(plain.gallery)
    for query, same in zip(suite_set.tasks[0].queries, plain.tasks[0].queries, strict=True):
        count = len(same.gallery)
        assert np.array_equal(query.relevant[:count], same.relevant)
        assert not query.relevant[count:].any()
