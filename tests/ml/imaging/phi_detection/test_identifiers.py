"""Lines of text that identify a patient, and lines that do not."""

from __future__ import annotations

import pytest

from ml.imaging.phi_detection.identifiers import TextKind, Vocabulary, classify
from ml.imaging.phi_detection.text import TextLine

CASE = Vocabulary(known=("S26-00094", "Jane^Doe", "Lindqvist colon scan.mp4"))


def line(text: str, x: float = 0.1, y: float = 0.1) -> TextLine:
    return TextLine(text, 1.0, x, y, 0.1, 0.02)


def kind_of(text: str, vocabulary: Vocabulary = CASE) -> TextKind | None:
    return classify([[line(text)]], vocabulary)[0][0]


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("date", ["15/03/2012", "2012-03-15", "15.03.12", "20120315", "3 Mar 2021"]),
        ("date", ["March 3, 2021", "l5/O3/2012", "17/0/2014", "Name: Jane Roe 1.2.1961"]),
        ("number", ["S27-11234", "MRN 4711", "1234567", "H19-1234", "Case no 443322"]),
        ("name", ["Name: Ada L", "Patient: Roe", "Nome: Ada", "Dr. House", "Roe, Ada"]),
        ("name", ["DOE^JANE", "jane", "Lindqvist", "LINDQV1ST"]),
        ("other", ["Patient pressure 14 mmHg", "Actual gas flow 2.1 l/min", "XION", "H&E"]),
        ("other", ["1920x1080", "v11.2.1", "10.0.12.1", "ISO 800", "Zoom 1.25x", "Colon", "Name:"]),
        ("other", ["14:24:00", "<00:05:02>", "CVP:1", "Scale: 20 um", "S-1"]),
    ],
)
def test_lines_are_classified(kind: TextKind, texts: list[str]) -> None:
    assert {text: kind_of(text) for text in texts} == dict.fromkeys(texts, kind)


def test_a_time_of_day_identifies_with_a_date_in_any_frame() -> None:
    pages = [[line("14:24:00")], [line("15/03/2012")]]
    assert classify(pages, CASE) == [["time"], ["date"]]


@pytest.mark.parametrize("place", [(0.22, 0.1), (0.1, 0.125)])
def test_the_value_of_a_caption_may_be_on_the_next_line(place: tuple[float, float]) -> None:
    page = [line("Name:"), line("Ada Roe", *place), line("CHROMA", 0.1, 0.4)]
    assert classify([page], CASE) == [["other", "name", "other"]]


def test_ignored_words_are_no_finding_and_hide_no_other() -> None:
    ignoring = Vocabulary(known=("Storz",), ignored=("karl storz", "CHROMA"))
    assert kind_of("Karl Storz", ignoring) is None
    assert kind_of("CHROMA 12/03/1961", ignoring) == "date"
    assert kind_of("Storz", ignoring) == "name"
    assert kind_of("CHROMATIC", ignoring) == "other"
