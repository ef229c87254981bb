"""The page of the queue."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from portal.annotations.models import ReviewState
from portal.annotations.selectors import review_rules_of
from portal.annotations.services import review_rules_set
from portal.labs.models import Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import has_role
from portal.labs.selectors import lab_current, lab_get, labs_with_role
from portal.review import selectors
from portal.review.forms import QueueForm

FILTERS = ("label", "person", "case", "since", "until")
PER_PAGE = 50  # a sitting; the list scrolls


@login_required
@require_GET
def queue(request: HttpRequest) -> HttpResponse:
    """What waits for a verdict in the lab that was chosen, or in all of the person's."""
    user = user_of(request)
    lab = lab_current(user, chosen=lab_chosen_by(request))
    form = QueueForm(request.GET, user=user, lab=lab)
    wanted = form.wanted()
    rois = selectors.review_queue(user, wanted)
    page = Paginator(rois, PER_PAGE).get_page(request.GET.get("page"))
    managed = lab or labs_with_role(user, at_least=Role.MANAGER).first()
    can_manage = managed is not None and has_role(user, managed.pk, at_least=Role.MANAGER)
    context = {
        "form": form,
        "page_obj": page,
        "state": wanted.state,
        "states": ReviewState.choices,
        "is_filtered": any(request.GET.get(name) for name in FILTERS),
        "may_review": labs_with_role(user, at_least=Role.REVIEWER).exists(),
        "may_submit": labs_with_role(user, at_least=Role.ANNOTATOR).exists(),
        "managed": managed if can_manage else None,
        "rules": review_rules_of(managed.pk) if managed and can_manage else None,
    }
    return render(request, "review/queue.html", context)


@login_required
@require_POST
def rules(request: HttpRequest) -> HttpResponse:
    """Say how the lab reviews."""
    user = user_of(request)
    lab = lab_get(user, slug=request.POST.get("lab"), chosen=lab_chosen_by(request))
    review_rules_set(lab=lab, user=user, may_judge_own="may_judge_own" in request.POST)
    messages.success(request, f"The review rules of {lab.name} were saved.")
    return redirect(reverse("review:queue"))
