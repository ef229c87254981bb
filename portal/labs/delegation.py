"""Rules on what a token may grant: never more than it holds itself.

A token expires, is limited to a scope and perhaps to areas and a lab, and is listed to its owner.
Access that outlives or exceeds the token is granted by a person with a session (``BY_A_PERSON``).
Requests that move data of other areas into or out of the lab need a token with read or write access
in all of those areas (``CARRIES``). Any token with write access in the area may revoke access.
Services check roles, for tokens and sessions alike.
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
        ("api:service-account-list", "POST"),
        ("api:service-account-tokens", "POST"),
        ("api:token-detail", "DELETE"),
        ("api:token-detail", "GET"),
        ("api:token-list", "GET"),
        ("api:token-list", "POST"),
    }
)
"""Requests that create accounts, change roles or manage tokens."""
_ALL = (TokenArea.CASES, TokenArea.ROIS, TokenArea.SEARCH, TokenArea.MOSAICS)
_OF_A_CASE = (TokenArea.CASES, TokenArea.ROIS, TokenArea.MOSAICS)
_EVENTS: Needs = dict.fromkeys(_ALL, TokenScope.READ)
_CASE_OUT: Needs = dict.fromkeys(_OF_A_CASE, TokenScope.READ)
_CASE_IN: Needs = dict.fromkeys(_OF_A_CASE, TokenScope.WRITE)
CARRIES: Mapping[tuple[str, str], Needs] = {
    ("api:case-bulk-export", "POST"): _CASE_OUT,
    ("api:case-bulk-export-file", "GET"): _CASE_OUT,
    ("api:case-bulk-shares", "POST"): _CASE_OUT,
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
"""Exports and imports of whole cases, shares, and webhooks."""
