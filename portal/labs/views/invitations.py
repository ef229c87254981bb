"""Pages: invitations, for managers."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from portal.core.errors import ConflictError, PortalError, TooManyRequestsError
from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.forms.pages import InviteForm
from portal.labs.models import Delivery, Invitation, Role
from portal.labs.requests import user_of
from portal.labs.services import invitations as services
from portal.labs.views.members_page import members_page, to_members


@not_audited("recorded by its events")
@login_required
@require_POST
def invitation_create(request: HttpRequest, slug: str) -> HttpResponse:
    """Invite an address, by mail or by a link that is shown once."""
    lab = selectors.lab_get(user_of(request), slug=slug)
    form = InviteForm(request.POST)
    if not form.is_valid():
        return members_page(request, lab, form, status=400)
    try:
        invitation, secret = services.invitation_create(
            lab,
            email=form.cleaned_data["email"],
            role=Role(form.cleaned_data["role"]),
            by=user_of(request),
            full_name=form.cleaned_data["full_name"],
        )
    except PortalError as error:
        if error.status not in {400, 409, 429}:
            raise
        form.add_error(None, error.message)
        return members_page(request, lab, form, status=error.status)
    return _invitation_page(request, invitation, secret)


@not_audited("recorded by its events")
@login_required
@require_POST
def invitation_renew(request: HttpRequest, invitation_id: uuid.UUID) -> HttpResponse:
    """Create a new link for an open invitation; the old one stops working."""
    invitation = selectors.invitation_get(user_of(request), invitation_id=invitation_id)
    try:
        secret = services.invitation_renew(invitation, by=user_of(request))
    except (ConflictError, TooManyRequestsError) as error:
        messages.error(request, error.message)
        return to_members(invitation.lab)
    return _invitation_page(request, invitation, secret)


@not_audited("recorded by its events")
@login_required
@require_POST
def invitation_revoke(request: HttpRequest, invitation_id: uuid.UUID) -> HttpResponse:
    invitation = selectors.invitation_get(user_of(request), invitation_id=invitation_id)
    try:
        services.invitation_revoke(invitation, by=user_of(request))
    except ConflictError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"The invitation of {invitation.email} no longer works.")
    return to_members(invitation.lab)


def _invitation_page(request: HttpRequest, invitation: Invitation, secret: str) -> HttpResponse:
    link = request.build_absolute_uri(reverse("labs:invitation_open", args=[secret]))
    if services.invitation_deliver(invitation, link=link) == Delivery.MAIL:
        messages.success(request, f"{invitation.email} gets an e-mail with a link to join.")
        return to_members(invitation.lab)
    return members_page(request, invitation.lab, handed=(invitation, link), status=201)
