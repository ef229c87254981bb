"""The page Learning: an encoder is started, watched and cancelled, and a result is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from portal.jobs.models import Job, JobState
from portal.labs.models import Membership, Role
from portal.model_training.models import Learning
from portal.model_training.selectors.results import TrainingSummary
from tests.live_servers import DATABASE
from tests.portal.embedded_rois import World
from tests.portal.model_training.archives import filled, learned

pytestmark = pytest.mark.browser
WIDE = {"width": 1366, "height": 900}
DETAILS = "details:has-text('Retrain the search model')"


@pytest.fixture(autouse=True)
def _manager(annotator: Any, lab: Any, transactional_db: None) -> None:
    with DATABASE:
        Membership.objects.filter(user=annotator, lab=lab).update(role=Role.MANAGER)


def is_within(page: Any) -> bool:
    """Nothing is wider than the window."""
    fits: bool = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    return fits


def test_training_of_an_encoder_is_started_and_cancelled(
    open_page: Callable[[str], Any], lab: Any, annotator: Any, storage: Any
) -> None:
    with DATABASE:
        filled(World(lab, annotator, storage))
    page = open_page(f"/lab/learning/?lab={lab.slug}")
    expect(page.get_by_role("button", name="Adjust the search model")).to_be_visible()
    page.locator(f"{DETAILS} > summary").click()
    expect(page.get_by_label("steps")).to_be_hidden()
    page.locator(f"{DETAILS} details > summary").click()
    page.get_by_label("steps").fill("40")
    page.get_by_label("Hours").fill("0.5")
    assert is_within(page)
    page.get_by_role("button", name="Retrain the search model").click()
    page.wait_for_url("**/lab/learning/*-*/")
    with DATABASE:
        learning = Learning.objects.get()
        assert (learning.method, learning.steps, learning.hours) == ("encoder", 40, 0.5)
        running = {"state": JobState.RUNNING, "phase": "training, loss 3.21, held out 3.4"}
        running |= {"progress_done": 12, "progress_total": 40}
        Job.objects.filter(pk=learning.job_id).update(**running)
    expect(page.get_by_text("Training, loss 3.21, held out 3.4")).to_be_visible()
    expect(page.get_by_text("12 of 40")).to_be_visible()
    with DATABASE:
        Job.objects.filter(pk=learning.job_id).update(state=JobState.QUEUED)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled").first).to_be_visible()


def test_the_result_of_an_encoder_training_is_shown(
    open_page: Callable[[str], Any],
    lab: Any,
    annotator: Any,
    storage: Any,
) -> None:
    world = World(lab, annotator, storage)
    page = open_page("/lab/learning/")  # makes the person a manager
    with DATABASE:
        filled(world)
        learning = learned(world, annotator)
        loss = 4 * np.exp(-np.arange(120) / 40) + 0.2 * np.cos(np.arange(120))
        summary = TrainingSummary(
            regions=40,
            patients=10,
            device="CPU (cpu)",
            steps=600,
            loss=tuple(loss.tolist()),
            held_out=tuple((loss + 0.4).tolist()),
            stopped_early=False,
        )
        Learning.objects.filter(pk=learning.pk).update(
            method="encoder", steps=600, hours=8, training=summary.as_json()
        )
    page.goto(page.url.split("/lab/")[0] + f"/lab/learning/{learning.pk}/")
    page.locator("details:has(.learned__losses) > summary").click()
    lines = page.locator(".learned__losses polyline")
    assert lines.count() == 2
    assert all(lines.nth(at).bounding_box()["height"] > 60 for at in range(2))
    assert is_within(page)
    page.locator(".learned__losses").scroll_into_view_if_needed()
