"""Error responses outside of views, and the API's documentation page."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template import loader
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from drf_spectacular.views import SpectacularSwaggerSplitView

from portal.core.api.problems import CONTENT_TYPE, problem, problem_of
from portal.core.connections import database_is_away
from portal.core.disk import MESSAGE, is_disk_full, reserve_release
from portal.core.errors import (
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    PortalError,
    StorageFullError,
    UnavailableError,
)
from portal.core.http.audit_rules import not_audited
from portal.core.observe import ids

RETRY_AFTER_S = "5"  # a database that restarts takes some seconds
API_PREFIX = "/api/"


def error_response(request: HttpRequest, error: PortalError) -> HttpResponse:
    """Response for an error: problem+json, a partial for htmx, or a page."""
    if request.path.startswith(API_PREFIX) or _wants_json(request):
        return JsonResponse(problem_of(error), status=error.status, content_type=CONTENT_TYPE)
    template = "core/_error.html" if getattr(request, "htmx", False) else "core/error.html"
    context = {"error": error, "request_id": ids.request_id()}
    return render(request, template, context, status=error.status)


def _wants_json(request: HttpRequest) -> bool:
    return "json" in request.headers.get("Accept", "")


@not_audited("no data of patients")
@csrf_exempt
def api_not_found(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Response 404 for unknown URLs of the API."""
    detail = f"The API has nothing at {request.path}."
    if not request.path.endswith("/"):
        detail += " Its URLs end with a slash."
    return error_response(request, NotFoundError(detail))


@not_audited("no data of patients")
@require_safe
def help_not_found(request: HttpRequest, page: str = "") -> HttpResponse:
    """Response 404 for pages of the guide. WhiteNoise serves those that `make docs` has built."""
    if settings.WHITENOISE_ROOT is None:
        message = "The guide has not been built on this server. The command is: make docs."
    else:
        message = "The guide has no such page. Begin at /help/."
    return error_response(request, NotFoundError(message))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Response 400 for requests that Django refuses before a view runs."""
    return error_response(request, InvalidInputError("The request cannot be understood."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Response 403."""
    return error_response(request, ForbiddenError("Your role in this lab does not allow this."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Response 404, also for objects of other labs."""
    error = NotFoundError("There is no such page, or you may not see it.")
    return error_response(request, error)


def server_error(request: HttpRequest) -> HttpResponse:
    """Response 500 without a traceback; 507 for a full disk, 503 while the database is away."""
    if is_disk_full(sys.exc_info()[1]):
        reserve_release()
        return JsonResponse(
            problem_of(StorageFullError(MESSAGE)),
            status=StorageFullError.status,
            content_type=CONTENT_TYPE,
        )
    if database_is_away(sys.exc_info()[1]):
        answer = _unavailable(request)
        answer["Retry-After"] = RETRY_AFTER_S
        return answer
    if not request.path.startswith(API_PREFIX):
        return _static_page(500)
    body = problem(
        status=500,
        code="internal-error",
        title="Something went wrong on our side",
        detail="The request was not carried out. Try again in a moment.",
    )
    return JsonResponse(body, status=500, content_type=CONTENT_TYPE)


def _unavailable(request: HttpRequest) -> HttpResponse:
    error = UnavailableError("The database does not answer. Nothing was changed; try again.")
    if request.path.startswith(API_PREFIX):
        return JsonResponse(problem_of(error), status=error.status, content_type=CONTENT_TYPE)
    return _static_page(error.status)


def _static_page(status: int) -> HttpResponse:
    page = loader.get_template("500.html").render({"request_id": ids.request_id()})
    return HttpResponse(page, status=status)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Response 403 for a failed CSRF check."""
    message = "This form is no longer valid. Go back, reload the page and try again."
    return error_response(request, ForbiddenError(message))


@not_audited("no data of patients")
class ApiDocsView(SpectacularSwaggerSplitView):
    """Swagger page of the API; its script is a separate file because of the CSP."""

    template_name = "core/api_docs.html"
    permission_classes: Any = ()
