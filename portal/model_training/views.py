"""Pages: models learned from a lab's archive, for managers."""

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

from portal.annotations.models import Roi
from portal.archive.models import Modality
from portal.core.errors import InvalidInputError, PortalError
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.encoders import encoder_default, encoder_of_lab
from portal.embeddings.selectors.lab_encoders import lab_encoder_job_open
from portal.jobs.selectors.jobs import worker_devices
from portal.labs.models import Lab, Role, User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import require_manager, require_role
from portal.labs.selectors import lab_get
from portal.model_training.models import Learning, LearningMethod
from portal.model_training.selectors.learnings import (
    encoder_to_roll_back_to,
    learning_get,
    learning_under_way,
    learnings_of,
)
from portal.model_training.selectors.results import MEASURES, LearningResult
from portal.model_training.selectors.training_data import training_data_check
from portal.model_training.services import learnings as learning_services
from portal.model_training.services.learnings import (
    MAX_HOURS,
    TrainingLimits,
    learning_submit,
)

_PAGE = 20  # per page
_CURVE = (400, 120)  # plot size; equals the template's viewBox
_LINES = {"loss": "learned from", "held_out": "kept aside"}


@audited(GET=AuditRule("learning.viewed", every_s=HOUR_S), POST=rejections("learning.requested"))
@login_required
@require_http_methods(["GET", "POST"])
def learnings(request: HttpRequest) -> HttpResponse:
    """List learned models and available training data; POST starts learning."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_manager(user, lab)
    if request.method == "POST":
        return _ask(request, lab, user)
    page = Paginator(learnings_of(user, lab.pk), _PAGE)
    context = {
        "lab": lab,
        "page_obj": page.get_page(request.GET.get("page")),
        "kinds": [_kind(lab, kind) for kind in Modality],
        "training": TrainingLimits(),
        "hours_most": MAX_HOURS,
        "devices": worker_devices(),
    }
    return render(request, "model_training/learnings.html", context)


@audited(GET=AuditRule("learning.viewed", "learning", "learning_id", every_s=MINUTE_S))
@login_required
@require_GET
def learning(request: HttpRequest, learning_id: uuid.UUID) -> HttpResponse:
    """Show a learned model: its data, criterion and evaluation, with examples."""
    user = user_of(request)
    row = _learning_managed(user, learning_id)
    context: dict[str, Any] = {
        "learning": row,
        "lab": row.lab,
        "in_use": encoder_of_lab(row.kind, row.lab_id),
    }
    if row.result is not None:
        result = LearningResult.from_json(row.result)
        context |= {
            "result": result,
            "measures": [(MEASURES[measure.name], measure) for measure in result.measures],
            "judges_by": MEASURES[result.judges_by],
            "examples": _examples(user, result),
        }
    if row.training is not None:
        context["curves"] = [
            (name, _curve(row.training[key], row.training)) for key, name in _LINES.items()
        ]
    if row.use == "preparing" and row.encoder is not None:
        context["map_job"] = lab_encoder_job_open(row.encoder)
    return render(request, "model_training/learning.html", context)


@audited(POST=rejections("learning.promoted", "learning", "learning_id"))
@login_required
@require_POST
def learning_promote(request: HttpRequest, learning_id: uuid.UUID) -> HttpResponse:
    """Let the lab's searches use the model."""
    user = user_of(request)
    row = _learning_managed(user, learning_id)
    try:
        learning_services.learning_promote(learning=row, user=user)
    except PortalError as error:
        messages.error(request, error.message)
    return redirect("model_training:learning", learning_id)


@audited(POST=rejections("learning.rolled_back", "learning", "learning_id"))
@login_required
@require_POST
def learning_roll_back(request: HttpRequest, learning_id: uuid.UUID) -> HttpResponse:
    """Return the lab's searches to the previous encoder."""
    user = user_of(request)
    row = _learning_managed(user, learning_id)
    try:
        learning_services.learning_roll_back(learning=row, user=user)
        messages.success(request, _rolled_back(row))
    except PortalError as error:
        messages.error(request, error.message)
    return redirect("model_training:learning", learning_id)


def _rolled_back(learning: Learning) -> str:
    if learning.use == "preparing":
        return "It will not be put in use. Searches stay as they are."
    if encoder_of_lab(learning.kind, learning.lab_id) == encoder_to_roll_back_to(learning):
        return "Searches use the previous search model again."
    return (
        "Searches use the search model that comes with Tessera. They will use the previous one "
        "again once the regions drawn in the meantime are prepared for it."
    )


def _ask(request: HttpRequest, lab: Lab, user: User) -> HttpResponse:
    kind = Modality.HISTOLOGY
    if request.POST.get("kind") in Modality.values:
        kind = Modality(request.POST["kind"])
    try:
        learning = learning_submit(lab=lab, kind=kind, user=user, training=_limits_posted(request))
    except PortalError as error:
        messages.error(request, error.message)
        return redirect(request.get_full_path())
    return redirect("model_training:learning", learning.pk)


def _limits_posted(request: HttpRequest) -> TrainingLimits | None:
    """Training limits from the form; None if a metric is requested."""
    if request.POST.get("method") != LearningMethod.ENCODER:
        return None
    try:
        steps, hours = int(request.POST["steps"]), float(request.POST["hours"])
    except (KeyError, ValueError) as error:
        raise InvalidInputError("Enter the hours and the steps as numbers.") from error
    return TrainingLimits(steps, hours)


def _curve(line: Sequence[float], training: Mapping[str, Any]) -> str:
    """Polyline of the losses in a box of ``_CURVE``; empty without any."""
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
    """Training data of a kind, and the encoder in use; empty without ``base``.

    Attributes:
        base: Encoder to learn from.
        lacking: Missing training data, in sentences.
    """

    kind: Modality
    base: Encoder | None
    regions: int = 0
    labelled: int = 0
    patients: int = 0
    judgements: int = 0
    lacking: tuple[str, ...] = ()
    searches_by: Encoder | None = None
    under_way: Learning | None = None


def _kind(lab: Lab, kind: Modality) -> _Kind:
    base = encoder_default(kind)
    if base is None:
        return _Kind(kind, base)
    data, check = training_data_check(lab.pk, base)
    return _Kind(
        kind,
        base,
        regions=len(data.rois),
        labelled=int((data.material.labels != "").sum()),
        patients=check.patients,
        judgements=len(data.material.judged),
        lacking=check.missing,
        searches_by=encoder_of_lab(kind, lab.pk),
        under_way=learning_under_way(lab.pk, kind),
    )


@dataclass(frozen=True, slots=True)
class _Example:
    """Held-out region, and its nearest before and now; None if not visible."""

    roi: Roi
    gain: float
    old: list[Roi | None]
    new: list[Roi | None]


def _examples(user: User, result: LearningResult) -> list[_Example]:
    """Examples whose region still exists and is visible to the person. One query."""
    keys = {key for example in result.examples for key in (example.roi, *example.old, *example.new)}
    rois = Roi.objects.owned_by(user).filter(pk__in=keys, deleted_at__isnull=True)
    rois_by_id = {str(roi.pk): roi for roi in rois.select_related("canvas__case", "label")}
    return [
        _Example(
            rois_by_id[example.roi],
            example.gain,
            old=[rois_by_id.get(key) for key in example.old],
            new=[rois_by_id.get(key) for key in example.new],
        )
        for example in result.examples
        if example.roi in rois_by_id
    ]


def _learning_managed(user: User, learning_id: uuid.UUID) -> Learning:
    row = learning_get(user, learning_id)
    require_role(user, row.lab_id, at_least=Role.MANAGER)
    return row
