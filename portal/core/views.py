"""Pages for what went wrong outside of a view."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.core.errors import ForbiddenError, NotFoundError, PortalError


def _page(request: HttpRequest, error: PortalError) -> HttpResponse:
    return render(request, "core/error.html", {"error": error}, status=error.status)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: also what another lab's object answers."""
    return _page(request, NotFoundError("There is no such page, or you may not see it."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403."""
    return _page(request, ForbiddenError("Your role in this lab does not allow this."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form that was open too long, or sent from elsewhere."""
    return _page(
        request,
        ForbiddenError("This form is no longer valid. Go back, reload the page, try again."),
    )
