"""Rules for public pages, accounts, labs and the audit log."""

from __future__ import annotations

from collections.abc import Mapping

from tests.portal.access.rules.bodies import token_body, webhook_body
from tests.portal.access.rules.kinds import (
    Rule,
    account,
    by_session,
    own_page,
    own_rest,
    page,
    public,
    public_api,
    rest,
)

PEOPLE: Mapping[str, Mapping[str, Rule]] = {
    # --- open to everybody ------------------------------------------------------------------------
    "home": {"GET": public(302)},
    "healthz": {"GET": public(200)},
    "metrics": {"GET": public(200)},  # the tests are this machine; see test_metrics
    "readyz": {"GET": public(503)},  # no worker in the tests
    "api-schema": {"GET": public_api(200)},
    "api-schema-3-0": {"GET": public_api(200)},
    "api-docs": {"GET": public_api(200)},
    "help": {"GET": public(404)},  # the guide is not built in the tests
    "help-page": {"GET": public(404)},
    "api-not-found": dict.fromkeys(
        ("GET", "POST", "PUT", "PATCH", "DELETE"), public(404, is_csrf_exempt=True)
    ),
    # --- accounts ---------------------------------------------------------------------------------
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
    "labs:tokens": {"GET": own_page(), "POST": own_page(201, body=token_body)},
    "labs:token_revoke": {"POST": own_page(302, others=404)},
    "labs:current_lab": {"POST": account(302)},
    "labs:sessions": {"GET": account(200)},
    "labs:session_end": {"POST": own_page(302, others=404)},
    "labs:sessions_end": {"POST": account(302)},
    "api:me": {"GET": rest(elsewhere=200)},
    "api:token-list": {"GET": own_rest(), "POST": own_rest(201, body=token_body)},
    "api:token-detail": {"GET": own_rest(others=404), "DELETE": own_rest(204, others=404)},
    # --- labs -------------------------------------------------------------------------------------
    "labs:members": {"GET": page(elsewhere=200, removed=404)},  # of one's own lab
    "labs:invite": {
        "POST": page(
            302,
            at_least="manager",
            body=lambda scene: {"email": "new@access.example", "role": "viewer"},
        )
    },
    "api:member-list": {"GET": rest(elsewhere=200)},
    "api:member-detail": {
        "GET": rest(),
        "PATCH": by_session(
            rest(at_least="manager", writes=True, body=lambda scene: {"role": "annotator"})
        ),
        "DELETE": rest(204, at_least="manager", writes=True),
    },
    "api:invitation-list": {
        "GET": rest(elsewhere=200),
        "POST": by_session(
            rest(
                201,
                at_least="manager",
                writes=True,
                body=lambda scene: {"email": "new@access.example", "lab": scene.ids["labs"]},
            )
        ),
    },
    "api:invitation-detail": {"DELETE": rest(204, at_least="manager", writes=True)},
    "api:invitation-renew": {"POST": by_session(rest(at_least="manager", writes=True))},
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
    "labs:service_accounts": {
        "GET": page(at_least="manager", elsewhere=200, removed=404),  # of one's own lab
        "POST": page(
            302,
            at_least="manager",
            elsewhere=302,
            removed=404,
            body=lambda scene: {"name": "LIS", "role": "viewer"},
        ),
    },
    "labs:service_account_token": {"POST": page(201, at_least="manager", body=token_body)},
    "labs:service_account_tokens_revoke": {"POST": page(302, at_least="manager")},
    "labs:service_account_remove": {"POST": page(302, at_least="manager")},
    "api:service-account-list": {
        "GET": rest(elsewhere=200),  # of the labs one manages
        "POST": by_session(
            rest(
                201,
                at_least="manager",
                writes=True,
                body=lambda scene: {"name": "LIS", "role": "viewer", "lab": scene.ids["labs"]},
            )
        ),
    },
    "api:service-account-detail": {
        "GET": rest(at_least="manager"),
        "DELETE": rest(204, at_least="manager", writes=True),
    },
    "api:service-account-tokens": {
        "POST": by_session(rest(201, at_least="manager", writes=True, body=token_body)),
        "DELETE": rest(204, at_least="manager", writes=True),
    },
    "labs:member_role": {
        "POST": page(302, at_least="manager", body=lambda scene: {"role": "annotator"})
    },
    "labs:member_remove": {"POST": page(302, at_least="manager")},
    "api:webhook-list": {
        "GET": rest(at_least="viewer", elsewhere=200),  # of the labs one manages
        "POST": rest(201, at_least="manager", writes=True, body=webhook_body),
    },
    "api:webhook-detail": {
        "GET": rest(at_least="manager"),
        "PATCH": rest(at_least="manager", writes=True, body=lambda scene: {"name": "RIS"}),
        "DELETE": rest(204, at_least="manager", writes=True),
    },
    "api:webhook-secret": {"POST": rest(at_least="manager", writes=True)},
    "api:webhook-ping": {"POST": rest(202, at_least="manager", writes=True)},
    "api:webhook-deliveries": {"GET": rest(at_least="manager")},
    "api:webhook-replay": {"POST": rest(202, at_least="manager", writes=True)},
    "api:webhook-replay-one": {"POST": rest(202, at_least="manager", writes=True)},
    "webhooks:webhooks": {
        "GET": page(at_least="manager", elsewhere=200, removed=404),  # of one's own lab
        "POST": page(201, at_least="manager", elsewhere=201, removed=404, body=webhook_body),
    },
    "webhooks:webhook": {"GET": page(at_least="manager")},
    "webhooks:edit": {
        "GET": page(at_least="manager"),
        "POST": page(302, at_least="manager", body=webhook_body),
    },
    "webhooks:switch": {"POST": page(302, at_least="manager")},
    "webhooks:secret": {"POST": page(at_least="manager")},
    "webhooks:ping": {"POST": page(302, at_least="manager")},
    "webhooks:replay": {"POST": page(302, at_least="manager")},
    "webhooks:delete": {"POST": page(302, at_least="manager")},
    # --- audit ------------------------------------------------------------------------------------
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
}
