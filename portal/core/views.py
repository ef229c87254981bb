"""Answers for what went wrong outside of a view, and the API's documentation page."""

from __future__ import annotations

import sys
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template import loader
from django.views.decorators.csrf import csrf_exempt
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
from portal.core.observe import ids

RETRY_AFTER_S = "5"  # a database that restarts takes some seconds
API_PREFIX = "/api/"


def error_response(request: HttpRequest, error: PortalError) -> HttpResponse:
    """The error as the caller can read it: problem+json, a partial for htmx, or a page."""
    if request.path.startswith(API_PREFIX) or _wants_json(request):
        return JsonResponse(problem_of(error), status=error.status, content_type=CONTENT_TYPE)
    template = "core/_error.html" if getattr(request, "htmx", False) else "core/error.html"
    context = {"error": error, "request_id": ids.request_id()}
    return render(request, template, context, status=error.status)


def _wants_json(request: HttpRequest) -> bool:
    return "json" in request.headers.get("Accept", "")


@csrf_exempt
def api_not_found(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Any URL below the API's prefix that nothing else answers."""
    detail = f"The API has nothing at {request.path}."
    if not request.path.endswith("/"):
        detail += " Its URLs end with a slash."
    return error_response(request, NotFoundError(detail))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400: what Django refuses before a view sees it."""
    return error_response(request, InvalidInputError("The request cannot be understood."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403."""
    return error_response(request, ForbiddenError("Your role in this lab does not allow this."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: also what another lab's object answers."""
    error = NotFoundError("There is no such page, or you may not see it.")
    return error_response(request, error)


def server_error(request: HttpRequest) -> HttpResponse:
    """500: never a trace. The page is static, the log has the rest.

    507 where the disk is full, 503 where only the database is away for a moment:
    programs try that again by themselves.
    """
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
    """A form that was open too long, or sent from elsewhere."""
    message = "This form is no longer valid. Go back, reload the page and try again."
    return error_response(request, ForbiddenError(message))


class ApiDocsView(SpectacularSwaggerSplitView):
    """The API to read and to try out. Split: its script is a file, as our policy demands."""

    template_name = "core/api_docs.html"
    permission_classes: Any = ()
