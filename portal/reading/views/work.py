"""Pages of work: mine, and what a lab has handed out."""

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

from portal.archive.models import Canvas
from portal.core.errors import PortalError
from portal.labs.models import Lab, Role, User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_current, lab_get, labs_with_role
from portal.reading import selectors, services
from portal.reading.forms import AssignForm
from portal.reading.models import Assignment, Study
from portal.reading.rules import may_assign, require_assign
from portal.reading.selectors.choosing import images_to_choose

PER_PAGE = 50  # two screens
OFFERED = 200  # images to tick at once; a filter finds the others


@login_required
@require_GET
def mine(request: HttpRequest) -> HttpResponse:
    """What the person has to do, the most urgent first; done with ``?done=1``."""
    user = user_of(request)
    lab = lab_current(user, chosen=lab_chosen_by(request))
    is_done = request.GET.get("done") == "1"
    wanted = selectors.WorkFilter(
        person_id=user.pk, lab_id=lab.pk if lab else None, is_done=is_done
    )
    rows = selectors.work_list(user, wanted)
    context = {
        "page_obj": Paginator(rows, PER_PAGE).get_page(request.GET.get("page")),
        "is_done": is_done,
        "manages": labs_with_role(user, at_least=Role.MANAGER).exists(),
        "sees_studies": selectors.study_list(user).exists(),
    }
    return render(request, "reading/work.html", context)


@login_required
@require_GET
def next_one(request: HttpRequest) -> HttpResponse:
    """Go to what the person does next."""
    found = selectors.work_next(user_of(request))
    if found is None:
        messages.success(request, "Nothing is left to do.")
        return redirect("reading:work")
    return redirect("archive:viewer", found.canvas_id)


@login_required
@require_GET
def handed_out(request: HttpRequest) -> HttpResponse:
    """For managers: who has how much to do, and all that is open."""
    user = user_of(request)
    lab = _managed(request, user)
    is_done = request.GET.get("done") == "1"
    person = _uuid(request.GET.get("person", ""))
    wanted = selectors.WorkFilter(lab_id=lab.pk, is_done=is_done, person_id=person)
    rows = selectors.work_list(user, wanted)
    context = {
        "lab": lab,
        "loads": selectors.load_of(lab),
        "person": person,
        "page_obj": Paginator(rows, PER_PAGE).get_page(request.GET.get("page")),
        "is_done": is_done,
    }
    return render(request, "reading/handed_out.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def assign(request: HttpRequest) -> HttpResponse:
    """Hand out images."""
    user = user_of(request)
    lab = _managed(request, user)
    return assign_page(
        request,
        lab,
        lambda wanted: services.work_assign(lab=lab, user=user, wanted=wanted),
        then=f"{reverse('reading:handed_out')}?lab={lab.slug}",
    )


@login_required
@require_POST
def submit(request: HttpRequest, assignment_id: uuid.UUID) -> HttpResponse:
    """Hand it in, and continue with the next."""
    user = user_of(request)
    row = selectors.assignment_get(user, assignment_id)
    try:
        services.assignment_submit(assignment=row, user=user)
    except PortalError as error:
        if error.status != 409:
            raise
        messages.error(request, error.message)
        return redirect("reading:work")
    messages.success(request, f"“{row.canvas.name}” was handed in.")
    found = selectors.work_next(user) if request.POST.get("then") == "next" else None
    return redirect("archive:viewer", found.canvas_id) if found else redirect("reading:work")


@login_required
@require_POST
def reopen(request: HttpRequest, assignment_id: uuid.UUID) -> HttpResponse:
    """Give it back to its person."""
    row = selectors.assignment_get(user_of(request), assignment_id)
    try:
        services.assignment_reopen(assignment=row, user=user_of(request))
    except PortalError as error:
        if error.status != 409:
            raise
        messages.error(request, error.message)
    else:
        messages.success(request, f"“{row.canvas.name}” was returned to {row.person}.")
    return _back(request, row)


@login_required
@require_POST
def remove(request: HttpRequest, assignment_id: uuid.UUID) -> HttpResponse:
    """Take it away."""
    row = selectors.assignment_get(user_of(request), assignment_id)
    services.assignment_remove(assignment=row, user=user_of(request))
    messages.success(request, f"“{row.canvas.name}” is no longer assigned to {row.person}.")
    return _back(request, row)


def canvas_action(request: HttpRequest, canvas: Canvas) -> str:
    """Above the viewer: what the person has to do on this image, to be handed in there."""
    user = user_of(request)
    row = selectors.work_on_canvas(user, canvas)
    if row is None:
        return ""
    context = {"assignment": row, "next": selectors.work_next(user, after=row)}
    return render_to_string("reading/_canvas_action.html", context, request)


class Choosing(TypedDict):
    """Part of the context of ``reading/assign.html``; ``ticked``: ids of images and people."""

    lab: Lab
    form: AssignForm
    q: str
    images: list[Canvas]
    has_more: bool
    offered: int
    people: QuerySet[User]
    ticked: set[str]


def assign_page(
    request: HttpRequest,
    lab: Lab,
    assign: Callable[[services.WantedReadings], list[Assignment]],
    *,
    then: str,
    study: Study | None = None,
) -> HttpResponse:
    """The choice of images and people; once made, on to ``then``."""
    user, status = user_of(request), 200
    form = AssignForm(request.POST if request.method == "POST" else None, user=user, lab=lab)
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                made = assign(form.wanted())
            except PortalError as error:
                if error.status not in {400, 409}:
                    raise
                form.add_error(None, error.message)
            else:
                _tell_made(request, made)
                return redirect(then)
    context = {**_choosing(request, user, lab, form), "study": study}
    return render(request, "reading/assign.html", context, status=status)


def _choosing(request: HttpRequest, user: User, lab: Lab, form: AssignForm) -> Choosing:
    """What the choice of images and people shows; what was ticked stays ticked."""
    text = request.GET.get("q", "")
    images = list(images_to_choose(user, lab, text)[: OFFERED + 1])
    sent = request.POST if request.method == "POST" else request.GET
    ticked = {*sent.getlist("canvases"), *sent.getlist("people")}
    return {
        "lab": lab,
        "form": form,
        "q": text,
        "images": images[:OFFERED],
        "has_more": len(images) > OFFERED,
        "offered": OFFERED,
        "people": form.fields["people"].queryset,  # type: ignore[attr-defined]
        "ticked": ticked,
    }


def _tell_made(request: HttpRequest, made: list[Assignment]) -> None:
    """Say how much was handed out."""
    if not made:
        messages.info(request, "All of them already had it.")
        return
    images = len({one.canvas_id for one in made})
    people = len({one.person_id for one in made})
    messages.success(
        request,
        f"{images} image{'s' * (images != 1)} for {people} "
        f"{'person' if people == 1 else 'people'} handed out.",
    )


def lab_asked(request: HttpRequest, user: User) -> Lab:
    """The lab asked for, else the one chosen if the person manages it, else the first they manage.

    For a person who manages none: the one chosen, or their first.
    """
    slug = request.GET.get("lab") or request.POST.get("lab")
    lab = lab_get(user, slug=slug, chosen=lab_chosen_by(request))
    if not slug and not may_assign(user, lab.pk):
        lab = labs_with_role(user, at_least=Role.MANAGER).first() or lab
    return lab


def _managed(request: HttpRequest, user: User) -> Lab:
    """The same, for managers alone."""
    lab = lab_asked(request, user)
    require_assign(user, lab.pk)
    return lab


def _back(request: HttpRequest, row: Assignment) -> HttpResponse:
    if row.study_id:
        return redirect("reading:study", row.study_id)
    return redirect(f"{reverse('reading:handed_out')}?lab={row.lab.slug}")


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
