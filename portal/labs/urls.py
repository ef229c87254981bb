"""Pages."""

from __future__ import annotations

from django.urls import path

from portal.labs import views

app_name = "labs"
urlpatterns = [
    path("account/tokens/", views.tokens, name="tokens"),
    path("account/tokens/<uuid:token_id>/revoke/", views.token_revoke, name="token_revoke"),
    path("lab/", views.members, name="members"),
    path("lab/<slug:slug>/members/", views.member_invite, name="member_invite"),
    path("lab/members/<uuid:membership_id>/role/", views.member_role, name="member_role"),
    path("lab/members/<uuid:membership_id>/remove/", views.member_remove, name="member_remove"),
]
