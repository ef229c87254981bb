"""Names of what entries tell of. Higher apps bring theirs: the log itself knows ids only."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from portal.labs.models import User


class Named(NamedTuple):
    """What to call an object, and the page it has."""

    text: str
    url: str = ""


Namer = Callable[[Collection[uuid.UUID], User], Mapping[uuid.UUID, Named]]
_NAMERS: dict[str, Namer] = {}


def namer_register(kind: str, namer: Namer) -> None:
    """Have objects of a kind named by ``namer``, many at once; call from ``AppConfig.ready``."""
    _NAMERS[kind] = namer


def names_of(kind: str, ids: Collection[uuid.UUID], user: User) -> Mapping[uuid.UUID, Named]:
    """Names of those that the reader may see; empty for a kind that nobody names."""
    namer = _NAMERS.get(kind)
    return namer(ids, user) if namer and ids else {}
