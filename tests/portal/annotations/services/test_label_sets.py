"""Label tree, versions, merging and retiring; the history of annotations is not rewritten."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.db.utils import IntegrityError

from portal.annotations.models import Label, Roi, RoiAction, RoiRevision
from portal.annotations.selectors.labels import label_tree, label_versions
from portal.annotations.services.bulk import RoiStep, rois_change
from portal.annotations.services.labels import (
    label_create,
    label_set_publish,
    label_update,
    labels_order,
)
from portal.annotations.services.merges import label_merge, label_merge_preview, label_merge_undo
from portal.annotations.services.rois import roi_create, roi_delete, roi_update
from portal.archive.models import Canvas
from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError
from portal.core.models import Event
from portal.labs.models import Lab, User
from tests.portal.annotations.support import box


@pytest.fixture
def gland(lab: Lab, manager: User, label: Label) -> Label:
    return label_create(lab=lab, user=manager, name="Gland")


def tree(lab: Lab) -> list[tuple[str, int]]:
    rows = label_tree(Label.objects.filter(lab=lab).order_by("position", "name"))
    return [(row.label.name, row.depth) for row in rows]


def order_of(lab: Lab, **parents: Label) -> list[tuple[Any, Any]]:
    labels = Label.objects.filter(lab=lab, retired_at=None).order_by("-position")
    return [
        (label.pk, parents[label.name].pk if label.name in parents else None) for label in labels
    ]


def test_labels_are_put_into_an_order_and_below_each_other(
    lab: Lab, manager: User, label: Label, gland: Label
) -> None:
    labels_order(lab=lab, user=manager, order=order_of(lab, Gland=label))
    rows = tree(lab)
    assert rows[0] == ("Artifact", 0)
    assert rows[-2:] == [("Tumor", 0), ("Gland", 1)]


def test_an_incomplete_or_circular_order_is_refused(
    lab: Lab, manager: User, reviewer: User, label: Label, gland: Label
) -> None:
    before = tree(lab)
    with pytest.raises(InvalidInputError, match="Reload"):
        labels_order(lab=lab, user=manager, order=order_of(lab)[1:])
    with pytest.raises(InvalidInputError, match="below itself"):
        labels_order(lab=lab, user=manager, order=order_of(lab, Gland=label, Tumor=gland))
    with pytest.raises(ForbiddenError):
        labels_order(lab=lab, user=reviewer, order=order_of(lab))
    assert tree(lab) == before


def test_a_tree_has_four_levels(lab: Lab, manager: User, gland: Label) -> None:
    above = gland
    for name in "BCD":
        above = label_create(lab=lab, user=manager, name=name, parent=above)
    with pytest.raises(InvalidInputError, match=r"parent: .*\b4\b"):
        label_create(lab=lab, user=manager, name="E", parent=above)


def test_a_key_moves_to_the_label_that_takes_it(lab: Lab, manager: User, label: Label) -> None:
    gland = label_create(lab=lab, user=manager, name="Gland")
    assert (label.key, gland.key) == ("1", "9")
    label_update(label=gland, user=manager, changes={"key": "1"})
    label.refresh_from_db()
    assert (label.key, Label.objects.get(name="Gland").key) == ("", "1")
    with pytest.raises(InvalidInputError, match="1 to 9"):
        label_update(label=gland, user=manager, changes={"key": "x"})


def test_the_database_knows_that_case_makes_no_other_name(label: Label) -> None:
    twin = Label(lab=label.lab, label_set=label.label_set, name="TUMOR")
    with pytest.raises(IntegrityError), transaction.atomic():
        twin.save()


def test_renaming_does_not_rewrite_history(
    lab: Lab, canvas: Canvas, annotator: User, manager: User, label: Label
) -> None:
    label_set_publish(lab=lab, user=manager)
    roi = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), label=label).roi
    label_update(label=label, user=manager, changes={"name": "Carcinoma"})
    label_set_publish(lab=lab, user=manager, note="As the guideline says")
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"name": "x"})
    rows = RoiRevision.objects.filter(roi=roi).values_list("label_name", "label_version")
    assert list(rows.order_by("version")) == [("Tumor", 1), ("Carcinoma", 2)]
    first, second = label_versions(manager).order_by("number")
    assert [item.labels[0]["name"] for item in (first, second)] == ["Tumor", "Carcinoma"]


def test_bulk_steps_keep_the_name_too(canvas: Canvas, annotator: User, label: Label) -> None:
    roi = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9)).roi
    step = RoiStep(RoiAction.UPDATE, roi.pk, version=1, changes={"label": label})
    rois_change(canvas=canvas, user=annotator, steps=[step])
    assert RoiRevision.objects.get(roi=roi, version=2).label_name == "Tumor"


def test_a_set_without_changes_is_published_once(lab: Lab, manager: User) -> None:
    assert label_set_publish(lab=lab, user=manager).number == 1
    with pytest.raises(ConflictError, match="version 1"):
        label_set_publish(lab=lab, user=manager)


def test_a_retired_label_is_on_no_new_roi_and_stays_on_old_ones(
    canvas: Canvas, annotator: User, manager: User, label: Label
) -> None:
    roi = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), label=label).roi
    label_update(label=label, user=manager, changes={"retired": True})
    with pytest.raises(InvalidInputError, match="Tumor"):
        roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 8, 8), label=label)
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"name": "x", "label": label})
    assert Roi.objects.get(pk=roi.pk).label == label
    label_create(lab=canvas.lab, user=manager, name="tumor")
    with pytest.raises(ConflictError, match="already"):
        label_update(label=label, user=manager, changes={"retired": False})


@pytest.fixture
def three(canvas: Canvas, annotator: User, label: Label) -> list[Roi]:
    """Two live regions, one of them locked, and one that was deleted."""
    rois = [
        roi_create(canvas=canvas, user=annotator, geometry=box(at, 1, at + 9, 9), label=label).roi
        for at in (1, 20, 40)
    ]
    roi_update(roi=rois[1], user=annotator, expected_version=1, changes={"is_locked": True})
    roi_delete(roi=rois[2], user=annotator, expected_version=1)
    return rois


def test_a_merge_is_shown_first_and_then_done_as_one_step(
    three: list[Roi], manager: User, label: Label, gland: Label
) -> None:
    preview = label_merge_preview(source=label, target=gland, user=manager)
    assert (preview.rois, preview.canvases, preview.cases, preview.locked) == (2, 1, 1, 1)
    assert Roi.all_objects.filter(label=label).count() == 3
    merge = label_merge(source=label, target=gland, user=manager)
    assert not Roi.all_objects.filter(label=label).exists()
    label.refresh_from_db()
    assert (label.retired_at is not None, label.merged_into, label.key) == (True, gland, "")
    last = RoiRevision.objects.filter(roi=three[0]).latest("version")
    assert (last.label_name, last.label_merge, last.author) == ("Gland", merge, manager)
    first = RoiRevision.objects.get(roi=three[0], version=1)
    assert (first.label, first.label_name) == (label, "Tumor")


def test_a_merge_locks_regions_in_the_order_of_their_ids(
    canvas: Canvas, annotator: User, manager: User, label: Label, gland: Label
) -> None:
    for at in range(8):
        roi_create(canvas=canvas, user=annotator, geometry=box(at, 1, at + 9, 9), label=label)
    label_merge(source=label, target=gland, user=manager)
    rows = Event.objects.filter(name="roi.saved", payload__action="update").order_by("pk")
    changed = [event.payload["roi_id"] for event in rows]
    assert len(changed) == 8 and changed == sorted(changed)


def test_undoing_a_merge_leaves_later_changes(
    three: list[Roi], annotator: User, manager: User, label: Label, gland: Label
) -> None:
    merge = label_merge(source=label, target=gland, user=manager)
    roi = Roi.objects.get(pk=three[0].pk)
    roi_update(roi=roi, user=annotator, expected_version=roi.version, changes={"name": "mine"})
    undone = label_merge_undo(merge=merge, user=manager)
    assert (undone.reverted, undone.skipped) == (2, 1)
    labels = [Roi.all_objects.get(pk=row.pk).label for row in three]
    assert labels == [gland, label, label]
    label.refresh_from_db()
    assert label.retired_at is None
    with pytest.raises(ConflictError, match="undone"):
        label_merge_undo(merge=merge, user=manager)


def test_undoing_a_merge_restores_free_keys_and_unmoved_children(
    lab: Lab, manager: User, label: Label, gland: Label
) -> None:
    key = label.key
    first, two = (
        label_create(lab=lab, user=manager, name=name, parent=label) for name in ("Rim", "Core")
    )
    merge = label_merge(source=label, target=gland, user=manager)
    label_update(label=Label.objects.get(pk=two.pk), user=manager, changes={"parent": None})
    label_merge_undo(merge=merge, user=manager)
    label.refresh_from_db()
    assert (key, label.key) == ("1", "1")
    parents = dict(Label.objects.filter(pk__in=[first.pk, two.pk]).values_list("pk", "parent"))
    assert parents == {first.pk: label.pk, two.pk: None}

    again = label_merge(source=label, target=gland, user=manager)
    label_update(label=gland, user=manager, changes={"key": "1"})
    label_merge_undo(merge=again, user=manager)
    label.refresh_from_db()
    assert (label.key, Label.objects.get(pk=gland.pk).key) == ("", "1")


def test_undoing_a_merge_puts_no_label_below_itself(
    lab: Lab, manager: User, label: Label, gland: Label
) -> None:
    above = label_create(lab=lab, user=manager, name="Lesion")
    label_update(label=label, user=manager, changes={"parent": above})
    child = label_create(lab=lab, user=manager, name="Rim", parent=label)
    merge = label_merge(source=label, target=gland, user=manager)
    child.refresh_from_db()
    label_update(label=above, user=manager, changes={"parent": child})
    label_merge_undo(merge=merge, user=manager)
    child.refresh_from_db()
    assert child.parent == gland


def test_a_merge_preserves_reviews_and_refuses_invalid_targets(
    canvas: Canvas,
    annotator: User,
    reviewer: User,
    manager: User,
    label: Label,
    gland: Label,
    foreign_label: Label,
) -> None:
    roi = roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9), label=label).roi
    for version, state in ((1, "submitted"), (2, "accepted")):
        changes: Any = {"review_state": state}
        roi_update(roi=roi, user=reviewer, expected_version=version, changes=changes)
    with pytest.raises(ForbiddenError):
        label_merge(source=label, target=gland, user=reviewer)
    with pytest.raises(InvalidInputError, match="itself"):
        label_merge(source=label, target=label, user=manager)
    with pytest.raises(InvalidInputError, match="label"):
        label_merge(source=label, target=foreign_label, user=manager)
    label_merge(source=label, target=gland, user=manager)
    assert Roi.objects.get(pk=roi.pk).review_state == "accepted"
