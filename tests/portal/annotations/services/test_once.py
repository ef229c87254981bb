"""A write that its client sends again is carried out once, whatever broke on the way."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from portal.annotations.models import Label, Roi, RoiAction, RoiRevision
from portal.annotations.services import (
    Once,
    RoiStep,
    roi_create,
    roi_delete,
    roi_restore,
    roi_update,
    rois_change,
    version_changes,
)
from portal.annotations.services.rois import RoiSaved
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, KeyReusedError, StaleVersionError
from portal.core.models import Event
from portal.labs.models import User
from tests.portal.annotations.support import box


def once(user: User, request: str = "r", key: str = "key") -> Once:
    return Once.of(user, key=key, request=request)


def test_a_change_sent_again_makes_no_second_version_and_answers_what_is_now(
    roi: Roi, annotator: User, reviewer: User
) -> None:
    def rename(to: str) -> RoiSaved:
        mine = Roi.objects.get(pk=roi.pk)
        return roi_update(
            roi=mine,
            user=annotator,
            expected_version=1,
            changes={"name": to},
            once=once(annotator, to),
        )

    assert rename("mine").roi.version == 2
    roi.refresh_from_db()
    roi_update(roi=roi, user=reviewer, expected_version=2, changes={"name": "theirs"})
    again = rename("mine")
    assert (again.changed, again.roi.version, again.roi.name) == (False, 3, "theirs")
    with pytest.raises(KeyReusedError):
        rename("other")
    assert roi.revisions.count() == 3


def test_the_key_is_of_its_user(roi: Roi, annotator: User, reviewer: User) -> None:
    changes: Any = {"name": "mine"}
    key = once(annotator)
    roi_update(roi=roi, user=annotator, expected_version=1, changes=changes, once=key)
    with pytest.raises(StaleVersionError):
        roi_update(roi=roi, user=reviewer, expected_version=1, changes=changes, once=once(reviewer))


def test_a_key_with_a_fresh_version_and_another_request_is_refused(
    roi: Roi, annotator: User
) -> None:
    for version, name in ((1, "a"), (2, "b")):
        with suppress(KeyReusedError):
            roi_update(
                roi=roi,
                user=annotator,
                expected_version=version,
                changes={"name": name},
                once=once(annotator, name),
            )
    assert list(roi.revisions.values_list("name", flat=True)) == ["", "a"]


def test_drawing_deleting_and_restoring_are_done_once(canvas: Canvas, annotator: User) -> None:
    for _ in range(2):
        saved = roi_create(
            canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), once=once(annotator, "d", "d")
        )
    roi = saved.roi
    for _ in range(2):
        roi_delete(roi=roi, user=annotator, expected_version=1, once=once(annotator, "x", "x"))
    for _ in range(2):
        roi_restore(roi=roi, user=annotator, expected_version=2, once=once(annotator, "y", "y"))
    assert Roi.objects.count() == 1
    assert list(roi.revisions.values_list("action", flat=True)) == ["create", "delete", "restore"]
    with pytest.raises(KeyReusedError):
        roi_create(
            canvas=canvas, user=annotator, geometry=box(1, 1, 9, 8), once=once(annotator, "e", "d")
        )


def test_any_version_is_brought_back_as_one_new_one(
    roi: Roi, annotator: User, label: Label
) -> None:
    roi_update(
        roi=roi,
        user=annotator,
        expected_version=1,
        changes={"name": "b", "label": label, "geometry": box(1, 1, 9, 9)},
    )
    first = roi.revisions.get(version=1)
    roi_restore(roi=roi, user=annotator, expected_version=2, changes=version_changes(roi, 1))
    assert (roi.version, roi.name, roi.label, roi.geometry) == (3, "", None, first.geometry)
    roi_delete(roi=roi, user=annotator, expected_version=3)
    roi_restore(roi=roi, user=annotator, expected_version=4, changes=version_changes(roi, 2))
    assert (roi.version, roi.name, roi.deleted_at) == (5, "b", None)
    actions = list(roi.revisions.values_list("action", flat=True))
    assert actions == ["create", "update", "update", "delete", "restore"]


class CrashError(Exception):
    """The process is gone."""


class Histories(RuleBasedStateMachine):
    """People who draw, change, delete, restore and undo; any statement may be the last one."""

    canvas: Canvas
    user: User

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.stack.enter_context(transaction.atomic())
        self.accepted: dict[uuid.UUID, list[str]] = {}
        self.count = 0

    def teardown(self) -> None:
        try:
            self.check()
        finally:
            transaction.set_rollback(True)
            self.stack.close()

    def sent(self, write: Callable[[Once], RoiSaved | Roi | None], crash_at: int) -> None:
        """A client's write: sent until it is answered, under one key."""
        self.count += 1
        key = Once.of(self.user, key=f"k{self.count}", request=f"r{self.count}")
        with suppress(CrashError, ConflictError, StaleVersionError):
            with transaction.atomic(), connection.execute_wrapper(crashing(crash_at)):
                write(key)
            if crash_at == 0:
                raise CrashError  # it was done, but the answer is lost
        try:
            saved = write(key)
        except (StaleVersionError, ConflictError):
            return
        if saved is None:
            changed = RoiRevision.objects.filter(client_key=key.key).values_list("roi", flat=True)
            assert len(changed) in (0, Roi.objects.live().filter(pk__in=self.accepted).count())
            written = list(changed)
        else:
            roi = saved.roi if isinstance(saved, RoiSaved) else saved
            written = [roi.pk] if roi.revisions.filter(client_key=key.key).exists() else []
        for pk in written:
            self.accepted.setdefault(pk, []).append(key.key)

    def some(self, which: int) -> Roi:
        return Roi.objects.get(pk=sorted(self.accepted)[which % len(self.accepted)])

    @rule(crash_at=st.integers(0, 8))
    def draw(self, crash_at: int) -> None:
        self.sent(
            lambda key: roi_create(
                canvas=self.canvas, user=self.user, geometry=box(1, 1, 50, 50), once=key
            ),
            crash_at,
        )

    @rule(
        which=st.integers(0, 3),
        what=st.sampled_from(["rename", "reshape", "delete", "restore", "undo"]),
        behind=st.sampled_from([0, 0, 0, 1]),
        crash_at=st.integers(0, 8),
    )
    def write(self, which: int, what: str, behind: int, crash_at: int) -> None:
        if not self.accepted:
            return
        pk = self.some(which).pk
        # read before another's change in between: `behind` saves that come too late
        version = max(self.some(which).version - behind, 1)
        size, name = 60 + self.count, f"name {self.count}"

        def act(key: Once) -> RoiSaved | Roi:
            roi = Roi.objects.get(pk=pk)
            common: dict[str, Any] = {
                "roi": roi,
                "user": self.user,
                "expected_version": version,
                "once": key,
            }
            if what == "rename":
                return roi_update(**common, changes={"name": name})
            if what == "reshape":
                return roi_update(**common, changes={"geometry": box(1, 1, size, size)})
            if what == "delete":
                return roi_delete(**common)
            changes = version_changes(roi, max(version - 1, 1)) if what == "undo" else None
            return roi_restore(**common, changes=changes)

        self.sent(act, crash_at)

    @rule(behind=st.sampled_from([0, 0, 1]), crash_at=st.integers(0, 12))
    def write_many(self, behind: int, crash_at: int) -> None:
        """All that are live as one step: each of them is changed, or none."""
        rois = list(Roi.objects.live().filter(pk__in=self.accepted).order_by("pk"))
        if not rois:
            return
        name = f"many {self.count}"
        steps = [
            RoiStep(RoiAction.UPDATE, roi.pk, max(roi.version - behind, 1), {"name": name})
            for roi in rois
        ]
        self.sent(
            lambda key: rois_change(canvas=self.canvas, user=self.user, steps=steps, once=key),
            crash_at,
        )

    def check(self) -> None:
        """Every accepted edit is in the history exactly once."""
        assert set(Roi.objects.values_list("pk", flat=True)) == set(self.accepted)
        for pk, keys in self.accepted.items():
            roi = Roi.objects.get(pk=pk)
            history = list(roi.revisions.values_list("version", "client_key"))
            assert history == list(enumerate(keys, start=1))
            assert roi.version == len(keys)
            last = roi.revisions.get(version=roi.version)
            assert (last.name, last.geometry) == (roi.name, roi.geometry)
            assert (last.action == "delete") == (roi.deleted_at is not None)
            assert Event.objects.filter(payload__roi_id=str(pk)).count() == len(keys)


def crashing(at: int) -> Callable[..., Any]:
    """A wrapper of statements: the ``at``-th ends everything, an even one after it was done."""
    seen = 0

    def run(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal seen
        if "SAVEPOINT" in sql:
            return execute(sql, params, many, context)
        seen += 1
        if seen == at and at % 2:
            raise CrashError
        result = execute(sql, params, many, context)
        if seen == at:
            raise CrashError
        return result

    return run


def histories(canvas: Canvas, user: User, examples: int, *, always_same: bool) -> None:
    kind = type("HistoriesHere", (Histories,), {"canvas": canvas, "user": user})
    run_state_machine_as_test(
        kind,
        settings=settings(
            max_examples=examples,
            stateful_step_count=14,
            deadline=None,
            derandomize=always_same,
            phases=[Phase.generate],  # shrinking what writes to a database takes minutes
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_any_edits_undos_races_and_crashes_end_with_each_accepted_edit_once(
    canvas: Canvas, annotator: User
) -> None:
    histories(canvas, annotator, 8, always_same=True)


@pytest.mark.slow
@pytest.mark.endurance
def test_so_do_hundreds_of_histories_that_nobody_saw_before(
    canvas: Canvas, annotator: User
) -> None:
    histories(canvas, annotator, 200, always_same=False)
