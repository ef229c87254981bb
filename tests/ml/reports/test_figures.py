"""Reproducible figures of a result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ml.cli import main
from ml.reports.figures import figures_of, to_jsonable


@dataclass
class Point:
    x: float


def test_results_are_converted_to_json() -> None:
    value = {"a": np.float32(0.5), 1: [np.nan, np.int64(3)], "p": Point(2.0), "f": Path("x")}
    assert to_jsonable(value) == {"a": 0.5, "1": [None, 3], "p": {"x": 2.0}, "f": "x"}


def test_figures_exclude_times_rows_and_points_of_curves() -> None:
    result = {
        "seconds": {"sift": 2.0},
        "rows": [{"mean_px": 0.5, "cpu_s": 3.0}],
        "pairs": {"rotation": 3},
        "scored_pairs": {"sift": [Point(1.0)]},
        "curves": {"core": {"recall": [0.1, 0.2], "area": np.float64(0.75)}},
        "plots": ["a.png"],
    }
    assert figures_of(result) == {
        "rows": [{"mean_px": 0.5}],
        "pairs": {"rotation": 3},
        "curves": {"core": {"area": 0.75}},
    }


def test_a_command_writes_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "v.npy", np.eye(4, dtype=np.float32))
    words = ["index", "build", str(tmp_path / "i"), str(tmp_path / "v.npy")]
    assert main([*words, "--figures", str(tmp_path / "no" / "f.json")]) == 2
    assert "no such directory" in capsys.readouterr().err
    assert not (tmp_path / "i").exists()
    files = [tmp_path / "all.json", tmp_path / "figures.json"]
    assert main([*words, "--json", str(files[0]), "--figures", str(files[1])]) == 0
    complete, figures = (json.loads(file.read_text()) for file in files)
    assert figures == figures_of(complete) and figures
