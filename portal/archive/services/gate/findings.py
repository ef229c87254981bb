"""Findings in pixels as sentences, which name kinds and places and never the words themselves.

The words stand in the evidence, which is deleted when a manager has decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ml.imaging.results import TEXT_KINDS, PixelFinding, PixelKind

_MAX_NAMED = 4  # places or times in one sentence; the picture shows the others
_THIRDS = (1 / 3, 2 / 3)
_LABELS: dict[PixelKind, str] = {
    "date": "A date",
    "time": "A time of day",
    "number": "A number like an identifier",
    "name": "A name, or a word of the case or the file",
    "other": "Other text",
    "face": "Something that looks like a face",
    "outside_body": "Frames that look as if taken outside the body",
}


def findings_as_sentences(findings: Sequence[PixelFinding]) -> list[str]:
    """A sentence for each kind of finding, without a full stop at the end."""
    sentences = []
    for kind in TEXT_KINDS:
        of_kind = [finding for finding in findings if finding.kind == kind]
        standing = [one for one in of_kind if one.at_s is None]
        if standing:
            places = _listed(_place(one) for one in standing)
            sentences.append(f"{_LABELS[kind]} in the picture at the {places}")
        passing = [one for one in of_kind if one.at_s is not None]
        if passing:
            sentences.append(f"{_LABELS[kind]} in frames at {_listed(map(_time, passing))}")
    for kind in ("face", "outside_body"):
        persons = [finding for finding in findings if finding.kind == kind]
        if persons:
            sentences.append(f"{_LABELS[kind]} at {_listed(map(_place_or_time, persons))}")
    return sentences


def _place(one: PixelFinding) -> str:
    """Name of one of nine regions, from "upper left" to "lower right"."""
    row = sum(one.y + one.height / 2 > edge for edge in _THIRDS)
    column = sum(one.x + one.width / 2 > edge for edge in _THIRDS)
    words = (("upper", "", "lower")[row], ("left", "middle", "right")[column])
    return " ".join(word for word in words if word)


def _time(one: PixelFinding) -> str:
    seconds = int(one.at_s or 0)
    return f"{seconds // 60}:{seconds % 60:02}"


def _place_or_time(one: PixelFinding) -> str:
    return f"the {_place(one)}" if one.at_s is None else _time(one)


def _listed(words: Iterable[str]) -> str:
    """Join without duplicates, as "a, b and c"."""
    once = list(dict.fromkeys(words))
    more = len(once) - _MAX_NAMED
    if more > 0:
        once = [*once[:_MAX_NAMED], f"{more} more"]
    return once[0] if len(once) == 1 else f"{', '.join(once[:-1])} and {once[-1]}"
