"""Work that is handed out, and studies: seen by whom they concern, not by the whole lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.portal.access.actors import LOGIN
from tests.portal.access.rules.kinds import ROLES, Rule, account, page, rest

_FINDING = "8c1b7c0e-93a5-4f0e-8a53-5be6b6e2a1d4"


def _unseen(rule: Rule, *, below: str) -> Rule:
    """Roles below one do not see the object at all."""
    is_rest = rule.answers["viewer_token"] != LOGIN
    lower = (*ROLES[: ROLES.index(below)], *(("viewer_token",) if is_rest else ()))
    return replace(rule, answers=dict(rule.answers) | dict.fromkeys(lower, 404))


def _study(rule: Rule) -> Rule:
    """Seen by reviewers and its readers; the annotator of the scene is one."""
    answers = dict(_unseen(rule, below="reviewer").answers)
    return replace(rule, answers=answers | {"annotator": rule.answers["annotator"]})


def _own(rule: Rule) -> Rule:
    """The manager's own assignment."""
    return _unseen(rule, below="manager")


def _hand_out(scene: Any) -> dict[str, Any]:
    person = str(scene.cast.users["annotator"].pk)
    return {"canvases": [scene.ids["canvases"]], "people": [person]}


def _begin(scene: Any) -> dict[str, Any]:
    return {"name": "Second", "lab": scene.ids["labs"]}


def _begin_page(scene: Any) -> dict[str, Any]:
    return {"name": "Second", "min_iou": "0.5", "blind_until": "image"}


def _canvas(scene: Any) -> dict[str, Any]:
    return {"canvas": scene.ids["canvases"]}


def _decide(scene: Any) -> dict[str, Any]:
    return {**_canvas(scene), "findings": [_FINDING], "finding": _FINDING, "choice": "nothing"}


READER_STUDIES: Mapping[str, Mapping[str, Rule]] = {
    "reader_studies:work": {"GET": account(200)},
    "reader_studies:work_next": {"GET": account(302)},
    "reader_studies:assigned": {"GET": page(at_least="manager", elsewhere=200, removed=404)},
    "reader_studies:assign": {
        "GET": page(at_least="manager", elsewhere=200, removed=404),
        "POST": page(400, at_least="manager", elsewhere=400, removed=404),  # nothing is ticked
    },
    "reader_studies:submit": {"POST": _own(page(302))},
    "reader_studies:reopen": {"POST": _own(page(302))},  # it is not handed in, as the page says
    "reader_studies:remove": {"POST": _own(page(302))},
    "reader_studies:studies": {
        "GET": page(elsewhere=200, removed=404),  # those of one's own lab
        "POST": page(302, at_least="manager", elsewhere=302, removed=404, body=_begin_page),
    },
    "reader_studies:study": {"GET": _study(page())},
    "reader_studies:study_assign": {
        "GET": _study(page(at_least="manager")),
        "POST": _study(page(400, at_least="manager")),
    },
    "reader_studies:study_unblind": {"POST": _study(page(302, at_least="manager"))},  # not blind
    "reader_studies:study_findings": {"GET": _study(page(409, body=_canvas))},  # none submitted
    "reader_studies:study_decide": {"POST": _study(page(302, at_least="reviewer", body=_decide))},
    "reader_studies:study_table": {"GET": _study(page())},
    "api:study-list": {
        "GET": rest(elsewhere=200, removed=200),
        "POST": rest(201, at_least="manager", writes=True, body=_begin),
    },
    "api:study-detail": {"GET": _study(rest())},
    "api:study-unblind": {"POST": _study(rest(409, at_least="manager", writes=True))},
    "api:study-agreement": {"GET": _study(rest())},
    "api:study-agreement-table": {"GET": _study(rest())},
    "api:study-findings": {"GET": _study(rest(409, body=_canvas))},
    "api:study-decide": {"POST": _study(rest(409, at_least="reviewer", writes=True, body=_decide))},
    "api:assignment-list": {
        "GET": rest(elsewhere=200, removed=200),
        "POST": rest(201, at_least="manager", writes=True, body=_hand_out),
    },
    "api:assignment-detail": {
        "GET": _own(rest()),
        "PATCH": _own(rest(writes=True, body=lambda scene: {"note": "First."})),
        "DELETE": _own(rest(204, writes=True)),
    },
    "api:assignment-submit": {"POST": _own(rest(writes=True))},
    "api:assignment-reopen": {"POST": _own(rest(409, writes=True))},
}

INBOX: Mapping[str, Mapping[str, Rule]] = {
    "inbox:inbox": {"GET": account(200)},
    "inbox:read": {"POST": account(302)},
    "inbox:preferences": {
        "GET": account(200),
        "POST": replace(account(302), body=lambda scene: {"mail": "never"}),
    },
    "api:notification-list": {"GET": rest(elsewhere=200)},
    "api:notification-detail": {"GET": _own(rest())},
    "api:notification-read": {"POST": _own(rest(writes=True))},
    "api:notification-read-many": {"POST": rest(writes=True, elsewhere=200)},
    "api:notification-unread": {"GET": rest(elsewhere=200)},
    "api:notification-preferences": {
        "GET": rest(elsewhere=200),
        "PUT": rest(writes=True, elsewhere=200, body=lambda scene: {"mail": "never"}),
    },
}
