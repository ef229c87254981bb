"""What the audit log notes of one request."""

from __future__ import annotations

from dataclasses import dataclass

MINUTE_S, HOUR_S = 60.0, 3600.0
ITEM = "item"
"""A slide or a video, whichever the address says."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What to note of a request that was answered or refused.

    Attributes:
        parameter: of the path, with the object's id; ``?name`` of the query. A view may say it by
            ``portal.core.http.acting.about``. Without an object it is noted in each of one's labs.
        every_s: note it once in so long for one person and object: what a page asks for many times.
        is_told: the write itself is noted by its event; only a refusal is noted here.
        only_tokens: a session asks for it as part of a page that is noted.
    """

    action: str
    kind: str = ""
    parameter: str = ""
    every_s: float = 0.0
    is_told: bool = False
    only_tokens: bool = False


def told(action: str, kind: str = "", parameter: str = "") -> Watch:
    """Of a write that its event notes."""
    return Watch(action, kind, parameter, is_told=True)
