"""Pages: cases shared with other labs, and by them."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.archive.forms import ShareForm
from portal.archive.models.shares import today
from portal.archive.rules import may_share, require_share
from portal.archive.selectors.cases import case_get
from portal.archive.selectors.sharing import (
    share_get,
    shares_given,
    shares_of_case,
    shares_received,
)
from portal.archive.services.sharing import USUAL_SHARE, share_offer
from portal.archive.services.sharing import share_accept as accept_share
from portal.archive.services.sharing import share_end as end_share
from portal.core.errors import ConflictError, InvalidInputError, TooManyRequestsError
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get


@audited(
    GET=AuditRule("case.viewed", "case", "case_id"),
    POST=rejections("share.offered", "case", "case_id"),
)
@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def case_shares(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """Labs that a case is shared with; POST offers it to a lab. For managers."""
    user = user_of(request)
    case = case_get(user=user, case_id=case_id)
    require_share(user, case.lab_id)
    data = request.POST if request.method == "POST" else None
    form = ShareForm(data, initial={"until": today() + USUAL_SHARE})
    status = 422
    if request.method == "POST" and form.is_valid():
        try:
            share = share_offer(case=case, user=user, **form.cleaned_data)
        except (InvalidInputError, ConflictError, TooManyRequestsError) as error:
            form.refuse(error.message)
            status = 429 if isinstance(error, TooManyRequestsError) else status
        else:
            messages.success(
                request, f"Offered to {share.with_lab}. A manager there has to accept."
            )
            return redirect("archive:case_shares", case_id=case.pk)
    context = {"case": case, "shares": shares_of_case(user, case)[:100], "form": form}
    return render(request, "archive/shares.html", context, status=status if form.errors else 200)


@audited(GET=AuditRule("share.listed"))
@never_cache
@login_required
@require_GET
def lab_shares(request: HttpRequest) -> HttpResponse:
    """Shares received and given by a lab."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    context = {
        "lab": lab,
        "received_shares": shares_received(user, lab=lab),
        "offered_shares": shares_given(user, lab=lab),
        "can_manage": may_share(user, lab.pk),
    }
    return render(request, "archive/lab_shares.html", context)


@audited(POST=rejections("share.accepted", "share", "share_id"))
@login_required
@require_POST
def share_accept(request: HttpRequest, share_id: uuid.UUID) -> HttpResponse:
    """Let one's lab read a case that is offered."""
    user = user_of(request)
    share = share_get(user, share_id)
    try:
        share = accept_share(share=share, user=user)
    except ConflictError as error:
        messages.error(request, error.message)
    else:
        messages.success(
            request, f"{share.with_lab} may read {share.case} until {share.until:%B %-d, %Y}."
        )
    return _to_lab(share.with_lab.slug)


@audited(POST=rejections("share.ended", "share", "share_id"))
@login_required
@require_POST
def share_end(request: HttpRequest, share_id: uuid.UUID) -> HttpResponse:
    """Take a share back, decline it, or give it up."""
    user = user_of(request)
    share = end_share(share=share_get(user, share_id), user=user)
    messages.success(request, f"{share.case} is no longer shared with {share.with_lab}.")
    if "to_case" in request.POST:
        return redirect("archive:case_shares", case_id=share.case_id)
    return _to_lab((share.lab if may_share(user, share.lab_id) else share.with_lab).slug)


def _to_lab(slug: str) -> HttpResponse:
    return redirect(f"{reverse('archive:lab_shares')}?lab={slug}")
