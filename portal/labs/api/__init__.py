"""REST of people, labs and tokens."""

from __future__ import annotations

from typing import Any

from django.urls import path

from portal.labs.api.me import ApiTokenViewSet, MeApi
from portal.labs.api.people import InvitationViewSet, MemberViewSet
from portal.labs.api.service_accounts import ServiceAccountTokensApi, ServiceAccountViewSet

router_entries: list[tuple[str, Any, str]] = [
    ("tokens", ApiTokenViewSet, "token"),
    ("members", MemberViewSet, "member"),
    ("invitations", InvitationViewSet, "invitation"),
    ("service-accounts", ServiceAccountViewSet, "service-account"),
]
urlpatterns = [
    path("me/", MeApi.as_view(), name="me"),
    path(
        "service-accounts/<uuid:id>/tokens/",
        ServiceAccountTokensApi.as_view(),
        name="service-account-tokens",
    ),
]
