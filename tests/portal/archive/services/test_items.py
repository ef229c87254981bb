"""Slides and videos of a case."""

from __future__ import annotations

from typing import Any

import pytest

from portal.annotations.models import Roi
from portal.archive.models import Case, Slide
from portal.archive.services.items import item_delete, item_retry
from portal.core.errors import (
    ConflictError,
)
from portal.labs.models import User
from tests.portal.archive.support import picture

pytestmark = pytest.mark.django_db


def test_the_same_file_twice_is_one_slide(case: Case, receive: Any) -> None:
    first, second = receive(case, picture(), "a.png"), receive(case, picture(), "b.png")
    assert (first.is_new, second.is_new) == (True, False)
    assert (second.item, second.job) == (first.item, first.job)
    assert second.item.name == "a.png"


def test_sending_a_failed_file_again_tries_again(case: Case, receive: Any) -> None:
    first = receive(case, picture(), "a.png")
    Slide.objects.update(state="failed")
    second = receive(case, picture(), "a.png")
    assert second.item.state == "preparing"
    assert second.job != first.job


def test_a_slide_with_regions_goes_into_the_trash_with_them(still: Slide, annotator: User) -> None:
    Roi.objects.create(
        lab=still.lab, canvas=still.canvas, geometry={}, left=0, top=0, right=1, bottom=1, area_px=1
    )
    entry = item_delete(item=still, user=annotator)
    assert (entry.kind, entry.name, entry.deleted_by) == ("slide", still.name, annotator)
    assert not Roi.objects.exists()
    assert Roi.all_objects.exists()


def test_a_slide_in_preparation_is_not_deleted(case: Case, receive: Any, annotator: User) -> None:
    item = receive(case, picture(), "a.png").item
    with pytest.raises(ConflictError, match="prepared"):
        item_delete(item=item, user=annotator)


def test_only_a_failed_item_can_be_retried(still: Slide, annotator: User) -> None:
    with pytest.raises(ConflictError, match="failed"):
        item_retry(item=still, user=annotator)
