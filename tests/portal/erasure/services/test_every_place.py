"""A marker in every place that code can write: after an erasure none is left, or it is named."""

from __future__ import annotations

import ast
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.db import connection, models
from django.db.models.functions import Cast
from django.utils import timezone

from portal.archive.models import Asset, Canvas, Case, Slide, Upload, UploadState
from portal.archive.services.cases import case_create, case_update
from portal.archive.services.items import item_delete
from portal.archive.services.trash import trash_purge, trash_restore
from portal.archive.storage import files as archive_storage
from portal.archive.storage.fetched import Fetched
from portal.core import storage_layout
from portal.core.errors import ConflictError
from portal.core.models import Event, IdempotencyRecord
from portal.core.storage_layout import Erased, Place, unknown_entries
from portal.embeddings.models import Encoder
from portal.erasure.models import Erasure
from portal.erasure.services import erasures
from portal.erasure.services.erasures import erasure_begin, erasure_run
from portal.erasure.services.tables import RULES, TableRule, cascading, rule_of, with_cases
from portal.interop.rocrate.services.exports import case_export_to
from portal.jobs.models import Job, JobState
from portal.labs.models import Lab, User
from portal.reader_studies.models import Study
from portal.webhooks.models import Webhook, WebhookAttempt, WebhookDelivery
from tests import world
from tests.world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
MARKER = "MARKER-7f3a91"
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def made(
    lab: Lab, manager: User, storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> World:
    if connection.vendor == "sqlite":  # or deleted rows leave nothing that could be found
        connection.cursor().execute("PRAGMA secure_delete = OFF")
    world.in_process(monkeypatch)
    made = world.build(lab, manager, tmp_path)
    Job.objects.exclude(state=JobState.SUCCEEDED).delete()
    return made


def erase(case: Case, manager: User) -> Erasure:
    return erasure_run(erasure_begin(lab=case.lab, cases=[case], user=manager, reason=""))


# --- the storage --------------------------------------------------------------------------------


def plant(path: Path, text: str = MARKER) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "file").write_text(text)
    return path


def files_with_marker(storage: Path) -> list[str]:
    return sorted(
        str(path.relative_to(storage))
        for path in storage.rglob("*")
        if path.is_file() and MARKER.encode() in path.read_bytes() + str(path).encode()
    )


def test_no_folder_of_the_storage_contains_files_of_erased_rows(
    made: World, manager: User, lab: Lab, storage: Path
) -> None:
    going = [made.case.pk, made.slide.pk, made.canvas.pk, made.video.pk, made.mosaic.pk]
    going += [made.followup.pk, made.roi.pk, made.slide.case.uploads.all()[0].pk]
    stays = uuid.uuid4()
    stored = []
    for place in (item for item in Place if item.erased == Erased.BY_ID):
        for pk in going:
            plant(place.path(pk))
            plant(place.path(pk, uuid.uuid4()))
            plant(place.path(lab.pk, pk))
        if place is not Place.JOBS:
            stored.append(plant(place.path(stays), "of another"))
    plant(Place.TRAININGS.path(lab.pk, uuid.uuid4()))
    plant(Place.INDEXES.path(made.encoder.pk) / str(lab.pk) / "1")
    folders = {path.partition("/")[0] for path in files_with_marker(storage)}
    assert folders == {"derived", "cache", "incoming", "indexes", "scratch"}
    erasure = erase(made.case, manager)
    assert files_with_marker(storage) == []
    assert erasure.certificate["verified"]["is_gone"]
    assert all((path / "file").exists() for path in stored)


def test_files_without_a_row_are_erased_except_those_of_running_jobs(
    made: World, manager: User, lab: Lab, storage: Path
) -> None:
    with archive_storage.Incoming() as at_work:
        at_work.write(b"of another request")
        at_work.seal()
        left = archive_storage.incoming_path(str(uuid.uuid4()))
        left.write_text(MARKER)
        running = Job.objects.create(lab=lab, kind="roi_embed", state=JobState.RUNNING)
        ended = Job.objects.create(lab=lab, kind="roi_embed", state=JobState.FAILED)
        stored = plant(Place.JOBS.path(running.pk, "abc"), "at work")
        plant(Place.JOBS.path(ended.pk, "abc"))
        plant(Place.JOBS.path(uuid.uuid4(), "abc"))
        erase(made.case, manager)
        assert files_with_marker(storage) == []
        assert at_work.path.exists() and (stored / "file").exists()


def test_a_partly_fetched_copy_is_deleted_with_its_original(tmp_path: Path) -> None:
    copies = Fetched(tmp_path, 2**30)
    part = tmp_path / "assets" / "name.part"
    part.parent.mkdir()
    part.write_text(MARKER)
    copies.drop("assets/name")
    assert not part.exists()


def test_an_item_deleted_for_good_is_deleted_with_its_unfinished_work(
    made: World, manager: User, storage: Path
) -> None:
    plant(Place.ROI_IMPORTS.path(made.canvas.pk, uuid.uuid4()))
    trash_purge(entry=item_delete(item=made.slide, user=manager), user=manager)
    assert files_with_marker(storage) == []


def crate(lab: Lab, content: bytes, *, received: int | None = None) -> Upload:
    size = len(content)
    upload = Upload.objects.create(
        lab=lab,
        filename="crate.zip",
        size_bytes=size,
        received_bytes=size if received is None else received,
        state=UploadState.REFUSED if received is None else UploadState.RECEIVING,
    )
    archive_storage.incoming_path(str(upload.pk)).write_bytes(content)
    return upload


def test_crates_that_may_contain_the_case_are_erased_and_others_stay(
    made: World, manager: User, lab: Lab, storage: Path, tmp_path: Path, other_lab: Lab
) -> None:
    other = case_create(lab=lab, user=manager, accession="STAYS-1", patient_key="another")
    again = case_create(lab=lab, user=manager, accession="AGAIN-1", patient_key="p1")
    contents = {}
    for name, case in (("same", made.case), ("other", other), ("patient", again)):
        case_export_to(user=manager, case=case, out=tmp_path / f"{name}.zip", as_folder=False)
        contents[name] = (tmp_path / f"{name}.zip").read_bytes()
    of_another = crate(lab, contents["other"])
    other_crate = crate(other_lab, contents["same"])
    going = [crate(lab, contents["same"]), crate(lab, contents["patient"])]
    going += [crate(lab, contents["other"][:-30]), crate(lab, contents["same"], received=10)]
    erase(made.case, manager)
    left = {path.name for path in Place.INCOMING.entries()}
    assert left == {str(of_another.pk), str(other_crate.pk)}
    assert not Upload.objects.filter(pk__in=[job.pk for job in going]).exists()


def test_undeclared_places_are_named_in_the_certificate(
    made: World, manager: User, storage: Path
) -> None:
    assert unknown_entries() == []
    (storage / "notes").mkdir()
    plant(storage / "scratch" / "by-hand")
    erasure = erase(made.case, manager)
    remains = erasure.certificate["remains"]
    assert remains["not_searched"] == ["notes", "scratch/by-hand"]


WHERE_THE_ROOT_IS_USED = {
    "portal/archive/storage/files.py",
    "portal/operations/doctor/machine.py",
    "portal/operations/health.py",
    "portal/operations/management/commands/demo.py",
    "portal/operations/metrics.py",
    "portal/config/settings/base.py",
    "portal/config/settings/test.py",
    "portal/core/disk.py",
    "portal/core/storage_layout.py",
    "portal/backups/stored_files.py",
    "portal/backups/services/moving.py",
    "portal/backups/services/restore.py",
}
"""They measure the volume, resolve paths of rows, or go through all that is there."""


def test_no_other_module_makes_paths_from_the_root_of_the_storage() -> None:
    names = set()
    for path in ROOT.glob("portal/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.Attribute | ast.Name) and (
                getattr(node, "attr", getattr(node, "id", "")) == "TESSERA_STORAGE"
            )
            imported = (
                isinstance(node, ast.ImportFrom)
                and node.module == storage_layout.__name__
                and any(name.name == "root" for name in node.names)
            )
            if named or imported:
                names.add(str(path.relative_to(ROOT)))
    assert names == WHERE_THE_ROOT_IS_USED


# --- the database -------------------------------------------------------------------------------


def texts_of(model: type[models.Model]) -> dict[str, Any]:
    """A marker for each column of the model that holds a text, JSON or bytes."""
    columns: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if field.primary_key or field.choices or field.remote_field or field.unique:
            continue
        if isinstance(field, models.BinaryField):
            columns[field.name] = MARKER.encode()
        elif isinstance(field, models.JSONField):
            columns[field.name] = {"of": MARKER}
        elif isinstance(field, models.CharField | models.TextField) and (
            field.max_length is None or field.max_length >= len(MARKER)
        ):
            columns[field.name] = MARKER
    return columns


def filled(model: type[models.Model], known: dict[type[models.Model], Any]) -> models.Model:
    """A row that refers to rows of the case, with a marker in each text."""
    values = texts_of(model)
    for field in model._meta.concrete_fields:
        if field.name in values or field.has_default() or isinstance(field, models.AutoField):
            continue
        if field.remote_field is not None:
            values[field.name] = known.get(field.remote_field.model)
        elif field.choices:
            values[field.name] = field.choices[0][0]
        elif isinstance(field, models.UUIDField):
            values[field.name] = uuid.uuid4()
        elif isinstance(field, models.DateTimeField):
            values[field.name] = timezone.now()
        elif isinstance(field, models.DateField):
            values[field.name] = date(2030, 1, 1)
        elif isinstance(field, models.BooleanField):
            values[field.name] = False
        elif isinstance(field, models.IntegerField | models.FloatField):
            values[field.name] = 1
        elif isinstance(field, models.CharField):
            values[field.name] = MARKER[: field.max_length or None]
    return model._base_manager.create(**values)


def rows_of_case(made: World, manager: User, lab: Lab) -> dict[type[models.Model], Any]:
    """A row of every model that hangs on the case, and what those refer to."""
    known: dict[type[models.Model], Any] = {
        Lab: lab,
        User: manager,
        Encoder: made.encoder,
        Asset: made.slide.asset,
        Study: Study.objects.create(lab=lab, name="S"),
        type(made.label): made.label,
    }
    for model in with_cases():
        canvas = model._base_manager.order_by().first()
        if model is Canvas:  # one that no item has
            canvas = Canvas.objects.create(
                lab=lab, case=made.case, kind="slide", name="b", width_px=9, height_px=9
            )
        known[model] = canvas or filled(model, known)
    return known


def test_every_model_is_deleted_with_a_case_or_has_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [check for check in run_checks() if check.id == "erasure.E001"]
    monkeypatch.delitem(RULES, "jobs.Job")
    (result,) = [check for check in run_checks() if check.id == "erasure.E001"]
    assert "jobs.Job" in result.msg
    tied = {model._meta.label for model in with_cases()}
    assert {"embeddings.Embedding", "review.RoiComment", "archive.Evidence"} <= tied
    assert all(field.model in with_cases() for field in cascading(Case))


def marked_columns() -> Iterator[str]:
    """Columns of any table in which the marker still is, whatever their type."""
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.concrete_fields:
            if isinstance(field, models.BinaryField):
                values = model._base_manager.values_list(field.name, flat=True)
                is_there = any(MARKER.encode() in bytes(value or b"") for value in values)
            else:
                rows = model._base_manager.annotate(t=Cast(field.name, models.TextField()))
                is_there = rows.filter(t__contains=MARKER).exists()
            if is_there:
                yield f"{model._meta.label}.{field.name}"


def test_no_table_contains_texts_of_the_case(
    made: World, manager: User, lab: Lab, other_lab: Lab, storage: Path
) -> None:
    known = rows_of_case(made, manager, lab)
    for model in with_cases():
        row = known[model]
        if texts := texts_of(model):
            model._base_manager.filter(pk=row.pk).update(**texts)
    names = {"slide": str(made.slide.pk)}
    for of in (lab, other_lab):  # with which the case was shared
        job = Job.objects.create(
            lab=of, kind="roi_embed", state="failed", result=names, traceback=MARKER
        )
        Job.objects.filter(pk=job.pk).update(error_message=MARKER, target_name=MARKER)
        Job.objects.create(lab=of, kind="x", state="failed", target_id=made.roi.pk, phase=MARKER)
        event = Event.objects.create(
            name="share.offered", lab_id=of.pk, payload={"by": MARKER, "in": [names]}
        )
        hook = Webhook.objects.create(lab=of, name="h", url="https://h.example", types=["*"])
        delivery = WebhookDelivery.objects.create(
            lab=of,
            webhook=hook,
            event_id=event.pk,
            type="x",
            due_at=timezone.now(),
            body=f'{{"a": "{made.canvas.pk}"}}',
        )
        WebhookAttempt.objects.create(
            delivery=delivery, at=timezone.now(), answer=MARKER, error=MARKER, seconds=1
        )
    IdempotencyRecord.objects.create(
        id="n",
        person_id=manager.pk,
        fingerprint="d",
        status=200,
        headers={"a": MARKER},
        body=MARKER,
    )
    stays = Job.objects.create(lab=lab, kind="x", state="failed", error_message="of another")
    there = {column.rpartition(".")[0] for column in marked_columns()}
    assert {model._meta.label for model in with_cases() if texts_of(model)} <= there
    erase(Case.objects.get(pk=made.case.pk), manager)
    assert list(marked_columns()) == []
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        assert MARKER.encode() not in connection.connection.serialize()
    assert Job.objects.filter(pk=stays.pk).exists()


@pytest.mark.parametrize("word", ['Müller "Grün" 7', "PLAIN-WORD-7"])
def test_a_typed_name_is_found_in_every_spelling(
    made: World, manager: User, lab: Lab, word: str
) -> None:
    case_update(case=made.case, user=manager, accession=word)
    Job.objects.create(lab=lab, kind="x", state="failed", result={"of": [word]})
    Study.objects.create(lab=lab, name="S", note=word)
    Event.objects.create(name="x", lab_id=lab.pk, payload={"of": word})
    erasure = erase(Case.objects.get(pk=made.case.pk), manager)
    assert not Job.objects.filter(kind="x").exists()
    assert not Event.objects.filter(name="x").exists()
    assert erasure.certificate["verified"]["names_left_in"] == ["reader_studies_study.note"]


def test_names_in_json_are_searched_in_every_spelling(made: World, manager: User, lab: Lab) -> None:
    word = 'Müller "Grün" 7'
    case_update(case=made.case, user=manager, accession=word)
    type(made.learning).objects.filter(pk=made.learning.pk).update(result={"of": word})
    erasure = erase(Case.objects.get(pk=made.case.pk), manager)
    assert erasure.certificate["verified"]["names_left_in"] == ["model_training_learning.result"]


# --- kills --------------------------------------------------------------------------------------


class Killed(BaseException):
    """In place of a signal: nothing catches it."""


@pytest.mark.parametrize("at", ["learning_folders_drop", "entries_of", "database_rewrite"])
def test_a_killed_erasure_resumes_and_completes(
    made: World, manager: User, storage: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    plant(archive_storage.derived_folder(made.slide.pk))
    plant(Place.MOSAIC_BUILDS.path(made.video.pk, uuid.uuid4()))
    names = {"rois": [str(made.roi.pk)]}
    Job.objects.create(lab=made.case.lab, kind="x", state="failed", result=names)
    erasure = erasure_begin(lab=made.case.lab, cases=[made.case], user=manager, reason="")

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(erasures, at, killed)
        patch.setattr(archive_storage, "entries_drop", lambda ids: None)
        with suppress(Killed):
            erasure_run(erasure)
    assert not Case.all_objects.filter(pk=made.case.pk).exists()
    erasure = erasure_run(Erasure.objects.get(pk=erasure.pk))
    assert (erasure.state, erasure.inventory) == ("done", {})
    assert files_with_marker(storage) == []
    assert erasure.certificate["rows"]["slide"] == 1
    assert erasure.certificate["rows"]["job"] >= 1
    assert len(erasure.certificate["originals"]) == 2


def test_a_case_that_is_being_erased_is_not_restored(made: World, manager: User) -> None:
    erasure_begin(lab=made.case.lab, cases=[made.case], user=manager, reason="")
    entry = Case.all_objects.get(pk=made.case.pk).trash_entry
    assert entry is not None
    with pytest.raises(ConflictError, match="being erased"):
        trash_restore(entry=entry, user=manager)


def test_the_certificate_lists_every_place_and_table(made: World, manager: User) -> None:
    certificate = erase(made.case, manager).certificate
    assert certificate["places"].keys() == {place.name.lower() for place in Place}
    assert certificate["tables"]["archive.Slide"] == "rows go with the case"
    assert certificate["tables"]["audit.AuditEntry"] == str(TableRule.RECORD)
    assert set(certificate["remains"]) == {"audit_log", "backups", "not_searched"}
    assert rule_of(Slide) is None
