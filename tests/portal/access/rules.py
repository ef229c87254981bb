"""Who gets what answer: one rule for each method of each address of the portal.

A new address fails ``test_matrix`` until it has a rule here. Choose the kind of rule that says what
the address is; an answer that differs from its kind is named. ``body`` makes a valid request, so
that a refusal is one of access and the answer beyond it is the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.archive.serializers import tile_url
from tests import world
from tests.portal.access.actors import ACTORS, LOGIN

ROLES = ("viewer", "annotator", "reviewer", "manager")
BY_TOKEN = ("viewer_token", "read_token", "write_token")
Answer = str | int
Body = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Rule:
    """The answer to each actor, and the request that is sent."""

    answers: Mapping[str, Answer]
    body: Body = lambda scene: {}
    headers: Mapping[str, str] = field(default_factory=dict)
    path: Callable[[Any, str], str] | None = None  # of the scene and the actor
    is_csrf_exempt: bool = False

    def __post_init__(self) -> None:
        if set(self.answers) != set(ACTORS):
            raise ValueError(f"answers for {set(ACTORS) ^ set(self.answers)} are missing or extra")


def page(
    ok: Answer = 200,
    *,
    at_least: str = "viewer",
    elsewhere: Answer = 404,
    removed: Answer | None = None,
    body: Body = lambda scene: {},
    **other: Any,
) -> Rule:
    """A page of a lab: sessions only; another lab's object is not found."""
    answers: dict[str, Answer] = dict.fromkeys(ACTORS, LOGIN)
    answers |= {role: _by_role(role, at_least, ok) for role in ROLES}
    answers |= {"stranger": elsewhere, "removed": elsewhere if removed is None else removed}
    return Rule(answers, body=body, **other)


def rest(
    ok: Answer = 200,
    *,
    at_least: str = "viewer",
    writes: bool = False,
    elsewhere: Answer = 404,
    removed: Answer | None = None,
    body: Body = lambda scene: {},
    **other: Any,
) -> Rule:
    """A resource of the API: sessions and tokens, a token never beyond its owner and its scope."""
    answers: dict[str, Answer] = dict.fromkeys(ACTORS, 401)
    answers |= {role: _by_role(role, at_least, ok) for role in ROLES}
    answers |= {"stranger": elsewhere, "stranger_token": elsewhere}
    answers |= {"removed": elsewhere if removed is None else removed}
    answers |= {"viewer_token": answers["viewer"], "write_token": answers["manager"]}
    answers |= {"read_token": 403 if writes else answers["manager"]}
    return Rule(answers, body=body, **other)


def own_page(ok: Answer = 200, *, others: Answer | None = None, **options: Any) -> Rule:
    """What a person keeps for themselves, here the manager; ``others``: answer to other people."""
    rule = page(ok, elsewhere=ok if others is None else others, **options)
    answers = dict(rule.answers)
    if others is not None:
        answers |= dict.fromkeys(("viewer", "annotator", "reviewer"), others)
    return Rule(answers, body=rule.body)


def own_rest(ok: Answer = 200, *, others: Answer | None = None, **options: Any) -> Rule:
    """The same over REST, with a session only: 403 to every token."""
    rule = own_page(ok, others=others, **options)
    answers = {who: 401 if said == LOGIN else said for who, said in rule.answers.items()}
    answers |= dict.fromkeys((*BY_TOKEN, "stranger_token"), 403)
    return Rule(answers, body=rule.body)


def public(ok: Answer, *, signed_in: Answer | None = None, **other: Any) -> Rule:
    """For everybody; ``signed_in``: where a session changes the answer."""
    answers: dict[str, Answer] = dict.fromkeys(ACTORS, ok)
    if signed_in is not None:
        answers |= dict.fromkeys((*ROLES, "stranger", "removed"), signed_in)
    return Rule(answers, **other)


def public_api(ok: Answer) -> Rule:
    """For everybody, but a token that is sent has to be a live one."""
    answers: dict[str, Answer] = dict.fromkeys(ACTORS, ok)
    return Rule(answers | dict.fromkeys(("unknown_token", "deactivated_token"), 401))


def account(ok: Answer) -> Rule:
    """A page of one's own account: any session."""
    return page(ok, elsewhere=ok)


def _by_role(role: str, at_least: str, ok: Answer) -> Answer:
    return ok if ROLES.index(role) >= ROLES.index(at_least) else 403


def _case(scene: Any) -> dict[str, Any]:
    return {"accession": "W-2", "sex": "unknown", "age_band": "unknown"}


def _roi(scene: Any) -> dict[str, Any]:
    ring = [[20, 20], [300, 20], [300, 300], [20, 20]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"canvas": scene.ids["canvases"], "geometry": geometry}


def _roi_steps(scene: Any) -> dict[str, Any]:
    step = {"do": "restore", "id": scene.ids["rois"], "version": 1}
    return {"canvas": scene.ids["canvases"], "changes": [step]}


def _features(scene: Any) -> dict[str, Any]:
    feature = {"type": "Feature", "geometry": _roi(scene)["geometry"], "properties": {}}
    return {"type": "FeatureCollection", "features": [feature]}


def _slide(scene: Any) -> dict[str, Any]:
    path = world.slide_file(scene.folder)
    return {"case": scene.ids["cases"], "file": path.open("rb")}


def _video(scene: Any) -> dict[str, Any]:
    path = world.video_file(scene.folder)
    return {"case": scene.ids["cases"], "file": path.open("rb")}


def _followup(scene: Any) -> dict[str, Any]:
    return {"roi": scene.ids["rois"], "target": scene.ids["video_canvases"]}


def _token(scene: Any) -> dict[str, Any]:
    return {"name": "LIS", "scope": "read", "days": 30, "expires_in_days": 30}


def _label(scene: Any) -> dict[str, Any]:
    return {"name": "Fresh", "color": "#112233"}


def _label_in(scene: Any) -> dict[str, Any]:
    return _label(scene) | {"lab": scene.ids["labs"]}


def _tile_path(scene: Any, actor: str) -> str:
    return tile_url(scene.world.canvas).format(z=0, x=0, y=0)


_SIGNED_OUT = ("anonymous", "deactivated", "deactivated_token", "unknown_token")
_TILE: dict[str, Answer] = dict.fromkeys(ACTORS, 404)
_TILE |= dict.fromkeys(_SIGNED_OUT, 403) | dict.fromkeys((*ROLES, *BY_TOKEN), 200)
_IF_MATCH = {"If-Match": '"1"'}

RULES: Mapping[str, Mapping[str, Rule]] = {
    # --- open to everybody -----------------------------------------------------------------------
    "home": {"GET": public(302)},
    "healthz": {"GET": public(200)},
    "metrics": {"GET": public(200)},  # the tests are this machine; see test_metrics
    "readyz": {"GET": public(503)},  # no worker in the tests
    "api-schema": {"GET": public_api(200)},
    "api-docs": {"GET": public_api(200)},
    "api-not-found": dict.fromkeys(
        ("GET", "POST", "PUT", "PATCH", "DELETE"), public(404, is_csrf_exempt=True)
    ),
    # --- accounts --------------------------------------------------------------------------------
    "account_login": dict.fromkeys(("GET", "POST"), public(200, signed_in=302)),
    "account_logout": {"GET": public(302, signed_in=200), "POST": public(302)},
    "account_inactive": {"GET": public(200)},
    "account_signup": dict.fromkeys(("GET", "POST"), public(200, signed_in=302)),  # closed
    "account_reauthenticate": dict.fromkeys(("GET", "POST"), account(200)),
    "account_change_password": dict.fromkeys(("GET", "POST"), account(200)),
    "account_set_password": dict.fromkeys(("GET", "POST"), account(302)),
    "account_reset_password": dict.fromkeys(("GET", "POST"), public(200)),
    "account_reset_password_done": {"GET": public(200)},
    "account_reset_password_from_key": dict.fromkeys(("GET", "POST"), public(200)),
    "account_reset_password_from_key_done": {"GET": public(200)},
    "openid_connect_login": dict.fromkeys(("GET", "POST"), public(404)),  # none is set up
    "openid_connect_callback": dict.fromkeys(("GET", "POST"), public(404)),
    "mfa_index": {"GET": account(200)},
    "mfa_authenticate": dict.fromkeys(("GET", "POST"), account(302)),  # no sign-in has begun
    "mfa_login_webauthn": dict.fromkeys(("GET", "POST"), account(302)),  # without a passkey
    "mfa_list_webauthn": {"GET": public(302)},  # an old address of the list
    # These ask who one is once more, whoever one is.
    "mfa_reauthenticate": dict.fromkeys(("GET", "POST"), account(302)),
    "mfa_reauthenticate_webauthn": dict.fromkeys(("GET", "POST"), account(302)),
    "mfa_activate_totp": dict.fromkeys(("GET", "POST"), account(302)),
    "mfa_deactivate_totp": dict.fromkeys(("GET", "POST"), account(404)),  # there is none
    "mfa_view_recovery_codes": {"GET": account(404)},
    "mfa_generate_recovery_codes": dict.fromkeys(("GET", "POST"), account(302)),
    "mfa_add_webauthn": dict.fromkeys(("GET", "POST"), account(302)),
    "mfa_remove_webauthn": dict.fromkeys(("GET", "POST"), account(302)),
    "labs:tokens": {"GET": own_page(), "POST": own_page(201, body=_token)},
    "labs:token_revoke": {"POST": own_page(302, others=404)},
    "labs:current_lab": {"POST": account(302)},
    "labs:sessions": {"GET": account(200)},
    "labs:session_end": {"POST": own_page(302, others=404)},
    "labs:sessions_end": {"POST": account(302)},
    "api:me": {"GET": rest(elsewhere=200)},
    "api:token-list": {"GET": own_rest(), "POST": own_rest(201, body=_token)},
    "api:token-detail": {"GET": own_rest(others=404), "DELETE": own_rest(204, others=404)},
    # --- labs ------------------------------------------------------------------------------------
    "labs:members": {"GET": page(elsewhere=200, removed=404)},  # of one's own lab
    "labs:invite": {
        "POST": page(
            302,
            at_least="manager",
            body=lambda scene: {"email": "new@access.example", "role": "viewer"},
        )
    },
    "labs:set_up": dict.fromkeys(("GET", "POST"), public(404)),  # somebody has an account
    "labs:link_ask": dict.fromkeys(("GET", "POST"), public(200)),
    "labs:link_open": {"GET": public(302)},
    "labs:link": dict.fromkeys(("GET", "POST"), public(404)),  # without a link
    "labs:invitation_renew": {"POST": page(302, at_least="manager")},
    "labs:invitation_revoke": {"POST": page(302, at_least="manager")},
    "labs:invitation_open": {"GET": public(302)},
    "labs:invitation": dict.fromkeys(("GET", "POST"), public(404)),  # without a link
    "labs:invitation_accept": {"POST": public(302)},
    "labs:invitation_decline": {"POST": public(302)},
    "labs:programs": {
        "GET": page(at_least="manager", elsewhere=200, removed=404),  # of one's own lab
        "POST": page(
            302,
            at_least="manager",
            elsewhere=302,
            removed=404,
            body=lambda scene: {"name": "LIS", "role": "viewer"},
        ),
    },
    "labs:program_token": {"POST": page(201, at_least="manager", body=_token)},
    "labs:program_tokens_revoke": {"POST": page(302, at_least="manager")},
    "labs:program_remove": {"POST": page(302, at_least="manager")},
    "labs:member_role": {
        "POST": page(302, at_least="manager", body=lambda scene: {"role": "annotator"})
    },
    "labs:member_remove": {"POST": page(302, at_least="manager")},
    # --- audit -----------------------------------------------------------------------------------
    "audit:list": {"GET": page(at_least="manager", elsewhere=200, removed=404)},  # of one's own lab
    "audit:export": {
        "GET": page(
            at_least="manager",
            elsewhere=200,
            removed=404,
            path=lambda scene, actor: "/lab/audit/export.jsonl",
        )
    },
    "api:audit-list": {"GET": rest(at_least="manager", elsewhere=200, removed=403)},
    "api:audit-head": {"GET": rest(at_least="manager", elsewhere=200, removed=403)},
    # --- archive ---------------------------------------------------------------------------------
    "archive:case_list": {"GET": page(elsewhere=200)},
    "archive:case_new": {
        "GET": page(at_least="annotator", elsewhere=200, removed=403),
        "POST": page(
            302,
            at_least="annotator",
            elsewhere=422,  # the lab is none of theirs
            removed=403,
            body=lambda scene: _case(scene) | {"lab": scene.ids["labs"]},
        ),
    },
    "archive:case_detail": {"GET": page()},
    "archive:case_edit": {
        "GET": page(at_least="annotator"),
        "POST": page(302, at_least="annotator", body=_case),
    },
    "archive:case_delete": {"POST": page(302, at_least="annotator")},  # says what it holds
    "archive:case_upload": {
        "GET": page(at_least="annotator"),
        "POST": page(302, at_least="annotator", body=lambda scene: {"file": _slide(scene)["file"]}),
    },
    "archive:item_card": {"GET": page()},
    "archive:item_retry": {"POST": page(302, at_least="annotator")},
    "archive:item_delete": {"POST": page(302, at_least="annotator")},
    "archive:slide_open": {"GET": page(302)},
    "archive:video_open": {"GET": page(302)},
    "archive:viewer": {"GET": page()},
    "archive:tile": {"GET": Rule(_TILE, path=_tile_path)},
    "api:case-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(
            201,
            at_least="annotator",
            writes=True,
            body=lambda scene: _case(scene) | {"lab": scene.ids["labs"]},
        ),
    },
    "api:case-detail": {
        "GET": rest(),
        "PUT": rest(at_least="annotator", writes=True, body=_case),
        "PATCH": rest(at_least="annotator", writes=True, body=lambda scene: {"organ": "colon"}),
        "DELETE": rest(409, at_least="annotator", writes=True),  # its mosaic is being built
    },
    "api:slide-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(200, at_least="annotator", writes=True, body=_slide),  # there already
    },
    "api:slide-detail": {
        "GET": rest(),
        "DELETE": rest(204, at_least="annotator", writes=True),
    },
    "api:video-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(200, at_least="annotator", writes=True, body=_video),  # there already
    },
    "api:video-detail": {
        "GET": rest(),
        "DELETE": rest(409, at_least="annotator", writes=True),  # its mosaic is being built
    },
    "api:video-frames": {"GET": rest()},
    "api:video-media": {"GET": rest()},
    "api:canvas-detail": {"GET": rest()},
    "api:canvas-tile": {"GET": rest()},
    "api:canvas-thumbnail": {"GET": rest()},
    "api:canvas-frame": {"GET": rest()},
    # --- keeping ---------------------------------------------------------------------------------
    "keeping:bin": {"GET": page(at_least="annotator", elsewhere=200, removed=404)},  # one's own
    "keeping:bin_restore": {"POST": page(302, at_least="annotator")},
    "keeping:bin_purge": {"POST": page(302, at_least="manager")},
    "keeping:roi_restore": {"POST": page(302, at_least="annotator")},
    "keeping:roi_purge": {"POST": page(302, at_least="manager")},
    "api:bin-list": {"GET": rest(elsewhere=200)},
    "api:bin-detail": {"DELETE": rest(204, at_least="manager", writes=True)},
    "api:bin-restore": {"POST": rest(204, at_least="annotator", writes=True)},
    # --- annotations -----------------------------------------------------------------------------
    "annotations:roi_open": {"GET": page(302)},
    "annotations:labels": {
        "GET": page(elsewhere=200, removed=404),  # of one's own lab
        "POST": page(302, at_least="manager", elsewhere=302, removed=404, body=_label),
    },
    "annotations:label_edit": {"POST": page(302, at_least="manager", body=_label)},
    "annotations:label_remove": {"POST": page(302, at_least="manager")},
    "api:canvas-rois-geojson": {
        "GET": rest(),
        "POST": rest(at_least="annotator", writes=True, body=_features),
    },
    "api:roi-import-undo": {"POST": rest(at_least="annotator", writes=True)},
    "api:roi-bulk": {"POST": rest(at_least="annotator", writes=True, body=_roi_steps)},
    "api:roi-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(201, at_least="annotator", writes=True, body=_roi),
    },
    "api:roi-detail": {
        "GET": rest(),
        "PATCH": rest(
            at_least="annotator",
            writes=True,
            headers=_IF_MATCH,
            body=lambda scene: {"name": "named"},
        ),
        "DELETE": rest(204, at_least="annotator", writes=True, headers=_IF_MATCH),
    },
    "api:roi-restore": {"POST": rest(at_least="annotator", writes=True)},
    "api:roi-revisions": {"GET": rest()},
    "api:label-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(201, at_least="manager", writes=True, body=_label_in),
    },
    "api:label-detail": {
        "GET": rest(),
        "PATCH": rest(at_least="manager", writes=True, body=_label),
        "DELETE": rest(409, at_least="manager", writes=True),  # it is in use
    },
    # --- jobs ------------------------------------------------------------------------------------
    "jobs:list": {"GET": page(elsewhere=200)},
    "jobs:detail": {"GET": page()},
    "jobs:cancel": {"POST": page(409, at_least="manager")},  # or its owner; it has ended
    "jobs:retry": {"POST": page(409, at_least="annotator")},  # it succeeded
    "api:job-list": {"GET": rest(elsewhere=200)},
    "api:job-detail": {"GET": rest()},
    "api:job-cancel": {"POST": rest(409, at_least="manager", writes=True)},
    "api:job-retry": {"POST": rest(409, at_least="annotator", writes=True)},
    # --- retrieval -------------------------------------------------------------------------------
    "retrieval:similar": {"GET": page()},
    "retrieval:embed": {"POST": page(302, at_least="annotator")},
    "retrieval:thumbnail": {"GET": page()},
    "api:search": {"POST": rest(202, body=lambda scene: {"roi": scene.ids["rois"]})},  # reads
    "api:roi-similar": {"GET": rest(202)},
    "api:encoder-list": {"GET": rest(elsewhere=200)},  # of the installation
    "api:encoder-detail": {"GET": rest(elsewhere=200)},
    # --- mosaics ---------------------------------------------------------------------------------
    "mosaics:mosaic_detail": {"GET": page()},
    "mosaics:mosaic_delete": {"POST": page(302, at_least="manager")},  # or who asked for it
    "mosaics:case_mosaics": {"GET": page()},
    "mosaics:video_mosaics": {"GET": page()},
    "mosaics:mosaic_create": {"POST": page(302, at_least="annotator")},
    "mosaics:followup_new": {
        "GET": page(),
        "POST": page(400, at_least="annotator", body=_followup),  # the ROI is on a slide
    },
    "mosaics:followup_detail": {"GET": page()},
    "api:mosaic-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(
            202,
            at_least="annotator",
            writes=True,
            body=lambda scene: {"video": scene.ids["videos"]},
        ),
    },
    "api:mosaic-estimate": {"GET": rest(body=lambda scene: {"video": scene.ids["videos"]})},
    "api:mosaic-detail": {
        "GET": rest(),
        "DELETE": rest(204, at_least="manager", writes=True),  # or who asked for it
    },
    "api:mosaic-frames": {"GET": rest()},
    "api:mosaic-outlines": {"GET": rest()},
    # 409: not built yet
    "api:mosaic-frames-at-point": {"GET": rest(409, body=lambda scene: {"x": 1, "y": 1})},
    "api:mosaic-projected-rois": {"GET": rest(409)},
    "api:mosaic-roi-frames": {
        "GET": rest(404, body=lambda scene: {"roi": scene.ids["rois"]})
    },  # of a slide
    "api:mosaic-layer": {"GET": rest(409)},
    "api:mosaic-preview": {"GET": rest()},
    "api:mosaic-image": {"GET": rest(409)},
    "api:mosaic-pyramid": {"GET": rest(409)},
    "api:mosaic-manifest": {"GET": rest(409)},
    "api:followup-list": {
        "GET": rest(elsewhere=200),
        "POST": rest(400, at_least="annotator", writes=True, body=_followup),  # on a slide
    },
    "api:followup-detail": {"GET": rest()},
    "api:followup-picture": {"GET": rest()},
}
