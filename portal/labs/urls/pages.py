"""Pages."""

from __future__ import annotations

from django.urls import path

from portal.labs.views import (
    current_lab,
    invitations,
    joining,
    links,
    members,
    programs,
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
    path("lab/programs/", programs.program_list, name="programs"),
    path("lab/programs/<uuid:membership_id>/token/", programs.program_token, name="program_token"),
    path(
        "lab/programs/<uuid:membership_id>/revoke/",
        programs.program_tokens_revoke,
        name="program_tokens_revoke",
    ),
    path(
        "lab/programs/<uuid:membership_id>/remove/", programs.program_remove, name="program_remove"
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
