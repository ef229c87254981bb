"""Rules on what a token may grant: never more than it holds itself.

A token expires, is limited to a scope, perhaps to areas and a lab, and shows in its owner's list.
What gives access that outlives or exceeds it is done by a person with a session
(``BY_A_PERSON``); what carries data of other areas out of the lab, or into it, takes a token that
may read, or write, in all of those areas (``CARRIES``). Taking access away is open to any token
that may write in the area. Roles are checked by the services, for tokens and sessions alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from portal.labs.models import TokenArea, TokenScope

Needs = Mapping[TokenArea, TokenScope]

BY_A_PERSON = frozenset(
    {
        ("api:invitation-list", "POST"),
        ("api:invitation-renew", "POST"),
        ("api:member-detail", "PATCH"),
        ("api:program-list", "POST"),
        ("api:program-tokens", "POST"),
        ("api:token-detail", "DELETE"),
        ("api:token-detail", "GET"),
        ("api:token-list", "GET"),
        ("api:token-list", "POST"),
    }
)
"""Accounts, roles, programs and tokens."""
_ALL = (TokenArea.CASES, TokenArea.ROIS, TokenArea.SEARCH, TokenArea.MOSAICS)
_OF_A_CASE = (TokenArea.CASES, TokenArea.ROIS, TokenArea.MOSAICS)
_EVENTS: Needs = dict.fromkeys(_ALL, TokenScope.READ)
_CASE_OUT: Needs = dict.fromkeys(_OF_A_CASE, TokenScope.READ)
_CASE_IN: Needs = dict.fromkeys(_OF_A_CASE, TokenScope.WRITE)
CARRIES: Mapping[tuple[str, str], Needs] = {
    ("api:case-export", "GET"): _CASE_OUT,
    ("api:case-export", "POST"): _CASE_OUT,
    ("api:case-shares", "POST"): _CASE_OUT,
    ("api:share-accept", "POST"): _CASE_OUT,
    ("api:upload-import", "POST"): _CASE_IN,
    ("api:webhook-detail", "PATCH"): _EVENTS,
    ("api:webhook-list", "POST"): _EVENTS,
    ("api:webhook-replay", "POST"): _EVENTS,
    ("api:webhook-replay-one", "POST"): _EVENTS,
    ("api:webhook-secret", "POST"): _EVENTS,
}
"""Whole cases, and messages to other systems about everything that happens in a lab."""
