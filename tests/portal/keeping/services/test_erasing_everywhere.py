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

from portal.archive import storage as archive_storage
from portal.archive.models import Asset, Canvas, Case, Slide, Upload, UploadState
from portal.archive.services import bin_purge, bin_restore, case_create, case_update, item_delete
from portal.archive.storage.fetched import Fetched
from portal.core import storage_layout
from portal.core.errors import ConflictError
from portal.core.models import Event, KeptAnswer
from portal.core.storage_layout import Erased, Place, unknown_entries
from portal.exchange.services import case_export_to
from portal.hooks.models import Webhook, WebhookAttempt, WebhookDelivery
from portal.jobs.models import Job, JobState
from portal.keeping.models import Erasure
from portal.keeping.services import erasure_begin, erasure_run
from portal.keeping.services.erasing import acts
from portal.keeping.services.erasing.tables import TableRule, cascading, rule_of, with_cases
from portal.labs.models import Lab, User
from portal.reading.models import Study
from portal.retrieval.models import Encoder
from tests import world
from tests.world import World

pytestmark = pytest.mark.django_db(transaction=True)
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


def test_no_place_of_the_storage_keeps_what_is_named_by_a_row_that_goes(
    made: World, manager: User, lab: Lab, storage: Path
) -> None:
    going = [made.case.pk, made.slide.pk, made.canvas.pk, made.video.pk, made.mosaic.pk]
    going += [made.followup.pk, made.roi.pk, made.slide.case.uploads.all()[0].pk]
    stays = uuid.uuid4()
    kept = []
    for place in (one for one in Place if one.erased == Erased.BY_ID):
        for pk in going:
            plant(place.path(pk))
            plant(place.path(pk, uuid.uuid4()))
            plant(place.path(lab.pk, pk))
        if place is not Place.JOBS:
            kept.append(plant(place.path(stays), "of another"))
    plant(Place.TRAININGS.path(lab.pk, uuid.uuid4()))
    plant(Place.INDEXES.path(made.encoder.pk) / str(lab.pk) / "1")
    found = {path.partition("/")[0] for path in files_with_marker(storage)}
    assert found == {"derived", "cache", "incoming", "indexes", "scratch"}
    erasure = erase(made.case, manager)
    assert files_with_marker(storage) == []
    assert erasure.certificate["verified"]["is_gone"]
    assert all((path / "file").exists() for path in kept)


def test_what_a_killed_process_left_without_a_row_goes_and_what_is_at_work_stays(
    made: World, manager: User, lab: Lab, storage: Path
) -> None:
    with archive_storage.Incoming() as at_work:
        at_work.write(b"of another request")
        at_work.seal()
        left = archive_storage.incoming_path(str(uuid.uuid4()))
        left.write_text(MARKER)
        running = Job.objects.create(lab=lab, kind="roi_embed", state=JobState.RUNNING)
        ended = Job.objects.create(lab=lab, kind="roi_embed", state=JobState.FAILED)
        kept = plant(Place.JOBS.path(running.pk, "abc"), "at work")
        plant(Place.JOBS.path(ended.pk, "abc"))
        plant(Place.JOBS.path(uuid.uuid4(), "abc"))
        erase(made.case, manager)
        assert files_with_marker(storage) == []
        assert at_work.path.exists() and (kept / "file").exists()


def test_a_copy_that_was_being_fetched_goes_with_its_original(tmp_path: Path) -> None:
    copies = Fetched(tmp_path, 2**30)
    part = tmp_path / "assets" / "name.part"
    part.parent.mkdir()
    part.write_text(MARKER)
    copies.drop("assets/name")
    assert not part.exists()


def test_an_item_deleted_for_good_takes_along_what_is_under_way_on_it(
    made: World, manager: User, storage: Path
) -> None:
    plant(Place.ROI_IMPORTS.path(made.canvas.pk, uuid.uuid4()))
    bin_purge(entry=item_delete(item=made.slide, user=manager), user=manager)
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


def test_crates_that_hold_the_case_or_may_hold_it_go_and_those_of_others_stay(
    made: World, manager: User, lab: Lab, storage: Path, tmp_path: Path, other_lab: Lab
) -> None:
    other = case_create(lab=lab, user=manager, accession="STAYS-1", patient_key="another")
    again = case_create(lab=lab, user=manager, accession="AGAIN-1", patient_key="p1")
    contents = {}
    for name, case in (("same", made.case), ("other", other), ("patient", again)):
        case_export_to(user=manager, case=case, out=tmp_path / f"{name}.zip", as_folder=False)
        contents[name] = (tmp_path / f"{name}.zip").read_bytes()
    of_another = crate(lab, contents["other"])
    elsewhere = crate(other_lab, contents["same"])
    going = [crate(lab, contents["same"]), crate(lab, contents["patient"])]
    going += [crate(lab, contents["other"][:-30]), crate(lab, contents["same"], received=10)]
    erase(made.case, manager)
    left = {path.name for path in Place.INCOMING.entries()}
    assert left == {str(of_another.pk), str(elsewhere.pk)}
    assert not Upload.objects.filter(pk__in=[one.pk for one in going]).exists()


def test_what_the_portal_writes_is_in_declared_places_and_what_is_not_is_named(
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
    "portal/config/doctor/machine.py",
    "portal/config/health.py",
    "portal/config/management/commands/demo.py",
    "portal/config/metrics.py",
    "portal/config/settings/base.py",
    "portal/config/settings/test.py",
    "portal/core/disk.py",
    "portal/core/storage_layout.py",
    "portal/keeping/rooms.py",
    "portal/keeping/services/moving.py",
    "portal/keeping/services/restore.py",
}
"""They measure the volume, resolve paths of rows, or go through all that is there."""


def test_no_other_module_makes_paths_from_the_root_of_the_storage() -> None:
    found = set()
    for path in ROOT.glob("portal/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.Attribute | ast.Name) and (
                getattr(node, "attr", getattr(node, "id", "")) == "TESSERA_STORAGE"
            )
            imported = (
                isinstance(node, ast.ImportFrom)
                and node.module == storage_layout.__name__
                and any(one.name == "root" for one in node.names)
            )
            if named or imported:
                found.add(str(path.relative_to(ROOT)))
    assert found == WHERE_THE_ROOT_IS_USED


# --- the database -------------------------------------------------------------------------------


def texts_of(model: type[models.Model]) -> dict[str, Any]:
    """A marker for each column of the model that holds a text, JSON or bytes."""
    found: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if field.primary_key or field.choices or field.remote_field or field.unique:
            continue
        if isinstance(field, models.BinaryField):
            found[field.name] = MARKER.encode()
        elif isinstance(field, models.JSONField):
            found[field.name] = {"of": MARKER}
        elif isinstance(field, models.CharField | models.TextField) and (
            field.max_length is None or field.max_length >= len(MARKER)
        ):
            found[field.name] = MARKER
    return found


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
        found = model._base_manager.order_by().first()
        if model is Canvas:  # one that no item has
            found = Canvas.objects.create(
                lab=lab, case=made.case, kind="slide", name="b", width_px=9, height_px=9
            )
        known[model] = found or filled(model, known)
    return known


def test_every_model_is_tied_to_a_case_or_has_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [one for one in run_checks() if one.id == "keeping.E001"]
    monkeypatch.delitem(acts.rule_of.__globals__["RULES"], "jobs.Job")
    (found,) = [one for one in run_checks() if one.id == "keeping.E001"]
    assert "jobs.Job" in found.msg
    tied = {model._meta.label for model in with_cases()}
    assert {"retrieval.Embedding", "review.RoiComment", "archive.Evidence"} <= tied
    assert all(field.model in with_cases() for field in cascading(Case))


def marked_columns() -> Iterator[str]:
    """Columns of any table in which the marker still is, whatever their type."""
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.concrete_fields:
            if isinstance(field, models.BinaryField):
                values = model._base_manager.values_list(field.name, flat=True)
                is_there = any(MARKER.encode() in bytes(one or b"") for one in values)
            else:
                rows = model._base_manager.annotate(t=Cast(field.name, models.TextField()))
                is_there = rows.filter(t__contains=MARKER).exists()
            if is_there:
                yield f"{model._meta.label}.{field.name}"


def test_no_table_keeps_a_marker_that_hangs_on_the_case_or_names_it(
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
    KeptAnswer.objects.create(
        name="n", person_id=manager.pk, digest="d", status=200, headers={"a": MARKER}, body=MARKER
    )
    stays = Job.objects.create(lab=lab, kind="x", state="failed", error_message="of another")
    there = {one.rpartition(".")[0] for one in marked_columns()}
    assert {model._meta.label for model in with_cases() if texts_of(model)} <= there
    erase(Case.objects.get(pk=made.case.pk), manager)
    assert list(marked_columns()) == []
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        assert MARKER.encode() not in connection.connection.serialize()
    assert Job.objects.filter(pk=stays.pk).exists()


@pytest.mark.parametrize("word", ['Müller "Grün" 7', "PLAIN-WORD-7"])
def test_a_name_that_people_typed_elsewhere_is_found_however_it_is_written_down(
    made: World, manager: User, lab: Lab, word: str
) -> None:
    case_update(case=made.case, user=manager, accession=word)
    Job.objects.create(lab=lab, kind="x", state="failed", result={"of": [word]})
    Study.objects.create(lab=lab, name="S", note=word)
    Event.objects.create(name="x", lab_id=lab.pk, payload={"of": word})
    erasure = erase(Case.objects.get(pk=made.case.pk), manager)
    assert not Job.objects.filter(kind="x").exists()
    assert not Event.objects.filter(name="x").exists()
    assert erasure.certificate["verified"]["names_left_in"] == ["reading_study.note"]


def test_names_within_json_are_looked_for_in_each_form_they_may_have(
    made: World, manager: User, lab: Lab
) -> None:
    word = 'Müller "Grün" 7'
    case_update(case=made.case, user=manager, accession=word)
    type(made.learning).objects.filter(pk=made.learning.pk).update(result={"of": word})
    erasure = erase(Case.objects.get(pk=made.case.pk), manager)
    assert erasure.certificate["verified"]["names_left_in"] == ["retrieval_learning.result"]


# --- kills --------------------------------------------------------------------------------------


class Killed(BaseException):
    """In place of a signal: nothing catches it."""


@pytest.mark.parametrize("at", ["learning_folders_drop", "entries_of", "database_rewrite"])
def test_an_erasure_that_was_killed_half_way_continues_and_leaves_nothing(
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
        patch.setattr(acts, at, killed)
        patch.setattr(archive_storage, "entries_drop", lambda ids: None)
        with suppress(Killed):
            erasure_run(erasure)
    assert not Case.everything.filter(pk=made.case.pk).exists()
    erasure = erasure_run(Erasure.objects.get(pk=erasure.pk))
    assert (erasure.state, erasure.inventory) == ("done", {})
    assert files_with_marker(storage) == []
    assert erasure.certificate["rows"]["slide"] == 1
    assert erasure.certificate["rows"]["job"] >= 1
    assert len(erasure.certificate["originals"]) == 2


def test_what_is_being_erased_is_not_restored(made: World, manager: User) -> None:
    erasure_begin(lab=made.case.lab, cases=[made.case], user=manager, reason="")
    entry = Case.everything.get(pk=made.case.pk).bin_entry
    assert entry is not None
    with pytest.raises(ConflictError, match="being erased"):
        bin_restore(entry=entry, user=manager)


def test_the_certificate_says_what_became_of_each_place_and_table(
    made: World, manager: User
) -> None:
    certificate = erase(made.case, manager).certificate
    assert certificate["places"].keys() == {place.name.lower() for place in Place}
    assert certificate["tables"]["archive.Slide"] == "rows go with the case"
    assert certificate["tables"]["audit.AuditEntry"] == str(TableRule.RECORD)
    assert set(certificate["remains"]) == {"audit_log", "backups", "not_searched"}
    assert rule_of(Slide) is None
