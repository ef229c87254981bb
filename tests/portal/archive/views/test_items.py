"""Pages: slides and videos of a case."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from portal.archive import extensions
from portal.archive.extensions import Slot
from portal.archive.models import Case, Slide, TrashEntry, Upload, Video
from portal.archive.services.trash import trash_purge
from portal.core.registry import Registry
from portal.jobs.services import job_cancel
from portal.labs.models import User
from tests.portal.archive.support import picture, run_job, text_of

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_a_preparing_card_shows_its_job_and_polls(page: Client, case: Case, receive: Any) -> None:
    received = receive(case, picture(), "a.png")
    body = text_of(page.get(f"/cases/{case.pk}/"))
    assert f'id="job-{received.job.pk}"' in body
    assert 'hx-trigger="job-ended' in body
    run_job(received.job)
    card = text_of(page.get(f"/items/slide/{received.item.pk}/"))
    assert 'data-item-state="ready"' in card
    assert "hx-get" not in card


def test_a_failed_card_shows_the_reason_and_can_be_tried_again(
    page: Client, case: Case, receive: Any, annotator: User
) -> None:
    received = receive(case, picture(), "a.png")
    job_cancel(job=received.job, user=annotator)
    body = text_of(page.get(f"/cases/{case.pk}/"))
    assert "Cancelled." in body
    assert "Try again" in body
    page.post(f"/items/slide/{received.item.pk}/retry/")
    assert 'data-item-state="preparing"' in text_of(page.get(f"/cases/{case.pk}/"))


def test_a_card_is_deleted_with_its_bytes_once_it_is_purged(
    page: Client, still: Slide, storage: Path, django_capture_on_commit_callbacks: Any
) -> None:
    page.post(f"/items/slide/{still.pk}/delete/")
    assert not Slide.objects.exists()
    with django_capture_on_commit_callbacks(execute=True):
        trash_purge(entry=TrashEntry.objects.get(), user=None)
    assert not Upload.objects.exists()
    left = [path.relative_to(storage) for path in storage.rglob("*") if path.is_file()]
    assert [path.parts[0] for path in left] == ["orphans"]


def test_an_item_opens_in_the_viewer(page: Client, video: Video) -> None:
    assert page.get(f"/videos/{video.pk}/").headers["Location"] == f"/canvases/{video.canvas_id}/"


def test_other_apps_add_sections_and_actions(
    page: Client, video: Video, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: Registry[Slot, Any] = Registry(
        {
            Slot.CASE_SECTION: (lambda request, case: "<b>section</b>",),
            Slot.VIDEO_ACTION: (lambda request, video: "<i>action</i>",),
        }
    )
    monkeypatch.setattr(extensions, "PAGE_PARTS", parts)
    body = text_of(page.get(f"/cases/{video.case_id}/"))
    assert "<b>section</b>" in body
    assert "<i>action</i>" in body


def test_a_card_shows_that_the_pixel_size_is_unknown(
    page: Client, case: Case, still: Slide
) -> None:
    assert "pixel size unknown" in text_of(page.get(f"/cases/{case.pk}/"))
    type(still.canvas).objects.update(mpp_x=0.25, mpp_y=0.25)
    body = text_of(page.get(f"/cases/{case.pk}/"))
    assert "pixel size unknown" not in body
    assert "0.250 µm/px" in body


def test_the_card_of_a_ready_item_updates_the_modality_of_its_case(
    page: Client, still: Slide
) -> None:
    Case.objects.filter(pk=still.case_id).update(modality="histology")
    text = text_of(page.get(f"/items/slide/{still.pk}/"))
    modality = text.partition('id="case-modality" hx-swap-oob="innerHTML"')[2]
    assert re.search(r'value="histology"\s+aria-pressed="true"', modality)
