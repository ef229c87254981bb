"""A case that was exported, and an empty portal to bring it into."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from django.apps import apps
from django.test import Client, override_settings

from ml.imaging.slides.pyramids import write_pyramid
from ml.types import no_progress
from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_update
from portal.archive import inspection
from portal.archive.models import Slide
from portal.archive.storage import files as storage
from portal.embeddings.models import Embedding, Encoder
from portal.interop.rocrate.selectors.exports import case_whole, export_path, rows_of
from portal.interop.rocrate.services.imports.cases import case_import
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, Membership, Role, User
from portal.mosaics.build import BuiltComponent, BuiltFrame, BuiltMosaic
from portal.mosaics.models import Mosaic
from portal.mosaics.services.mosaics import mosaic_ready
from tests.portal.interop.conftest import Lab1
from tests.portal.interop.rocrate.imports.sending import client

PRESERVED_APPS = {"contenttypes", "auth", "sites", "audit"}
Rows = dict[str, list[dict[str, Any]]]


class Exported:
    """The zip, and what the first portal had."""

    def __init__(self, path: Path, rows: Rows, files: dict[str, bytes], encoder: Encoder) -> None:
        self.path, self.rows, self.files, self.encoder = path, rows, files, encoder


def _built(folder: Path) -> BuiltMosaic:
    folder.mkdir()
    rng = np.random.default_rng(6)
    plane = np.kron(rng.integers(0, 255, (4, 5, 3), np.uint8), np.ones((64, 64, 1), np.uint8))
    write_pyramid(plane, folder / "mosaic.tif", mpp=None)
    cv2.imwrite(str(folder / "preview.jpg"), plane[::4, ::4])
    cv2.imwrite(str(folder / "layer-count.png"), plane[::8, ::8, 0])
    (folder.parent / "looked").mkdir()
    inspected = inspection.slide_inspect(
        folder / "mosaic.tif", folder.parent / "looked", progress=no_progress
    )
    (folder / "mosaic.json").write_text('{"frames": []}')
    frames = tuple(
        BuiltFrame(
            index=n,
            pts=512 * n,
            H_mosaic_from_frame=[[1.0, 0.0, 12.5 * n], [0.0, 1.0, 0.1], [0.0, 0.0, 1.0]],
            mesh=None,
            status="registered",
            reason="",
            links=2,
            error_px=0.25,
            component=0,
        )
        for n in range(3)
    )
    layer: dict[str, Any] = {"name": "count", "png": "layer-count.png", "unit": "frames"}
    layer |= {"minimum": 1.0, "maximum": 3.0, "downsample": 8.0}
    component = BuiltComponent(
        index=0,
        pyramid="mosaic.tif",
        preview="preview.jpg",
        width_px=320,
        height_px=256,
        levels=[asdict(level) for level in inspected.levels],
        content_hash=storage.file_sha256(folder / "mosaic.tif"),
        anchor_index=0,
        registered_count=3,
        layers=[layer],
    )
    return BuiltMosaic((component,), "affine", frames, 1.5)


@pytest.fixture(scope="module")
def exported(
    built: Lab1, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Exported:
    """A case with a changed region, a vector and a mosaic that was built; once a module."""
    with django_db_blocker.unblock():
        return _exported(built, tmp_path_factory.mktemp("exported"))


def _exported(built: Lab1, folder: Path) -> Exported:
    made = built.world
    roi = Roi.objects.get(pk=made.roi.pk)
    roi_update(roi=roi, user=built.manager, expected_version=1, changes={"name": "Changed"})
    mosaic = Mosaic.objects.get(pk=made.mosaic.pk)
    mosaic_ready(mosaic=mosaic, folder=folder / "built", built=_built(folder / "built"))
    Embedding.objects.create(
        lab=built.lab,
        encoder=made.encoder,
        roi=made.roi,
        canvas=made.canvas,
        roi_version=2,
        vector=np.arange(4, dtype="<f4").tobytes(),
    )
    Slide.objects.filter(canvas=made.canvas).update(stain="PAS")  # as in its file before
    client = built.client()
    job = client.post(f"/api/v1/cases/{made.case.pk}/export/").json()["id"]
    job_run(job)
    assert client.get(f"/api/v1/jobs/{job}/").json()["state"] == JobState.SUCCEEDED
    path = folder / "case.zip"
    path.write_bytes(export_path(made.case.pk, built.manager).read_bytes())
    content = case_whole(user=built.manager, case=made.case)
    rows = {name: list(rows_of(query)) for name, query in content.tables.items()}
    with zipfile.ZipFile(path) as crate:
        files = {name: crate.read(name) for name in crate.namelist()}
    return Exported(path, rows, files, Encoder.objects.get(pk=made.encoder.pk))


@pytest.fixture
def other_portal(exported: Exported, db: None, tmp_path: Path) -> Iterator[Lab1]:
    """Another portal: no row, an empty storage; a lab, its manager, and the encoder."""
    for model in apps.get_models():
        if model._meta.app_label not in PRESERVED_APPS and model._meta.managed:
            query = model._base_manager.all()
            query._raw_delete(query.db)
    with override_settings(TESSERA_STORAGE=tmp_path / "elsewhere"):
        lab = Lab.objects.create(name="Elsewhere", slug="elsewhere")
        manager = User.objects.create_user("manager@elsewhere.example", "correct horse battery")
        Membership.objects.create(user=manager, lab=lab, role=Role.MANAGER)
        exported.encoder.save(force_insert=True)
        yield Lab1(lab, manager, None, "")  # type: ignore[arg-type]


@pytest.fixture
def unpacked(exported: Exported, tmp_path: Path) -> Path:
    """The crate as a folder."""
    folder = tmp_path / "crate"
    with zipfile.ZipFile(exported.path) as crate:
        crate.extractall(folder)
    return folder


@pytest.fixture
def browser(other_portal: Lab1) -> Client:
    """Browser session of the manager."""
    return client(other_portal.manager)


def case_back(portal: Lab1, path: Path) -> Any:
    """A crate imported by the lab's manager."""
    return case_import(source=path, lab=portal.lab, user=portal.manager)


def all_prepared() -> None:
    """Run the ingest jobs of the imported slides and videos."""
    for job in Job.objects.filter(kind__in=("slide_ingest", "video_ingest")):
        job_run(job.pk)
        job.refresh_from_db()
        assert job.state == JobState.SUCCEEDED, job.error_message
