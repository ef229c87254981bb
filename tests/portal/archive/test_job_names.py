"""Jobs do not name what is in the trash, or gone."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.annotations.services.rois import roi_create, roi_delete
from portal.archive.services.items import item_delete
from portal.archive.services.trash import trash_purge, trash_restore
from portal.jobs.models import Job, JobState
from portal.jobs.selectors.jobs import job_list
from portal.jobs.services import job_submit
from portal.labs.models import User
from tests import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def slide(lab: Any, manager: User, storage: Any, tmp_path: Any, monkeypatch: Any) -> Any:
    world.in_process(monkeypatch)
    return world.build(lab, manager, tmp_path).slide


def test_a_job_names_its_slide_only_while_it_is_not_deleted(
    client: Client, slide: Any, manager: User
) -> None:
    Job.objects.filter(target_id=slide.pk).update(
        state=JobState.FAILED, error_code="x", error_message=f"{slide.name} is damaged"
    )
    client.force_login(manager)

    def shown() -> list[bool]:
        job = Job.objects.get(target_id=slide.pk)
        pages = ("/jobs/", f"/jobs/{job.pk}/", "/api/v1/jobs/", f"/api/v1/jobs/{job.pk}/")
        return [slide.name in client.get(path).content.decode() for path in pages]

    assert shown() == [True] * 4
    entry = item_delete(item=slide, user=manager)
    assert shown() == [False] * 4
    trash_restore(entry=entry, user=manager)
    assert shown() == [True] * 4
    trash_purge(entry=item_delete(item=slide, user=manager), user=manager)
    assert shown() == [False] * 4


def test_a_job_does_not_name_a_deleted_region(slide: Any, manager: User) -> None:
    ring = [[1, 1], [90, 1], [90, 90], [1, 1]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    roi = roi_create(canvas=slide.canvas, user=manager, geometry=geometry, name="Named").roi
    Job.objects.filter(target_id=roi.pk).delete()
    job_submit(
        kind="roi_embed",
        args={"roi_id": str(roi.pk)},
        lab=roi.lab,
        user=manager,
        target=roi,
        target_name="Named",
    )
    assert job_list(user=manager).get(target_id=roi.pk).name == "Named"
    roi_delete(roi=roi, user=manager, expected_version=1)
    assert job_list(user=manager).get(target_id=roi.pk).name == ""
