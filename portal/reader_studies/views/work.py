"""Pages of assignments: the user's own, and those of a lab."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TypedDict

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.archive.filters import CaseFilter, cases_filtered
from portal.archive.models import Canvas, Case
from portal.core.errors import PortalError
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited, not_audited, rejections
from portal.labs.models import Lab, Role, User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_current, lab_get, labs_with_role
from portal.reader_studies.forms import AssignForm
from portal.reader_studies.models import Assignment, Study
from portal.reader_studies.rules import may_assign, require_assign
from portal.reader_studies.selectors.candidates import images_to_choose
from portal.reader_studies.selectors.work import (
    WorkFilter,
    assignment_get,
    load_of,
    rejected_regions,
    work_list,
    work_next,
    work_on_canvas,
)
from portal.reader_studies.services import assignments as services

PER_PAGE = 50  # two screens
REJECTED_MAX = 20  # a screen; the review queue lists all
OFFERED = 200  # images to tick at once; a filter finds the others


@audited(GET=AuditRule("work.viewed", every_s=HOUR_S))
@login_required
@require_GET
def mine(request: HttpRequest) -> HttpResponse:
    """The user's rejected regions, and assignments, the most urgent first.

    Submitted assignments with ``?done=1``.
    """
    user = user_of(request)
    lab = lab_current(user, chosen=lab_chosen_by(request))
    is_done = request.GET.get("done") == "1"
    filters = WorkFilter(person_id=user.pk, lab_id=lab.pk if lab else None, is_done=is_done)
    rows = work_list(user, filters)
    rejected = rejected_regions(user, lab_id=lab.pk if lab else None)
    context = {
        "page_obj": Paginator(rows, PER_PAGE).get_page(request.GET.get("page")),
        "is_done": is_done,
        "rejected": [] if is_done else list(rejected[:REJECTED_MAX]),
        "rejected_max": REJECTED_MAX,
    }
    return render(request, "reader_studies/work.html", context)


@not_audited("redirects to an audited page")
@login_required
@require_GET
def next_one(request: HttpRequest) -> HttpResponse:
    """Redirect to the user's next assignment."""
    assignment = work_next(user_of(request))
    if assignment is None:
        messages.success(request, "Nothing is left to do.")
        return redirect("reader_studies:work")
    return redirect("archive:viewer", assignment.canvas_id)


@audited(GET=AuditRule("work.viewed", every_s=HOUR_S))
@login_required
@require_GET
def assigned(request: HttpRequest) -> HttpResponse:
    """Workload of the lab's members and all open assignments, for managers."""
    user = user_of(request)
    lab = _lab_managed(request, user)
    is_done = request.GET.get("done") == "1"
    person = _uuid(request.GET.get("person", ""))
    filters = WorkFilter(lab_id=lab.pk, is_done=is_done, person_id=person)
    rows = work_list(user, filters)
    context = {
        "lab": lab,
        "loads": load_of(lab),
        "person": person,
        "page_obj": Paginator(rows, PER_PAGE).get_page(request.GET.get("page")),
        "is_done": is_done,
    }
    return render(request, "reader_studies/assigned.html", context)


@audited(GET=AuditRule("work.viewed", every_s=HOUR_S), POST=rejections("assignment.made"))
@login_required
@require_http_methods(["GET", "POST"])
def assign(request: HttpRequest) -> HttpResponse:
    """Assign images."""
    user = user_of(request)
    lab = _lab_managed(request, user)
    return assign_page(
        request,
        lab,
        lambda plan: services.work_assign(lab=lab, user=user, plan=plan),
        next_url=f"{reverse('reader_studies:assigned')}?lab={lab.slug}",
    )


@audited(POST=rejections("assignment.submitted", "assignment", "assignment_id"))
@login_required
@require_POST
def submit(request: HttpRequest, assignment_id: uuid.UUID) -> HttpResponse:
    """Submit an assignment and redirect to the next."""
    user = user_of(request)
    row = assignment_get(user, assignment_id)
    try:
        services.assignment_submit(assignment=row, user=user)
    except PortalError as error:
        if error.status != 409:
            raise
        messages.error(request, error.message)
        return redirect("reader_studies:work")
    messages.success(request, f"“{row.canvas.name}” was handed in.")
    following = work_next(user) if request.POST.get("then") == "next" else None
    return (
        redirect("archive:viewer", following.canvas_id)
        if following
        else redirect("reader_studies:work")
    )


@audited(POST=rejections("assignment.reopened", "assignment", "assignment_id"))
@login_required
@require_POST
def reopen(request: HttpRequest, assignment_id: uuid.UUID) -> HttpResponse:
    row = assignment_get(user_of(request), assignment_id)
    try:
        services.assignment_reopen(assignment=row, user=user_of(request))
    except PortalError as error:
        if error.status != 409:
            raise
        messages.error(request, error.message)
    else:
        messages.success(request, f"“{row.canvas.name}” was returned to {row.person}.")
    return _redirect_back(request, row)


@audited(POST=rejections("assignment.removed", "assignment", "assignment_id"))
@login_required
@require_POST
def remove(request: HttpRequest, assignment_id: uuid.UUID) -> HttpResponse:
    row = assignment_get(user_of(request), assignment_id)
    services.assignment_remove(assignment=row, user=user_of(request))
    messages.success(request, f"“{row.canvas.name}” is no longer assigned to {row.person}.")
    return _redirect_back(request, row)


def canvas_action(request: HttpRequest, canvas: Canvas) -> str:
    """Button above the viewer that submits the user's assignment of this image."""
    user = user_of(request)
    row = work_on_canvas(user, canvas)
    if row is None:
        return ""
    context = {"assignment": row, "next": work_next(user, after=row)}
    return render_to_string("reader_studies/_canvas_action.html", context, request)


def selection_action(request: HttpRequest, lab: Lab) -> str:
    """Button of the list of cases that assigns the images of the chosen cases, for managers."""
    return render_to_string("reader_studies/_selection_action.html", {"lab": lab}, request)


class Choosing(TypedDict):
    """Part of the context of ``reader_studies/assign.html``; ``ticked``: chosen ids."""

    lab: Lab
    form: AssignForm
    q: str
    images: list[Canvas]
    has_more: bool
    offered: int
    people: QuerySet[User]
    ticked: set[str]
    is_of_cases: bool


def assign_page(
    request: HttpRequest,
    lab: Lab,
    assign: Callable[[services.ReadingPlan], list[Assignment]],
    *,
    next_url: str,
    study: Study | None = None,
) -> HttpResponse:
    """Form to choose images and users; redirects to ``next_url`` after success."""
    user, status = user_of(request), 200
    form = AssignForm(request.POST if request.method == "POST" else None, user=user, lab=lab)
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                assignments = assign(form.plan())
            except PortalError as error:
                if error.status not in {400, 409}:
                    raise
                form.add_error(None, error.message)
            else:
                _tell_made(request, assignments)
                return redirect(next_url)
    context = {**_choosing(request, user, lab, form), "study": study}
    return render(request, "reader_studies/assign.html", context, status=status)


def _choosing(request: HttpRequest, user: User, lab: Lab, form: AssignForm) -> Choosing:
    """Context for choosing images and people; earlier selections are preserved."""
    text = request.GET.get("q", "")
    cases = _cases_chosen(request, user)
    images = list(images_to_choose(user, lab, text, cases=cases)[: OFFERED + 1])
    data = request.POST if request.method == "POST" else request.GET
    ticked = {*data.getlist("canvases"), *data.getlist("people")}
    if cases is not None and request.method == "GET":
        ticked |= {str(image.pk) for image in images[:OFFERED]}
    return {
        "lab": lab,
        "form": form,
        "q": text,
        "images": images[:OFFERED],
        "has_more": len(images) > OFFERED,
        "offered": OFFERED,
        "people": form.fields["people"].queryset,  # type: ignore[attr-defined]
        "ticked": ticked,
        "is_of_cases": cases is not None,
    }


def _cases_chosen(request: HttpRequest, user: User) -> QuerySet[Case] | None:
    """Cases chosen in the list of cases: ``?cases=`` for each, or ``?all=1`` with its filter."""
    if request.GET.get("all") == "1":
        names = CaseFilter.base_filters.keys() - {"lab"}  # here the short name of the page's lab
        params = {name: value for name, value in request.GET.items() if name in names}
        return cases_filtered(user, params)
    ids = [pk for text in request.GET.getlist("cases") if (pk := _uuid(text))]
    return Case.objects.owned_by(user).filter(pk__in=ids) if ids else None


def _tell_made(request: HttpRequest, assignments: list[Assignment]) -> None:
    """Report the number of assignments in a message."""
    if not assignments:
        messages.info(request, "All of them already had it.")
        return
    images = len({assignment.canvas_id for assignment in assignments})
    people = len({assignment.person_id for assignment in assignments})
    messages.success(
        request,
        f"{images} image{'s' * (images != 1)} for {people} "
        f"{'person' if people == 1 else 'people'} assigned.",
    )


def requested_lab(request: HttpRequest, user: User) -> Lab:
    """Lab of the request, else the chosen one if the user manages it, else the first they manage.

    For a user who manages none: the chosen one, or their first.
    """
    slug = request.GET.get("lab") or request.POST.get("lab")
    lab = lab_get(user, slug=slug, chosen=lab_chosen_by(request))
    if not slug and not may_assign(user, lab.pk):
        lab = labs_with_role(user, at_least=Role.MANAGER).first() or lab
    return lab


def _lab_managed(request: HttpRequest, user: User) -> Lab:
    """``requested_lab`` for managers; refuse everybody else."""
    lab = requested_lab(request, user)
    require_assign(user, lab.pk)
    return lab


def _redirect_back(request: HttpRequest, row: Assignment) -> HttpResponse:
    if row.study_id:
        return redirect("reader_studies:study", row.study_id)
    return redirect(f"{reverse('reader_studies:assigned')}?lab={row.lab.slug}")


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
