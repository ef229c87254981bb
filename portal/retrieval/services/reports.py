"""Writes of reports: an answer frozen, the same search asked again, a report deleted."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import date, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from portal.annotations.models import Label, Roi
from portal.archive.selectors import stain_shown
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.retrieval import selectors
from portal.retrieval.models import Query, RegionRole, Report, ReportRegion
from portal.retrieval.selectors import (
    FILTER_TITLES,
    PICTURES_KIND,
    CaseScope,
    Filters,
    Frozen,
    FrozenRegion,
    FrozenVote,
    Hit,
    KeptOptions,
    SimilarOptions,
    SimilarResult,
    VoteTally,
)
from portal.retrieval.services.search import similar_or_embed, similar_to_query

REPORT_HITS = 50  # a report is read; a longer list belongs in an export

_MADE_FOR = timedelta(hours=1)  # what a job could not make by then is tried again

Picture = tuple[bytes | None, float | None]
"""JPEG, None if it cannot be made; its width in microns, None if that is not known."""
_CASES = {CaseScope.ONLY: "this case only", CaseScope.OTHERS: "other cases only"}


def report_create(
    *, result: SimilarResult, user: User, picture: Picture, picture_of: Callable[[Roi], Picture]
) -> Report:
    """Freeze an answer. Emits ``report.created``.

    Args:
        result: what ``user`` was just given.
        picture: of what was searched with. picture_of: of a hit, at the same scale.
    Raises:
        InvalidInputError: it was searched with another lab's region, which is not kept here.
    """
    query = result.query
    if query.is_foreign:
        raise InvalidInputError(
            "A region that another lab shares cannot be kept in a report of your lab.",
            code="report-of-shared",
        )
    require_role(user, query.scope.lab_id, at_least=Role.VIEWER)
    hits = result.hits[:REPORT_HITS]
    subject = query.subject
    report = Report(
        lab=subject.lab,
        user=user,
        made_by=str(user),
        name=_name(query.roi, query.asked),
        roi=query.roi,
        query=query.asked,
        canvas=subject.canvas,
        content=_frozen(result, len(hits), picture[1]).as_json(),
        picture=picture[0],
    )
    regions = [_region(report, query, hit, picture_of(hit.roi)) for hit in hits]
    for role, wanted in ((RegionRole.LIKED, query.liked), (RegionRole.UNLIKED, query.unliked)):
        rois = selectors.rois_seen(user, wanted)
        regions += [_mark(report, role, rank, roi) for rank, roi in enumerate(rois, start=1)]
    with transaction.atomic():
        report.save(force_insert=True)
        ReportRegion.objects.bulk_create(regions)
        event_emit(
            "report.created",
            lab_id=report.lab_id,
            payload={"report_id": str(report.pk), "user_id": str(user.pk)},
        )
    return report


def report_pictures_make(
    *, lab_id: uuid.UUID, user: User, roi_ids: Sequence[uuid.UUID], width: str
) -> Job | None:
    """The job that makes the pictures of a report; None if it has done so, or failed to.

    Args:
        roi_ids: of the hits, as ``user`` sees them. width: the tag of their scale.
    """
    args = {"roi_ids": [str(pk) for pk in roi_ids], "width": width}
    known = Job.objects.filter(lab_id=lab_id, kind=PICTURES_KIND, created_by=user, args=args)
    job = known.order_by("-created_at").first()
    if job is not None and not job.has_ended:
        return job
    if job is not None and job.created_at > timezone.now() - _MADE_FOR:
        return None
    return job_submit(
        kind=PICTURES_KIND,
        args=args,
        lab=Lab.objects.get(pk=lab_id),
        user=user,
        target_name="Pictures of a report",
    )


def report_again(*, report: Report, user: User) -> SimilarResult | Job:
    """Ask the search of a report once more, as it was asked, of what there is now.

    Returns:
        The answer, or the job that embeds what is searched with.
    Raises:
        ConflictError: what was searched with is gone, or cannot be searched with.
        InvalidInputError: an option no longer means anything, such as a label that was deleted.
    """
    options = _options(Frozen.of_json(report.content))
    marks = {
        role: [
            str(region.roi_id)
            for region in selectors.report_regions(user, report, role=role)
            if region.roi_id and region.roi and region.roi.deleted_at is None
        ]
        for role in (RegionRole.LIKED, RegionRole.UNLIKED)
    }
    if report.query is not None:
        # As it was marked then, not as it is marked now; the row is not saved.
        report.query.liked, report.query.unliked = (
            marks[RegionRole.LIKED],
            marks[RegionRole.UNLIKED],
        )
        return similar_to_query(query=report.query, user=user, options=options)
    roi = report.roi
    if roi is None or roi.deleted_at is not None:
        raise ConflictError(
            "The query of this report was deleted, so its search cannot be repeated.",
            code="report-outdated",
        )
    encoder = selectors.encoder_to_search(roi)
    if encoder is not None:
        asked = Query(lab=roi.lab, liked=marks[RegionRole.LIKED], unliked=marks[RegionRole.UNLIKED])
        options["liked"], options["unliked"] = selectors.examples_to_go_by(user, asked, encoder)
    return similar_or_embed(roi=roi, user=user, options=options)


def report_delete(*, report: Report, user: User) -> None:
    """Delete a report with its pictures: who made it, or a manager. Emits ``report.deleted``."""
    if report.user_id != user.pk:
        require_role(user, report.lab_id, at_least=Role.MANAGER)
    with transaction.atomic():
        event_emit(
            "report.deleted",
            lab_id=report.lab_id,
            payload={"report_id": str(report.pk), "user_id": str(user.pk)},
        )
        Report.everything.filter(pk=report.pk).delete()


def _name(roi: Roi | None, asked: Query | None) -> str:
    if roi is not None:
        return f"{roi.name or 'Region'} on {roi.canvas.name}"[:300]
    return str(asked)[:300]


def _frozen(result: SimilarResult, hits: int, width_um: float | None) -> Frozen:
    query, used = result.query, result.index
    encoder, facets = query.encoder, result.facets
    return Frozen(
        facts=_facts(query.roi, query.asked),
        filters=_filters(query.filters),
        options=_kept_options(query),
        encoder=(encoder.name, encoder.version, encoder.config_hash),
        index=(used.version, used.in_file, used.newer),
        searched=(facets.regions, facets.cases) if facets else None,
        leaves_patient_out=query.leaves_patient_out,
        nothing_close=result.says_nothing_close,
        refined_by=result.refined_by,
        expanded_by=len(result.expanded_by),
        is_diffused=query.diffuse and not result.refined_by,
        votes={"label": _votes(result.labels), "diagnosis": _votes(result.diagnoses)},
        hits=hits,
        width_um=width_um,
        scale_unknown=query.scale_unknown,
    )


def _facts(roi: Roi | None, asked: Query | None) -> list[tuple[str, str]]:
    canvas = roi.canvas if roi is not None else asked.canvas if asked else None
    found: list[tuple[str, str]] = []
    if roi is not None:
        label = roi.label.name if isinstance(roi.label, Label) else "No label"
        found += [("Region", roi.name or "Unnamed"), ("Label", label)]
        found += [("Version", str(roi.version))]
    elif asked is not None:
        found += [("Query", str(asked.get_source_display()))]
        if asked.scale != 1:
            found += [("Scale", f"{asked.scale:g}× as large")]
    if canvas is not None:
        found += [("Case", canvas.case.accession), (canvas.get_kind_display(), canvas.name)]
        found += [("Stain", stain)] if (stain := stain_shown(canvas)) else []
    return found


def _filters(filters: Filters) -> list[tuple[str, str]]:
    found = [
        (title, str(getattr(filters, name)))
        for name, title in FILTER_TITLES.items()
        if getattr(filters, name)
    ]
    if filters.label_id:
        label = Label.objects.filter(pk=filters.label_id).first()
        found.append(("Label", label.name if label else "deleted"))
    if filters.case:
        found.append(("Cases", _CASES[filters.case]))
    return found


def _kept_options(query: selectors.SimilarQuery) -> KeptOptions:
    kept = {
        field.name: getattr(query.filters, field.name)
        for field in fields(Filters)
        if getattr(query.filters, field.name)
    }
    return {
        "k": min(query.k, REPORT_HITS),
        "exclude_same_patient": query.exclude_same_patient,
        "expand": query.expand,
        "diffuse": query.diffuse,
        "by_case": query.by_case,
        "filters": {
            name: value if isinstance(value, bool) else str(value) for name, value in kept.items()
        },
    }


def _options(frozen: Frozen) -> SimilarOptions:
    kept = frozen.options
    filters: dict[str, Any] = dict(kept["filters"])
    for name in ("since", "until"):
        if name in filters:
            filters[name] = date.fromisoformat(filters[name])
    if "label_id" in filters:
        label = Label.objects.filter(pk=filters["label_id"]).first()
        if label is None:
            raise InvalidInputError("The label that this search was limited to was deleted.")
        filters["label_id"] = label.pk
    filters["case"] = CaseScope(filters.get("case", ""))
    return {
        "k": kept["k"],
        "exclude_same_patient": kept["exclude_same_patient"],
        "expand": kept["expand"],
        "diffuse": kept["diffuse"],
        "by_case": kept["by_case"],
        "filters": Filters(**filters),
        "with_facets": True,
    }


def _votes(tally: VoteTally) -> list[FrozenVote]:
    return [
        FrozenVote(
            name=vote.name,
            weight=vote.weight,
            cases=vote.cases,
            regions=vote.regions,
            base=vote.base,
        )
        for vote in tally.votes[:5]
    ]


def _region(
    report: Report, query: selectors.SimilarQuery, hit: Hit, picture: Picture
) -> ReportRegion:
    content = _said(
        hit.roi,
        width_um=picture[1],
        distance=hit.distance,
        p_value=hit.p_value,
        is_close=hit.is_close,
        also=len(hit.also),
        scale_unknown=query.assumes_scale_of(hit.roi.canvas),
    )
    return ReportRegion(
        lab=report.lab,
        report=report,
        rank=hit.rank,
        roi=hit.roi,
        canvas=hit.roi.canvas,
        content=content.as_json(),
        picture=picture[0],
    )


def _mark(report: Report, role: RegionRole, rank: int, roi: Roi) -> ReportRegion:
    return ReportRegion(
        lab=report.lab,
        report=report,
        role=role,
        rank=rank,
        roi=roi,
        canvas=roi.canvas,
        content=_said(roi).as_json(),
    )


def _said(roi: Roi, **found: Any) -> FrozenRegion:
    label, case = roi.label, roi.canvas.case
    return FrozenRegion(
        roi=str(roi.pk),
        version=roi.version,
        name=roi.name,
        label=(label.name, label.color) if isinstance(label, Label) else None,
        review_state=str(roi.review_state),
        accession=case.accession,
        organ=case.organ,
        diagnosis=case.diagnosis,
        image=roi.canvas.name,
        stain=stain_shown(roi.canvas),
        **found,
    )
