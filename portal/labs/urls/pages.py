"""Pages."""

from __future__ import annotations

from django.urls import path

from portal.labs.views import (
    current_lab,
    invitations,
    joining,
    links,
    members,
    service_accounts,
    sessions,
    set_up,
    tokens,
)

app_name = "labs"
urlpatterns = [
    path("account/tokens/", tokens.token_list, name="tokens"),
    path("account/tokens/<uuid:token_id>/revoke/", tokens.token_revoke, name="token_revoke"),
    path("account/lab/", current_lab.current_lab, name="current_lab"),
    path("account/sessions/", sessions.session_list, name="sessions"),
    path("account/sessions/end/", sessions.sessions_end, name="sessions_end"),
    path("account/sessions/<uuid:session_id>/end/", sessions.session_end, name="session_end"),
    path("lab/service-accounts/", service_accounts.service_account_list, name="service_accounts"),
    path(
        "lab/service-accounts/<uuid:membership_id>/token/",
        service_accounts.service_account_token,
        name="service_account_token",
    ),
    path(
        "lab/service-accounts/<uuid:membership_id>/revoke/",
        service_accounts.service_account_tokens_revoke,
        name="service_account_tokens_revoke",
    ),
    path(
        "lab/service-accounts/<uuid:membership_id>/remove/",
        service_accounts.service_account_remove,
        name="service_account_remove",
    ),
    path("lab/", members.member_list, name="members"),
    path("lab/<slug:slug>/invitations/", invitations.invitation_create, name="invite"),
    path(
        "lab/invitations/<uuid:invitation_id>/renew/",
        invitations.invitation_renew,
        name="invitation_renew",
    ),
    path(
        "lab/invitations/<uuid:invitation_id>/revoke/",
        invitations.invitation_revoke,
        name="invitation_revoke",
    ),
    path("lab/members/<uuid:membership_id>/role/", members.member_role, name="member_role"),
    path("lab/members/<uuid:membership_id>/remove/", members.member_remove, name="member_remove"),
    path("set-up/", set_up.set_up, name="set_up"),
    path("link/ask/", links.link_ask, name="link_ask"),
    path("link/", links.link_show, name="link"),
    path("link/<str:secret>/", links.link_open, name="link_open"),
    path("invitation/", joining.invitation_show, name="invitation"),
    path("invitation/accept/", joining.invitation_accept, name="invitation_accept"),
    path("invitation/decline/", joining.invitation_decline, name="invitation_decline"),
    path("invitation/<str:secret>/", joining.invitation_open, name="invitation_open"),
]
