"""Pages: members of a lab."""

from __future__ import annotations

import uuid

from allauth.account.forms import ResetPasswordForm
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from portal.core.errors import ConflictError, InvalidInputError, PortalError
from portal.labs import selectors, services
from portal.labs.forms import InviteForm, RoleForm
from portal.labs.models import Lab, Membership, Role
from portal.labs.requests import user_of
from portal.labs.rules import has_role


@login_required
@require_GET
def member_list(request: HttpRequest) -> HttpResponse:
    """Who is in the lab; managers change it here."""
    lab = selectors.lab_get(user_of(request), slug=request.GET.get("lab"))
    return _members_page(request, lab, InviteForm())


@login_required
@require_POST
def member_invite(request: HttpRequest, slug: str) -> HttpResponse:
    """Add a member, with a new account if need be."""
    lab = selectors.lab_get(user_of(request), slug=slug)
    form = InviteForm(request.POST)
    if not form.is_valid():
        return _members_page(request, lab, form, status=400)
    try:
        membership, is_new = services.member_invite(
            lab,
            email=form.cleaned_data["email"],
            role=Role(form.cleaned_data["role"]),
            by=user_of(request),
            full_name=form.cleaned_data["full_name"],
            password=form.cleaned_data["password"] or None,
        )
    except PortalError as error:
        if error.status not in {400, 409}:
            raise
        form.add_error(None, error.message)
        return _members_page(request, lab, form, status=error.status)
    messages.success(request, _welcome(request, membership, is_new=is_new))
    return _to_members(lab)


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
    return _to_members(membership.lab)


@login_required
@require_POST
def member_remove(request: HttpRequest, membership_id: uuid.UUID) -> HttpResponse:
    """End a membership."""
    membership = selectors.membership_get(user_of(request), membership_id=membership_id)
    try:
        services.member_remove(membership, by=user_of(request))
    except ConflictError as error:
        messages.error(request, error.message)
        return _to_members(membership.lab)
    messages.success(request, f"{membership.user} is no longer a member of {membership.lab}.")
    if membership.user_id == user_of(request).pk:
        return redirect("labs:members")
    return _to_members(membership.lab)


def _members_page(
    request: HttpRequest, lab: Lab, form: forms.Form, *, status: int = 200
) -> HttpResponse:
    context = {
        "lab": lab,
        "members": selectors.members_of(lab),
        "roles": Role.choices,
        "can_manage": has_role(user_of(request), lab.id, at_least=Role.MANAGER),
        "form": form,
    }
    return render(request, "labs/members.html", context, status=status)


def _to_members(lab: Lab) -> HttpResponse:
    return redirect(f"{reverse('labs:members')}?lab={lab.slug}")


def _welcome(request: HttpRequest, membership: Membership, *, is_new: bool) -> str:
    user = membership.user
    if not is_new:
        return f"{user} already had an account and is now a member."
    if user.has_usable_password():
        return f"{user} can sign in with the password you chose."
    reset = ResetPasswordForm({"email": user.email})
    if not reset.is_valid():
        return f"{user} was added, but has to ask for a password on the sign-in page."
    reset.save(request)
    return f"{user} gets an e-mail with a link to choose a password."
