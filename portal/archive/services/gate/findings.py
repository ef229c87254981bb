"""Findings in pixels as sentences, which name kinds and places and never the words themselves.

The words are only in the evidence, which is deleted when a manager has decided.
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
        standing = [pixel_finding for pixel_finding in of_kind if pixel_finding.at_s is None]
        if standing:
            places = _list_text(_place(pixel_finding) for pixel_finding in standing)
            sentences.append(f"{_LABELS[kind]} in the picture at the {places}")
        passing = [pixel_finding for pixel_finding in of_kind if pixel_finding.at_s is not None]
        if passing:
            sentences.append(f"{_LABELS[kind]} in frames at {_list_text(map(_time, passing))}")
    for kind in ("face", "outside_body"):
        persons = [finding for finding in findings if finding.kind == kind]
        if persons:
            sentences.append(f"{_LABELS[kind]} at {_list_text(map(_place_or_time, persons))}")
    return sentences


def _place(finding: PixelFinding) -> str:
    """Name of one of nine regions, from "upper left" to "lower right"."""
    row = sum(finding.y + finding.height / 2 > edge for edge in _THIRDS)
    column = sum(finding.x + finding.width / 2 > edge for edge in _THIRDS)
    words = (("upper", "", "lower")[row], ("left", "middle", "right")[column])
    return " ".join(word for word in words if word)


def _time(finding: PixelFinding) -> str:
    seconds = int(finding.at_s or 0)
    return f"{seconds // 60}:{seconds % 60:02}"


def _place_or_time(finding: PixelFinding) -> str:
    return f"the {_place(finding)}" if finding.at_s is None else _time(finding)


def _list_text(words: Iterable[str]) -> str:
    """Join without duplicates, as "a, b and c"."""
    distinct = list(dict.fromkeys(words))
    unlisted_count = len(distinct) - _MAX_NAMED
    if unlisted_count > 0:
        distinct = [*distinct[:_MAX_NAMED], f"{unlisted_count} more"]
    return distinct[0] if len(distinct) == 1 else f"{', '.join(distinct[:-1])} and {distinct[-1]}"
