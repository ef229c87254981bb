"""Pages: members of a lab, one's own API tokens."""

from __future__ import annotations

import uuid

from allauth.account.forms import ResetPasswordForm
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.core.errors import ConflictError, InvalidInputError, PortalError
from portal.labs import selectors, services
from portal.labs.forms import InviteForm, RoleForm, TokenForm
from portal.labs.models import Lab, Membership, Role, TokenScope, User
from portal.labs.requests import user_of
from portal.labs.rules import has_role

# --- Tokens ----------------------------------------------------------------------------------


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The person's tokens; POST makes one and shows its secret this one time."""
    form, secret, status = TokenForm(), "", 200
    if request.method == "POST":
        form = TokenForm(request.POST)
        secret = _token_from(form, user_of(request))
        status = 201 if secret else 400
    context = {
        "tokens": selectors.tokens_of(user_of(request)),
        "form": TokenForm() if secret else form,
        "secret": secret,
    }
    return render(request, "labs/tokens.html", context, status=status)


def _token_from(form: TokenForm, user: User) -> str:
    """The secret, or nothing where the form says what is wrong."""
    if not form.is_valid():
        return ""
    try:
        _, secret = services.token_create(
            user,
            name=form.cleaned_data["name"],
            scope=TokenScope(form.cleaned_data["scope"]),
            expires_in=form.expires_in,
        )
    except InvalidInputError as error:
        form.add_error(None, error.message)
        return ""
    return secret


@login_required
@require_POST
def token_revoke(request: HttpRequest, token_id: uuid.UUID) -> HttpResponse:
    """End one of the person's tokens."""
    token = services.token_revoke(selectors.token_get(user_of(request), token_id=token_id))
    messages.success(request, f"The token “{token.name}” no longer works.")
    return redirect("labs:tokens")


# --- Members ---------------------------------------------------------------------------------


@login_required
@require_GET
def members(request: HttpRequest) -> HttpResponse:
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
