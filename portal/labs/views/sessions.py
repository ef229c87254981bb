"""Pages: the user's sessions."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.requests import user_of
from portal.labs.services import sessions as services


@not_audited("recorded by its events")
@never_cache
@login_required
@require_GET
def session_list(request: HttpRequest) -> HttpResponse:
    """List the user's sessions."""
    sessions = selectors.sessions_of(user_of(request), current=request.session.session_key)
    return render(request, "labs/sessions.html", {"sessions": sessions})


@not_audited("recorded by its events")
@login_required
@require_POST
def session_end(request: HttpRequest, session_id: uuid.UUID) -> HttpResponse:
    """Sign out another browser."""
    services.session_end(selectors.session_get(user_of(request), session_id=session_id))
    messages.success(request, "That browser was signed out.")
    return redirect("labs:sessions")


@not_audited("recorded by its events")
@login_required
@require_POST
def sessions_end(request: HttpRequest) -> HttpResponse:
    """Sign out all other browsers."""
    count = services.sessions_end_of(user_of(request), but=request.session.session_key)
    messages.success(request, f"Signed out in {count} other browser{'s' if count != 1 else ''}.")
    return redirect("labs:sessions")
