"""Why frames are not in a mosaic: the engine's codes, in words and colours of the pages.

The colours tell reasons apart on the timeline; the legend beside it names them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """A code of ``ml.mosaic``, a short name for a legend and a colour."""

    code: str
    name: str
    color: str


REGISTERED = Reason("", "in the mosaic", "#2f9e6e")
OTHER = Reason("other", "other reason", "#8a8f98")
REASONS = {
    reason.code: reason
    for reason in (
        REGISTERED,
        OTHER,
        Reason("blurred", "blurred", "#e0a100"),
        Reason("dark", "too dark", "#5f6f94"),
        Reason("bright", "overexposed", "#f2d16b"),
        Reason("glare", "highlights", "#f08c52"),
        Reason("smoke", "smoke or water", "#7aa6c2"),
        Reason("instrument", "instrument", "#9b6dc6"),
        Reason("uniform", "no structure", "#b59a7a"),
        Reason("unreadable", "not decodable", "#c23fd1"),
        Reason("size", "other size", "#5c7f4f"),
        Reason("no-match", "no match", "#d0455f"),
        Reason("disagrees", "position disagrees", "#a02c66"),
        Reason("small-component", "small component", "#c77f9b"),
    )
}
_OLD_WORDS = (
    ("blurred", "blurred"),
    ("too dark", "dark"),
    ("overexposed", "bright"),
    ("no structure", "uniform"),
    ("the frame could not", "unreadable"),
    ("size ", "size"),
    ("too few points", "no-match"),
    ("its position disagrees", "disagrees"),
    ("its neighbours are cut off", "small-component"),
)


def reason_code(*, status: str, code: str, reason: str) -> str:
    """The code of a frame's reason; read from its words where an older build left no code."""
    if status == "registered":
        return ""
    if code in REASONS and code:
        return code
    for words, known in _OLD_WORDS:
        if reason.lower().startswith(words):
            return known
    return OTHER.code
