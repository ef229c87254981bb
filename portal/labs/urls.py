"""Pages."""

from __future__ import annotations

from django.urls import path

from portal.labs.views import members, tokens

app_name = "labs"
urlpatterns = [
    path("account/tokens/", tokens.token_list, name="tokens"),
    path("account/tokens/<uuid:token_id>/revoke/", tokens.token_revoke, name="token_revoke"),
    path("lab/", members.member_list, name="members"),
    path("lab/<slug:slug>/members/", members.member_invite, name="member_invite"),
    path("lab/members/<uuid:membership_id>/role/", members.member_role, name="member_role"),
    path("lab/members/<uuid:membership_id>/remove/", members.member_remove, name="member_remove"),
]
