"""Normalise names, so that equal-looking names are equal.

Two programs write one word in different code points: macOS decomposes accents, word processors add
no-break spaces, soft hyphens and zero-width characters. Every writer of a name calls
``name_clean``, so that what looks the same is the same in the database, in a search and in a file.
"""

from __future__ import annotations

import re
import unicodedata

_JOINERS = "\u200c\u200d"  # zero-width non-joiner and joiner: they shape the letters around them
_BLANK = "\u115f\u1160\u3164\uffa0\u2800"  # letters and a pattern that are drawn as nothing
_NOT_DRAWN = "\u034f\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f"  # marks that are drawn as nothing
_FLAG, _EMOJI_STYLE = "\U0001f3f4", "\ufe0f"
_EXTENSION = re.compile(r"(\.ome)?\.(?=\w*[a-z])\w{1,5}$", re.IGNORECASE | re.ASCII)
_VIRAMA = 9  # the canonical combining class of the signs after which Indic scripts use joiners


def name_clean(value: str) -> str:
    """A line in Unicode's composed form (NFC), without what is not drawn.

    Spaces of every kind become single ones, and none is left at the ends. Control characters,
    directional marks, soft hyphens and zero-width characters are removed; a joiner stays where it
    changes the shape of its neighbours (Arabic and Indic scripts, emoji). A text of nothing but
    invisible characters becomes empty.
    """
    text = " ".join(value.split()) if value.isascii() else " ".join(_visible_text(value).split())
    if text.isascii() and text.isprintable():
        return text
    text = "".join(c for c in text if unicodedata.category(c) != "Cc")
    is_seen = any(c not in _BLANK and unicodedata.category(c)[0] not in "ZCM" for c in text)
    return text if is_seen else ""


def text_clean(value: str) -> str:
    """A text of several lines in composed form; each line as ``name_clean``, but with its indent
    and inner spaces."""
    lines = value.encode("utf-8", "replace").decode("utf-8").splitlines()
    return "\n".join(
        "".join(
            c for c in _visible_text(line) if c == "\t" or unicodedata.category(c) != "Cc"
        ).rstrip()
        for line in lines
    ).strip()


def name_key(value: str) -> str:
    """Key shared by all spellings of a name: ``name_clean``, case-folded."""
    return unicodedata.normalize("NFC", name_clean(value).casefold())


def stem_of(name: str) -> str:
    """Name without the extension of a file; ``.5`` of ``Biopsy 1.5`` is none."""
    return _EXTENSION.sub("", name) or name


def _visible_text(value: str) -> str:
    """Compose a text (NFC) and remove characters that are invisible and affect no others."""
    text = unicodedata.normalize("NFC", value.encode("utf-8", "replace").decode("utf-8"))
    visible: list[str] = []
    for at, letter in enumerate(text):
        if letter in _NOT_DRAWN or (
            unicodedata.category(letter) in ("Cf", "Cn")
            and not _shapes(letter, visible, text[at + 1 : at + 2])
        ):
            continue
        visible.append(letter)
    return unicodedata.normalize("NFC", "".join(visible))


def _shapes(letter: str, before: list[str], after: str) -> bool:
    """Return whether a format character changes how its neighbours are drawn."""
    last = before[-1] if before else ""
    if "\U000e0020" <= letter <= "\U000e007f":  # the letters of a flag
        return last == _FLAG or "\U000e0020" <= last <= "\U000e007e"
    if letter not in _JOINERS or not last or not after:
        return False
    if unicodedata.bidirectional(last) == unicodedata.bidirectional(after) == "AL":
        return True
    if unicodedata.combining(last) == _VIRAMA:
        return True
    is_emoji = last == _EMOJI_STYLE or unicodedata.category(last) in ("So", "Sk")
    return is_emoji and unicodedata.category(after) == "So"
