"""Pages: service accounts of a lab and their tokens, for its managers."""

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
from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.forms.pages import ServiceAccountForm, ServiceAccountTokenForm
from portal.labs.models import ApiToken, Lab, Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import require_manager
from portal.labs.services import service_accounts as services
from portal.labs.services.tokens import tokens_revoke_of


@not_audited("recorded by its events")
@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def service_account_list(request: HttpRequest) -> HttpResponse:
    """List the lab's service accounts; POST adds one."""
    user = user_of(request)
    lab = selectors.lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_manager(user, lab)
    if request.method == "GET":
        return _page(request, lab)
    form = ServiceAccountForm(request.POST)
    if not form.is_valid():
        return _page(request, lab, form=form, status=400)
    name, role = form.cleaned_data["name"], Role(form.cleaned_data["role"])
    services.service_account_create(lab, name=name, role=role, by=user)
    messages.success(request, f"“{name}” was added. Now create a token for it.")
    return _to_service_accounts(lab)


@not_audited("recorded by its events")
@never_cache
@login_required
@require_POST
def service_account_token(request: HttpRequest, membership_id: uuid.UUID) -> HttpResponse:
    """Create a token of a service account and show its secret once."""
    service_account = selectors.service_account_get(user_of(request), membership_id=membership_id)
    require_manager(user_of(request), service_account.lab)
    form = ServiceAccountTokenForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError("Choose one of the scopes and one of the lifetimes offered.")
    token = services.service_account_token_create(
        service_account,
        expires_in=timedelta(days=form.cleaned_data["days"]),
        by=user_of(request),
        **form.rights,
    )
    return _page(request, service_account.lab, token=token, status=201)


@not_audited("recorded by its events")
@login_required
@require_POST
def service_account_tokens_revoke(request: HttpRequest, membership_id: uuid.UUID) -> HttpResponse:
    service_account = selectors.service_account_get(user_of(request), membership_id=membership_id)
    require_manager(user_of(request), service_account.lab)
    tokens_revoke_of(service_account.user)
    messages.success(request, f"The tokens of “{service_account.user}” no longer work.")
    return _to_service_accounts(service_account.lab)


@not_audited("recorded by its events")
@login_required
@require_POST
def service_account_remove(request: HttpRequest, membership_id: uuid.UUID) -> HttpResponse:
    service_account = selectors.service_account_get(user_of(request), membership_id=membership_id)
    services.service_account_remove(service_account, by=user_of(request))
    messages.success(request, f"“{service_account.user}” was removed. Its work is kept.")
    return _to_service_accounts(service_account.lab)


def _page(
    request: HttpRequest,
    lab: Lab,
    *,
    form: ServiceAccountForm | None = None,
    token: tuple[ApiToken, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "lab": lab,
        "service_accounts": selectors.service_accounts_of(lab),
        "form": form or ServiceAccountForm(),
        "token_form": ServiceAccountTokenForm(auto_id=False),
        "made": token,
    }
    return render(request, "labs/service_accounts.html", context, status=status)


def _to_service_accounts(lab: Lab) -> HttpResponse:
    return redirect(f"{reverse('labs:service_accounts')}?lab={lab.slug}")
