"""Words for stains: what is known gets one name, what is not gets none."""

from __future__ import annotations

import pytest

from ml.imaging.staining.terms import MEANINGS, STAIN_NAMES, STAINS, stain_named


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("H&E", "H&E"),
        ("h & e", "H&E"),
        ("HE", "H&E"),
        ("Haematoxylin and Eosin stain", "H&E"),
        ("hematoxylin-eosin", "H&E"),
        ("periodic acid-Schiff", "PAS"),
        ("Masson's Trichrome", "Masson trichrome"),
        ("Perls' Prussian blue", "Prussian blue"),
        ("MAY-GRÜNWALD GIEMSA", "May-Grünwald-Giemsa"),
    ],
)
def test_spellings_of_a_stain_have_one_name(text: str, name: str) -> None:
    assert stain_named(text) == name


@pytest.mark.parametrize("text", ["", "Jane Doe", "H&E of Jane Doe", "stain", "x" * 1000])
def test_other_text_is_no_stain(text: str) -> None:
    assert stain_named(text) == ""


def test_each_name_is_its_own_spelling_and_each_code_has_a_meaning() -> None:
    from pydicom.sr.codedict import codes

    assert [stain_named(name) for name in STAIN_NAMES] == list(STAIN_NAMES)
    group = {code.value: code.meaning for code in codes.cid8112.concepts.values()}
    assert {code: group[code] for code in MEANINGS} == MEANINGS
    assert {code for stain in STAINS for code in stain.codes} == set(MEANINGS)
