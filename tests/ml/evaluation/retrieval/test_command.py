"""Protocols of retrieval on known rankings, and the command line."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from ml.cli import main
from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.evaluation.retrieval.protocols import RetrievalOptions, other_patients_scores

HEAD = "image,patient,label,mpp,geometry\n"


def record(patient, label):
    return RoiRecord(Path("x.png"), patient, label, None, None)


def distances(points):
    return np.abs(np.subtract.outer(points, points)).astype(np.float64)


def dots(rng, radius):
    """A 224 px field of dark dots on pink, which differ in size only."""
    image = np.full((224, 224, 3), (225, 170, 200), np.uint8)
    for _ in range(1200 // radius):
        centre = (int(rng.integers(224)), int(rng.integers(224)))
        cv2.circle(image, centre, radius, (95, 60, 140), -1)
    noise = rng.normal(0, 5, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rois")
    rng, rows = np.random.default_rng(0), []
    for patient in range(4):
        for label, radius in (("small", 3), ("large", 9)):
            name = f"{patient}{label}.png"
            Image.fromarray(dots(rng, radius)).save(folder / name)
            rows.append(f"{name},P{patient},{label},,\n")
    (folder / "rois.csv").write_text(HEAD + "".join(rows))
    return folder


def test_the_honest_protocol_excludes_the_patient_of_the_query():
    records = [
        record("A", "x"),
        record("A", "x"),
        record("B", "x"),
        record("B", "y"),
        record("C", "y"),
    ]
    # the twin of the same patient is nearest to every query: it must not count
    scores = other_patients_scores(
        distances([0.0, 0.01, 5.0, 1.0, 1.1]), records, RetrievalOptions()
    )
    # 0 and 1: y(B) y(C) x(B), 1/3; 2: y(C) x(A) x(A), (1/2 + 2/3) / 2; 3 and 4: y first, 1
    assert np.allclose(scores.ap, [1 / 3, 1 / 3, (1 / 2 + 2 / 3) / 2, 1, 1])
    assert scores.patients == ("A", "A", "B", "B", "C")


def test_a_query_without_its_label_in_other_patients_is_not_scored():
    records = [record("A", "x"), record("A", "x"), record("B", "y"), record("C", "y")]
    scores = other_patients_scores(distances([0, 1, 2, 3]), records, RetrievalOptions())
    assert scores.labels == ("y", "y")


def test_queries_without_relevant_regions_raise_an_error():
    records = [record("A", "x"), record("A", "x"), record("B", "y"), record("B", "y")]
    with pytest.raises(BadInputError, match="score"):
        other_patients_scores(distances([0, 1, 2, 3]), records, RetrievalOptions())


def test_the_command_scores_encoder_and_baselines(data_set, tmp_path):
    out = tmp_path / "scores.json"
    assert main(["evaluate", "retrieval", str(data_set), "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    table = report["labels"]["other_patients"]
    assert set(table) == {"chance", "roi-default", "HSV histogram", "LBP", "bag of RootSIFT"}
    assert table["roi-default"]["map"] > 0.95 > table["chance"]["map"] + 0.2
    assert report["n_regions"] == 8 and report["labels"]["n_queries_scored"] == 8


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("nothing.png,P1,x,,\n", "image 'nothing.png' is not there"),
        ("0small.png,P0,x,,\n1small.png,P1,x,,\n2small.png,P2,y,,\n", "label 'y' has one example"),
    ],
)
def test_an_invalid_manifest_ends_with_one_line_and_exit_code_2(data_set, capsys, rows, message):
    good = (data_set / "rois.csv").read_text()
    (data_set / "rois.csv").write_text(HEAD + rows)
    try:
        assert main(["evaluate", "retrieval", str(data_set)]) == 2
    finally:
        (data_set / "rois.csv").write_text(good)
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.parametrize("region", ["", '"POLYGON ((0 0, 90 0, 90 90, 0 90, 0 0))"'])
def test_a_region_without_tissue_ends_with_its_name_and_exit_code_2(
    data_set, tmp_path, capsys, region
):
    for path in data_set.glob("*.png"):
        shutil.copy(path, tmp_path)
    white = np.full((224, 224, 3), 255, np.uint8)
    Image.fromarray(white).save(tmp_path / "white.png")
    rows = (data_set / "rois.csv").read_text() + f"white.png,P9,small,,{region}\n"
    (tmp_path / "rois.csv").write_text(rows)
    assert main(["evaluate", "retrieval", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: white.png: ") and error.count("\n") == 1
    assert "no tissue" in error


def test_weights_of_another_architecture_are_refused(data_set, tmp_path, capsys):
    save_file(
        {"w": np.zeros(3, np.float32)}, tmp_path / "x.safetensors", {"architecture": "yolo-12"}
    )
    words = ["evaluate", "retrieval", str(data_set), "--encoder", str(tmp_path / "x.safetensors")]
    assert main(words) == 2
    assert "x.safetensors: weights of architecture 'yolo-12'" in capsys.readouterr().err


def test_plots_without_matplotlib_raise_an_error_before_scoring(
    data_set, tmp_path, capsys, monkeypatch
):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *a: None if name == "matplotlib" else find_spec(name),
    )
    words = ["evaluate", "retrieval", "--suite", "--data", str(data_set)]
    assert main([*words, "--plots", str(tmp_path / "p")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: this needs the Python package 'matplotlib'")
    assert error.endswith("pip install 'tessera[plots]'\n")


def test_embedding_by_command_writes_the_vectors(data_set, tmp_path, capsys):
    out = tmp_path / "v.npy"
    words = ["embed", str(data_set / "0small.png"), "--out", str(out)]
    assert main([*words, "--polygon", "POLYGON ((10 10, 200 10, 200 200, 10 200, 10 10))"]) == 0
    assert np.load(out).shape[0] == 1
    assert main([*words, "--polygon", "POLYGON ((900 900, 990 900, 990 990, 900 900))"]) == 2
    assert "outside the image of 224 x 224 px" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.endurance
def test_the_default_encoder_beats_chance_on_other_patients(tessera_data, tmp_path):
    out = tmp_path / "glas.json"
    folder = str(tessera_data / "histology/glas")
    groups = ["--groups", "benign=healthy,adenomatous", "malignant=moderate,poor"]
    assert main(["evaluate", "retrieval", folder, *groups, "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    for task in ("labels", "groups"):
        table = report[task]["other_patients"]
        assert table["roi-default"]["map"] > 1.5 * table["chance"]["map"]
        assert table["roi-default"]["map"] > table["bag of RootSIFT"]["map"]
