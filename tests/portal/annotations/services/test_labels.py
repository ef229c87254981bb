"""Labels of a lab."""

from __future__ import annotations

import pytest

from portal.annotations.models import Label, Roi
from portal.annotations.services.labels import (
    label_create,
    label_delete,
    label_set_ensure,
    label_update,
)
from portal.annotations.services.rois import roi_update
from portal.core.errors import (
    ConflictError,
    InvalidInputError,
)
from portal.labs.models import Lab, User
from tests.portal.annotations.support import names


def test_a_lab_gets_starter_labels_once(lab: Lab) -> None:
    first = label_set_ensure(lab=lab)
    assert label_set_ensure(lab=lab) == first
    assert first.labels.count() == 8


def test_a_manager_creates_and_changes_a_label(lab: Lab, manager: User) -> None:
    label = label_create(lab=lab, user=manager, name=" Gland ")
    assert (label.name, label.position) == ("Gland", 8)
    assert label.color.startswith("#")
    assert label_update(label=label, user=manager, changes={"color": "#ABCDEF"}).color == "#abcdef"


def test_two_labels_of_one_name_are_refused(lab: Lab, manager: User, label: Label) -> None:
    with pytest.raises(ConflictError, match="tumor"):
        label_create(lab=lab, user=manager, name="tumor")
    other = label_create(lab=lab, user=manager, name="Gland")
    with pytest.raises(ConflictError):
        label_update(label=other, user=manager, changes={"name": "TUMOR"})


@pytest.mark.parametrize("name", ["No label", " no  LABEL", "None"])
def test_a_label_is_not_named_as_regions_without_a_label_are(
    lab: Lab, manager: User, label: Label, name: str
) -> None:
    with pytest.raises(InvalidInputError, match="without a label"):
        label_create(lab=lab, user=manager, name=name)
    with pytest.raises(InvalidInputError, match="without a label"):
        label_update(label=label, user=manager, changes={"name": name})


@pytest.mark.parametrize("color", ["red", "#12345", "#1234567", "#12345g", "#123456\n"])
def test_a_colour_is_six_hex_digits(lab: Lab, manager: User, color: str) -> None:
    with pytest.raises(InvalidInputError, match="#rrggbb"):
        label_create(lab=lab, user=manager, name="Gland", color=color)


def test_a_label_in_use_or_in_history_stays(
    roi: Roi, label: Label, annotator: User, manager: User
) -> None:
    roi_update(roi=roi, user=annotator, expected_version=1, changes={"label": label})
    with pytest.raises(ConflictError, match=r"Tumor.*\b1 region has it") as error:
        label_delete(label=label, user=manager)
    assert error.value.details == {"in_use": 1}
    roi_update(roi=roi, user=annotator, expected_version=2, changes={"label": None})
    with pytest.raises(ConflictError, match="history"):
        label_delete(label=label, user=manager)


def test_an_unused_label_is_deleted(label: Label, manager: User) -> None:
    label_delete(label=label, user=manager)
    assert not Label.objects.filter(name="Tumor").exists()
    assert "label.deleted" in names()
