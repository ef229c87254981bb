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
from portal.annotations.services import roi_create
from portal.archive import storage as archive_storage
from portal.archive.models import Canvas, Case
from portal.archive.services import (
    bin_purge,
    case_create,
    case_update,
    item_delete,
    item_receive,
)
from portal.core.errors import ForbiddenError, InvalidInputError, NotFoundError
from portal.core.models import Event
from portal.jobs.models import Job
from portal.keeping.models import Erasure
from portal.keeping.services import backup_take, cases_of, erasure_begin, erasure_run
from portal.keeping.services.erasing import acts, erasures_repeat
from portal.keeping.vault import Vault
from portal.labs.models import Lab, User
from portal.retrieval.indexes import Scope
from portal.retrieval.models import Embedding, Encoder, IndexSnapshot
from portal.retrieval.selectors import learning_folder
from portal.retrieval.services import embedding_save, index_build_submit
from portal.retrieval.thumbnails import roi_thumbnail
from tests import world
from tests.portal.archive.support import picture, run_job

pytestmark = pytest.mark.django_db(transaction=True)
BOX = {"type": "Polygon", "coordinates": [[[20, 20], [90, 20], [90, 90], [20, 90], [20, 20]]]}
VECTOR = np.array([0.123456, -7.654321, 3.1415926, 2.7182818], np.float32)
NAMES = ("ACC-SECRET-1", "PATIENT-KEY-77", "slide.tif", "video.mp4")


@pytest.fixture
def patient(
    lab: Lab, manager: User, storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Case:
    """A patient with everything, in an index file too; another patient beside."""
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
    assert run_job(index_build_submit(scope=Scope(encoder, lab.pk), version=1)).state == "succeeded"
    roi_thumbnail(Roi.objects.select_related("canvas", "label").get(pk=made.roi.pk))
    return Case.objects.get(pk=made.case.pk)


def secrets(storage: Path, case: Case, *, vector: bool = True) -> list[bytes]:
    """Names, ids, a piece of each original, the vector."""
    found = [name.encode() for name in NAMES]
    for slide in (*case.slides.all(), *case.videos.all()):
        content = archive_storage.asset_path(case.lab_id, slide.asset.sha256).read_bytes()
        found += [_piece(content, _others(case)), slide.asset.sha256.encode()]
    return [*found, VECTOR.tobytes()] if vector else found


def _others(case: Case) -> bytes:
    """What the other patient has: standard tables of JPEG are in everybody's files."""
    slide = Case.objects.exclude(pk=case.pk).get().slides.get()
    paths = [archive_storage.asset_path(slide.lab_id, slide.asset.sha256)]
    paths += archive_storage.derived_folder(slide.pk).iterdir()
    return b"".join(path.read_bytes() for path in paths)


def _piece(content: bytes, others: bytes) -> bytes:
    """48 bytes that no other file has: neither a plain area nor a table."""
    windows = (content[at : at + 48] for at in range(len(content) // 4, len(content), 48))
    return next(one for one in windows if len(set(one)) > 30 and one not in others)


def found_in(storage: Path, wanted: list[bytes]) -> list[str]:
    """Where one of them still stands: files, names of files, the database's own pages."""
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


def test_an_original_that_was_deleted_for_good_before_leaves_the_trash_as_well(
    patient: Case, manager: User, storage: Path
) -> None:
    slide = patient.slides.get()
    path = archive_storage.asset_path(patient.lab_id, slide.asset.sha256)
    piece, sha256 = _piece(path.read_bytes(), _others(patient)), slide.asset.sha256
    bin_purge(entry=item_delete(item=slide, user=manager), user=manager)
    assert [place.partition("/")[0] for place in found_in(storage, [piece])] == ["trash"]
    erasure = erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    assert found_in(storage, [piece]) == []
    assert sha256 in {one["sha256"] for one in erasure.certificate["originals"]}
    assert erasure.certificate["verified"]["is_gone"]


def test_an_original_of_another_case_is_not_taken_from_it_by_the_trash(
    patient: Case, manager: User, storage: Path
) -> None:
    slide = patient.slides.get()
    path = archive_storage.asset_path(patient.lab_id, slide.asset.sha256)
    content = path.read_bytes()
    bin_purge(entry=item_delete(item=slide, user=manager), user=manager)
    other = Case.objects.exclude(pk=patient.pk).get()
    item_receive(case=other, file=io.BytesIO(content), filename="again.tif", user=manager)
    erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    assert path.read_bytes() == content


def test_nothing_of_the_patient_is_left_in_storage_database_or_index(
    patient: Case, manager: User, storage: Path
) -> None:
    wanted = secrets(storage, patient)
    assert len({line.partition(":")[0] for line in found_in(storage, wanted)}) >= 3
    erasure = erasure_run(
        erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason="asked for")
    )
    certificate = erasure.certificate
    hashes = {one["sha256"].encode() for one in certificate["originals"]}
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


def test_pictures_of_a_training_go_and_one_that_begins_anew_is_nothing_left(
    patient: Case, manager: User, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = learning_folder(patient.lab_id, uuid.uuid4())
    (training / "set").mkdir(parents=True)
    (training / "set" / "picture.png").write_bytes(picture())
    rewrite = acts.database_rewrite

    def meanwhile() -> bool:
        assert list(training.parent.glob("learning-*")) == []
        training.mkdir()  # its job is tried again
        return rewrite()

    monkeypatch.setattr(acts, "database_rewrite", meanwhile)
    erasure = erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    assert (erasure.state, training.is_dir()) == ("done", True)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="it has no such setting")
def test_a_rewritten_database_leaves_the_connection_as_it_was(lab: Lab) -> None:
    def waits() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            return str(cursor.fetchone()[0])

    before = waits()
    assert acts.database_rewrite()
    assert waits() == before


def test_other_patients_keep_everything(patient: Case, manager: User, storage: Path) -> None:
    erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    (case,) = Case.everything.all()
    assert case.accession == "STAYS-1"
    assert Embedding.objects.get().roi.name == "stays"
    assert not IndexSnapshot.objects.exists(), "searches read the database until a new file is due"
    slide = case.slides.get()
    path = archive_storage.asset_path(case.lab_id, slide.asset.sha256)
    assert path.read_bytes() == picture()
    assert Job.objects.filter(target_id=slide.pk).exists()
    assert Event.objects.filter(name="slide.ready").count() == 1


def test_a_file_that_another_case_has_stays_and_the_certificate_says_so(
    patient: Case, manager: User, storage: Path
) -> None:
    slide = patient.slides.get()
    path = archive_storage.asset_path(patient.lab_id, slide.asset.sha256)
    twin = case_create(lab=patient.lab, user=manager, accession="TWIN-1")
    with path.open("rb") as file:
        item_receive(case=twin, file=file, filename="twin.tif", user=manager)
    erasure = erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    assert path.exists()
    shared = {one["sha256"]: one["is_shared"] for one in erasure.certificate["originals"]}
    assert shared[slide.asset.sha256]
    assert sum(shared.values()) == 1
    assert erasure.state == "done"


def test_the_command_needs_now_and_prints_the_certificate(
    patient: Case, manager: User, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("erase", "north", "--patient", NAMES[1], "--by", manager.email)
    Job.objects.exclude(state="succeeded").delete()
    call_command(*asked)
    assert "--now erases them" in capsys.readouterr().out
    assert not Case.objects.filter(patient_key=NAMES[1]).exists()
    assert Case.everything.filter(patient_key=NAMES[1]).exists()
    call_command(*asked, "--now", "--reason", "the patient asked")
    certificate = json.loads(capsys.readouterr().out)
    assert certificate["verified"]["is_gone"]
    assert certificate["reason"] == "the patient asked"
    with pytest.raises(CommandError, match="no such case"):
        call_command(*asked, "--now")


def test_only_managers_erase_and_the_reason_does_not_name_the_patient(
    patient: Case, manager: User, annotator: User, lab: Lab
) -> None:
    with pytest.raises(ForbiddenError):
        erasure_begin(lab=lab, cases=[patient], user=annotator, reason="")
    with pytest.raises(InvalidInputError, match="The reason is kept"):
        erasure_begin(lab=lab, cases=[patient], user=manager, reason=f"all of {NAMES[1]}")
    with pytest.raises(NotFoundError):
        cases_of(lab=lab, patient_key="nobody")
    assert Case.objects.filter(pk=patient.pk).exists()
    assert not Erasure.objects.exists()


def test_backups_that_hold_it_are_named_and_forgotten_when_asked(
    patient: Case, manager: User, vault_folder: Path
) -> None:
    wanted = secrets(vault_folder, patient, vector=False)
    before = backup_take(destination=vault_folder).manifest.name
    erasure = erasure_run(erasure_begin(lab=patient.lab, cases=[patient], user=manager, reason=""))
    assert [row["name"] for row in erasure.certificate["backups"]] == [before]
    named = backup_take(destination=vault_folder)
    assert named.holding == (before,)
    forgotten = backup_take(destination=vault_folder, forget_erased=True)
    assert (forgotten.pruned, forgotten.holding) == ((before,), ())
    hashes = {one["sha256"].encode() for one in erasure.certificate["originals"]}
    assert found_in(vault_folder, [word for word in wanted if word not in hashes]) == []


def test_what_an_older_backup_brings_back_is_erased_again(
    patient: Case, manager: User, lab: Lab, vault_folder: Path
) -> None:
    backup_take(destination=vault_folder)
    vault = Vault(vault_folder)
    vault.erasures_write([{"erasure": "1", "cases": [str(patient.pk)], "at": "2030"}])
    assert erasures_repeat(vault) == 1
    assert not Case.everything.filter(pk=patient.pk).exists()
    assert Case.everything.filter(accession="STAYS-1").exists()
    assert erasures_repeat(vault) == 0
