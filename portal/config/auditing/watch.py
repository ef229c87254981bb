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
        parameter: path parameter with the object's id; ``?name``: of the query. A view may set it
            by ``portal.core.http.acting.about``. Without an object, each lab of the user gets it.
        every_s: note it at most once in this time for one person, token and object.
        is_told: the write itself is noted by its event; only a refusal is noted here.
        only_tokens: note it for tokens only: a session asks for it as part of a page that is noted.
    """

    action: str
    kind: str = ""
    parameter: str = ""
    every_s: float = 0.0
    is_told: bool = False
    only_tokens: bool = False


def told(action: str, kind: str = "", parameter: str = "") -> Watch:
    """Watch a write that its event notes."""
    return Watch(action, kind, parameter, is_told=True)
