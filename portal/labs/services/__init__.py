"""Writes of labs."""

from portal.labs.services.accounts import (
    factors_remove,
    invited_account_create,
    password_set,
    user_create,
    user_deactivate,
)
from portal.labs.services.attempts import (
    attempt_begin,
    attempt_forget,
    attempts_sweep,
    device_remember,
    devices_forget,
    lab_name_try,
)
from portal.labs.services.entering import link_use, sign_in_link_mail
from portal.labs.services.factors import app_code_spend, passkey_challenge_spend
from portal.labs.services.invitations import (
    invitation_accept,
    invitation_accept_new,
    invitation_create,
    invitation_decline,
    invitation_deliver,
    invitation_renew,
    invitation_revoke,
)
from portal.labs.services.labs import lab_create
from portal.labs.services.links import link_make, link_take
from portal.labs.services.members import member_add, member_remove, member_set_role
from portal.labs.services.programs import program_create, program_remove, program_token_create
from portal.labs.services.proof import email_prove
from portal.labs.services.sessions import (
    session_begin,
    session_end,
    session_note,
    sessions_end_of,
    sessions_sweep,
)
from portal.labs.services.set_up import first_run_finish, first_run_open, lab_set_up
from portal.labs.services.tokens import LONGEST_LIFE, token_create, token_revoke, tokens_revoke_of

__all__ = [
    "LONGEST_LIFE",
    "app_code_spend",
    "attempt_begin",
    "attempt_forget",
    "attempts_sweep",
    "device_remember",
    "devices_forget",
    "email_prove",
    "factors_remove",
    "first_run_finish",
    "first_run_open",
    "invitation_accept",
    "invitation_accept_new",
    "invitation_create",
    "invitation_decline",
    "invitation_deliver",
    "invitation_renew",
    "invitation_revoke",
    "invited_account_create",
    "lab_create",
    "lab_name_try",
    "lab_set_up",
    "link_make",
    "link_take",
    "link_use",
    "member_add",
    "member_remove",
    "member_set_role",
    "passkey_challenge_spend",
    "password_set",
    "program_create",
    "program_remove",
    "program_token_create",
    "session_begin",
    "session_end",
    "session_note",
    "sessions_end_of",
    "sessions_sweep",
    "sign_in_link_mail",
    "token_create",
    "token_revoke",
    "tokens_revoke_of",
    "user_create",
    "user_deactivate",
]
