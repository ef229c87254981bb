"""Pages: the current lab of a member of several labs."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.requests import CURRENT_LAB, user_of


@not_audited("recorded by its events")
@login_required
@require_POST
def current_lab(request: HttpRequest) -> HttpResponse:
    """Choose the lab that pages show, or all labs by an empty name."""
    slug = request.POST.get("lab", "")
    if slug:
        request.session[CURRENT_LAB] = selectors.lab_get(user_of(request), slug=slug).slug
    else:
        request.session.pop(CURRENT_LAB, None)
    return redirect("home")
