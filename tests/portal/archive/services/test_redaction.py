"""Redaction in quarantine: the boxes are black, and the original is gone or withheld."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ml.imaging.phi_detection.text import read_text
from ml.imaging.results import PictureBox
from ml.imaging.slides.slide import open_slide
from ml.imaging.slides.stills import decode_still
from ml.imaging.videos.video import probe_video
from portal.archive.models import Asset, Canvas, Case, Redaction, Slide, Upload, Video
from portal.archive.selectors.intake import original_get, originals_list, quarantine_list
from portal.archive.selectors.uploads import upload_list
from portal.archive.services.gate.quarantine import (
    original_delete,
    quarantine_redact,
    quarantine_release,
)
from portal.archive.services.items import item_delete
from portal.archive.services.trash import trash_purge
from portal.archive.storage import files as storage_files
from portal.audit.models import AuditEntry
from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from portal.labs.models import User
from tests.ml.imaging.deidentification.support import SECRET, write_svs
from tests.ml.imaging.phi_detection.support import named, tissue, write_frames
from tests.portal.archive.services.test_gate import rules
from tests.portal.archive.support import picture, run_job

pytestmark = pytest.mark.django_db

LINE = PictureBox(0.03, 0.03, 0.6, 0.12)
"""Around the text of ``named`` in a picture of 640 x 400 px."""


@pytest.fixture(autouse=True)
def _rule_of_the_portal(settings: Any) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"


@pytest.fixture
def still() -> bytes:
    return bytes(cv2.imencode(".png", named(tissue())[..., ::-1])[1])


@pytest.fixture
def held(case: Case, receive: Any, quick: None, still: bytes) -> Upload:
    """A still with a date, which is in quarantine."""
    run_job(receive(case, still, "named.png").job)
    return Upload.objects.get(state="quarantined")


def stored(item: Slide | Video) -> Path:
    return storage_files.asset_path(item.lab_id, item.asset.sha256)


def hashes(folder: Path) -> set[str]:
    """SHA-256 of all files below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def words(image: Any) -> str:
    return " ".join(line.text for line in read_text(np.ascontiguousarray(image)))


@pytest.mark.slow
def test_a_still_is_taken_in_without_the_text_and_its_original_is_gone(
    held: Upload,
    manager: User,
    still: bytes,
    storage: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:
    arrived = hashlib.sha256(still).hexdigest()
    assert arrived in hashes(storage)
    with django_capture_on_commit_callbacks(execute=True):
        job = run_job(quarantine_redact(upload=held, user=manager, boxes=[LINE]).job)
    assert job.state == "succeeded", job.traceback
    slide = Slide.objects.get()
    assert (slide.state, Upload.objects.get().state) == ("ready", "stored")
    assert slide.asset.removed == ["1 place in the picture"]
    pixels = decode_still(stored(slide))
    assert pixels[16:60, 32:380].max() == 0
    assert words(pixels) == ""
    assert arrived not in hashes(storage)
    assert Asset.objects.count() == 1
    redaction = Redaction.objects.get()
    assert redaction.applied_at is not None
    assert redaction.original is None
    with open_slide(Path(storage, slide.canvas.pixels_path)) as shown:
        for number, level in enumerate(shown.stored):
            level_pixels = shown.read_level(number, (0, 0), (level.width_px, level.height_px))
            assert words(level_pixels) == "", number
    entry = AuditEntry.objects.get(action="quarantine.redacted")
    assert (str(entry.object_id), entry.details["boxes"]) == (str(held.pk), "1")


def test_the_same_file_is_known_when_it_comes_again(
    held: Upload, manager: User, case: Case, receive: Any, still: bytes
) -> None:
    run_job(quarantine_redact(upload=held, user=manager, boxes=[LINE]).job)
    again = receive(case, still, "again.png")
    assert (again.item, again.is_new) == (Slide.objects.get(), False)


@pytest.mark.slow
def test_a_place_that_was_missed_brings_the_file_back(held: Upload, manager: User) -> None:
    elsewhere = PictureBox(0.1, 0.7, 0.2, 0.2)
    job = run_job(quarantine_redact(upload=held, user=manager, boxes=[elsewhere]).job)
    assert job.error_code == "phi-in-pixels"
    back = quarantine_list(user=manager).get()
    assert back.error_code == "phi-in-pixels"
    assert back.asset.sha256 == back.sha256, "its original is unchanged"
    assert len(back.redaction.boxes) == 1
    run_job(quarantine_redact(upload=back, user=manager, boxes=[elsewhere, LINE]).job)
    slide = Slide.objects.get()
    assert slide.state == "ready"
    assert decode_still(stored(slide))[290:350, 70:180].max() == 0
    assert len(Redaction.objects.get().boxes) == 2


@pytest.mark.slow
def test_boxes_stay_until_they_are_removed(held: Upload, manager: User) -> None:
    elsewhere = PictureBox(0.1, 0.7, 0.2, 0.2)
    run_job(quarantine_redact(upload=held, user=manager, boxes=[elsewhere]).job)
    run_job(
        quarantine_redact(upload=quarantine_list(user=manager).get(), user=manager, boxes=[]).job
    )
    assert not Redaction.objects.exists()
    back = quarantine_list(user=manager).get()
    run_job(quarantine_redact(upload=back, user=manager, boxes=[elsewhere]).job)
    back = quarantine_list(user=manager).get()
    run_job(quarantine_release(upload=back, user=manager, reason="A phantom").job)
    pixels = decode_still(stored(Slide.objects.get()))
    assert pixels[290:350, 70:180].max() == 0
    assert "12/03" in words(pixels)


def test_a_lab_may_keep_the_original_for_its_managers(
    held: Upload,
    manager: User,
    annotator: User,
    stranger: User,
    case: Case,
    receive: Any,
    still: bytes,
    storage: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:
    arrived = hashlib.sha256(still).hexdigest()
    rules(case.lab, manager, keeps_originals=True)
    with django_capture_on_commit_callbacks(execute=True):
        run_job(quarantine_redact(upload=held, user=manager, boxes=[LINE]).job)
    slide = Slide.objects.get()
    assert slide.asset.sha256 != arrived
    original = originals_list(user=manager).get()
    assert (original.asset.sha256, original.filename) == (arrived, "named.png")
    assert arrived in hashes(storage)
    assert not originals_list(user=annotator).exists()
    assert {upload.state for upload in upload_list(user=annotator)} == {"stored"}
    with pytest.raises(ForbiddenError):
        original_get(user=annotator, upload_id=original.pk)
    with pytest.raises(NotFoundError):
        original_get(user=stranger, upload_id=original.pk)
    again = receive(case, still, "again.png")
    assert (again.item, again.is_new) == (slide, False), "the redacted file takes its place"
    with pytest.raises(ForbiddenError):
        original_delete(upload=original, user=annotator)
    with django_capture_on_commit_callbacks(execute=True):
        original_delete(upload=original, user=manager)
    assert arrived not in hashes(storage)
    assert not originals_list(user=manager).exists()
    assert AuditEntry.objects.filter(action="original.deleted").count() == 1
    assert Redaction.objects.get().original is None


def test_the_kept_original_is_deleted_for_good_with_the_redacted_file(
    held: Upload,
    manager: User,
    case: Case,
    still: bytes,
    storage: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:
    rules(case.lab, manager, keeps_originals=True)
    run_job(quarantine_redact(upload=held, user=manager, boxes=[LINE]).job)
    slide = Slide.objects.get()
    with django_capture_on_commit_callbacks(execute=True):
        trash_purge(entry=item_delete(item=slide, user=manager), user=manager)
    assert not Upload.objects.exists()
    assert not Asset.objects.exists()
    assert hashlib.sha256(still).hexdigest() not in hashes(storage)


@pytest.mark.slow
def test_a_slide_is_redacted_in_every_level_and_has_no_label(
    case: Case,
    receive: Any,
    manager: User,
    tmp_path: Path,
    storage: Path,
    quick: None,
    django_capture_on_commit_callbacks: Any,
) -> None:
    level = named(tissue(1536, 1024), text="Jane Doe 12/03/1961", xy=(200, 300))
    source = write_svs(tmp_path / "a.svs", level=level)
    run_job(receive(case, source, "a.svs").job)
    held = Upload.objects.get(state="quarantined")
    box = PictureBox(190 / 1536, 265 / 1024, 340 / 1536, 60 / 1024)
    with django_capture_on_commit_callbacks(execute=True):
        job = run_job(quarantine_redact(upload=held, user=manager, boxes=[box]).job)
    assert job.state == "succeeded", job.traceback
    slide = Slide.objects.get()
    assert slide.objective_power == 20
    assert {"1 place in the picture", "User", "label image"} <= set(slide.asset.removed)
    assert slide.canvas.mpp_x == pytest.approx(0.5, rel=1e-3)
    for path in (item for item in storage.rglob("*") if item.is_file()):
        assert SECRET.encode() not in path.read_bytes(), path
    assert hashlib.sha256(source.read_bytes()).hexdigest() not in hashes(storage)
    with open_slide(stored(slide)) as shown:
        assert len(shown.stored) >= 3
        for number, item in enumerate(shown.stored):
            pixels = shown.read_level(number, (0, 0), (item.width_px, item.height_px))
            assert "12" not in words(pixels), number


@pytest.mark.slow
def test_a_video_is_redacted_in_every_frame(
    case: Case,
    receive: Any,
    manager: User,
    tmp_path: Path,
    storage: Path,
    quick: None,
    django_capture_on_commit_callbacks: Any,
) -> None:
    frames = [named(tissue(seed=number)) for number in range(30)]
    source = write_frames(tmp_path / "v.mkv", frames)
    before = probe_video(source).frames
    rules(case.lab, manager, must_be_clean=True)
    run_job(receive(case, source, "v.mkv").job)
    held = Upload.objects.get(state="quarantined")
    assert held.error_code == "not-clean", "titles cannot be taken out of Matroska"
    with django_capture_on_commit_callbacks(execute=True):
        job = run_job(quarantine_redact(upload=held, user=manager, boxes=[LINE]).job)
    assert job.state == "succeeded", job.traceback
    video = Video.objects.get()
    assert video.warnings == []
    after = probe_video(stored(video)).frames
    assert len(after) == 30
    assert np.allclose(after.time_s, before.time_s, atol=1e-9)
    assert hashlib.sha256(source.read_bytes()).hexdigest() not in hashes(storage)


def test_a_cancelled_redaction_changes_nothing(
    held: Upload, manager: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from portal.archive import inspection
    from portal.core.tasks import JobCancelled

    def cancelled(*_: Any, **__: Any) -> Path:
        raise JobCancelled

    received = quarantine_redact(upload=held, user=manager, boxes=[LINE])
    monkeypatch.setattr(inspection, "slide_redact", cancelled)
    job = run_job(received.job)
    assert job.state == "cancelled"
    held.refresh_from_db()
    assert held.asset.sha256 == held.sha256
    assert not Canvas.objects.exists()
    assert Redaction.objects.get().applied_at is None


def test_who_may_redact_and_what(
    held: Upload, manager: User, annotator: User, case: Case, receive: Any
) -> None:
    with pytest.raises(ForbiddenError):
        quarantine_redact(upload=held, user=annotator, boxes=[LINE])
    with pytest.raises(InvalidInputError):
        quarantine_redact(upload=held, user=manager, boxes=[PictureBox(1.5, 0, 0.2, 0.2)])
    with pytest.raises(InvalidInputError, match="at most 100"):
        quarantine_redact(upload=held, user=manager, boxes=[LINE] * 101)
    run_job(receive(case, picture()[:5000], "cut.png").job)
    damaged = Upload.objects.get(filename="cut.png")
    with pytest.raises(ConflictError):
        quarantine_redact(upload=damaged, user=manager, boxes=[LINE])
    stale = Upload.objects.get(pk=held.pk)
    quarantine_redact(upload=held, user=manager, boxes=[LINE])
    with pytest.raises(ConflictError):
        quarantine_redact(upload=stale, user=manager, boxes=[LINE])
