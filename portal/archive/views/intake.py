"""Pages: how a lab takes files in, and what did not pass the gate."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from portal.archive import selectors, services
from portal.archive.models import Seen
from portal.archive.rules import require_intake
from portal.archive.services import IntakeWanted
from portal.core.api.conditions import edited_by_page
from portal.core.errors import PortalError, StaleVersionError
from portal.labs.models import Lab
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get, memberships_of

PER_PAGE = 50  # two screens
REFUSED_MOST = 50  # the same; they are gone after two days


@never_cache
@login_required
@require_GET
def intake(request: HttpRequest) -> HttpResponse:
    """The rules of a lab and its quarantine. For managers."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_intake(user, lab.pk)
    held = selectors.quarantine_list(user=user).filter(lab=lab)
    page = Paginator(held, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "lab": lab,
        "memberships": memberships_of(user),
        "can_manage": True,
        "page_obj": page,
        "refused": selectors.refused_list(user=user).filter(lab=lab)[:REFUSED_MOST],
        "kept_hours": round(services.KEPT.total_seconds() / 3600),
        "rules": selectors.intake_rules_of(lab.pk),
        "releasable": services.RELEASABLE,
        "seen_choices": Seen.choices,
    }
    return render(request, "archive/intake.html", context)


@login_required
@require_POST
def intake_rules(request: HttpRequest) -> HttpResponse:
    """Say how the lab takes files in."""
    user, sent = user_of(request), request.POST
    lab = lab_get(user, slug=sent.get("lab"), chosen=lab_chosen_by(request))
    rules = selectors.intake_rules_of(lab.pk)
    wanted = IntakeWanted(
        takes_names_out="takes_names_out" in sent,
        must_be_clean="must_be_clean" in sent,
        titles_from_files="titles_from_files" in sent,
        text_in_pixels=_chosen(sent, "text_in_pixels", rules.text_in_pixels),
        faces_in_pixels=_chosen(sent, "faces_in_pixels", rules.faces_in_pixels),
    )
    try:
        with edited_by_page(request, rules):
            services.intake_rules_set(lab=lab, user=user, wanted=wanted)
        messages.success(request, f"The rules by which {lab.name} takes files in were saved.")
    except StaleVersionError:
        text = "Someone else has changed the rules in the meantime; they are shown as they are now."
        messages.error(request, f"{text} Your changes were not saved.")
    return _to_intake(lab)


@login_required
@require_POST
def quarantine_retry(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Prepare a file again."""
    user = user_of(request)
    upload = selectors.quarantine_get(user=user, upload_id=upload_id)
    return _done(
        request,
        upload.lab,
        lambda: services.quarantine_retry(upload=upload, user=user),
        f"{upload.name} is being prepared again.",
    )


@login_required
@require_POST
def quarantine_release(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Let a file pass."""
    user, reason = user_of(request), request.POST.get("reason", "")
    upload = selectors.quarantine_get(user=user, upload_id=upload_id)
    return _done(
        request,
        upload.lab,
        lambda: services.quarantine_release(upload=upload, user=user, reason=reason),
        f"{upload.name} was released and is being prepared.",
    )


@login_required
@require_POST
def quarantine_delete(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Delete a file for good."""
    user = user_of(request)
    upload = selectors.quarantine_get(user=user, upload_id=upload_id)
    return _done(
        request,
        upload.lab,
        lambda: services.quarantine_delete(upload=upload, user=user),
        f"{upload.name} was deleted.",
    )


def _chosen(sent: QueryDict, name: str, present: str) -> str:
    """What a form chose of ``Seen``; otherwise the present value."""
    value = sent.get(name, present)
    return value if value in Seen.values else present


def _done(request: HttpRequest, lab: Lab, act: Callable[[], object], said: str) -> HttpResponse:
    try:
        act()
    except PortalError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, said)
    return _to_intake(lab)


def _to_intake(lab: Lab) -> HttpResponse:
    return redirect(f"{reverse('archive:intake')}?lab={lab.slug}")
