from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from portal.jobs.models import Job
from portal.labs.models import ApiToken, User
from portal.reader_studies.services.assignments import (
    ReadingPlan,
    assignment_submit,
    work_assign,
)
from tests.clients import client_of
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser
GROUND = "getComputedStyle(document.body).backgroundColor"
BAR_IS_FREE = """() => {
  const box = (one) => one.getBoundingClientRect();
  const links = [...document.querySelectorAll(".bar__link")];
  return Math.max(...links.map((one) => box(one).right))
    <= box(document.querySelector(".bar__end")).left;
}"""


@pytest.fixture
def open_page(browser: Any, open_server: Any) -> Iterator[Callable[..., Any]]:
    """``open_page(path, user=None, dark=False)``: chromium on that page, errors collected."""

    contexts: list[Any] = []

    def run(path: str, *, user: Any = None, dark: bool = False) -> Any:
        context = browser.new_context(color_scheme="dark" if dark else "light")
        contexts.append(context)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=open_server.url)
        if user is not None:
            with DATABASE:
                client = client_of(user)
            cookie = client.cookies[django_settings.SESSION_COOKIE_NAME].value
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": open_server.url}])
        page = context.new_page()
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on(
            "console",
            lambda line: page.complaints.append(line.text) if line.type == "error" else None,
        )
        page.goto(open_server.url + path)
        return page

    yield run
    for context in contexts:
        context.close()


def token_count() -> int:
    with DATABASE:
        return ApiToken.objects.filter(revoked_at=None).count()


def test_signing_in_opens_the_cases_without_script_errors(
    open_page: Callable[..., Any], annotator: Any
) -> None:
    page = open_page("/accounts/login/")
    page.get_by_label("E-mail address").fill(annotator.email)
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/cases/")
    assert page.locator(".bar__link[aria-current]").inner_text() == "Cases"
    assert page.complaints == []


def test_the_theme_follows_the_system_until_chosen_and_is_remembered(
    open_page: Callable[..., Any], annotator: Any
) -> None:
    page = open_page("/lab/", user=annotator, dark=True)
    dark = page.evaluate(GROUND)
    page.get_by_role("button", name="Switch between light and dark").click()
    light = page.evaluate(GROUND)
    assert light != dark
    page.reload()
    assert page.evaluate(GROUND) == light


def test_a_token_is_created_copied_and_revoked_after_confirmation(
    open_page: Callable[..., Any], annotator: Any
) -> None:
    page = open_page("/account/tokens/", user=annotator)
    page.get_by_label("Name").fill("LIS export")
    page.get_by_role("button", name="Create token").click()
    secret = page.locator("#secret").inner_text()
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Cancel").click()
    assert token_count() == 1
    page.get_by_role("button", name="Revoke").click()
    page.locator("#confirm [data-confirm-yes]").click()
    page.get_by_text("no longer works").wait_for()
    assert token_count() == 0
    assert page.complaints == []


def test_the_menu_opens_and_closes_by_keyboard(
    open_page: Callable[..., Any], annotator: Any
) -> None:
    page = open_page("/lab/", user=annotator)
    menu = page.locator(".bar .menu summary")
    menu.focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("link", name="API tokens").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("link", name="API tokens").is_visible()
    assert menu.evaluate("element => element === document.activeElement")


def test_the_first_tab_stop_skips_to_the_content(
    open_page: Callable[..., Any], annotator: Any
) -> None:
    page = open_page("/lab/", user=annotator)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_role_is_saved_when_selected(
    open_page: Callable[..., Any], manager: Any, viewer: Any
) -> None:
    page = open_page("/lab/", user=manager)
    page.get_by_label(f"Role of {viewer}").select_option("reviewer")
    page.get_by_text("reviewer from now on").wait_for()
    with DATABASE:
        assert viewer.memberships.get().role == "reviewer"


def test_no_page_scrolls_horizontally(
    open_page: Callable[..., Any], open_server: Any, manager: Any
) -> None:
    page = open_page("/lab/", user=manager)
    wide = []
    for path in ("/lab/", "/account/tokens/", "/cases/", "/jobs/"):
        page.goto(open_server.url + path)
        for width in (390, 1366, 2560):
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate("document.documentElement.scrollWidth - innerWidth") > 0:
                wide.append((path, width))
    assert wide == []


def test_tables_of_assignments_fit_a_phone(
    open_page: Callable[..., Any], open_server: Any, manager: Any, ingest: Any, slide_file: Any
) -> None:
    canvas = ingest(slide_file)
    with DATABASE:
        plan = ReadingPlan(canvases=[canvas], people=[manager], due_on=date.today())
        (work,) = work_assign(lab=canvas.lab, user=manager, plan=plan)
    page = open_page("/work/", user=manager)
    paths = ["/work/", "/work/lab/"]
    page.set_viewport_size({"width": 400, "height": 800})
    cut = [path for path in paths if is_cut(page, open_server.url + path)]
    page.set_viewport_size({"width": 768, "height": 1024})
    cut += [path for path in paths if is_cut(page, open_server.url + path)]
    page.set_viewport_size({"width": 342, "height": 192})  # 1366 px at 400 % zoom
    assert page.locator(".bar__link .pill").is_visible()
    assert page.evaluate(BAR_IS_FREE)
    page.set_viewport_size({"width": 400, "height": 800})
    with DATABASE:
        assignment_submit(assignment=work, user=manager)
    paths = ["/work/?done=1", "/work/lab/?done=1"]
    assert cut + [path for path in paths if is_cut(page, open_server.url + path)] == []


def test_tables_of_members_and_jobs_fit_a_tablet(
    open_page: Callable[..., Any], open_server: Any, manager: Any, ingest: Any, slide_file: Any
) -> None:
    ingest(slide_file)
    with DATABASE:
        User.objects.filter(pk=manager.pk).update(full_name="Maya Lind, lab manager")
        began = timezone.now() - timedelta(minutes=37)
        times = {"created_at": began, "started_at": began, "finished_at": began + timedelta(0, 68)}
        name = "Region on cju0qkwl35piu0993l0dewei2.jpg"
        Job.objects.update(kind="canvas_embed", target_name=name, created_by=manager, **times)
    page = open_page("/lab/", user=manager)
    cut = []
    for width in (768, 1024):
        page.set_viewport_size({"width": width, "height": 768})
        for path in ("/lab/", "/jobs/"):
            if is_cut(page, open_server.url + path):
                cut.append((path, width))
    assert cut == []
    title = page.get_by_role("link", name="Prepare all regions for search").bounding_box()
    assert title["height"] < 3 * 24, "two lines at most"


def is_cut(page: Any, url: str) -> bool:
    """Return whether a table is wider than its parent."""
    page.goto(url)
    wraps = page.locator(".table-wrap")
    assert wraps.count() > 0
    return any(wrap.evaluate("wrap => wrap.scrollWidth > wrap.clientWidth") for wrap in wraps.all())
