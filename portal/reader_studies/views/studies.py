"""Pages of studies: list, readers, agreement, findings."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.annotations.measures import area_texts
from portal.annotations.models import Label, Roi
from portal.archive.selectors.canvases import canvas_get
from portal.core.errors import InvalidInputError, PortalError
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.labs.models import Lab, User
from portal.labs.requests import user_of
from portal.reader_studies.downloads import agreement_download
from portal.reader_studies.forms import StudyForm
from portal.reader_studies.models import Choice, Study
from portal.reader_studies.rules import may_adjudicate, may_assign, require_assign
from portal.reader_studies.selectors.results import agreement_of, image_result, image_results
from portal.reader_studies.selectors.studies import progress_of, study_get, study_list
from portal.reader_studies.services.adjudication import decision_undo, findings_decide
from portal.reader_studies.services.studies import readings_assign, study_create, study_unblind
from portal.reader_studies.views.presentation import agreement_rows, bars, findings_shown
from portal.reader_studies.views.work import assign_page, requested_lab

OWN_SHOWN = 20  # the adjudicator's newest regions on the image


@audited(GET=AuditRule("study.viewed", every_s=HOUR_S), POST=rejections("study.created"))
@login_required
@require_http_methods(["GET", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """List the user's studies; POST creates one, for managers."""
    user = user_of(request)
    lab = requested_lab(request, user)
    if request.method == "GET":
        return _index(request, user, lab, StudyForm(lab=lab))
    require_assign(user, lab.pk)
    form = StudyForm(request.POST, lab=lab)
    if form.is_valid():
        try:
            study = study_create(lab=lab, user=user, **form.cleaned_data)
        except PortalError as error:
            if error.status not in {400, 409}:
                raise
            form.add_error("name", error.message)
        else:
            messages.success(request, f"“{study.name}” was started. Choose its images and readers.")
            return redirect(f"{reverse('reader_studies:study_assign', args=[study.pk])}")
    return _index(request, user, lab, form, status=400)


def _index(
    request: HttpRequest, user: User, lab: Lab, form: StudyForm, *, status: int = 200
) -> HttpResponse:
    context = {
        "lab": lab,
        "studies": study_list(user).filter(lab=lab),
        "form": form,
        "can_manage": may_assign(user, lab.pk),
    }
    return render(request, "reader_studies/studies.html", context, status=status)


@audited(GET=AuditRule("study.viewed", "study", "study_id", every_s=MINUTE_S))
@login_required
@require_GET
def study(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """A study: progress of the readers and their agreement."""
    user = user_of(request)
    row = study_get(user, study_id)
    readers, progress = progress_of(row)
    can_manage = may_assign(user, row.lab_id)
    results = image_results(row)
    labels = _labels(row.lab_id)
    total = agreement_of(results)
    decided = set(row.decisions.values_list("finding", flat=True))
    context = {
        "study": row,
        "can_manage": can_manage,
        "sees_progress": can_manage or may_adjudicate(user, row),
        "readers": readers,
        "progress": progress,
        "labels": row.labels.order_by("position", "name"),
        "total": agreement_rows(total, readers, labels),
        "bars": bars(total, readers, labels),
        "images": [
            {
                "result": result,
                "rows": agreement_rows(result.pairs, readers, labels),
                "open": sum(f.state != "agreed" and f.id not in decided for f in result.findings),
                "count": len(result.findings),
            }
            for result in results
        ],
    }
    return render(request, "reader_studies/study.html", context)


@audited(
    GET=AuditRule("study.viewed", "study", "study_id", every_s=MINUTE_S),
    POST=rejections("assignment.made", "study", "study_id"),
)
@login_required
@require_http_methods(["GET", "POST"])
def assign(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Choose images and readers."""
    user = user_of(request)
    row = study_get(user, study_id)
    require_assign(user, row.lab_id)
    return assign_page(
        request,
        row.lab,
        lambda plan: readings_assign(study=row, user=user, plan=plan),
        next_url=reverse("reader_studies:study", args=[row.pk]),
        study=row,
    )


@audited(POST=rejections("study.unblinded", "study", "study_id"))
@login_required
@require_POST
def unblind(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Lift the blinding; the audit log records it."""
    user = user_of(request)
    row = study_get(user, study_id)
    try:
        study_unblind(study=row, user=user)
    except PortalError as error:
        if error.status != 409:
            raise
        messages.error(request, error.message)
    else:
        messages.success(request, f"“{row.name}” was unblinded.")
    return redirect("reader_studies:study", row.pk)


@audited(GET=AuditRule("study.viewed", "study", "study_id", every_s=MINUTE_S))
@login_required
@require_GET
def findings(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Findings on one image: disagreements first, one selected."""
    user = user_of(request)
    row = study_get(user, study_id)
    canvas = canvas_get(user=user, canvas_id=_uuid(request.GET.get("canvas")))
    result = image_result(row, canvas)
    finding_rows = findings_shown(row, result, _labels(row.lab_id))
    finding_id = request.GET.get("finding", "")
    at = next((k for k, finding in enumerate(finding_rows) if str(finding.id) == finding_id), None)
    if at is None:
        at = next((k for k, finding in enumerate(finding_rows) if finding.is_open), 0)
    own_rois = Roi.objects.owned_by(user).live().filter(canvas=canvas, created_by=user)
    drawn = list(own_rois.select_related("label").order_by("-created_at")[:OWN_SHOWN])
    areas = area_texts([roi.area_px for roi in drawn], mpp_x=canvas.mpp_x, mpp_y=canvas.mpp_y)
    context = {
        "study": row,
        "canvas": canvas,
        "findings": finding_rows,
        "now": finding_rows[at] if finding_rows else None,
        "before": finding_rows[at - 1] if finding_rows and at > 0 else None,
        "after": finding_rows[at + 1] if at + 1 < len(finding_rows) else None,
        "may_decide": may_adjudicate(user, row),
        "drawn": list(zip(drawn, areas, strict=True)),
        "agreed_open": sum(
            finding.state == "agreed" and finding.is_open for finding in finding_rows
        ),
    }
    return render(request, "reader_studies/findings.html", context)


@audited(POST=rejections("study.decided", "study", "study_id"))
@login_required
@require_POST
def decide(request: HttpRequest, study_id: uuid.UUID) -> HttpResponse:
    """Decide one finding, or all on which the readers agree; redirect to the next open one."""
    user = user_of(request)
    row = study_get(user, study_id)
    canvas = canvas_get(user=user, canvas_id=_uuid(request.POST.get("canvas")))
    finding = request.POST.get("finding", "")
    place = f"{reverse('reader_studies:study_findings', args=[row.pk])}?canvas={canvas.pk}"
    try:
        _decide(request, user, row, canvas, finding)
    except PortalError as error:
        if error.status not in {400, 409}:
            raise
        messages.error(request, error.message)
        return redirect(f"{place}&finding={finding}")
    return redirect(place if request.POST.get("choice") != "undo" else f"{place}&finding={finding}")


def _decide(request: HttpRequest, user: User, row: Study, canvas: Any, finding: str) -> None:
    choice = request.POST.get("choice", "")
    if choice == "undo":
        decision_undo(study=row, user=user, finding=_uuid(finding))
        return
    if choice == "agreed":
        decided = set(row.decisions.values_list("finding", flat=True))
        result = image_result(row, canvas)
        ids = [f.id for f in result.findings if f.state == "agreed" and f.id not in decided]
        choice = Choice.MERGED
    else:
        ids = [_uuid(finding)]
    if choice not in Choice.values:
        raise InvalidInputError("choice: say what is there.")
    reader, label, roi = (request.POST.get(name) for name in ("reader", "label", "roi"))
    findings_decide(
        study=row,
        canvas=canvas,
        user=user,
        findings=ids,
        choice=choice,
        reader=_uuid(reader) if reader else None,
        label=Label.objects.filter(lab_id=row.lab_id, pk=_uuid(label)).first() if label else None,
        roi_id=_uuid(roi) if roi else None,
    )


@audited(GET=AuditRule("study.exported", "study", "study_id"))
@login_required
@require_GET
def table(request: HttpRequest, study_id: uuid.UUID) -> StreamingHttpResponse:
    """Agreement as CSV."""
    return agreement_download(study_get(user_of(request), study_id))


def _labels(lab_id: uuid.UUID) -> dict[str, Label]:
    return {str(label.pk): label for label in Label.objects.filter(lab_id=lab_id)}


def _uuid(text: str | None) -> uuid.UUID:
    try:
        return uuid.UUID(text or "")
    except ValueError as error:
        raise InvalidInputError(f"{text!r} is not an id.") from error
