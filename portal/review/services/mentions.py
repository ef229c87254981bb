"""Mentions of a lab's members in a text."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from dataclasses import dataclass

from portal.labs.models import Membership


@dataclass(frozen=True, slots=True)
class Mentions:
    """Members mentioned in a text.

    Attributes:
        texts: Mentions as written, such as ``@Anna Berg``, each once, in order.
        user_ids: Members that they name; people of the same name are all mentioned.
    """

    texts: tuple[str, ...] = ()
    user_ids: frozenset[uuid.UUID] = frozenset()


def mentions_in(text: str, *, lab_id: uuid.UUID) -> Mentions:
    """Find ``@`` followed by the full name or the e-mail address of a member, in any case.

    At most one query; none for a text without ``@``.
    """
    if "@" not in text:
        return Mentions()
    people = Membership.objects.filter(
        lab_id=lab_id, user__is_active=True, user__is_service=False
    ).values_list("user_id", "user__full_name", "user__email")
    ids: defaultdict[str, set[uuid.UUID]] = defaultdict(set)
    for user_id, full_name, email in people:
        for name in filter(None, (full_name.strip(), email)):
            ids[name.casefold()].add(user_id)
    if not ids:
        return Mentions()
    longest_first = sorted(ids, key=len, reverse=True)
    names = "|".join(re.escape(name) for name in longest_first)
    mentioned = re.findall(rf"(?<!\w)@(?:{names})(?!\w)", text, re.IGNORECASE)
    matched = [mention for mention in dict.fromkeys(mentioned) if mention[1:].casefold() in ids]
    return Mentions(
        tuple(matched),
        frozenset(pk for mention in matched for pk in ids[mention[1:].casefold()]),
    )
