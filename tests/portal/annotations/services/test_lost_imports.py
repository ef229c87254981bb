"""Imports within requests that break off, or whose process is gone, are taken back."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from portal.annotations.models import ImportStage, Roi, RoiImport, RoiRevision
from portal.annotations.services import exchange, imports, reading
from portal.annotations.services.exchange import roi_import
from portal.annotations.services.imports import roi_import_undo
from portal.annotations.services.rois import roi_create, roi_delete
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, ForbiddenError
from portal.labs.models import User
from tests.portal.annotations.services.test_imports import document
from tests.portal.annotations.support import box

pytestmark = pytest.mark.django_db


def broken_off(
    canvas: Canvas,
    user: User,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
    first: str | None = None,
) -> RoiImport:
    """An import of five that ended after two, the first with an id if one is given."""
    monkeypatch.setattr(reading, "CHUNK", 2)
    five = document(5)
    five["features"][0] |= {"id": first} if first else {}
    write = exchange._write

    def dies(run: Any, plans: Any) -> None:
        if Roi.objects.live().count() == 2:
            raise error
        write(run, plans)

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "_write", dies)
        with pytest.raises(error):
            roi_import(canvas=canvas, user=user, document=five)
    return RoiImport.objects.get()


def test_an_import_of_a_dead_process_is_undone(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = broken_off(canvas, annotator, monkeypatch, KeyboardInterrupt)
    assert (row.done, Roi.objects.live().count()) == (2, 2)
    assert imports.imports_lost_undo() == 0  # it may be alive still
    with pytest.raises(ConflictError, match="still running"):
        roi_import_undo(roi_import=row, user=annotator)
    RoiImport.objects.update(updated_at=timezone.now() - 2 * imports.SILENT)
    assert (imports.imports_lost_undo(), imports.imports_lost_undo()) == (1, 0)
    assert not Roi.objects.live().exists()
    report = roi_import(canvas=canvas, user=annotator, document=document(5))
    assert (report.count("restored"), report.count("created")) == (2, 3)


def test_an_import_that_ends_while_the_chore_looks_at_others_stays(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = broken_off(canvas, annotator, monkeypatch, KeyboardInterrupt)
    slow = RoiImport.objects.create(
        lab_id=canvas.lab_id, canvas=canvas, author=annotator, stage=ImportStage.IMPORTING
    )
    RoiImport.objects.update(updated_at=timezone.now() - 2 * imports.SILENT)
    undo = imports.import_undo_unasked

    def undo_refused(row: RoiImport, **more: Any) -> bool:
        other = slow if row.pk == lost.pk else lost
        RoiImport.objects.filter(pk=other.pk).update(stage=ImportStage.IMPORTED)
        return undo(row, **more)

    monkeypatch.setattr(imports, "import_undo_unasked", undo_refused)
    assert imports.imports_lost_undo() == 1
    assert RoiImport.objects.filter(undone_at=None).count() == 1


def test_a_failed_undo_does_not_stop_the_other_imports(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = broken_off(canvas, annotator, monkeypatch, KeyboardInterrupt)
    RoiImport.objects.update(updated_at=timezone.now() - 2 * imports.SILENT)

    def refuses(*_: Any) -> None:
        raise ForbiddenError("not any more")

    with monkeypatch.context() as patch:
        patch.setattr(imports, "_undo", refuses)
        assert imports.imports_lost_undo() == 0  # and raises nothing: the reaper would end
    assert imports.imports_lost_undo() == 0  # not at each of its passes
    RoiImport.objects.update(updated_at=timezone.now() - 2 * imports.SILENT)
    assert imports.imports_lost_undo() == 1
    row.refresh_from_db()
    assert row.stage == ImportStage.IMPORTED and not Roi.objects.live().exists()


def test_a_killed_chore_undoes_the_remaining_imports_next_time(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = broken_off(canvas, annotator, monkeypatch, KeyboardInterrupt)
    RoiImport.objects.update(updated_at=timezone.now() - 2 * imports.SILENT)
    monkeypatch.setattr(imports, "CHUNK", 1)
    take_back, calls = imports._part_undone, []

    def dies(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return take_back(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(imports, "_part_undone", dies)
        with pytest.raises(KeyboardInterrupt):
            imports.imports_lost_undo()
    assert Roi.objects.live().count() == 1
    assert imports.imports_lost_undo() == 1
    assert not Roi.objects.live().exists()
    with pytest.raises(ConflictError, match="undone"):
        imports.import_fields_update(row)  # of a process that was only paused


def test_an_import_of_a_deleted_author_is_undone_without_an_author(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = roi_create(canvas=canvas, user=annotator, geometry=box(9, 9, 80, 80)).roi
    roi_delete(roi=old, user=annotator, expected_version=1)
    row = broken_off(canvas, annotator, monkeypatch, KeyboardInterrupt, first=str(old.pk))
    RoiImport.objects.update(author=None, updated_at=timezone.now() - 2 * imports.SILENT)
    assert imports.imports_lost_undo() == 1
    row.refresh_from_db()
    assert (row.stage, row.undone) == ("imported", {"removed": 2, "reverted": 0, "skipped": 0})
    assert not Roi.objects.live().exists()
    revisions = RoiRevision.objects.filter(action="delete").exclude(version=2, roi=old)
    assert set(revisions.values_list("author", flat=True)) == {None}


def test_the_chore_undoes_a_large_import_in_several_passes(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reaper has jobs to look after."""
    row = broken_off(canvas, annotator, monkeypatch, KeyboardInterrupt)
    RoiImport.objects.update(updated_at=timezone.now() - 2 * imports.SILENT)
    monkeypatch.setattr(imports, "AT_ONCE", 1)
    assert (imports.imports_lost_undo(), Roi.objects.live().count()) == (0, 1)
    assert [imports.imports_lost_undo() for _ in range(2)] == [1, 0]
    row.refresh_from_db()
    assert row.undone == {"removed": 2, "reverted": 0, "skipped": 0}


def test_a_failed_import_writes_nothing(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = broken_off(canvas, annotator, monkeypatch, RuntimeError)
    assert row.undone_at and not Roi.objects.live().exists()
    assert RoiRevision.objects.filter(roi_import=row).count() == 2  # the history tells of it
