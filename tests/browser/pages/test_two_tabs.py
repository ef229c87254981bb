"""Two tabs edit the same: the second to save sees what the first saved, and decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings

from portal.annotations.models import Label
from portal.annotations.services.labels import label_set_ensure
from portal.archive.models import Case
from portal.archive.services.cases import case_create
from tests.clients import client_of
from tests.live_servers import DATABASE

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def tabs(browser: Any, open_server: Any, manager: Any) -> Iterator[tuple[Any, Any]]:
    """Two tabs of one browser, each with the state of its page."""
    with DATABASE:
        client = client_of(manager)
    context = browser.new_context(base_url=open_server.url)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": open_server.url}])
    yield context.new_page(), context.new_page()
    context.close()


def test_a_second_editor_sees_both_versions_and_can_save_again(
    tabs: tuple[Any, Any], manager: Any, lab: Any
) -> None:
    with DATABASE:
        case = case_create(lab=lab, user=manager, accession="S-1", organ="colon")
        label_set_ensure(lab=lab)
        label = Label.objects.filter(lab=lab).order_by("position").first()
        assert label is not None
    for tab, organ in zip(tabs, ("lung", "skin"), strict=True):
        tab.goto(f"/cases/{case.pk}/edit/")
        tab.get_by_label("Organ").fill(organ)
    first, two = tabs
    first.get_by_role("button", name="Save").click()
    first.wait_for_url(f"**/cases/{case.pk}/")
    two.get_by_role("button", name="Save").click()
    two.get_by_text("Someone else changed this while you had it open").wait_for()
    assert two.get_by_text("Saved now: lung").is_visible()
    assert two.get_by_label("Organ").input_value() == "skin", "what was written stands"
    two.get_by_role("button", name="Save").click()
    two.wait_for_url(f"**/cases/{case.pk}/")
    with DATABASE:
        assert Case.objects.get(pk=case.pk).organ == "skin"

    two.goto("/lab/labels/")
    with DATABASE:
        Label.objects.filter(pk=label.pk).update(name="Renamed meanwhile")
    row = two.locator(f'[data-label="{label.pk}"]')
    row.get_by_label(f"More for {label.name}").click()
    row.get_by_role("button", name="Retire").click()
    two.locator("dialog[open]").get_by_role("button", name="Retire").click()
    two.get_by_text("Someone else changed this since you read it").wait_for()
    row.get_by_label("Name of Renamed meanwhile").wait_for()
    with DATABASE:
        assert Label.objects.get(pk=label.pk).retired_at is None
