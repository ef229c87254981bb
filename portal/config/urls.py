"""All URLs: pages, REST under ``/api/v1/``, health."""

from __future__ import annotations

from importlib import import_module

from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from rest_framework.routers import SimpleRouter

import portal.labs.schema  # noqa: F401 - how a program signs in, for the schema of the API
from portal.core.api.schema_document import OPENAPI_OF_PAGE, SchemaView
from portal.core.views import ApiDocsView, api_not_found, help_not_found
from portal.operations import health, metrics

APPS = (
    "labs",
    "audit",
    "archive",
    "annotations",
    "jobs",
    "search",
    "explore",
    "quantification",
    "model_training",
    "mosaics",
    "review",
    "reader_studies",
    "webhooks",
    "interop",
    "inbox",
    "erasure",
)


def _api() -> list[URLPattern | URLResolver]:
    router = SimpleRouter()
    extra: list[URLPattern | URLResolver] = []
    for name in (*APPS, "embeddings"):  # embeddings has no pages
        api = import_module(f"portal.{name}.api")
        for prefix, viewset, basename in getattr(api, "router_entries", ()):
            router.register(prefix, viewset, basename=basename)
        extra += getattr(api, "urlpatterns", [])
    return [*extra, *router.urls]


_HOME = RedirectView.as_view(
    pattern_name="archive:case_list", http_method_names=["get", "head", "options"]
)
urlpatterns = [
    path("", _HOME, name="home"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("accounts/", include("portal.labs.urls.sign_in")),
    *(path("", include(f"portal.{name}.urls")) for name in APPS),
    path("help/", help_not_found, name="help"),
    path("help/<path:page>", help_not_found, name="help-page"),
    path("api/v1/schema/", SchemaView.as_view(), name="api-schema"),
    path("api/v1/schema/3.0/", SchemaView.as_view(version=OPENAPI_OF_PAGE), name="api-schema-3-0"),
    path("api/v1/docs/", ApiDocsView.as_view(url_name="api-schema-3-0"), name="api-docs"),
    path("api/v1/", include((_api(), "api"))),
    path("api/<path:rest>", api_not_found, name="api-not-found"),
]
handler400 = "portal.core.views.bad_request"
handler404 = "portal.core.views.page_not_found"
handler403 = "portal.core.views.permission_denied"
handler500 = "portal.core.views.server_error"
