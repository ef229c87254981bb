"""``rois.csv``: errors are named with their line."""

from __future__ import annotations

import pytest

from ml.errors import BadInputError
from ml.evaluation.retrieval.manifest import (
    grouped,
    parse_groups,
    read_manifest,
    require_examples,
)

HEAD = "image,patient,label,mpp,geometry\n"


@pytest.fixture
def folder(tmp_path):
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def write(folder, text):
    (folder / "rois.csv").write_text(text)
    return folder


def test_a_manifest_is_read(folder):
    write(folder, HEAD + 'a.png,P1,x,0.5,"POLYGON ((0 0, 9 0, 9 9, 0 0))"\nb.png,P2,y,,\n')
    first, second = read_manifest(folder)
    assert (first.patient, first.label, first.mpp, first.geometry.area) == ("P1", "x", 0.5, 40.5)
    assert second.mpp is None and second.geometry is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "c.png,P1,x,,\n", r"line 2: image 'c\.png' is not there"),
        (HEAD + "a.png,P1,,,\n", "line 2: label is empty"),
        (HEAD + "a.png,P1,x,big,\n", "line 2: mpp: expected microns per pixel, got 'big'"),
        (HEAD + "a.png,P1,x,nan,\n", "line 2: mpp: expected microns per pixel, got 'nan'"),
        (HEAD + "a.png,P1,x,,POLYGON\n", "line 2: geometry is not WKT"),
        (HEAD + "a.png,P1,x,,POINT (1 2)\n", "line 2: geometry: expected a polygon with area"),
        (
            HEAD + 'a.png,P1,x,,"POLYGON ((0 0, 9 0, nan 9, 0 0))"\n',
            "line 2: geometry has a coordinate that is not a finite number",
        ),
        ("image,label\n", "column 'patient' is missing"),
        (HEAD, "no regions in it"),
    ],
)
def test_a_bad_manifest_raises_an_error(folder, text, message):
    with pytest.raises(BadInputError, match=message):
        read_manifest(write(folder, text))


def test_a_folder_without_a_manifest_raises_an_error(folder):
    with pytest.raises(BadInputError, match=r"rois\.csv"):
        read_manifest(folder)


def test_a_label_with_one_example_raises_an_error(folder):
    write(folder, HEAD + "a.png,P1,x,,\nb.png,P2,x,,\na.png,P3,rare,,\n")
    with pytest.raises(BadInputError, match="'rare'"):
        require_examples(read_manifest(folder))


def test_a_single_label_raises_an_error(folder):
    write(folder, HEAD + "a.png,P1,x,,\nb.png,P2,x,,\n")
    with pytest.raises(BadInputError, match="'x'"):
        require_examples(read_manifest(folder))


def test_labels_are_grouped_and_a_missing_one_raises_an_error(folder):
    records = read_manifest(write(folder, HEAD + "a.png,P1,x,,\nb.png,P2,y,,\n"))
    assert [r.label for r in grouped(records, parse_groups(["both=x,y"]))] == ["both", "both"]
    with pytest.raises(BadInputError, match="'y'"):
        grouped(records, parse_groups(["one=x"]))
    with pytest.raises(BadInputError, match="no region has label 'z'"):
        grouped(records, parse_groups(["one=x,z", "two=y"]))
    with pytest.raises(BadInputError, match=r"expected NAME=LABEL,LABEL"):
        parse_groups(["x,y"])
