"""Pages: redirect to the organization's sign-in service, and return from it."""

from __future__ import annotations

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect import views
from django.http import HttpRequest, HttpResponse
from requests import RequestException

from portal.core.http.audit_rules import not_audited
from portal.labs.adapters.oidc import FAILED, refuse

BROKEN = (LookupError, OAuth2Error, RequestException, TypeError, ValueError)
"""Exceptions raised if the provider is down or answers unexpectedly."""


@not_audited("no data of patients")
def oidc_begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Redirect to the service."""
    return _run_provider_view(views.login, request, provider_id)


@not_audited("no data of patients")
def oidc_return(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Handle the return from the service."""
    return _run_provider_view(views.callback, request, provider_id)


def _run_provider_view(view: object, request: HttpRequest, provider_id: str) -> HttpResponse:
    try:
        try:
            response: HttpResponse = view(request, provider_id)  # type: ignore[operator]
        except BROKEN:
            refuse(request, FAILED)
    except ImmediateHttpResponse as refusal:
        answer: HttpResponse = refusal.response
        return answer
    return response
