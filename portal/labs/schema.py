"""OpenAPI: authentication schemes. Imported with the URLs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema


class ApiTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """``Authorization: Bearer tess_...``."""

    target_class = "portal.labs.authentication.ApiTokenAuthentication"
    name = "bearerToken"
    priority = 1

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Security scheme in OpenAPI's terms."""
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token from the page *API tokens*. A read token may only read.",
        }


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The session of a browser."""

    target_class = "portal.labs.authentication.SessionAuthentication"
    name = "cookieAuth"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Security scheme in OpenAPI's terms."""
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
