"""Pages: first run, before any account exists."""

from __future__ import annotations

from allauth.account.utils import perform_login
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from portal.core.errors import PortalError
from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.forms.pages import SetUpForm
from portal.labs.models import User
from portal.labs.services import set_up as services


@not_audited("recorded by its events")
@never_cache
@sensitive_post_parameters("token", "password", "repeated")
@require_http_methods(["GET", "POST"])
def set_up(request: HttpRequest) -> HttpResponse:
    """Create the first lab and its manager, with a link from the server's log."""
    if selectors.anybody_exists():
        raise Http404
    if request.method == "GET":
        return render(request, "labs/set_up.html", {"form": SetUpForm()})
    form = SetUpForm(request.POST)
    user = _finish_set_up(form)
    if user is None:
        return render(request, "labs/set_up.html", {"form": form}, status=400)
    messages.success(request, "The lab is set up. Invite its people here.")
    response: HttpResponse = perform_login(request, user, redirect_url=reverse("labs:members"))
    return response


def _finish_set_up(form: SetUpForm) -> User | None:
    if not form.is_valid():
        return None
    try:
        return services.first_run_finish(
            form.cleaned_data["token"],
            lab_name=form.cleaned_data["lab"],
            email=form.cleaned_data["email"],
            full_name=form.cleaned_data["full_name"],
            password=form.cleaned_data["password"],
        )
    except PortalError as error:
        form.add_error(None, error.message)
        return None
