"""Pages: links of invitations."""

from __future__ import annotations

from allauth.account.utils import perform_login
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.core.errors import PortalError
from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.forms.pages import NewAccountForm
from portal.labs.models import Invitation, User
from portal.labs.requests import user_of
from portal.labs.services import invitations as services

SESSION_KEY = "invitation"
"""Session key of the invitation's secret, which keeps it out of later URLs."""


@not_audited("recorded by its events")
@never_cache
@require_GET
def invitation_open(request: HttpRequest, secret: str) -> HttpResponse:
    """Store the secret of a link in the session and redirect to a URL without it."""
    request.session[SESSION_KEY] = secret
    return redirect("labs:invitation")


@not_audited("recorded by its events")
@never_cache
@sensitive_post_parameters("password", "repeated")
@require_http_methods(["GET", "POST"])
def invitation_show(request: HttpRequest) -> HttpResponse:
    """Show an invitation, by link or to the user signed in; POST makes an account and joins."""
    invitation = _invitation(request)
    if invitation is None:
        return _page(request, None, status=404)
    if request.user.is_authenticated or request.method == "GET":
        return _page(
            request, invitation, NewAccountForm(initial={"full_name": invitation.full_name})
        )
    form = NewAccountForm(request.POST)
    user = _new_account(form, invitation)
    if user is None:
        return _page(request, invitation, form, status=400)
    request.session.pop(SESSION_KEY, None)
    messages.success(request, f"Welcome to {invitation.lab}.")
    response: HttpResponse = perform_login(request, user, redirect_url=reverse("home"))
    return response


@not_audited("recorded by its events")
@require_POST
def invitation_accept(request: HttpRequest) -> HttpResponse:
    """Join with the account that is signed in."""
    invitation = _invitation(request)
    if invitation is None or not request.user.is_authenticated:
        return redirect("labs:invitation")
    user = user_of(request)
    try:
        services.invitation_accept(invitation, user=user)
    except PortalError as error:
        messages.error(request, error.message)
        return redirect("labs:invitation")
    request.session.pop(SESSION_KEY, None)
    joined = f"You are now a member of {invitation.lab}."
    if user.was_reclaimed:  # all sessions ended, this one too
        logout(request)
        messages.success(request, joined)
        response: HttpResponse = perform_login(request, user, redirect_url=reverse("home"))
        return response
    messages.success(request, joined)
    return _onward(user)


@not_audited("recorded by its events")
@require_POST
def invitation_decline(request: HttpRequest) -> HttpResponse:
    """Decline; the link stops working."""
    invitation = _invitation(request)
    if invitation is not None:
        services.invitation_decline(invitation)
        messages.info(request, f"You did not join {invitation.lab}. The link no longer works.")
    request.session.pop(SESSION_KEY, None)
    return _onward(user_of(request)) if request.user.is_authenticated else redirect("home")


def _onward(user: User) -> HttpResponse:
    """Redirect to the user's next invitation, or else to the start page."""
    return redirect("labs:invitation" if selectors.invitations_for(user).exists() else "home")


def _invitation(request: HttpRequest) -> Invitation | None:
    """Invitation of the opened link, or else the first one of the user.

    A form names the invitation that its page showed: it cannot accept or decline another one.
    """
    candidates = [selectors.invitation_by_secret(request.session.get(SESSION_KEY, ""))]
    if request.user.is_authenticated:
        candidates += selectors.invitations_for(user_of(request))
    invitation_id = request.POST.get("invitation")
    return next(
        (
            candidate
            for candidate in candidates
            if candidate and invitation_id in (None, str(candidate.pk))
        ),
        None,
    )


def _new_account(form: NewAccountForm, invitation: Invitation) -> User | None:
    """Create the account, or return None and add the error to the form."""
    if not form.is_valid():
        return None
    try:
        user, _ = services.invitation_accept_new(
            invitation,
            full_name=form.cleaned_data["full_name"],
            password=form.cleaned_data["password"],
        )
    except PortalError as error:
        form.add_error(None, error.message)
        return None
    return user


def _page(
    request: HttpRequest,
    invitation: Invitation | None,
    form: NewAccountForm | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    context = {
        "invitation": invitation,
        "form": form,
        "has_account": invitation is not None and selectors.account_exists(invitation.email),
    }
    return render(request, "labs/invitation.html", context, status=status)
