"""Pages: cases shared with other labs, and by them."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.archive import selectors, services
from portal.archive.forms import ShareForm
from portal.archive.models import today
from portal.archive.rules import may_share, require_share
from portal.core.errors import ConflictError, InvalidInputError, TooManyRequestsError
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get

USUAL = timedelta(days=30)  # offered first: a second opinion is given within a month


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def case_shares(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """With whom a case is shared; POST offers it to a lab. For managers."""
    user = user_of(request)
    case = selectors.case_get(user=user, case_id=case_id)
    require_share(user, case.lab_id)
    sent = request.POST if request.method == "POST" else None
    form = ShareForm(sent, initial={"until": today() + USUAL})
    status = 422
    if request.method == "POST" and form.is_valid():
        try:
            share = services.share_offer(case=case, user=user, **form.cleaned_data)
        except (InvalidInputError, ConflictError, TooManyRequestsError) as error:
            form.refuse(error.message)
            status = 429 if isinstance(error, TooManyRequestsError) else status
        else:
            messages.success(
                request, f"Offered to {share.with_lab}. A manager there has to accept."
            )
            return redirect("archive:case_shares", case_id=case.pk)
    context = {"case": case, "shares": selectors.shares_of_case(user, case)[:100], "form": form}
    return render(request, "archive/shares.html", context, status=status if form.errors else 200)


@never_cache
@login_required
@require_GET
def lab_shares(request: HttpRequest) -> HttpResponse:
    """What others share with a lab, and what it shares with others."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    context = {
        "lab": lab,
        "received": selectors.shares_received(user, lab=lab),
        "given": selectors.shares_given(user, lab=lab),
        "can_manage": may_share(user, lab.pk),
    }
    return render(request, "archive/lab_shares.html", context)


@login_required
@require_POST
def share_accept(request: HttpRequest, share_id: uuid.UUID) -> HttpResponse:
    """Let one's lab read a case that is offered."""
    user = user_of(request)
    share = selectors.share_get(user, share_id)
    try:
        share = services.share_accept(share=share, user=user)
    except ConflictError as error:
        messages.error(request, error.message)
    else:
        messages.success(
            request, f"{share.with_lab} may read {share.case} until {share.until:%B %-d, %Y}."
        )
    return _to_lab(share.with_lab.slug)


@login_required
@require_POST
def share_end(request: HttpRequest, share_id: uuid.UUID) -> HttpResponse:
    """Take a share back, decline it, or give it up."""
    user = user_of(request)
    share = services.share_end(share=selectors.share_get(user, share_id), user=user)
    messages.success(request, f"{share.case} is no longer shared with {share.with_lab}.")
    if "to_case" in request.POST:
        return redirect("archive:case_shares", case_id=share.case_id)
    return _to_lab((share.lab if may_share(user, share.lab_id) else share.with_lab).slug)


def _to_lab(slug: str) -> HttpResponse:
    return redirect(f"{reverse('archive:lab_shares')}?lab={slug}")
