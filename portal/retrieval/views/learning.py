"""Pages: what a lab's archive teaches, for its managers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from ml.index.learning.material import RULE
from portal.annotations.models import Roi
from portal.core.errors import InvalidInputError, PortalError
from portal.jobs.selectors import devices_alive
from portal.labs.models import Lab, Role, User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import require_manager, require_role
from portal.labs.selectors import lab_get
from portal.retrieval import selectors, services
from portal.retrieval.models import Encoder, EncoderKind, Learning, LearningMethod
from portal.retrieval.selectors import MEASURES, LearningResult

_PAGE = 20  # learnings of a page: one screen
_CURVE = (400, 120)  # of a plot, as the template's viewBox has it
_LINES = {"loss": "learned from", "held_out": "kept aside"}


@login_required
@require_http_methods(["GET", "POST"])
def learnings(request: HttpRequest) -> HttpResponse:
    """What was learned, and what there is to learn from; POST begins."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_manager(user, lab)
    if request.method == "POST":
        return _ask(request, lab, user)
    page = Paginator(selectors.learnings_of(user, lab.pk), _PAGE)
    context = {
        "lab": lab,
        "page_obj": page.get_page(request.GET.get("page")),
        "kinds": [_kind(lab, kind) for kind in EncoderKind],
        "rule": RULE,
        "training": services.WantedTraining(),
        "steps": (services.STEPS_LEAST, services.STEPS_MOST),
        "hours_most": services.HOURS_MOST,
        "devices": devices_alive(),
    }
    return render(request, "retrieval/learnings.html", context)


@login_required
@require_GET
def learning(request: HttpRequest, learning_id: uuid.UUID) -> HttpResponse:
    """One of them: from what, by which rules, and what it is worth, with examples."""
    user = user_of(request)
    found = _managed(user, learning_id)
    context: dict[str, Any] = {
        "learning": found,
        "lab": found.lab,
        "in_use": selectors.encoder_of_lab(found.kind, found.lab_id),
        "way_back": selectors.learning_way_back(found),
    }
    if found.result is not None:
        result = LearningResult.of_json(found.result)
        context |= {
            "result": result,
            "measures": [(MEASURES[one.name], one) for one in result.measures],
            "judges_by": MEASURES[result.judges_by],
            "examples": _examples(user, result),
        }
    if found.training is not None:
        context["curves"] = [
            (name, _curve(found.training[key], found.training)) for key, name in _LINES.items()
        ]
    if found.use == "preparing" and found.encoder is not None:
        context["map_job"] = selectors.own_job_open(found.encoder)
    return render(request, "retrieval/learning.html", context)


@login_required
@require_POST
def learning_promote(request: HttpRequest, learning_id: uuid.UUID) -> HttpResponse:
    """Let the lab's searches use it."""
    user = user_of(request)
    found = _managed(user, learning_id)
    try:
        services.learning_promote(learning=found, user=user)
    except PortalError as error:
        messages.error(request, error.message)
    return redirect("retrieval:learning", learning_id)


@login_required
@require_POST
def learning_roll_back(request: HttpRequest, learning_id: uuid.UUID) -> HttpResponse:
    """Let them use what they used before."""
    user = user_of(request)
    found = _managed(user, learning_id)
    try:
        services.learning_roll_back(learning=found, user=user)
        messages.success(request, _rolled_back(found))
    except PortalError as error:
        messages.error(request, error.message)
    return redirect("retrieval:learning", learning_id)


def _rolled_back(learning: Learning) -> str:
    now = selectors.encoder_of_lab(learning.kind, learning.lab_id)
    before = selectors.learning_way_back(learning)
    if learning.use == "preparing":
        return f"It will not be put in use. Searches use {now}, as before."
    if now == before:
        return f"Searches use {before} again."
    return (
        f"Searches use {now}. They will use {before} again once the regions drawn in the meantime "
        "are embedded with it."
    )


def _ask(request: HttpRequest, lab: Lab, user: User) -> HttpResponse:
    kind = EncoderKind.HISTOLOGY
    if request.POST.get("kind") in EncoderKind.values:
        kind = EncoderKind(request.POST["kind"])
    try:
        made = services.learning_ask(lab=lab, kind=kind, user=user, training=_wanted(request))
    except PortalError as error:
        messages.error(request, error.message)
        return redirect(request.get_full_path())
    return redirect("retrieval:learning", made.pk)


def _wanted(request: HttpRequest) -> services.WantedTraining | None:
    """How long an encoder is to be trained; None if a metric is asked for."""
    if request.POST.get("method") != LearningMethod.ENCODER:
        return None
    try:
        steps, hours = int(request.POST["steps"]), float(request.POST["hours"])
    except (KeyError, ValueError) as error:
        raise InvalidInputError("Enter the steps and the hours as numbers.") from error
    return services.WantedTraining(steps, hours)


def _curve(line: Sequence[float], training: Mapping[str, Any]) -> str:
    """Points of a polyline in a box of ``_CURVE`` for the loss of each step; empty for none."""
    both = [*training["loss"], *training["held_out"]]
    if len(line) < 2 or max(both) == min(both):
        return ""
    width, height = _CURVE
    step, scale = width / (len(line) - 1), height / (max(both) - min(both))
    return " ".join(
        f"{at * step:.1f},{(max(both) - value) * scale:.1f}" for at, value in enumerate(line)
    )


@dataclass(frozen=True, slots=True)
class _Kind:
    """What there is of a kind, and what searches of it go by; nothing without ``base``.

    Attributes:
        base: what would be learned on. lacking: what is missing to learn, in sentences.
    """

    kind: EncoderKind
    base: Encoder | None
    regions: int = 0
    labelled: int = 0
    patients: int = 0
    judgements: int = 0
    lacking: tuple[str, ...] = ()
    searches_by: Encoder | None = None
    under_way: Learning | None = None


def _kind(lab: Lab, kind: EncoderKind) -> _Kind:
    base = selectors.encoder_default(kind)
    if base is None:
        return _Kind(kind, base)
    found, enough = selectors.learning_enough(lab.pk, base)
    return _Kind(
        kind,
        base,
        regions=len(found.rois),
        labelled=int((found.material.labels != "").sum()),
        patients=enough.patients,
        judgements=len(found.material.judged),
        lacking=enough.lacking,
        searches_by=selectors.encoder_of_lab(kind, lab.pk),
        under_way=selectors.learning_under_way(lab.pk, kind),
    )


@dataclass(frozen=True, slots=True)
class _Example:
    """A region searched with, and the nearest before and now; None for one not to be seen."""

    roi: Roi
    gain: float
    old: list[Roi | None]
    new: list[Roi | None]


def _examples(user: User, result: LearningResult) -> list[_Example]:
    """Those whose region is still there and may be seen by this person. One query."""
    keys = {key for one in result.examples for key in (one.roi, *one.old, *one.new)}
    rois = Roi.objects.owned_by(user).filter(pk__in=keys, deleted_at__isnull=True)
    known = {str(roi.pk): roi for roi in rois.select_related("canvas__case", "label")}
    return [
        _Example(
            known[one.roi],
            one.gain,
            old=[known.get(key) for key in one.old],
            new=[known.get(key) for key in one.new],
        )
        for one in result.examples
        if one.roi in known
    ]


def _managed(user: User, learning_id: uuid.UUID) -> Learning:
    found = selectors.learning_get(user, learning_id)
    require_role(user, found.lab_id, at_least=Role.MANAGER)
    return found
