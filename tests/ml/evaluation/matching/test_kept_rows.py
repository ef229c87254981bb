"""Rows are read again where nothing that matters has changed, and only there."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from ml.errors import BadInputError
from ml.evaluation.matching import kept_rows, scorers
from ml.evaluation.matching.command import add_arguments, run
from ml.evaluation.matching.kept_rows import (
    ROOT,
    WorkFolder,
    content_of,
    descriptor_key,
    imported_files,
)
from ml.imaging.samples.packaged import packaged_image
from ml.keypoints.descriptors.learned import LearnedDescriptor
from ml.networks.triplet_cnn import TripletCnn, TripletCnnConfig
from ml.types import ArrayBool, ArrayF32, no_progress

PAPERS, HARD = "ml.evaluation.matching.papers", "ml.evaluation.matching.protocols"


@dataclass(frozen=True, slots=True)
class _Row:
    family: str
    right: int
    distance: ArrayF32
    is_right: ArrayBool


ROW = _Row("blur", 3, np.array([0.1, 2.5e-8], np.float32), np.array([True, False]))


def _never() -> list[_Row]:
    raise AssertionError("worked out again")


def test_kept_rows_come_back_to_the_last_bit(tmp_path: Path) -> None:
    work, key = WorkFolder(tmp_path / "new" / "work"), {"name": "papers-sift", "seed": 1}
    assert work.rows(key, _Row, lambda: [ROW]) == [ROW]
    (found,) = work.rows(dict(reversed(key.items())), _Row, _never)
    assert (found.family, found.right) == ("blur", 3)
    np.testing.assert_array_equal(found.distance, ROW.distance)
    assert found.distance.dtype == np.float32
    assert found.is_right.tolist() == [True, False]
    assert work.rows(key | {"seed": 2}, _Row, list) == []
    assert len(list((tmp_path / "new" / "work").iterdir())) == 2


def test_a_damaged_file_and_an_unfinished_one_are_worked_out_again(tmp_path: Path) -> None:
    work, key = WorkFolder(tmp_path), {"name": "hard-orb"}

    def dies() -> list[_Row]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.rows(key, _Row, dies)
    assert list(tmp_path.iterdir()) == []
    work.rows(key, _Row, lambda: [ROW])
    (place,) = tmp_path.iterdir()
    whole = place.read_text()
    for damaged in (whole[:-5], whole.replace("hard-orb", "hard-other"), "[]"):
        place.write_text(damaged)
        assert work.rows(key, _Row, lambda: [ROW]) == [ROW]
        assert place.read_text() == whole


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "work").write_text("")
    with pytest.raises(BadInputError, match="work: expected a folder to keep rows in, got a file"):
        WorkFolder(tmp_path / "work").rows({"name": "x"}, _Row, lambda: [ROW])


def test_a_descriptor_named_by_a_path_gets_a_plain_file_name(tmp_path: Path) -> None:
    WorkFolder(tmp_path).rows({"name": "hard-vit:../a b/c.safetensors"}, _Row, lambda: [ROW])
    (place,) = tmp_path.iterdir()
    assert place.name.startswith("hard-vit-a-b-c-safetensors-")


def test_without_a_folder_nothing_is_kept() -> None:
    assert WorkFolder().rows({"name": "x"}, _Row, lambda: [ROW]) == [ROW]
    assert WorkFolder().rows({"name": "x"}, _Row, list) == []


def test_content_differs_with_a_pixel_a_type_a_name_and_the_end_of_a_part() -> None:
    plane = np.zeros((2, 3), np.uint8)
    other = plane.copy()
    other[1, 2] = 1
    items: list[Any] = [plane, other, plane.T, plane.astype(np.int8), [plane, plane], None]
    items += [0, False, "0", ("ab", "c"), ("a", "bc"), {"a": 1}, {"b": 1}, ROW]
    assert len({content_of(item) for item in items}) == len(items)
    assert content_of({"a": 1, "b": 2}) == content_of({"b": 2, "a": 1})
    with pytest.raises(TypeError, match="got Generator"):
        content_of([np.random.default_rng(0)])


def test_a_descriptors_key_changes_with_one_weight_and_with_its_version() -> None:
    torch.manual_seed(0)
    network = TripletCnn(TripletCnnConfig(channels=2, hidden=(4,), dim=3))
    first = descriptor_key(LearnedDescriptor("triplet", network, version="1"), PAPERS)
    assert descriptor_key(LearnedDescriptor("triplet", network, version="1"), PAPERS) == first
    assert descriptor_key(LearnedDescriptor("triplet", network, version="2"), PAPERS) != first
    with torch.no_grad():
        network.connected[0].bias[0] += 1e-3  # type: ignore[index]
    changed = descriptor_key(LearnedDescriptor("triplet", network, version="1"), PAPERS)
    assert {name for name in first if first[name] != changed[name]} == {"state"}


def test_a_descriptor_depends_on_its_own_code_and_not_on_that_of_others() -> None:
    sift, learned = (
        {str(path.relative_to(ROOT)) for path in imported_files(module, PAPERS)}
        for module in ("ml.keypoints.descriptors.classical", "ml.keypoints.descriptors.learned")
    )
    folder = "ml/keypoints/descriptors"
    assert {f"{folder}/classical.py", "ml/keypoints/detect.py", "ml/types.py"} <= sift
    assert "ml/networks/triplet_cnn.py" in learned - sift
    assert not {f"{folder}/tessera.py", "ml/keypoints/pipeline.py"} & (sift | learned)
    imported = imported_files("ml.keypoints.descriptors.vit", HARD)
    hard = {str(path.relative_to(ROOT)) for path in imported}
    assert {"ml/keypoints/pipeline.py", "ml/networks/vit_adapter.py"} <= hard


def test_comments_and_docstrings_are_no_code(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "ml").mkdir()
    monkeypatch.setattr(kept_rows, "ROOT", tmp_path)
    digests = []
    for text in ("x = 1\n", '"""What."""\n\nx = 1  # why\n', "x = 2\n"):
        (tmp_path / "ml" / "some.py").write_text(text)
        kept_rows.code_digest.cache_clear()
        digests.append(kept_rows.code_digest("ml.some"))
    kept_rows.code_digest.cache_clear()
    assert digests[0] == digests[1] != digests[2]


def test_a_second_run_scores_only_the_descriptor_that_is_new(
    tmp_path: Path, monkeypatch: Any
) -> None:
    folder = tmp_path / "stills"
    folder.mkdir()
    for i in range(2):
        pixels = packaged_image("retina.jpg")[400:600, 300 + 260 * i : 540 + 260 * i, ::-1]
        cv2.imwrite(str(folder / f"scene{i}.png"), pixels)
    described: list[str] = []
    for name in ("papers_pair", "hard_pair", "count_pair"):
        monkeypatch.setattr(scorers, name, _noting(name, described))

    def score(*descriptors: str) -> tuple[dict[str, Any], str]:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        words = [folder, "--images", 2, "--per-family", 1, "--families", "blur", "rotation"]
        words += ["--protocols", "papers", "hard", "unrelated", "--hard-keypoints", 150]
        words += ["--work", tmp_path / "work", "--descriptors", *descriptors]
        result = run(parser.parse_args([str(word) for word in words]), no_progress)
        for row in result["hard"].values():
            del row["seconds"]  # the one number that is measured anew
        return result, json.dumps(result)

    first, text = score("orb")
    # papers and hard: 2 images x 2 families; unrelated: the one pair of two scenes
    assert described == 4 * ["orb papers_pair"] + 4 * ["orb hard_pair"] + ["orb count_pair"]
    described.clear()
    assert score("orb")[1] == text
    assert described == []
    both, _ = score("orb", "akaze")
    assert set(described) == {f"akaze {name}_pair" for name in ("papers", "hard", "count")}
    assert both["papers"]["orb"] == first["papers"]["orb"]
    assert first["hard"]["orb"]["families"]["blur"]["right"] > 50


def _noting(name: str, described: list[str]) -> Any:
    original = getattr(scorers, name)

    def note(descriptor: Any, *args: Any, **more: Any) -> Any:
        described.append(f"{descriptor.name} {name}")
        return original(descriptor, *args, **more)

    return note
