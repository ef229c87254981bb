"""Pages: sign-in."""

from __future__ import annotations

from typing import Any

from allauth.account.views import LoginView
from django.conf import settings

from portal.core.http.audit_rules import not_audited
from portal.labs import selectors


@not_audited("recorded by its events")
class SignInView(LoginView):
    """allauth's page; links to the first run while no account exists."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Form, OpenID Connect providers, and whether the installation is empty."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        services = [(app["provider_id"], app["name"]) for app in settings.TESSERA_OIDC]
        return context | {"needs_set_up": not selectors.anybody_exists(), "services": services}
