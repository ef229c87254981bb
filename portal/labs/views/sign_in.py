"""Pages: signing in."""

from __future__ import annotations

from typing import Any

from allauth.account.views import LoginView
from django.conf import settings

from portal.labs import selectors


class SignInView(LoginView):
    """allauth's page; while nobody has an account it shows the way to the first run."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The form, and whether the installation is empty."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        services = [(app["provider_id"], app["name"]) for app in settings.TESSERA_OIDC]
        return context | {"needs_set_up": not selectors.anybody_exists(), "services": services}
