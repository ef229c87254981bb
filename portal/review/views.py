"""Page of the review queue."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from portal.annotations.models import ReviewState
from portal.annotations.selectors.reviewing import review_rules_of
from portal.annotations.services.reviewing import review_rules_set
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited, rejections
from portal.labs.models import Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import has_role
from portal.labs.selectors import lab_current, lab_get, labs_with_role
from portal.review.forms import QueueForm
from portal.review.selectors import queue as selectors

FILTERS = ("label", "person", "case", "since", "until")
PER_PAGE = 50


@audited(GET=AuditRule("review.viewed", every_s=HOUR_S))
@login_required
@require_GET
def queue(request: HttpRequest) -> HttpResponse:
    """ROIs waiting for review in the chosen lab, or in all labs of the user."""
    user = user_of(request)
    lab = lab_current(user, chosen=lab_chosen_by(request))
    form = QueueForm(request.GET, user=user, lab=lab)
    filters = form.filters()
    rois = selectors.review_queue(user, filters)
    page = Paginator(rois, PER_PAGE).get_page(request.GET.get("page"))
    managed = lab or labs_with_role(user, at_least=Role.MANAGER).first()
    can_manage = managed is not None and has_role(user, managed.pk, at_least=Role.MANAGER)
    context = {
        "form": form,
        "page_obj": page,
        "state": filters.state,
        "states": ReviewState.choices,
        "is_filtered": any(request.GET.get(name) for name in FILTERS),
        "may_review": labs_with_role(user, at_least=Role.REVIEWER).exists(),
        "may_submit": labs_with_role(user, at_least=Role.ANNOTATOR).exists(),
        "managed": managed if can_manage else None,
        "rules": review_rules_of(managed.pk) if managed and can_manage else None,
    }
    return render(request, "review/queue.html", context)


@audited(POST=rejections("review_rules.changed"))
@login_required
@require_POST
def rules(request: HttpRequest) -> HttpResponse:
    """Change the review settings of the lab."""
    user = user_of(request)
    lab = lab_get(user, slug=request.POST.get("lab"), chosen=lab_chosen_by(request))
    review_rules_set(lab=lab, user=user, may_judge_own="may_judge_own" in request.POST)
    messages.success(request, f"The review rules of {lab.name} were saved.")
    return redirect(reverse("review:queue"))
