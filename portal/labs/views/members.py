"""Pages: members of a lab."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from portal.core.errors import ConflictError, InvalidInputError
from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.forms.pages import InviteForm, RoleForm
from portal.labs.models import Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.services import members as services
from portal.labs.views.members_page import members_page, to_members


@not_audited("no data of patients")
@login_required
@require_GET
def member_list(request: HttpRequest) -> HttpResponse:
    """Members of the lab, which managers can edit."""
    lab = selectors.lab_get(
        user_of(request), slug=request.GET.get("lab"), chosen=lab_chosen_by(request)
    )
    return members_page(request, lab, InviteForm())


@not_audited("recorded by its events")
@login_required
@require_POST
def member_role(request: HttpRequest, membership_id: uuid.UUID) -> HttpResponse:
    """Change a role."""
    membership = selectors.membership_get(user_of(request), membership_id=membership_id)
    form = RoleForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError(f"The role must be one of {', '.join(Role.values)}.")
    role = Role(form.cleaned_data["role"])
    try:
        services.member_set_role(membership, role=role, by=user_of(request))
    except ConflictError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"{membership.user}: {role.label.lower()} from now on.")
    return to_members(membership.lab)


@not_audited("recorded by its events")
@login_required
@require_POST
def member_remove(request: HttpRequest, membership_id: uuid.UUID) -> HttpResponse:
    """End a membership."""
    membership = selectors.membership_get(user_of(request), membership_id=membership_id)
    try:
        services.member_remove(membership, by=user_of(request))
    except ConflictError as error:
        messages.error(request, error.message)
        return to_members(membership.lab)
    messages.success(request, f"{membership.user} is no longer a member of {membership.lab}.")
    if membership.user_id == user_of(request).pk:
        return redirect("labs:members")
    return to_members(membership.lab)
