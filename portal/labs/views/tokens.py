"""Pages: the user's API tokens."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import not_audited
from portal.labs import selectors
from portal.labs.forms.pages import TokenForm
from portal.labs.models import Lab, User
from portal.labs.requests import user_of
from portal.labs.services import tokens as services


@not_audited("recorded by its events")
@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def token_list(request: HttpRequest) -> HttpResponse:
    """List the user's tokens; POST creates one and shows its secret once."""
    labs = Lab.objects.visible_to(user_of(request)).order_by("name")
    form, secret, status = TokenForm(labs=labs), "", 200
    if request.method == "POST":
        form = TokenForm(request.POST, labs=labs)
        secret = _token_from(form, user_of(request))
        status = 201 if secret else 400
    context = {
        "tokens": selectors.tokens_of(user_of(request)),
        "form": TokenForm(labs=labs) if secret else form,
        "secret": secret,
    }
    return render(request, "labs/tokens.html", context, status=status)


def _token_from(form: TokenForm, user: User) -> str:
    """Create a token and return its secret; empty if the form has errors."""
    if not form.is_valid():
        return ""
    try:
        _, secret = services.token_create(
            user,
            name=form.cleaned_data["name"],
            expires_in=form.expires_in,
            lab=form.cleaned_data["lab"],
            **form.rights,
        )
    except InvalidInputError as error:
        form.add_error(None, error.message)
        return ""
    return secret


@not_audited("recorded by its events")
@login_required
@require_POST
def token_revoke(request: HttpRequest, token_id: uuid.UUID) -> HttpResponse:
    token = services.token_revoke(selectors.token_get(user_of(request), token_id=token_id))
    messages.success(request, f"The token “{token.name}” no longer works.")
    return redirect("labs:tokens")
