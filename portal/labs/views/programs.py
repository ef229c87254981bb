"""Pages: programs of a lab and their tokens, for its managers."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.core.errors import InvalidInputError
from portal.labs import selectors, services
from portal.labs.forms import ProgramForm, ProgramTokenForm
from portal.labs.models import ApiToken, Lab, Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import require_manager


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def program_list(request: HttpRequest) -> HttpResponse:
    """The lab's programs; POST makes one."""
    user = user_of(request)
    lab = selectors.lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_manager(user, lab)
    if request.method == "GET":
        return _page(request, lab)
    form = ProgramForm(request.POST)
    if not form.is_valid():
        return _page(request, lab, form=form, status=400)
    name, role = form.cleaned_data["name"], Role(form.cleaned_data["role"])
    services.program_create(lab, name=name, role=role, by=user)
    messages.success(request, f"“{name}” was added. Now create a token for it.")
    return _to_programs(lab)


@never_cache
@login_required
@require_POST
def program_token(request: HttpRequest, membership_id: uuid.UUID) -> HttpResponse:
    """A token of a program; its secret is shown this once."""
    program = selectors.program_get(user_of(request), membership_id=membership_id)
    require_manager(user_of(request), program.lab)
    form = ProgramTokenForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError("Choose one of the scopes and one of the lifetimes offered.")
    made = services.program_token_create(
        program,
        expires_in=timedelta(days=form.cleaned_data["days"]),
        by=user_of(request),
        **form.rights,
    )
    return _page(request, program.lab, made=made, status=201)


@login_required
@require_POST
def program_tokens_revoke(request: HttpRequest, membership_id: uuid.UUID) -> HttpResponse:
    """End all tokens of a program."""
    program = selectors.program_get(user_of(request), membership_id=membership_id)
    require_manager(user_of(request), program.lab)
    services.tokens_revoke_of(program.user)
    messages.success(request, f"The tokens of “{program.user}” no longer work.")
    return _to_programs(program.lab)


@login_required
@require_POST
def program_remove(request: HttpRequest, membership_id: uuid.UUID) -> HttpResponse:
    """End a program."""
    program = selectors.program_get(user_of(request), membership_id=membership_id)
    services.program_remove(program, by=user_of(request))
    messages.success(request, f"“{program.user}” was removed. Its work is kept.")
    return _to_programs(program.lab)


def _page(
    request: HttpRequest,
    lab: Lab,
    *,
    form: ProgramForm | None = None,
    made: tuple[ApiToken, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "lab": lab,
        "programs": selectors.programs_of(lab),
        "form": form or ProgramForm(),
        "token_form": ProgramTokenForm(auto_id=False),
        "made": made,
    }
    return render(request, "labs/programs.html", context, status=status)


def _to_programs(lab: Lab) -> HttpResponse:
    return redirect(f"{reverse('labs:programs')}?lab={lab.slug}")
