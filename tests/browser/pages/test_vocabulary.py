"""Vocabulary of a lab in a real browser: a file is imported, and its terms are suggested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.archive.models import Case, VocabularyTerm
from portal.archive.services.vocabulary import EXAMPLE
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser


def test_a_vocabulary_is_imported_and_its_term_entered_by_code(
    open_page: Callable[..., Any],
    open_server: Any,
    storage: Path,
    manager: Any,
    tmp_path: Path,
) -> None:
    page = open_page("/lab/vocabulary/", user=manager)
    page.get_by_text("No vocabulary yet").wait_for()
    with page.expect_download() as example:
        page.get_by_role("link", name="Example file").click()
    assert Path(example.value.path()).read_text() == EXAMPLE
    assert example.value.suggested_filename == "vocabulary-example.csv"
    file = tmp_path / "terms.csv"
    file.write_text("field,term,code\norgan,Caecum,C18.0\nstain,HE,\n")
    page.get_by_label("CSV file").set_input_files(file)
    page.get_by_role("button", name="Check file").click()
    page.get_by_text("row 3, column field").wait_for()
    file.write_text(EXAMPLE.replace(",", ";"), encoding="utf-8-sig")
    page.get_by_label("CSV file").set_input_files(file)
    page.get_by_role("button", name="Check file").click()
    expect(page.get_by_role("status")).to_contain_text("5 new, 0 changed, 0 unchanged")
    page.get_by_role("button", name="Import 5 terms").click()
    page.get_by_text("Imported: 5 new").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    page.goto(open_server.url + "/cases/new/")
    words = "input => [...input.list.options].map(one => [one.value, one.label])"
    organs = page.get_by_label("Organ").evaluate(words)
    assert ["Caecum", "Caecum · C18.0"] in organs
    page.get_by_label("Accession number").fill("S-1")
    page.get_by_label("Organ").fill("C18.0")
    page.get_by_label("Diagnosis").fill("tubular adenoma")
    page.get_by_role("button", name="Create and add files").click()
    page.wait_for_url("**/upload/")
    with DATABASE:
        case = Case.objects.get()
        assert (case.organ, case.diagnosis) == ("Caecum", "Tubular adenoma")
    page.goto(open_server.url + "/cases/")
    page.get_by_label("Any organ").select_option(label="Caecum · C18.0")
    page.wait_for_url("**/cases/?organ=Caecum")
    page.locator("#case-q").fill("C18.7")
    page.get_by_text("No matching cases").wait_for()
    page.locator("#case-q").fill("c18.0")
    page.get_by_role("link", name="S-1").wait_for()
    page.goto(open_server.url + "/lab/vocabulary/?q=c18")
    page.get_by_role("checkbox", name="Caecum").check()
    page.get_by_role("button", name="Delete chosen terms").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("1 term deleted").wait_for()
    with DATABASE:
        assert VocabularyTerm.objects.count() == 4
    assert page.complaints == []
