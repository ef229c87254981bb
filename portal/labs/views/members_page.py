"""Page of a lab's members, the response of several views."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from portal.core.mail import mail_works
from portal.labs import selectors
from portal.labs.forms.pages import InviteForm
from portal.labs.models import Invitation, Lab, Role
from portal.labs.requests import user_of
from portal.labs.rules import has_role


def members_page(
    request: HttpRequest,
    lab: Lab,
    form: forms.Form | None = None,
    *,
    handed: tuple[Invitation, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Members, and for managers the invitations.

    ``handed``: invitation whose link is shown once.
    """
    can_manage = has_role(user_of(request), lab.id, at_least=Role.MANAGER)
    context = {
        "lab": lab,
        "members": selectors.members_of(lab),
        "invitations": selectors.invitations_of(lab) if can_manage else (),
        "roles": Role.choices,
        "can_manage": can_manage,
        "form": form or InviteForm(),
        "handed": handed,
        "mail_works": mail_works(),
    }
    response = render(request, "labs/members.html", context, status=status)
    if handed:
        response["Cache-Control"] = "no-store"
    return response


def to_members(lab: Lab) -> HttpResponse:
    """Redirect to the page."""
    return redirect(f"{reverse('labs:members')}?lab={lab.slug}")
