"""Erasure: afterwards neither storage, database nor index holds a byte or a name of the patient."""

from __future__ import annotations

import io
import json
import uuid
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas, Case
from portal.archive.services.cases import case_create, case_update
from portal.archive.services.items import item_delete, item_receive
from portal.archive.services.trash import trash_purge
from portal.archive.storage import files as archive_storage
from portal.backups.repository import BackupRepository
from portal.backups.services.backup import backup_create
from portal.backups.services.erasures import erasures_repeat
from portal.core.errors import ForbiddenError, InvalidInputError, NotFoundError
from portal.core.models import Event
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Embedding, Encoder, IndexSnapshot
from portal.embeddings.services.embeddings import embedding_save
from portal.embeddings.services.indexes import index_build_submit
from portal.erasure.models import Erasure
from portal.erasure.services import erasures
from portal.erasure.services.erasures import cases_of, erasure_begin, erasure_run
from portal.jobs.models import Job
from portal.labs.models import Lab, User
from portal.model_training.selectors.folders import learning_folder
from portal.search.thumbnails.regions import roi_thumbnail
from tests import world
from tests.portal.archive.support import picture, run_job

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
BOX = {"type": "Polygon", "coordinates": [[[20, 20], [90, 20], [90, 90], [20, 90], [20, 20]]]}
VECTOR = np.array([0.123456, -7.654321, 3.1415926, 2.7182818], np.float32)
NAMES = ("ACC-SECRET-1", "PATIENT-KEY-77", "slide.tif", "video.mp4")


@pytest.fixture
def patient(
    lab: Lab, manager: User, storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Case:
    """A patient with data of every kind, also in an index file, and a second patient."""
    if connection.vendor == "sqlite":  # or deleted rows leave nothing that could be found
        connection.cursor().execute("PRAGMA secure_delete = OFF")
    world.in_process(monkeypatch)
    made = world.build(lab, manager, tmp_path)
    case_update(case=made.case, user=manager, accession=NAMES[0], patient_key=NAMES[1])
    encoder = Encoder.objects.create(
        name="four", version="1", config_hash="1" * 64, dim=4, is_default=True
    )
    other = case_create(lab=lab, user=manager, accession="STAYS-1", patient_key="OTHER-KEY-1")
    received = item_receive(
        case=other, file=io.BytesIO(picture()), filename="stays.png", user=manager
    )
    run_job(received.job)
    canvas = Canvas.objects.get(slide=received.item)
    stays = roi_create(canvas=canvas, user=manager, geometry=BOX, name="stays").roi
    for roi, vector in ((made.roi, VECTOR), (stays, -VECTOR)):
        embedding_save(
            roi_id=roi.pk,
            geometry=roi.geometry,
            encoder=encoder,
            vector=vector,
            patch_count=1,
            seconds=0.1,
        )
    assert run_job(index_build_submit(scope=Scope(encoder, lab.pk))).state == "succeeded"
    roi_thumbnail(Roi.objects.select_related("canvas", "label").get(pk=made.roi.pk))
    return Case.objects.get(pk=made.case.pk)


def secrets(storage: Path, case: Case, *, vector: bool = True) -> list[bytes]:
    """Names, ids, a piece of each original, the vector."""
    words = [name.encode() for name in NAMES]
    for slide in (*case.slides.all(), *case.videos.all()):
        content = archive_storage.asset_path(case.lab_id, slide.asset.sha256).read_bytes()
        words += [_piece(content, _others(case)), slide.asset.sha256.encode()]
    return [*words, VECTOR.tobytes()] if vector else words


def _others(case: Case) -> bytes:
    """Bytes of the other patient's files, to exclude what all files share, such as JPEG tables."""
    slide = Case.objects.exclude(pk=case.pk).get().slides.get()
    paths = [archive_storage.asset_path(slide.lab_id, slide.asset.sha256)]
    paths += archive_storage.derived_folder(slide.pk).iterdir()
    return b"".join(path.read_bytes() for path in paths)


def _piece(content: bytes, others: bytes) -> bytes:
    """48 bytes that no other file has: neither a plain area nor a table."""
    windows = (content[at : at + 48] for at in range(len(content) // 4, len(content), 48))
    return next(window for window in windows if len(set(window)) > 30 and window not in others)


def found_in(storage: Path, wanted: list[bytes]) -> list[str]:
    """Places that still contain a word: files, file names, and pages of the database."""
    places = [
        (str(path.relative_to(storage)), path.read_bytes() + str(path).encode())
        for path in storage.rglob("*")
        if path.is_file()
    ]
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        places.append(("the database", connection.connection.serialize()))
    return [f"{name}: {word!r:.40}" for name, data in places for word in wanted if word in data]


def test_an_erasure_deletes_orphans_of_the_case(
    patient: Case, manager: User, storage: Path
) -> None:
    slide = patient.slides.get()
    path = archive_storage.asset_path(patient.lab_id, slide.asset.sha256)
    piece, sha256 = _piece(path.read_bytes(), _others(patient)), slide.asset.sha256
    trash_purge(entry=item_delete(item=slide, user=manager), user=manager)
    assert [place.partition("/")[0] for place in found_in(storage, [piece])] == ["orphans"]
    erasure = erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    assert found_in(storage, [piece]) == []
    assert sha256 in {original["sha256"] for original in erasure.certificate["originals"]}
    assert erasure.certificate["verified"]["is_gone"]


def test_an_erasure_leaves_an_orphan_that_another_case_uses(
    patient: Case, manager: User, storage: Path
) -> None:
    slide = patient.slides.get()
    path = archive_storage.asset_path(patient.lab_id, slide.asset.sha256)
    content = path.read_bytes()
    trash_purge(entry=item_delete(item=slide, user=manager), user=manager)
    other = Case.objects.exclude(pk=patient.pk).get()
    item_receive(case=other, file=io.BytesIO(content), filename="again.tif", user=manager)
    erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    assert path.read_bytes() == content


def test_no_data_of_the_patient_remains_in_storage_database_or_index(
    patient: Case, manager: User, storage: Path
) -> None:
    wanted = secrets(storage, patient)
    assert len({line.partition(":")[0] for line in found_in(storage, wanted)}) >= 3
    erasure = erasure_run(
        erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason="asked for")
    )
    certificate = erasure.certificate
    hashes = {original["sha256"].encode() for original in certificate["originals"]}
    left = found_in(storage, [word for word in wanted if word not in hashes])
    assert left == []
    assert found_in(storage, [*hashes]) == [
        line for line in found_in(storage, [*hashes]) if line.startswith("the database")
    ], "hashes stand in the certificate alone"
    assert erasure.state == "done"
    verified = certificate["verified"]
    assert (verified["rows_left"], verified["files_left"]) == (0, [])
    assert (verified["names_left_in"], verified["database_rewritten"]) == ([], True)
    assert certificate["rows"]["case"] == certificate["rows"]["slide"] == 1
    assert certificate["rows"]["embedding"] == 1
    assert certificate["requested_by"] == manager.email
    assert not any(name in json.dumps(certificate) for name in NAMES)


def test_pictures_of_a_training_are_erased(
    patient: Case, manager: User, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = learning_folder(patient.lab_id, uuid.uuid4())
    (training / "set").mkdir(parents=True)
    (training / "set" / "picture.png").write_bytes(picture())
    rewrite = erasures.database_rewrite

    def rewrite_while_a_job_is_retried() -> bool:
        assert list(training.parent.glob("learning-*")) == []
        training.mkdir()  # its job is tried again
        return rewrite()

    monkeypatch.setattr(erasures, "database_rewrite", rewrite_while_a_job_is_retried)
    erasure = erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    assert (erasure.state, training.is_dir()) == ("done", True)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="it has no such setting")
def test_rewriting_the_database_resets_the_lock_timeout(lab: Lab) -> None:
    def waits() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            return str(cursor.fetchone()[0])

    before = waits()
    assert erasures.database_rewrite()
    assert waits() == before


def test_an_erasure_leaves_data_of_other_patients(
    patient: Case, manager: User, storage: Path
) -> None:
    erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    (case,) = Case.all_objects.all()
    assert case.accession == "STAYS-1"
    assert Embedding.objects.get().roi.name == "stays"
    assert not IndexSnapshot.objects.exists(), "searches read the database until a new file is due"
    slide = case.slides.get()
    path = archive_storage.asset_path(case.lab_id, slide.asset.sha256)
    assert path.read_bytes() == picture()
    assert Job.objects.filter(target_id=slide.pk).exists()
    assert Event.objects.filter(name="slide.ready").count() == 1


def test_an_original_of_another_case_remains_and_is_certified(
    patient: Case, manager: User, storage: Path
) -> None:
    slide = patient.slides.get()
    path = archive_storage.asset_path(patient.lab_id, slide.asset.sha256)
    twin = case_create(lab=patient.lab, user=manager, accession="TWIN-1")
    with path.open("rb") as file:
        item_receive(case=twin, file=file, filename="twin.tif", user=manager)
    erasure = erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    assert path.exists()
    shared = {
        original["sha256"]: original["is_shared"] for original in erasure.certificate["originals"]
    }
    assert shared[slide.asset.sha256]
    assert sum(shared.values()) == 1
    assert erasure.state == "done"


def test_the_command_needs_now_and_prints_the_certificate(
    patient: Case, manager: User, capsys: pytest.CaptureFixture[str]
) -> None:
    requested = ("erase", "north", "--patient", NAMES[1], "--by", manager.email)
    Job.objects.exclude(state="succeeded").delete()
    call_command(*requested)
    assert "--now erases them" in capsys.readouterr().out
    assert not Case.objects.filter(patient_key=NAMES[1]).exists()
    assert Case.all_objects.filter(patient_key=NAMES[1]).exists()
    call_command(*requested, "--now", "--reason", "the patient asked")
    certificate = json.loads(capsys.readouterr().out)
    assert certificate["verified"]["is_gone"]
    assert certificate["reason"] == "the patient asked"
    with pytest.raises(CommandError, match="case"):
        call_command(*requested, "--now")


def test_only_managers_erase_and_the_reason_does_not_name_the_patient(
    patient: Case, manager: User, annotator: User, lab: Lab
) -> None:
    with pytest.raises(ForbiddenError):
        erasure_begin(lab=lab, cases=[patient], user=annotator, reason="")
    with pytest.raises(InvalidInputError, match="reason"):
        erasure_begin(lab=lab, cases=[patient], user=manager, reason=f"all of {NAMES[1]}")
    with pytest.raises(NotFoundError):
        cases_of(lab=lab, patient_key="nobody")
    assert Case.objects.filter(pk=patient.pk).exists()
    assert not Erasure.objects.exists()


def test_backups_with_erased_data_are_named_and_removed_on_request(
    patient: Case, manager: User, backup_folder: Path
) -> None:
    wanted = secrets(backup_folder, patient, vector=False)
    before = backup_create(destination=backup_folder).manifest.name
    erasure = erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    assert [row["name"] for row in erasure.certificate["backups"]] == [before]
    named = backup_create(destination=backup_folder)
    assert named.holding == (before,)
    forgotten = backup_create(destination=backup_folder, forget_erased=True)
    assert (forgotten.removed, forgotten.holding) == ((before,), ())
    hashes = {original["sha256"].encode() for original in erasure.certificate["originals"]}
    assert found_in(backup_folder, [word for word in wanted if word not in hashes]) == []


def test_a_restore_of_an_older_backup_repeats_the_erasure(
    patient: Case, manager: User, lab: Lab, backup_folder: Path
) -> None:
    backup_create(destination=backup_folder)
    repository = BackupRepository(backup_folder)
    repository.write_erasures([{"erasure": "1", "cases": [str(patient.pk)], "at": "2030"}])
    assert erasures_repeat(repository) == 1
    assert not Case.all_objects.filter(pk=patient.pk).exists()
    assert Case.all_objects.filter(accession="STAYS-1").exists()
    assert erasures_repeat(repository) == 0
