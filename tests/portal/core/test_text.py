"""Names that look the same are the same."""

from __future__ import annotations

import unicodedata

import pytest

from portal.core.text import name_clean, name_key, stem_of, text_clean


@pytest.mark.parametrize(
    "spelling",
    [
        "Schädel 1",
        unicodedata.normalize("NFD", "Schädel 1"),
        "  Schädel\u00a01 ",
        "Schä\u200bdel \u2009 1\u3000",
        "\ufeffSchädel\u202f1\u200d",
        "Schä\u00addel\u20601".replace("\u2060", " \u2060"),
        "\u202eSchädel 1\u202c\u200e",
        "Schädel\t\n1\x00",
    ],
)
def test_spellings_of_one_name_become_one(spelling: str) -> None:
    assert name_clean(spelling) == "Schädel 1"


@pytest.mark.parametrize(
    "name",
    [
        "می‌خواهم",  # the non-joiner shapes the letters
        "क्‍ष",
        "👩‍⚕️ Dr",
        "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "شريحة",
        "Å-12 / β (µm²)",
    ],
)
def test_a_joiner_that_shapes_letters_stays(name: str) -> None:
    assert name_clean(name) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize(
    "name",
    ["", " ", "\u200b", "\u00a0\u200d\u2060", "\u3164", "\u2800\u2800", "\u034f", "\u202e\x07"],
)
def test_a_name_of_invisible_characters_is_empty(name: str) -> None:
    assert name_clean(name) == ""


def test_cleaning_is_idempotent_and_only_keys_fold_case() -> None:
    for name in ("SCHA\u0308DEL", "Straße", "a\u200b\u0308", "ΑΙ\u0345"):
        clean = name_clean(name)
        assert name_clean(clean) == clean
        assert name_key(name_key(name)) == name_key(name)
    assert name_key("SCHA\u0308DEL ") == name_key("schädel")
    assert name_clean("SCHA\u0308DEL ") == "SCHÄDEL"


def test_line_breaks_remain_and_lone_surrogates_are_removed() -> None:
    assert text_clean("a\u0308\u200b  b \r\n\tc\x00\n") == "ä  b\n\tc"
    assert name_clean("a\ud800b") == "a?b"


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("a.mp4", "a"),
        ("a.b.SVS", "a.b"),
        ("slide.ome.tiff", "slide"),
        ("clip.3gp", "clip"),
        ("Biopsy 1.5", "Biopsy 1.5"),
        ("No. 7", "No. 7"),
        (".mp4", ".mp4"),
        ("شريحة.png", "شريحة"),
    ],
)
def test_the_stem_of_a_name_has_no_extension(name: str, stem: str) -> None:
    assert stem_of(name) == stem
