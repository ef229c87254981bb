"""Display names of logged objects, registered by higher apps: the log stores ids only."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from portal.core.registry import Registry
from portal.labs.models import User


class Named(NamedTuple):
    """Display name of an object, and its page."""

    text: str
    url: str = ""


Namer = Callable[[Collection[uuid.UUID], User], Mapping[uuid.UUID, Named]]
NAMERS: Registry[str, Namer] = Registry()
"""Names of objects of a kind, many at once."""


def names_of(kind: str, ids: Collection[uuid.UUID], user: User) -> Mapping[uuid.UUID, Named]:
    """Names of the objects that the reader may see; empty for a kind without a registered namer."""
    names: dict[uuid.UUID, Named] = {}
    for namer in NAMERS.all(kind) if ids else ():
        names |= namer(ids, user)
    return names
