"""REST of people, labs and tokens."""

from __future__ import annotations

from typing import Any

from django.urls import path

from portal.labs.api.me import ApiTokenViewSet, MeApi
from portal.labs.api.people import InvitationViewSet, MemberViewSet
from portal.labs.api.programs import ProgramTokensApi, ProgramViewSet

router_entries: list[tuple[str, Any, str]] = [
    ("tokens", ApiTokenViewSet, "token"),
    ("members", MemberViewSet, "member"),
    ("invitations", InvitationViewSet, "invitation"),
    ("programs", ProgramViewSet, "program"),
]
urlpatterns = [
    path("me/", MeApi.as_view(), name="me"),
    path("programs/<uuid:id>/tokens/", ProgramTokensApi.as_view(), name="program-tokens"),
]
