"""Studies, series and instances of DICOMweb: cases, their slides, and the objects of a slide.

Each begins from what the person may see. A search shows what is of their own labs; what is named
by its study may be shared by another lab, and its patient stays unknown then.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Func, IntegerField, Q, QuerySet

from ml.imaging.dicom.patient import StudyAttributes
from ml.imaging.dicom.uids import (
    MAX_INSTANCES,
    WHOLE_SLIDE,
    instance_id,
    instance_number,
    series_of,
    uid_of,
)
from portal.archive.models import Canvas, CanvasKind, Case, Sex
from portal.core.errors import NotFoundError, UnavailableError
from portal.interop.dicomweb.formats.query import DicomQuery
from portal.interop.dicomweb.selectors.objects import (
    VENDOR,
    SlideObject,
    object_count,
    objects_of,
    own_count_known,
)
from portal.labs.models import Membership, User

_SEX = {Sex.FEMALE: "F", Sex.MALE: "M", Sex.OTHER: "O"}
_COUNTED = 2_000  # slides at once where only their objects are counted: some 200 kB
_ACCESSION_LETTERS, _NAME_LETTERS = 16, 64  # of SH and LO: DICOM PS3.5, table 6.2-1


@dataclass(frozen=True, slots=True)
class Series:
    """A slide with the attributes of its study and series."""

    canvas: Canvas
    attributes: StudyAttributes

    def objects(self) -> list[SlideObject]:
        """Its objects, the finest level first."""
        return objects_of(self.canvas)


@dataclass(frozen=True, slots=True)
class StudyFound:
    """A case of a search."""

    series: Sequence[Series]

    def instance_count(self) -> int:
        """Objects of all its slides."""
        return sum(object_count(series.canvas) for series in self.series)


def dicom_studies(user: User, query: DicomQuery) -> list[StudyFound]:
    """Cases with slides that match a search, newest first."""
    if _is_of_others(query):
        return []
    canvases = _filter_canvases(_slides(user, query, ids=query.ids.get("StudyInstanceUID")), query)
    cases = Case.objects.visible_to(user).filter(pk__in=canvases.order_by().values("case_id"))
    ids = list(
        cases.order_by("-created_at", "id").values_list("pk", flat=True)[
            query.offset : query.offset + query.limit
        ]
    )
    by_case: defaultdict[uuid.UUID, list[Series]] = defaultdict(list)
    lab_ids = _labs_of(user)
    study_canvases = _slides(user, query, ids=ids).filter(case__in=ids)
    for canvas in study_canvases.order_by("created_at", "id"):
        by_case[canvas.case_id].append(Series(canvas, _attributes_for(canvas, lab_ids)))
    return [StudyFound(by_case[pk]) for pk in ids if by_case[pk]]


def dicom_series(
    user: User, query: DicomQuery, *, case_id: uuid.UUID | None = None
) -> list[Series]:
    """Slides that match a search; of one case if ``case_id`` is given.

    Raises:
        NotFoundError: no such case, or it has no slide.
    """
    canvases = _series(user, query, case_id=case_id)
    if canvases is None:
        return []
    lab_ids = _labs_of(user)
    rows = canvases[query.offset : query.offset + query.limit]
    return [Series(canvas, _attributes_for(canvas, lab_ids)) for canvas in rows]


def dicom_instances(
    user: User,
    query: DicomQuery,
    *,
    case_id: uuid.UUID | None = None,
    canvas_id: uuid.UUID | None = None,
) -> list[tuple[Series, SlideObject]]:
    """Objects that match a search; of one case or one slide if given."""
    if canvas_id is not None and case_id is not None:
        dicom_slide(user, case_id, canvas_id)
    canvases = _series(user, query, case_id=case_id)
    if canvases is None:
        return []
    if canvas_id is not None:
        canvases = canvases.filter(pk=canvas_id)
    instance_uids = query.ids.get("SOPInstanceUID")
    if instance_uids is not None:
        canvases = canvases.filter(
            pk__in=[instance for uid in instance_uids for instance in series_of(uid)]
        )
    lab_ids, left, page = _labs_of(user), query.offset, list[tuple[Series, SlideObject]]()
    if left and instance_uids is None and query.numbers is None:
        canvases, left = _skip_slides(canvases, left)
    for canvas in canvases.iterator(chunk_size=100):
        try:
            objects = list(_matching_instances(canvas, query, instance_uids))
        except UnavailableError:
            if canvas_id is not None:
                raise
            continue  # a slide without its file must not hide all others
        page += [
            (Series(canvas, _attributes_for(canvas, lab_ids)), instance)
            for instance in objects[left:]
        ]
        left = max(0, left - len(objects))
        if len(page) >= query.limit:
            break
    return page[: query.limit]


def _skip_slides(canvases: QuerySet[Canvas], left: int) -> tuple[QuerySet[Canvas], int]:
    """Skip whole slides of an offset: the remaining slides, and the offset within the first.

    Slides of other formats are counted from their rows; their files are not read.
    """
    rows = canvases.annotate(count=_Length("levels")).values_list(
        "pk", "slide__vendor", "content_hash", "mpp_x", "mpp_y", "count"
    )
    passed = 0
    for pk, vendor, content_hash, mpp_x, mpp_y, levels in rows.iterator(chunk_size=_COUNTED):
        has_size = mpp_x is not None and mpp_y is not None
        count: int | None = min(levels, MAX_INSTANCES) if has_size else 0
        if vendor == VENDOR:
            count = own_count_known(content_hash, has_size=has_size)
        if count is None:
            canvas = canvases.filter(pk=pk).first()
            count = 0 if canvas is None else object_count(canvas)  # deleted since it was listed
        if count > left:
            break
        left, passed = left - count, passed + 1
    return canvases[passed:], left


class _Length(Func):
    """Number of elements of a JSON list."""

    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra_context: Any) -> Any:
        return self.as_sql(compiler, connection, function="json_array_length", **extra_context)

    def as_postgresql(self, compiler: Any, connection: Any, **extra_context: Any) -> Any:
        return self.as_sql(compiler, connection, function="jsonb_array_length", **extra_context)


def dicom_study(user: User, case_id: uuid.UUID) -> list[Series]:
    """All slides of a case; ``NotFoundError`` where it has none."""
    canvases = list(_slides(user, DicomQuery(), ids=[case_id]).filter(case=case_id))
    if not canvases:
        raise NotFoundError("No such study.")
    lab_ids = _labs_of(user)
    return [Series(canvas, _attributes_for(canvas, lab_ids)) for canvas in canvases]


def dicom_slide(user: User, case_id: uuid.UUID, canvas_id: uuid.UUID) -> Series:
    """Return a slide as a series; raises ``NotFoundError`` if it is not visible."""
    canvas = _slides(user, DicomQuery(), ids=[case_id]).filter(case=case_id, pk=canvas_id).first()
    if canvas is None:
        raise NotFoundError("No such series.")
    return Series(canvas, _attributes_for(canvas, _labs_of(user)))


def dicom_object(
    user: User, case_id: uuid.UUID, canvas_id: uuid.UUID, instance: uuid.UUID
) -> tuple[Series, SlideObject]:
    """An object; ``NotFoundError`` if it is not visible."""
    series = dicom_slide(user, case_id, canvas_id)
    number = instance_number(canvas_id, instance)
    dicom_instance = next(
        (dicom_instance for dicom_instance in series.objects() if dicom_instance.number == number),
        None,
    )
    if dicom_instance is None:
        raise NotFoundError("No such instance.")
    return series, dicom_instance


def _series(user: User, query: DicomQuery, *, case_id: uuid.UUID | None) -> QuerySet[Canvas] | None:
    """Images that match the query; None if nothing can match."""
    if case_id is not None:
        dicom_study(user, case_id)
        canvases = _slides(user, query, ids=[case_id]).filter(case=case_id)
    else:
        canvases = _slides(user, query, ids=query.ids.get("StudyInstanceUID"))
    if _is_of_others(query):
        return None
    return _filter_canvases(canvases, query).order_by(
        "-case__created_at", "case_id", "created_at", "id"
    )


def _slides(
    user: User, query: DicomQuery, *, ids: Collection[uuid.UUID] | None
) -> QuerySet[Canvas]:
    """Slides that can be described as DICOM: those of the user's labs, and shared ones of named
    cases unless the search is by patient.
    """
    is_by_id = ids is not None and "PatientID" not in query.texts
    rows = Canvas.objects.visible_to(user) if is_by_id else Canvas.objects.owned_by(user)
    has_scale = Q(mpp_x__isnull=False, mpp_y__isnull=False) | Q(slide__vendor=VENDOR)
    return (
        rows.filter(has_scale, kind=CanvasKind.SLIDE, slide__isnull=False)
        .exclude(levels=[])
        .select_related("case", "slide")
        .order_by("created_at", "id")
    )


def _filter_canvases(canvases: QuerySet[Canvas], query: DicomQuery) -> QuerySet[Canvas]:
    fields = {
        "PatientID": "case__patient_key",
        "AccessionNumber": "case__accession",
        "StudyDescription": "case__procedure",
        "SeriesDescription": "name",
    }
    for word, pattern in query.texts.items():
        canvases = canvases.filter(**{f"{fields[word]}__regex": pattern})
    for word, column in (("StudyInstanceUID", "case_id"), ("SeriesInstanceUID", "pk")):
        if word in query.ids:
            canvases = canvases.filter(**{f"{column}__in": query.ids[word]})
    if sexes := query.codes.get("PatientSex"):
        canvases = canvases.filter(
            case__sex__in=[sex for sex, code in _SEX.items() if code in sexes]
        )
    first, last = query.dates
    if first is not None:
        canvases = canvases.filter(case__created_at__date__gte=first)
    if last is not None:
        canvases = canvases.filter(case__created_at__date__lte=last)
    return canvases


def _is_of_others(query: DicomQuery) -> bool:
    """Return whether it asks for what no slide is."""
    codes = query.codes
    return (
        query.is_empty
        or "SM" not in codes.get("Modality", ["SM"])
        or "SM" not in codes.get("ModalitiesInStudy", ["SM"])
        or WHOLE_SLIDE not in codes.get("SOPClassUID", [WHOLE_SLIDE])
    )


def _matching_instances(
    canvas: Canvas, query: DicomQuery, named: Collection[uuid.UUID] | None
) -> Iterator[SlideObject]:
    for instance in objects_of(canvas):
        if (
            query.numbers is not None
            and instance.brief().get("InstanceNumber") not in query.numbers
        ):
            continue
        if named is None or instance_id(canvas.pk, instance.number) in named:
            yield instance


def _labs_of(user: User) -> set[uuid.UUID]:
    return set(Membership.objects.of(user).values_list("lab_id", flat=True))


def _attributes_for(canvas: Canvas, lab_ids: Collection[uuid.UUID]) -> StudyAttributes:
    """Attributes of a study; the patient ID only for members of its lab.

    An accession too long for DICOM precedes the description.
    """
    case = canvas.case
    is_short = len(case.accession) <= _ACCESSION_LETTERS
    name = case.procedure if is_short else f"{case.accession} {case.procedure}".strip()
    return StudyAttributes(
        patient_id=case.patient_key if case.lab_id in lab_ids else "",
        sex=_SEX.get(Sex(case.sex), ""),
        study_uid=uid_of(case.pk),
        accession=case.accession if is_short else "",
        study_at=case.created_at,
        study_name=name[:_NAME_LETTERS],
        series_uid=uid_of(canvas.pk),
        series_name=canvas.name[:_NAME_LETTERS],
    )
