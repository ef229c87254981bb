"""Many cases chosen in the list: tagged, described, taken back, shared, assigned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.archive.models import Case, CaseShare, VocabularyTerm
from portal.archive.services.cases import case_create
from portal.labs.models import Lab, Membership, Role
from tests.clients import client_of
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser
MATCHES = 27  # two pages
TICKED_WHEN_SWAPPED = """() => document.addEventListener("htmx:afterSwap", () => {
  window.tickedWhenSwapped = document.querySelectorAll("[data-case-tick]:checked").length;
}, { once: true })"""


@pytest.fixture
def page(
    browser: Any, open_server: Any, lab: Any, annotator: Any, transactional_db: None
) -> Iterator[Any]:
    """The list of cases, for a manager of the lab."""
    with DATABASE:
        Membership.objects.filter(user=annotator).update(role=Role.MANAGER)
        Lab.objects.create(name="East", slug="east")
        for number in range(MATCHES):
            case_create(lab=lab, user=annotator, accession=f"N-{number:02d}", organ="lung")
        case_create(lab=lab, user=annotator, accession="S-1", organ="colon")
        client = client_of(annotator)
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value}
    context.add_cookies([cookie | {"url": open_server.url}])
    result = context.new_page()
    result.goto(f"{open_server.url}/cases/?ordering=accession&organ=lung")
    yield result
    context.close()


def _tagged() -> list[str]:
    with DATABASE:
        rows = Case.objects.order_by("accession").values_list("accession", "tags")
        return [accession for accession, tags in rows if tags]


def test_chosen_cases_are_tagged_shared_and_assigned(page: Any) -> None:
    ticks, bar = page.locator("[data-case-tick]"), page.locator("[data-case-selection]")
    expect(bar).to_be_hidden()
    ticks.nth(1).check()
    ticks.nth(3).click(modifiers=["Shift"])
    expect(bar).to_contain_text("3 chosen")
    ticks.nth(3).focus()
    page.keyboard.press("Shift+ArrowDown")
    expect(bar).to_contain_text("4 chosen")
    page.evaluate(TICKED_WHEN_SWAPPED)
    page.clock.install()

    bar.get_by_role("button", name="Tag").click()
    expect(page.locator("#tag-cases-title")).to_have_text("Tag 4 cases")
    page.get_by_label("Tag", exact=True).fill("teaching")
    page.keyboard.press("Enter")
    toast = page.locator(".toast", has_text="added to 4 cases")
    expect(page.locator("#cases .chip", has_text="teaching")).to_have_count(4)
    assert page.evaluate("window.tickedWhenSwapped") == 4, "a click may come before the rows settle"
    assert _tagged() == ["N-01", "N-02", "N-03", "N-04"]
    page.clock.fast_forward(8000)  # time to read and to decide
    toast.get_by_role("button", name="Undo").click()
    expect(page.locator("#cases .chip")).to_have_count(0)
    assert _tagged() == []

    page.locator("[data-case-tick-all]").check()
    expect(bar).to_contain_text("25 chosen")
    bar.get_by_role("button", name=f"Choose all {MATCHES}").click()
    expect(bar).to_contain_text(f"{MATCHES} chosen")
    bar.get_by_role("button", name="Tag").click()
    page.get_by_label("Tag", exact=True).fill("board")
    page.get_by_role("button", name="Add tag").click()
    expect(page.locator(".toast", has_text=f"added to {MATCHES} cases")).to_be_visible()
    assert len(_tagged()) == MATCHES  # the case of another organ is not among them
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()

    ticks.nth(0).check()
    ticks.nth(1).check()
    bar.get_by_role("button", name="Share").click()
    page.get_by_label("Lab", exact=True).fill("Nowhere")
    page.get_by_role("button", name="Offer").click()
    expect(page.locator("#share-cases [role=alert]")).to_contain_text("no lab has this name")
    page.get_by_label("Lab", exact=True).fill("East")
    page.get_by_role("button", name="Offer").click()
    expect(page.locator(".toast", has_text="2 cases offered to East")).to_be_visible()
    with DATABASE:
        assert CaseShare.all_objects.count() == 2

    bar.get_by_role("button", name="Assign").click()
    expect(page.locator("h1")).to_have_text("Assign images")
    expect(page.locator(".page, main")).to_contain_text("Images of the chosen cases")


def _organs() -> list[tuple[str, str]]:
    with DATABASE:
        rows = Case.objects.filter(accession__startswith="N-0").order_by("accession")
        return list(rows.values_list("organ", "diagnosis")[:3])


def test_organ_and_diagnosis_of_chosen_cases_are_set_and_taken_back(page: Any, lab: Any) -> None:
    with DATABASE:
        VocabularyTerm.objects.create(lab=lab, field="organ", term="Caecum", code="C18.0")
        Case.objects.filter(accession="N-01").update(organ="Liver", diagnosis="Normal")
    ticks, bar = page.locator("[data-case-tick]"), page.locator("[data-case-selection]")
    ticks.nth(0).check()
    ticks.nth(1).check()
    bar.get_by_role("button", name="Organ, diagnosis").click()
    expect(page.locator("#describe-cases-title")).to_have_text("Organ and diagnosis of 2 cases")
    suggested = page.locator("#words-organ option[value=Caecum]")
    expect(suggested).to_have_attribute("label", "Caecum · C18.0")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#describe-cases [role=alert]")).to_contain_text("at least one")
    page.locator("#describe-cases-organ").fill("c18.0")
    page.keyboard.press("Enter")
    toast = page.locator(".toast", has_text="Organ set for 2 cases")
    expect(toast).to_be_visible()
    assert _organs() == [("Caecum", ""), ("Caecum", "Normal"), ("lung", "")]
    toast.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast", has_text="Undone for 2 cases")).to_be_visible()
    assert _organs() == [("lung", ""), ("Liver", "Normal"), ("lung", "")]
    expect(bar).to_contain_text("1 chosen")  # N-01 was of another organ before, too
    expect(page.get_by_label("Choose N-00")).to_be_checked()

    page.goto(page.url.replace("&organ=lung", ""))
    page.get_by_label("Choose N-00").check()
    page.get_by_label("Choose N-01").check()
    bar.get_by_role("button", name="Organ, diagnosis").click()
    expect(page.locator("#describe-cases-organ")).to_have_value("")
    page.locator("#describe-cases-organ").fill("Colon")
    page.get_by_label("Clear the organ").check()
    expect(page.locator("#describe-cases-organ")).to_be_disabled()
    page.locator("#describe-cases-diagnosis").fill("Benign")
    page.get_by_role("button", name="Apply").click()
    toast = page.locator(".toast", has_text="Diagnosis set, organ cleared for 2 cases")
    expect(toast).to_be_visible()
    assert _organs() == [("", "Benign"), ("", "Benign"), ("lung", "")]
    toast.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast", has_text="Undone for 2 cases")).to_be_visible()
    assert _organs() == [("lung", ""), ("Liver", "Normal"), ("lung", "")]
    page.get_by_label("Choose N-00").check()
    bar.get_by_role("button", name="Organ, diagnosis").click()
    expect(page.locator("#describe-cases-organ")).to_be_enabled()
