"""The stain of a DICOM object: by codes that are all known, or in a known word."""

from __future__ import annotations

from typing import Any

import pytest
from pydicom.dataset import Dataset

from ml.imaging.staining.dicom import preparation_of, stain_of
from ml.imaging.staining.terms import STAIN_NAMES


def of(steps: list[Dataset]) -> Dataset:
    data, specimen = Dataset(), Dataset()
    specimen.SpecimenPreparationSequence = steps
    data.SpecimenDescriptionSequence = [specimen]
    return data


def code(scheme: str, value: str) -> Dataset:
    dataset = Dataset()
    dataset.CodingSchemeDesignator, dataset.CodeValue, dataset.CodeMeaning = (
        scheme,
        value,
        "Jane Doe",
    )
    return dataset


def item(name: tuple[str, str], value: tuple[str, str] | str) -> Dataset:
    dataset = Dataset()
    dataset.ConceptNameCodeSequence = [code(*name)]
    if isinstance(value, str):
        dataset.ValueType, dataset.TextValue = "TEXT", value
    else:
        dataset.ValueType, dataset.ConceptCodeSequence = "CODE", [code(*value)]
    return dataset


def stained_with(*values: tuple[str, str] | str, old: bool = False) -> Dataset:
    """One step of staining, in SNOMED's codes of today or in those of before."""
    using = ("SRT", "G-C350") if old else ("SCT", "424361007")
    staining = ("SRT", "P3-00003") if old else ("SCT", "127790008")
    step = Dataset()
    step.SpecimenPreparationStepContentItemSequence = [
        item(("DCM", "111701"), staining),
        *(item(using, value) for value in values),
    ]
    return of([step])


HEMATOXYLIN, EOSIN, PAS = (("SCT", entry) for entry in ("12710003", "36879007", "255808002"))


@pytest.mark.parametrize(
    ("values", "stain"),
    [
        ([HEMATOXYLIN, EOSIN], "H&E"),
        ([HEMATOXYLIN, ("SCT", "83600004")], "H&E"),
        ([HEMATOXYLIN, EOSIN, ("SCT", "38271009")], "HES"),
        ([PAS, HEMATOXYLIN], "PAS"),
        ([PAS, ("SCT", "4656000")], "Alcian blue-PAS"),
        ([HEMATOXYLIN], "Hematoxylin"),
        ([("SCT", "65580004")], "Alizarin red S"),
        ([("SCT", "373646006"), ("SCT", "385484003")], "Giemsa + Gram"),
        (["Hematoxylin and Eosin"], "H&E"),
    ],
)
def test_stains_are_recognised_by_their_substances(values: list[Any], stain: str) -> None:
    assert stain_of(stained_with(*values)) == stain


def test_older_codes_are_recognised() -> None:
    assert stain_of(stained_with(("SRT", "C-22968"), ("SRT", "C-22919"), old=True)) == "H&E"


@pytest.mark.parametrize(
    "data",
    [
        Dataset(),
        of([]),
        of([Dataset()]),
        stained_with(),
        stained_with("of Jane Doe"),
        stained_with(HEMATOXYLIN, ("99LAB", "anti-CD3")),
        stained_with("H&E", "PAS"),
    ],
    ids=["nothing", "no step", "empty", "no substance", "words", "own code", "two"],
)
def test_an_unknown_code_is_no_stain(data: Dataset) -> None:
    assert stain_of(data) == ""


def test_an_item_without_its_value_is_no_stain() -> None:
    data = stained_with(HEMATOXYLIN)
    step = data.SpecimenDescriptionSequence[0].SpecimenPreparationSequence[0]
    del step.SpecimenPreparationStepContentItemSequence[1].ConceptCodeSequence
    assert stain_of(data) == ""


def test_an_embedding_medium_is_no_stain() -> None:
    step = Dataset()
    step.SpecimenPreparationStepContentItemSequence = [
        item(("DCM", "111701"), ("SCT", "40923002")),
        item(("SCT", "424361007"), HEMATOXYLIN),
    ]
    assert stain_of(of([step])) == ""


@pytest.mark.parametrize("name", [*STAIN_NAMES])
def test_a_stain_round_trips_through_dicom(name: str) -> None:
    steps = preparation_of(name, "S-1")
    assert stain_of(of(steps)) == name
    first = steps[0].SpecimenPreparationStepContentItemSequence[0]
    assert (first.ValueType, first.TextValue) == ("TEXT", "S-1")


def test_a_local_term_is_written_as_text() -> None:
    last = preparation_of("Ki-67", "S-1")[0].SpecimenPreparationStepContentItemSequence[-1]
    assert (last.ValueType, last.TextValue) == ("TEXT", "Ki-67")
