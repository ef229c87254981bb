"""Create, repeat and delete reports."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import date, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from portal.annotations.models import Label, Roi
from portal.archive.selectors.scanners import scanner_name
from portal.archive.selectors.stains import stain_shown
from portal.core.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    StaleVersionError,
)
from portal.core.events import event_emit
from portal.core.text import text_clean
from portal.embeddings.selectors.encoders import encoder_to_search
from portal.jobs.models import Job
from portal.jobs.services import job_submit
from portal.labs.models import Lab, Role, User
from portal.labs.rules import require_role
from portal.search.models import (
    MAX_INTERPRETATION,
    Query,
    RegionRole,
    Report,
    ReportInterpretation,
    ReportRegion,
)
from portal.search.selectors.filters import FILTER_TITLES, CaseScope, Filters
from portal.search.selectors.hits import Hit
from portal.search.selectors.queries import examples_with_vectors, rois_visible
from portal.search.selectors.reports import (
    PICTURES_KIND,
    ReportContent,
    ReportRegionContent,
    ReportVote,
    StoredOptions,
    report_regions,
)
from portal.search.selectors.similar_cases import SimilarOptions, SimilarQuery, SimilarResult
from portal.search.selectors.votes import VoteTally
from portal.search.services.similar_cases import query_search, roi_search

REPORT_HITS = 50  # for reading; longer lists belong in an export

_RETRY_AFTER = timedelta(hours=1)  # before failed pictures are tried again

Picture = tuple[bytes | None, float | None]
"""JPEG, None if it cannot be made; its width in microns, None if that is not known."""
_CASES = {CaseScope.ONLY: "this case only", CaseScope.OTHERS: "other cases only"}


def report_create(
    *,
    result: SimilarResult,
    user: User,
    picture: Picture,
    picture_of: Callable[[Roi], Picture],
    interpretation: str = "",
) -> Report:
    """Store a search result as a report. Emits ``report.created``.

    Args:
        result: Result shown to ``user``.
        picture: Picture of the query.
        picture_of: Returns the picture of a hit at the same scale.
        interpretation: Its first version, if it is not empty.
    Raises:
        InvalidInputError: The search used another lab's region, which is not stored here, or the
            interpretation is too long.
    """
    query, text = result.query, _interpretation_clean(interpretation)
    if query.is_of_other_lab:
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
        name=_name(query.roi, query.stored_query),
        roi=query.roi,
        query=query.stored_query,
        canvas=subject.canvas,
        content=_report_content(result, len(hits), picture[1]).as_json(),
        picture=picture[0],
    )
    regions = [_region(report, query, hit, picture_of(hit.roi)) for hit in hits]
    for role, roi_ids in ((RegionRole.LIKED, query.liked), (RegionRole.UNLIKED, query.unliked)):
        rois = rois_visible(user, roi_ids)
        regions += [_mark(report, role, rank, roi) for rank, roi in enumerate(rois, start=1)]
    with transaction.atomic():
        report.save(force_insert=True)
        ReportRegion.objects.bulk_create(regions)
        if text:
            _interpretation_write(report, user, version=1, text=text)
        event_emit(
            "report.created",
            lab_id=report.lab_id,
            payload={"report_id": str(report.pk), "user_id": str(user.pk)},
        )
    return report


def report_interpret(
    *, report: Report, user: User, text: str, version: int
) -> ReportInterpretation:
    """Write or change the interpretation of a report; earlier versions stay.

    Allowed to the author of the report and to annotators. Emits ``report.interpreted``.

    Args:
        text: Empty to take the interpretation back.
        version: Version that the text replaces; 0 if there was none.
    Returns:
        The new version, or the present one if the text is the same.
    Raises:
        InvalidInputError: The text is too long.
        StaleVersionError: Somebody else has written a version since.
    """
    if report.user_id != user.pk:
        require_role(user, report.lab_id, at_least=Role.ANNOTATOR)
    text = _interpretation_clean(text)
    with transaction.atomic():
        if not Report.objects.select_for_update(of=("self",)).filter(pk=report.pk).exists():
            raise NotFoundError("There is no such report. It may have been deleted.")
        last = ReportInterpretation.all_objects.filter(report=report).last()
        now = last.version if last else 0
        if version != now:
            raise StaleVersionError(
                "Someone else has changed the interpretation. Read it, then save once more.",
                details={"current_version": now},
            )
        if last is not None and last.text == text:
            return last
        return _interpretation_write(report, user, version=now + 1, text=text)


def _interpretation_write(
    report: Report, user: User, *, version: int, text: str
) -> ReportInterpretation:
    row: ReportInterpretation = ReportInterpretation.all_objects.create(
        lab_id=report.lab_id,
        report=report,
        version=version,
        text=text,
        author=user,
        written_by=str(user),
    )
    payload = {"report_id": str(report.pk), "user_id": str(user.pk), "version": version}
    event_emit("report.interpreted", lab_id=report.lab_id, payload=payload)
    return row


def _interpretation_clean(text: str) -> str:
    text = text_clean(text)
    if len(text) > MAX_INTERPRETATION:
        raise InvalidInputError(
            f"interpretation: at most {MAX_INTERPRETATION:,} characters, not {len(text):,}."
        )
    return text


def report_pictures_make(
    *, lab_id: uuid.UUID, user: User, roi_ids: Sequence[uuid.UUID], width: str
) -> Job | None:
    """Job that makes the pictures of a report; None if it has recently succeeded or failed.

    Args:
        roi_ids: ROIs of the hits visible to ``user``.
        width: Tag of their scale.
    """
    args = {"roi_ids": [str(pk) for pk in roi_ids], "width": width}
    jobs = Job.objects.filter(lab_id=lab_id, kind=PICTURES_KIND, created_by=user, args=args)
    job = jobs.order_by("-created_at").first()
    if job is not None and not job.has_ended:
        return job
    if job is not None and job.created_at > timezone.now() - _RETRY_AFTER:
        return None
    return job_submit(
        kind=PICTURES_KIND,
        args=args,
        lab=Lab.objects.get(pk=lab_id),
        user=user,
        target_name="Pictures of a report",
    )


def report_repeat(*, report: Report, user: User) -> SimilarResult | Job:
    """Repeat the search of a report on the present data.

    Returns:
        The result, or the job that embeds the query.
    Raises:
        ConflictError: The query was deleted or cannot be searched with.
        InvalidInputError: An option is no longer valid, such as a deleted label.
    """
    options = _options(ReportContent.from_json(report.content))
    marks = {
        role: [
            str(region.roi_id)
            for region in report_regions(user, report, role=role)
            if region.roi_id and region.roi and region.roi.deleted_at is None
        ]
        for role in (RegionRole.LIKED, RegionRole.UNLIKED)
    }
    if report.query is not None:
        # The marks of the report, not the current ones; the row is not saved.
        report.query.liked, report.query.unliked = (
            marks[RegionRole.LIKED],
            marks[RegionRole.UNLIKED],
        )
        return query_search(query=report.query, user=user, options=options)
    roi = report.roi
    if roi is None or roi.deleted_at is not None:
        raise ConflictError(
            "The query of this report was deleted, so its search cannot be repeated.",
            code="report-outdated",
        )
    encoder = encoder_to_search(roi)
    if encoder is not None:
        marked = Query(
            lab=roi.lab, liked=marks[RegionRole.LIKED], unliked=marks[RegionRole.UNLIKED]
        )
        options["liked"], options["unliked"] = examples_with_vectors(user, marked, encoder)
    return roi_search(roi=roi, user=user, options=options)


def report_delete(*, report: Report, user: User) -> None:
    """Delete a report; allowed to its author and to managers. Emits ``report.deleted``."""
    if report.user_id != user.pk:
        require_role(user, report.lab_id, at_least=Role.MANAGER)
    with transaction.atomic():
        event_emit(
            "report.deleted",
            lab_id=report.lab_id,
            payload={"report_id": str(report.pk), "user_id": str(user.pk)},
        )
        Report.all_objects.filter(pk=report.pk).delete()


def _name(roi: Roi | None, query: Query | None) -> str:
    if roi is not None:
        return f"{roi.name or 'Region'} on {roi.canvas.name}"[:300]
    return str(query)[:300]


def _report_content(result: SimilarResult, hits: int, width_um: float | None) -> ReportContent:
    query, used = result.query, result.index
    encoder, facets = query.encoder, result.facets
    return ReportContent(
        facts=_facts(query.roi, query.stored_query),
        filters=_filters(query.filters),
        options=_stored_options(query),
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


def _facts(roi: Roi | None, query: Query | None) -> list[tuple[str, str]]:
    canvas = roi.canvas if roi is not None else query.canvas if query else None
    facts: list[tuple[str, str]] = []
    if roi is not None:
        label = roi.label.name if isinstance(roi.label, Label) else "No label"
        facts += [("Region", roi.name or "Unnamed"), ("Label", label)]
        facts += [("Version", str(roi.version))]
    elif query is not None:
        facts += [("Query", str(query.get_source_display()))]
        if query.scale != 1:
            facts += [("Scale", f"{query.scale:g}× as large")]
    if canvas is not None:
        facts += [("Case", canvas.case.accession), (canvas.get_kind_display(), canvas.name)]
        facts += [("Stain", stain)] if (stain := stain_shown(canvas)) else []
    return facts


def _filters(filters: Filters) -> list[tuple[str, str]]:
    texts = {name: str(getattr(filters, name) or "") for name in FILTER_TITLES}
    texts["scanner"] = scanner_name(filters.scanner)
    named_filters = [(FILTER_TITLES[name], text) for name, text in texts.items() if text]
    if filters.label_id:
        label = Label.objects.filter(pk=filters.label_id).first()
        named_filters.append(("Label", label.name if label else "deleted"))
    if filters.case:
        named_filters.append(("Cases", _CASES[filters.case]))
    return named_filters


def _stored_options(query: SimilarQuery) -> StoredOptions:
    stored = {
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
            name: value if isinstance(value, bool) else str(value) for name, value in stored.items()
        },
    }


def _options(content: ReportContent) -> SimilarOptions:
    stored = content.options
    filters: dict[str, Any] = dict(stored["filters"])
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
        "k": stored["k"],
        "exclude_same_patient": stored["exclude_same_patient"],
        "expand": stored["expand"],
        "diffuse": stored["diffuse"],
        "by_case": stored["by_case"],
        "filters": Filters(**filters),
        "with_facets": True,
    }


def _votes(tally: VoteTally) -> list[ReportVote]:
    return [
        ReportVote(
            name=vote.name,
            weight=vote.weight,
            cases=vote.cases,
            regions=vote.regions,
            base=vote.base,
        )
        for vote in tally.votes[:5]
    ]


def _region(report: Report, query: SimilarQuery, hit: Hit, picture: Picture) -> ReportRegion:
    content = _region_content(
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
        content=_region_content(roi).as_json(),
    )


def _region_content(roi: Roi, **fields: Any) -> ReportRegionContent:
    label, case = roi.label, roi.canvas.case
    return ReportRegionContent(
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
        **fields,
    )
