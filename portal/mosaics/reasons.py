"""Reasons for frames missing in a mosaic: the engine's codes as texts and colours of pages.

The colours distinguish reasons on the timeline; its legend names them.
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
        Reason("unreadable", "cannot be decoded", "#c23fd1"),
        Reason("size", "different size", "#5c7f4f"),
        Reason("no-match", "no match", "#d0455f"),
        Reason("disagrees", "position disagrees", "#a02c66"),
        Reason("small-component", "small component", "#c77f9b"),
    )
}


def reason_of(*, status: str, code: str) -> Reason:
    """Reason that a frame is not in the mosaic; ``REGISTERED`` if it is."""
    return REGISTERED if status == "registered" else REASONS.get(code or OTHER.code, OTHER)
