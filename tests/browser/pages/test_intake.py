"""The page of intake in a real browser: what was seen in a picture, and what becomes of it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import cv2
import pytest
from django.conf import settings as django_settings
from playwright.sync_api import expect

from portal.archive.models import Slide
from portal.archive.services import case_create, item_receive
from portal.jobs.worker.runner import job_run
from tests import world
from tests.browser.conftest import DATABASE
from tests.ml.imaging.revealing.support import named, tissue
from tests.ml.imaging.several import write_mrxs

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("size", "scheme"), [((1366, 768), "light"), ((1920, 1080), "dark")])
def test_a_manager_looks_at_a_held_picture_and_releases_it(
    browser: Any,
    open_server: Any,
    storage: Path,
    manager: Any,
    monkeypatch: pytest.MonkeyPatch,
    shoot: Any,
    size: tuple[int, int],
    scheme: str,
) -> None:
    from django.test import Client

    world.in_process(monkeypatch)
    still = io.BytesIO(bytes(cv2.imencode(".png", named(tissue())[..., ::-1])[1]))
    with DATABASE:
        lab = manager.memberships.get().lab
        case = case_create(lab=lab, user=manager, accession="S-1")
        received = item_receive(case=case, file=still, filename="named.png", user=manager)
        job_run(received.job.pk)
        client = Client()
        client.force_login(manager)
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    cookie = client.cookies[django_settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": open_server.url}])
    page = context.new_page()
    page.goto(open_server.url + "/lab/intake/")
    page.get_by_text("Text in the picture at the upper left").wait_for()
    page.get_by_text("Show what was found").click()
    image = page.locator(".evidence img")
    expect(image).not_to_have_js_property("naturalWidth", 0)
    assert image.bounding_box()["width"] > 150
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shoot(page, f"intake-{scheme}")
    page.get_by_placeholder("Why it may be released").fill("A phantom")
    page.get_by_role("button", name="Release").click()
    page.get_by_text("was released").wait_for()
    with DATABASE:
        assert Slide.objects.get().state == "preparing"
    context.close()


def test_a_set_that_lacks_a_file_is_said_and_can_be_removed(
    browser: Any, open_server: Any, storage: Path, manager: Any, tmp_path: Path
) -> None:
    from django.test import Client

    with DATABASE:
        case = case_create(lab=manager.memberships.get().lab, user=manager, accession="S-1")
        client = Client()
        client.force_login(manager)
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    cookie = client.cookies[django_settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": open_server.url}])
    page = context.new_page()
    page.goto(f"{open_server.url}/cases/{case.pk}/upload/")
    for _ in range(2):  # chosen again it is said once
        page.locator("input[name=file]").set_input_files(str(write_mrxs(tmp_path)))
        page.get_by_role("button", name="Upload").click()
        page.get_by_text("slide.mrxs is incomplete: slide/Slidedat.ini is missing.").wait_for()
    assert page.locator("[data-refused]").count() == 1
    page.get_by_role("button", name="Remove slide.mrxs").click()
    expect(page.locator("[data-refused]")).to_have_count(0)
    context.close()
