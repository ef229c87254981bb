"""Deletion into the trash, restoration, and deletion for good."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.annotations.models import Roi, RoiRevision
from portal.annotations.services.labels import label_delete
from portal.annotations.services.rois import roi_create, roi_delete, roi_update
from portal.annotations.services.trash import ROI_PURGER
from portal.archive.models import Asset, Canvas, Case, Slide, TrashEntry, Upload, Video
from portal.archive.selectors.cases import case_facets, case_list, case_search
from portal.archive.services.cases import case_create, case_delete, case_update
from portal.archive.services.items import item_delete, item_receive
from portal.archive.services.trash import trash_purge, trash_purge_due, trash_restore
from portal.archive.storage import files as archive_storage
from portal.core.errors import ConflictError, NotFoundError
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Embedding, Encoder
from portal.embeddings.services.embeddings import embedding_save
from portal.embeddings.services.indexes import index_build_submit
from portal.jobs.models import Job
from portal.jobs.services import job_cancel
from portal.labs.models import Lab, User
from portal.mosaics.models import Followup, Mosaic
from portal.mosaics.services.removal import mosaic_delete
from portal.search.selectors.similar_cases import SimilarQuery, similar_search
from tests import world
from tests.portal.archive.support import run_job

BOX = {"type": "Polygon", "coordinates": [[[20, 20], [90, 20], [90, 90], [20, 90], [20, 20]]]}


@pytest.fixture
def made(
    lab: Lab, manager: User, storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> world.World:
    """One of everything; nothing is at work."""
    world.in_process(monkeypatch)
    result = world.build(lab, manager, tmp_path)
    for job in Job.objects.filter(kind="mosaic_build"):
        job_cancel(job=job, user=manager)
    return result


def test_an_annotated_slide_is_hidden_everywhere_at_once(
    made: world.World, manager: User, api_as: Any, client: Client
) -> None:
    item_delete(item=made.slide, user=manager)
    for model, stored in ((Slide, 0), (Roi, 0), (Followup, 0), (Canvas, 1), (Video, 1)):
        assert model.objects.visible_to(manager).count() == stored, model
    api, ids = api_as(manager), made.ids()
    for path in (
        f"slides/{ids['slides']}/",
        f"canvases/{ids['canvases']}/",
        f"canvases/{ids['canvases']}/thumbnail/",
        f"canvases/{ids['canvases']}/tiles/0/0/0.jpg",
        f"rois/{ids['rois']}/",
        f"rois/{ids['rois']}/similar/",
        f"followups/{ids['followups']}/",
    ):
        assert api.get(f"/api/v1/{path}").status_code == 404, path
    assert api.get("/api/v1/rois/", {"canvas": ids["canvases"]}).json()["count"] == 0
    (case,) = case_list(user=manager)
    assert (case.slide_count, case.video_count) == (0, 1)
    client.force_login(manager)
    assert client.get(reverse("archive:viewer", args=[ids["canvases"]])).status_code == 404
    page = client.get(reverse("archive:case_detail", args=[made.case.pk])).content.decode()
    assert made.slide.name not in page


def test_restoring_brings_back_exactly_the_deleted_rows(made: world.World, manager: User) -> None:
    deleted_before = roi_create(canvas=made.canvas, user=manager, geometry=BOX).roi
    roi_delete(roi=deleted_before, user=manager, expected_version=1)
    revisions = RoiRevision.objects.count()
    entry = item_delete(item=made.slide, user=manager)
    trash_restore(entry=entry, user=manager)
    assert list(Roi.objects.live()) == [made.roi]
    assert RoiRevision.objects.count() == revisions
    assert Roi.objects.get(pk=made.roi.pk).version == made.roi.version
    assert Followup.objects.filter(pk=made.followup.pk).exists()
    assert not TrashEntry.objects.exists()


def test_an_item_deleted_earlier_stays_deleted_when_its_case_is_restored(
    made: world.World, manager: User
) -> None:
    slide_entry = item_delete(item=made.slide, user=manager)
    case_entry = case_delete(case=made.case, user=manager)
    for model in (Case, Slide, Video, Canvas, Mosaic, Roi):
        assert not model.objects.visible_to(manager).exists(), model
    assert case_facets(user=manager).organs == []
    assert not case_search(case_list(user=manager), "w-1").exists()
    with pytest.raises(ConflictError, check=lambda error: error.code == "case-in-trash"):
        trash_restore(entry=slide_entry, user=manager)
    trash_restore(entry=case_entry, user=manager)
    assert Video.objects.exists()
    assert Mosaic.objects.exists()
    assert not Slide.objects.exists()
    trash_restore(entry=slide_entry, user=manager)
    assert Slide.objects.exists()


def test_mosaics_are_trashed_with_their_video_and_not_restored_without_it(
    made: world.World, manager: User
) -> None:
    deleted_mosaic = mosaic_delete(mosaic=made.mosaic, user=manager)
    trash_restore(entry=deleted_mosaic, user=manager)
    deleted_mosaic = mosaic_delete(mosaic=made.mosaic, user=manager)
    with_video = item_delete(item=made.video, user=manager)
    with pytest.raises(ConflictError, match="video"):
        trash_restore(entry=deleted_mosaic, user=manager)
    trash_restore(entry=with_video, user=manager)
    assert not Mosaic.objects.exists()
    trash_purge(entry=deleted_mosaic, user=manager)
    assert not Mosaic.all_objects.exists()
    assert Video.objects.exists()


def test_an_item_with_a_running_job_is_not_deleted(
    lab: Lab, manager: User, storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.in_process(monkeypatch)
    made = world.build(lab, manager, tmp_path)
    with pytest.raises(ConflictError, match="being built"):
        item_delete(item=made.video, user=manager)
    with pytest.raises(ConflictError, match="being built"):
        case_delete(case=made.case, user=manager)
    assert not TrashEntry.objects.exists()
    assert Video.objects.exists()


def test_the_bytes_stay_in_the_trash_and_the_sweep_leaves_them(
    made: world.World, manager: User, django_capture_on_commit_callbacks: Any
) -> None:
    path = archive_storage.asset_path(made.slide.lab_id, made.slide.asset.sha256)
    with django_capture_on_commit_callbacks(execute=True):
        item_delete(item=made.slide, user=manager)
    assert path.exists()
    assert archive_storage.derived_folder(made.slide.pk).is_dir()
    assert Asset.objects.filter(pk=made.slide.asset_id).exists()


def test_purging_deletes_rows_and_files_except_shared_originals(
    made: world.World, lab: Lab, manager: User, django_capture_on_commit_callbacks: Any
) -> None:
    other = case_create(lab=lab, user=manager, accession="W-2")
    path = archive_storage.asset_path(lab.pk, made.slide.asset.sha256)
    with path.open("rb") as file:
        twin = item_receive(case=other, file=file, filename="twin.tif", user=manager)
    folder = archive_storage.derived_folder(made.slide.pk)
    picture = archive_storage.derived_folder(made.followup.pk) / "1.jpg"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"x")
    with django_capture_on_commit_callbacks(execute=True):
        trash_purge(entry=item_delete(item=made.slide, user=manager), user=manager)
    assert list(Slide.all_objects.all()) == [twin.item]
    assert not Roi.all_objects.exists()
    assert not RoiRevision.objects.exists()
    assert not Followup.all_objects.exists()
    assert not folder.exists()
    assert not picture.parent.exists()
    assert path.exists(), "the other case has the same file"
    job_cancel(job=twin.job, user=manager)
    with django_capture_on_commit_callbacks(execute=True):
        trash_purge(entry=case_delete(case=other, user=manager), user=manager)
    assert not path.exists()
    assert not Upload.objects.filter(case=other.pk).exists()
    assert not Case.all_objects.filter(pk=other.pk).exists()


def test_a_case_is_purged_with_its_items_deleted_earlier(
    made: world.World, manager: User, django_capture_on_commit_callbacks: Any
) -> None:
    item_delete(item=made.slide, user=manager)
    mosaic_delete(mosaic=made.mosaic, user=manager)
    with django_capture_on_commit_callbacks(execute=True):
        trash_purge(entry=case_delete(case=made.case, user=manager), user=manager)
    for model in (Case, Slide, Video, Canvas, Mosaic, Roi):
        assert not model.all_objects.exists(), model
    assert not TrashEntry.objects.exists()
    assert not Asset.objects.exists()


def test_an_item_is_not_restored_once_the_same_file_was_uploaded_again(
    made: world.World, lab: Lab, manager: User
) -> None:
    entry = item_delete(item=made.slide, user=manager)
    path = archive_storage.asset_path(lab.pk, made.slide.asset.sha256)
    with path.open("rb") as file:
        again = item_receive(case=made.case, file=file, filename="slide.tif", user=manager)
    assert again.is_new
    with pytest.raises(ConflictError, match="same content") as caught:
        trash_restore(entry=entry, user=manager)
    assert caught.value.code == "restore-taken"
    assert TrashEntry.objects.filter(pk=entry.pk).exists()


def test_an_accession_number_is_free_while_its_case_is_in_the_trash(
    made: world.World, lab: Lab, manager: User
) -> None:
    entry = case_delete(case=made.case, user=manager)
    case_create(lab=lab, user=manager, accession="W-1")
    with pytest.raises(ConflictError, match="accession number"):
        trash_restore(entry=entry, user=manager)


def test_writes_of_others_do_not_restore_a_deleted_case(made: world.World, manager: User) -> None:
    stale_case, stale_roi = Case.objects.get(), Roi.objects.get()
    case_delete(case=made.case, user=manager)
    case_update(case=stale_case, user=manager, organ="lung")
    assert not Case.objects.exists()
    with pytest.raises(NotFoundError):
        roi_update(roi=stale_roi, user=manager, expected_version=1, changes={"name": "late"})
    with pytest.raises(NotFoundError):
        roi_create(canvas=made.canvas, user=manager, geometry=BOX)
    with pytest.raises(NotFoundError, match="deleted"):
        item_delete(item=made.slide, user=manager)
    with pytest.raises(ConflictError, check=lambda error: error.code == "label-in-use"):
        label_delete(label=made.label, user=manager)


def test_searches_find_a_restored_slide_without_a_new_index_file(
    made: world.World, lab: Lab, manager: User, tmp_path: Path
) -> None:
    encoder = Encoder.objects.create(
        name="four", version="1", config_hash="1" * 64, dim=4, is_default=True
    )
    other = case_create(lab=lab, user=manager, accession="W-2")
    source = world.slide_file(tmp_path)
    with source.open("rb") as file:
        received = item_receive(case=other, file=file, filename="other.tif", user=manager)
    run_job(received.job)
    canvas = Canvas.objects.get(slide=received.item)
    requested = roi_create(canvas=canvas, user=manager, geometry=BOX).roi
    for at, roi in enumerate((made.roi, requested)):
        embedding_save(
            roi_id=roi.pk,
            geometry=roi.geometry,
            encoder=encoder,
            vector=np.full(4, at, np.float32),
            patch_count=1,
            seconds=0.1,
        )
    job = run_job(index_build_submit(scope=Scope(encoder, lab.pk)))
    assert job.state == "succeeded", job.traceback
    query = SimilarQuery(roi=requested, encoder=encoder, k=5)
    result = similar_search(manager, query)
    assert [hit.roi.pk for hit in result.hits] == [made.roi.pk]
    assert result.index.in_file == 2
    entry = item_delete(item=made.slide, user=manager)
    hidden = similar_search(manager, query)
    assert (hidden.hits, hidden.index.masked) == ((), 1)
    trash_restore(entry=entry, user=manager)
    again = similar_search(manager, query)
    assert [hit.roi.pk for hit in again.hits] == [made.roi.pk]
    assert (again.index.in_file, again.index.newer) == (2, 0)
    assert Embedding.objects.count() == 2


def test_regions_of_a_restored_slide_are_embedded(made: world.World, manager: User) -> None:
    Encoder.objects.update(is_default=True)
    Job.objects.filter(kind__in=["roi_embed", "canvas_embed"]).delete()
    trash_restore(entry=item_delete(item=made.slide, user=manager), user=manager)
    assert Job.objects.get(kind="canvas_embed").target_id == made.roi.canvas_id


def test_entries_older_than_the_trash_days_are_purged(
    made: world.World, manager: User, settings: Any
) -> None:
    young = item_delete(item=made.slide, user=manager)
    old = item_delete(item=made.video, user=manager)
    assert trash_purge_due() == 0
    past = timezone.now() - timedelta(days=settings.TESSERA_TRASH_DAYS, minutes=1)
    TrashEntry.objects.filter(pk=old.pk).update(created_at=past)
    assert trash_purge_due() == 1
    assert list(TrashEntry.objects.all()) == [young]
    assert not Video.all_objects.exists()
    assert Slide.all_objects.exists()


def test_regions_older_than_the_trash_days_are_purged_with_their_history(
    made: world.World, manager: User, settings: Any
) -> None:
    roi_delete(roi=made.roi, user=manager, expected_version=1)
    assert ROI_PURGER.purge_due() == 0
    past = timezone.now() - timedelta(days=settings.TESSERA_TRASH_DAYS, minutes=1)
    Roi.objects.update(deleted_at=past)
    assert ROI_PURGER.purge_due() == 1
    assert not Roi.all_objects.exists()
    assert not RoiRevision.objects.exists()
