"""The gate: names are taken out, and what does not pass is kept apart."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from django.urls import reverse

from ml.errors import LimitExceededError
from ml.imaging.results import PixelFinding, PixelInspection
from ml.imaging.sandbox.policy import Limits
from portal.archive import tasks
from portal.archive.models import Asset, Case, Evidence, Slide, Upload, Video
from portal.archive.selectors.intake import quarantine_get, quarantine_list
from portal.archive.selectors.uploads import upload_list
from portal.archive.services.cases import case_create, case_update
from portal.archive.services.gate.findings import findings_as_sentences
from portal.archive.services.gate.quarantine import (
    PHI_IN_PIXELS,
    PIXELS_NOT_INSPECTED,
    evidence_drop,
    evidence_keep,
    quarantine_delete,
    quarantine_release,
    quarantine_retry,
)
from portal.archive.services.gate.rules import IntakeRuleValues, intake_rules_set
from portal.archive.services.items import item_create, item_delete
from portal.audit.models import AuditEntry
from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from portal.jobs.models import Job
from portal.labs.models import Lab, Membership, Role, User
from tests.ml.imaging.deidentification.support import SECRET, write_dicom, write_svs
from tests.ml.imaging.phi_detection.support import named, tissue, write_frames
from tests.portal.archive.support import files_below, make_video, picture, run_job, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _rule_of_the_portal(settings: Any) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"


def rules(lab: Lab, user: User, **changes: Any) -> None:
    usual = {
        "takes_names_out": True,
        "must_be_clean": False,
        "titles_from_files": True,
        "identifying_text": "hold",
        "other_text": "warn",
        "faces": "hold",
        "ignored_words": [],
    }
    intake_rules_set(lab=lab, user=user, values=IntakeRuleValues(**usual | changes))


@pytest.fixture
def held(case: Case, receive: Any, quick: None) -> Upload:
    """A damaged file, which is in quarantine."""
    run_job(receive(case, picture()[:5000], "cut.png").job)
    return Upload.objects.get(state="quarantined")


@pytest.mark.slow
def test_a_deidentified_slide_is_recognised_when_uploaded_again(
    case: Case,
    receive: Any,
    storage: Path,
    tmp_path: Path,
    quick: None,
    django_capture_on_commit_callbacks: Any,
) -> None:
    source = write_svs(tmp_path / "a.svs")
    arrived = hashlib.sha256(source.read_bytes()).hexdigest()
    with django_capture_on_commit_callbacks(execute=True):
        run_job(receive(case, source, "a.svs").job)
    slide = Slide.objects.get()
    assert slide.state == "ready", slide.error_message
    assert {"User", "label image"} <= set(slide.asset.removed)
    assert slide.asset.sha256 != arrived == Upload.objects.get().sha256
    stored = [path for path in storage.rglob("*") if path.is_file()]
    assert not [path for path in stored if SECRET.encode() in path.read_bytes()]
    assert Asset.objects.get().sha256 == slide.canvas.content_hash
    entry = AuditEntry.objects.get(action="item.deidentified")
    assert "User" in entry.details["removed"]
    assert SECRET not in str(entry.details)
    again = receive(case, source, "b.svs")
    assert (again.item, again.is_new) == (slide, False)
    assert Asset.objects.count() == 1


@pytest.mark.slow
def test_in_another_case_the_same_file_needs_no_second_cleaning(
    case: Case, receive: Any, annotator: User, tmp_path: Path, quick: None
) -> None:
    source = write_svs(tmp_path / "a.svs")
    run_job(receive(case, source, "a.svs").job)
    other = case_create(lab=case.lab, user=annotator, accession="S-2")
    run_job(receive(other, source, "a.svs").job)
    assert Asset.objects.count() == 1
    assert set(Slide.objects.values_list("state", flat=True)) == {"ready"}


@pytest.mark.slow
def test_the_real_child_takes_names_out(case: Case, receive: Any, tmp_path: Path) -> None:
    run_job(receive(case, write_svs(tmp_path / "a.svs"), "a.svs").job)
    assert Slide.objects.get().asset.removed
    job = run_job(receive(case, write_dicom(tmp_path / "a.dcm"), "a.dcm").job)
    assert job.error_code in ("", "corrupt-file"), job.traceback  # it is no whole slide


def test_a_lab_may_keep_its_files_as_they_are(
    case: Case, receive: Any, manager: User, tmp_path: Path, quick: None
) -> None:
    rules(case.lab, manager, takes_names_out=False, titles_from_files=False)
    source = write_svs(tmp_path / "a.svs")
    run_job(receive(case, source, "Doe Jane.svs").job)
    slide = Slide.objects.get()
    assert slide.asset.sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
    assert (slide.name, slide.asset.removed) == ("Slide 1", None)


def test_unremovable_identifiers_are_reported_or_quarantined(
    case: Case, receive: Any, manager: User, tmp_path: Path, quick: None
) -> None:
    path = make_video(tmp_path / "v.mkv", codec="libx264")
    rules(case.lab, manager, must_be_clean=True)
    run_job(receive(case, path, "v.mkv").job)
    held = Upload.objects.get()
    assert (held.state, held.error_code, Video.objects.count()) == ("quarantined", "not-clean", 0)
    released = quarantine_release(upload=held, user=manager, reason="No  titles in it")
    run_job(released.job)
    video = Video.objects.get()
    assert video.state == "ready"
    assert video.warnings == ["Not removed: titles and dates inside the matroska container."]
    assert Upload.objects.get().release_reason == "No titles in it"
    entry = AuditEntry.objects.get(action="quarantine.released")
    assert entry.details["reason"] == "No titles in it"


def test_a_damaged_file_is_in_no_list_and_only_managers_see_it(
    held: Upload, annotator: User, manager: User, stranger: User, case: Case
) -> None:
    assert not Slide.all_objects.exists()
    assert (held.error_code, held.name) == ("corrupt-file", "cut.png")
    assert list(quarantine_list(user=manager)) == [held]
    assert not quarantine_list(user=annotator).exists()
    assert held in upload_list(user=annotator), "one's own transfer"
    Upload.objects.update(created_by=manager)
    assert held not in upload_list(user=annotator)
    with pytest.raises(ForbiddenError):
        quarantine_get(user=annotator, upload_id=held.pk)
    with pytest.raises(NotFoundError):
        quarantine_get(user=stranger, upload_id=held.pk)


def test_a_file_is_tried_again_and_fails_again(held: Upload, manager: User) -> None:
    received = quarantine_retry(upload=held, user=manager)
    held.refresh_from_db()
    assert held.state == "stored"
    assert (received.item.state, received.item.name) == ("preparing", "cut.png")
    run_job(received.job)
    held.refresh_from_db()
    assert held.state == "quarantined"
    assert not Slide.all_objects.exists()


def test_an_unreadable_file_is_not_released(held: Upload, manager: User) -> None:
    with pytest.raises(ConflictError, match="opened"):
        quarantine_release(upload=held, user=manager, reason="please")
    with pytest.raises(InvalidInputError, match="reason"):
        quarantine_release(upload=held, user=manager, reason="  ")


def test_a_deleted_file_leaves_no_byte(
    held: Upload, manager: User, storage: Path, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        quarantine_delete(upload=held, user=manager)
    assert not Upload.objects.exists()
    assert [name for name in files_below(storage) if "assets" in name or "orphans" in name] == []
    with pytest.raises(ConflictError, match="quarantine"):
        quarantine_retry(upload=held, user=manager)


def still_with_a_name(seed: int = 0) -> bytes:
    return bytes(cv2.imencode(".png", named(tissue(seed=seed))[..., ::-1])[1])


@pytest.fixture
def seen(case: Case, receive: Any, quick: None) -> Upload:
    """A still with a name in its picture, which is in quarantine."""
    run_job(receive(case, still_with_a_name(), "named.png").job)
    return Upload.objects.get(state="quarantined")


def test_a_name_in_the_picture_is_held_back_with_a_picture_of_it(
    seen: Upload, storage: Path
) -> None:
    assert not Slide.all_objects.exists()
    assert not [name for name in files_below(storage) if "derived" in name or "scratch" in name]
    assert seen.error_code == PHI_IN_PIXELS
    assert "A date in the picture at the upper left" in seen.error_message
    assert "1961" not in seen.error_message
    evidence = Evidence.objects.get()
    assert evidence.findings[0]["kind"] == "date"
    assert "12/03/1961" in evidence.findings[0]["text"]
    assert bytes(evidence.picture).startswith(b"\xff\xd8")
    entry = AuditEntry.objects.get(action="quarantine.put")
    assert entry.details["code"] == PHI_IN_PIXELS


def test_a_released_picture_is_shown_and_its_evidence_is_deleted(
    seen: Upload, manager: User
) -> None:
    released = quarantine_release(upload=seen, user=manager, reason="A phantom")
    assert not Evidence.objects.exists()
    run_job(released.job)
    slide = Slide.objects.get()
    assert (slide.state, slide.warnings) == ("ready", [])
    assert AuditEntry.objects.get(action="quarantine.released").details["reason"] == "A phantom"


def test_a_retry_follows_the_rules_of_its_time(seen: Upload, manager: User) -> None:
    run_job(quarantine_retry(upload=seen, user=manager).job)
    seen.refresh_from_db()
    assert (seen.state, Evidence.objects.count()) == ("quarantined", 1)
    rules(seen.lab, manager, identifying_text="warn")
    run_job(quarantine_retry(upload=seen, user=manager).job)
    slide = Slide.objects.get()
    assert (slide.state, Evidence.objects.count()) == ("ready", 0)
    assert slide.warnings == ["A date in the picture at the upper left."]


def test_a_lab_may_switch_off_the_inspection(
    case: Case, receive: Any, manager: User, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(case.lab, manager, identifying_text="off", other_text="off", faces="off")
    monkeypatch.setattr("portal.archive.inspection.slide_phi_detect", pytest.fail)
    run_job(receive(case, still_with_a_name(), "named.png").job)
    assert Slide.objects.get().warnings == []


def still_with_text(*lines: str) -> bytes:
    image = tissue()
    for number, line in enumerate(lines):
        image = named(image, line, (30, 60 + 80 * number))
    return bytes(cv2.imencode(".png", image[..., ::-1])[1])


@pytest.mark.slow
def test_settings_of_a_device_pass_with_a_warning_or_as_the_lab_wants(
    case: Case, receive: Any, manager: User, quick: None
) -> None:
    device = still_with_text("Patient pressure 14 mmHg")
    run_job(receive(case, device, "device.png").job)
    slide = Slide.objects.get()
    assert (slide.state, len(slide.warnings)) == ("ready", 1)
    item_delete(item=slide, user=manager)
    rules(case.lab, manager, other_text="hold")
    run_job(receive(case, still_with_text("Zoom 3 CHROMA"), "b.png").job)
    held = Upload.objects.get(state="quarantined")
    rules(case.lab, manager, other_text="hold", ignored_words=["chroma", "Zoom 3"])
    run_job(quarantine_retry(upload=held, user=manager).job)
    assert Slide.objects.get().warnings == []


@pytest.mark.parametrize("line", ["Lindqvist", "S-20417"])
def test_a_word_of_the_file_or_the_case_is_identifying(
    case: Case, receive: Any, manager: User, quick: None, line: str
) -> None:
    case_update(case=case, user=manager, accession="S-20417")
    run_job(receive(case, still_with_text(line), "Lindqvist polyp.png").job)
    assert Upload.objects.get().error_code == PHI_IN_PIXELS


def test_a_word_that_was_taken_out_of_the_file_is_identifying_in_its_picture(
    case: Case, receive: Any, tmp_path: Path, quick: None
) -> None:
    level = np.full((400, 640, 3), 230, np.uint8)
    cv2.putText(level, SECRET, (200, 200), cv2.FONT_HERSHEY_SIMPLEX, 1.5, (20, 20, 20), 3)
    run_job(receive(case, write_svs(tmp_path / "a.svs", level=level), "a.svs").job)
    held = Upload.objects.get()
    assert held.error_code == PHI_IN_PIXELS
    assert SECRET not in held.error_message


def look_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any, **__: Any) -> None:
        raise LimitExceededError("opening the file took over 900 s and was stopped")

    monkeypatch.setattr("portal.archive.inspection.slide_phi_detect", slow)


def test_a_manager_may_release_a_file_whose_inspection_timed_out(
    case: Case, receive: Any, manager: User, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_out_of_time(monkeypatch)
    run_job(receive(case, picture(), "slow.png").job)
    held = Upload.objects.get(state="quarantined")
    assert held.error_code == PIXELS_NOT_INSPECTED
    assert held.error_message == (
        "Its picture was not checked for text and faces: opening the file took over 900 s"
        " and was stopped."
    )
    run_job(quarantine_release(upload=held, user=manager, reason="Seen by me").job)
    slide = Slide.objects.get()
    assert (slide.state, slide.warnings) == ("ready", [])


@pytest.mark.parametrize("is_imported", [False, True])
def test_a_timeout_is_only_reported_where_nothing_is_quarantined(
    case: Case,
    receive: Any,
    manager: User,
    quick: None,
    monkeypatch: pytest.MonkeyPatch,
    is_imported: bool,
) -> None:
    look_out_of_time(monkeypatch)
    rule = "hold" if is_imported else "warn"
    rules(case.lab, manager, identifying_text=rule, faces=rule)
    monkeypatch.setattr(tasks, "item_is_imported", lambda item: is_imported)
    run_job(receive(case, picture(), "slow.png").job)
    (warning,) = Slide.objects.get().warnings
    assert warning.startswith("Its picture was not checked for text and faces: ")


@pytest.mark.slow
def test_the_real_child_ends_at_its_limit_and_the_file_can_be_released(
    case: Case, receive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.archive.inspection.PHI_LIMITS", Limits(wall_s=0.01))
    job = run_job(receive(case, picture(), "slow.png").job)
    assert job.error_code == PIXELS_NOT_INSPECTED, job.traceback


def test_evidence_of_a_killed_inspection_is_deleted_when_the_file_passes(
    case: Case, receive: Any, manager: User, quick: None
) -> None:
    """The worker died after it kept the evidence; then the rules were changed."""
    received = receive(case, still_with_a_name(), "named.png")
    inspection = PixelInspection((PixelFinding("date", 0, 0, 0.1, 0.1),), "evidence.jpg")
    evidence_keep(item=received.item, inspected=inspection, picture=b"jpeg")
    rules(case.lab, manager, identifying_text="warn")
    run_job(received.job)
    assert Slide.objects.get().state == "ready"
    assert not Evidence.objects.exists()


def test_evidence_of_a_quarantined_file_survives_an_identical_upload(
    seen: Upload, manager: User
) -> None:
    """Cleaned of its names, a second file has the bytes of the first, which nobody decided yet."""
    same = {name: getattr(seen, name) for name in ("lab", "case", "asset", "sha256")}
    second = Upload.objects.create(**same, filename="raw.png", state="stored", created_by=manager)
    Evidence.objects.create(
        lab=seen.lab, upload=second, findings=[], picture=b"of a killed attempt"
    )
    item = item_create(upload=second, user=manager).item
    evidence_drop(item=item)
    assert [evidence.upload for evidence in Evidence.objects.all()] == [seen]


def test_without_rules_the_setting_applies(
    case: Case, receive: Any, quick: None, settings: Any
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "warn"
    run_job(receive(case, still_with_a_name(), "named.png").job)
    assert Slide.objects.get().warnings == ["A date in the picture at the upper left."]


def test_an_imported_item_is_reported_and_never_quarantined(
    case: Case, receive: Any, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "item_is_imported", lambda item: True)
    run_job(receive(case, still_with_a_name(), "named.png").job)
    assert Slide.objects.get().warnings == ["A date in the picture at the upper left."]


@pytest.mark.slow
def test_the_real_child_finds_text_over_a_video(case: Case, receive: Any, tmp_path: Path) -> None:
    frames = [named(tissue(320, 200, seed=seed), "12/03/1961", (20, 180)) for seed in range(12)]
    job = run_job(receive(case, write_frames(tmp_path / "v.mp4", frames), "v.mp4").job)
    assert job.error_code == PHI_IN_PIXELS, job.traceback
    assert "A date in the picture at the lower left" in job.error_message
    assert not Video.all_objects.exists()


def test_evidence_of_a_deleted_case_is_deleted(seen: Upload) -> None:
    Case.all_objects.filter(pk=seen.case_id).delete()
    assert not Evidence.objects.exists()


def test_messages_contain_place_and_time() -> None:
    def one(kind: Any, x: float, y: float, at_s: float | None = None) -> PixelFinding:
        return PixelFinding(kind, x, y, 0.1, 0.1, text="Jane Doe", at_s=at_s)

    result = [one("other", 0, 0), one("name", 0.45, 0.45), one("name", 0.9, 0.9), one("name", 0, 0)]
    name, other = findings_as_sentences(result)
    assert name.endswith("in the picture at the middle, lower right and upper left")
    assert other.endswith("in the picture at the upper left")
    result = [one("face", 0, 0, 61.9), *(one("outside_body", 0, 0, at) for at in range(7))]
    face, outside = findings_as_sentences(result)
    assert face.endswith("at 1:01")
    assert outside.endswith("at 0:00, 0:01, 0:02, 0:03 and 3 more")
    assert "Jane" not in f"{name}{other}", "a sentence is kept longer than the evidence"
    assert findings_as_sentences([]) == []


def test_only_sender_and_managers_read_the_reason_of_quarantine(
    held: Upload, annotator: User, manager: User, api_as: Any, client: Any
) -> None:
    other = User.objects.create_user("other@north.example", "correct horse battery")
    Membership.objects.create(user=other, lab=held.lab, role=Role.ANNOTATOR)
    job = Job.objects.get(kind="slide_ingest")
    for user, is_shown in ((annotator, True), (manager, True), (other, False)):
        body = api_as(user).get(f"/api/v1/jobs/{job.pk}/").json()
        assert body["error"]["code"] == "corrupt-file"
        assert bool(body["error"]["message"]) is is_shown, user
        assert body["target_name"] == ("cut.png" if is_shown else "")
        client.force_login(user)
        pages = (
            f"/jobs/{job.pk}/",
            reverse("archive:item_card", args=["slide", job.args["slide_id"]]),
        )
        assert [held.error_message in text_of(client.get(path)) for path in pages] == [is_shown] * 2
    api = api_as(annotator)
    assert body["target_type"] == "upload"
    assert api.get(f"/api/v1/uploads/{body['target_id']}/").json()["error"]["message"]
    quarantine_delete(upload=held, user=manager)
    assert api.get(f"/api/v1/jobs/{job.pk}/").json()["error"]["message"] == ""


def test_a_job_of_a_transfer_does_not_name_a_slide_in_the_trash(
    held: Upload, manager: User, api_as: Any
) -> None:
    job = Job.objects.get(kind="slide_ingest")
    slide = quarantine_retry(upload=held, user=manager).item
    Slide.objects.update(state="ready")
    named = [api_as(manager).get(f"/api/v1/jobs/{job.pk}/").json()["target_name"]]
    item_delete(item=Slide.objects.get(pk=slide.pk), user=manager)
    named += [api_as(manager).get(f"/api/v1/jobs/{job.pk}/").json()["target_name"]]
    assert named == ["cut.png", ""]
