"""Rows of a case for export, with their ids, limited to those visible to the user."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model, QuerySet

from ml.types import JsonObject
from portal.annotations.models import Label, Roi, RoiRevision
from portal.archive.models import Asset, Canvas, Case, Slide, Video
from portal.archive.storage import files as storage
from portal.core.errors import NotFoundError
from portal.core.storage_layout import Place
from portal.embeddings.models import Embedding, Encoder
from portal.interop.rocrate.formats.rows import columns_of
from portal.interop.rocrate.rules import require_export
from portal.jobs.models import Job
from portal.labs.models import Role, User
from portal.labs.selectors import labs_with_role
from portal.mosaics.models import Mosaic, MosaicComponent, MosaicFrame

EXPORT_KIND = "case_export"
MANY_KIND = "cases_export"
CHUNK = 2000  # rows read at a time


@dataclass(frozen=True, slots=True)
class WholeCase:
    """A case and its contents, as queries that are read while they are written."""

    case: Case
    tables: dict[str, QuerySet[Any]]
    originals: list[Asset]
    mosaics: list[Mosaic]


def case_whole(*, user: User, case: Case) -> WholeCase:
    """Everything the user sees of a case of their lab, with deleted ROIs and their history, without
    the contents of the trash.
    """
    canvases = Canvas.objects.owned_by(user).filter(case=case)
    rois = Roi.objects.owned_by(user).filter(canvas__in=canvases.values("pk"))
    revisions = RoiRevision.objects.filter(roi__in=rois.values("pk"))
    slides = Slide.objects.owned_by(user).filter(case=case)
    videos = Video.objects.owned_by(user).filter(case=case)
    mosaics = Mosaic.objects.owned_by(user).filter(case=case)
    embeddings = Embedding.objects.filter(roi__in=rois.values("pk"))
    labels = Label.objects.filter(lab=case.lab_id)
    asset_ids = [
        *slides.values_list("asset_id", flat=True),
        *videos.values_list("asset_id", flat=True),
    ]
    originals = Asset.objects.filter(pk__in=asset_ids)
    frames = MosaicFrame.objects.filter(mosaic__in=mosaics.values("pk"))
    components = MosaicComponent.objects.filter(canvas__in=canvases.values("pk"))
    tables: dict[str, QuerySet[Any]] = {
        "case": Case.objects.filter(pk=case.pk),
        "assets": originals,
        "canvases": canvases,
        "slides": slides,
        "videos": videos,
        "labels": labels,
        "rois": rois,
        "roi_revisions": revisions,
        "mosaics": mosaics,
        "mosaic_components": components.filter(mosaic__in=mosaics.values("pk")),
        "mosaic_frames": frames,
        "encoders": Encoder.objects.filter(pk__in=embeddings.order_by().values("encoder_id")),
        "embeddings": embeddings,
    }
    return WholeCase(case, tables, list(originals.order_by("sha256")), list(mosaics))


def case_to_export(*, user: User, case_id: uuid.UUID) -> Case:
    """A case of the person's own lab, which they manage.

    Raises:
        NotFoundError: there is none; what another lab shares is not theirs to take along.
        ForbiddenError.
    """
    case = Case.objects.owned_by(user).select_related("lab").filter(pk=case_id).first()
    if case is None:
        raise NotFoundError("No such case.")
    require_export(user, case.lab_id)
    return case


def export_job(*, user: User, case_id: uuid.UUID) -> Job | None:
    """The newest job of the person's exports of a case."""
    jobs = Job.objects.filter(kind=EXPORT_KIND, target_id=case_id, created_by=user)
    return jobs.order_by("-created_at").first()


@dataclass(frozen=True, slots=True)
class WrittenExport:
    """A case of an export of many; ``size_bytes`` is None where no export of it is kept."""

    case: Case
    path: Path
    size_bytes: int | None


def export_job_get(*, user: User, job_id: uuid.UUID) -> Job:
    """A job of the person's exports of many cases; ``NotFoundError`` if there is none."""
    jobs = Job.objects.owned_by(user).filter(kind=MANY_KIND, created_by=user)
    job: Job | None = jobs.filter(pk=job_id).first()
    if job is None:
        raise NotFoundError("There is no such export.")
    return job


def exports_written(*, user: User, job: Job) -> list[WrittenExport]:
    """Cases of the job that the person may still export, by accession number."""
    managed = labs_with_role(user, at_least=Role.MANAGER)
    cases = Case.objects.owned_by(user).filter(pk__in=job.args["case_ids"], lab__in=managed)
    exports = []
    for case in cases.order_by("accession", "pk"):
        path = export_path(case.pk, user)
        size = path.stat().st_size if path.is_file() else None
        exports.append(WrittenExport(case, path, size))
    return exports


def rows_of(query: QuerySet[Any]) -> Iterator[JsonObject]:
    """Yield each row as JSON, by id."""
    for row in query.order_by("pk").iterator(chunk_size=CHUNK):
        yield _row(row)


def mosaic_files(mosaic: Mosaic) -> Iterator[tuple[str, Path]]:
    """Files of a mosaic's build: its pyramid, its layers, its manifest."""
    folder = storage.derived_folder(mosaic.pk)
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(folder).as_posix(), path


def export_path(case_id: uuid.UUID, user: User) -> Path:
    """Path of a user's newest export of a case; scratch is swept after two days."""
    return export_folder(case_id) / f"{user.pk}.zip"


def export_folder(case_id: uuid.UUID) -> Path:
    """The folder of all exports of a case: an erasure deletes it too."""
    return Place.CASE_EXPORTS.path(case_id)


def import_folder(lab_id: uuid.UUID, case_id: uuid.UUID) -> Path:
    """Scratch folder for files that an import has unpacked: an erasure deletes it too."""
    return Place.CASE_IMPORTS.path(lab_id, case_id)


def _row(row: Model) -> JsonObject:
    values = {name: getattr(row, name) for name in columns_of(type(row))}
    for name, value in values.items():
        if isinstance(value, bytes | memoryview):
            values[name] = base64.b64encode(value).decode()
        elif isinstance(value, datetime):
            values[name] = value.isoformat()  # the encoder would cut off microseconds
    document: JsonObject = json.loads(json.dumps(values, cls=DjangoJSONEncoder))
    return document
