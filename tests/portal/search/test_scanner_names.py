"""Scanners are named by their maker; the identifiers of files are behind Details."""

from __future__ import annotations

import re
from typing import Any

from django.test import Client

from portal.archive.selectors.scanners import scanner_name
from portal.search.models import Report


def test_a_vendor_has_the_name_of_its_maker_or_format() -> None:
    assert scanner_name("generic-tiff") == "TIFF"
    assert scanner_name("Hamamatsu") == "Hamamatsu"
    assert scanner_name("newcomer") == "newcomer"
    assert scanner_name("") == ""


def test_the_page_names_makers_and_has_the_identifiers_behind_details(
    world: Any, page: Client
) -> None:
    roi = world.embedded(world.canvas(world.case("A1", "p1")), 90, 100)
    for n, vendor in enumerate(("generic-tiff", "hamamatsu", "mirax")):
        canvas = world.canvas(world.case(f"B{n}", f"q{n}"))
        world.scanned(canvas, vendor=vendor)
        world.embedded(canvas, 100 + 20 * n, 100)
    path = f"/rois/{roi.pk}/similar/"
    text = page.get(path).content.decode()
    names = set(re.findall(r'<span class="truncate">(.*?)</span>', text))
    assert {"TIFF", "Hamamatsu", "3DHISTECH (MIRAX)"} < names
    assert not {"generic-tiff", "hamamatsu", "mirax"} & names
    details = re.findall(r"<details>.*?</details>", text, re.DOTALL)
    assert any("TIFF <code>generic-tiff</code>" in part for part in details)
    page.post(f"{path}report/?scanner=generic-tiff")
    report = Report.objects.get()
    assert ["Scanner", "TIFF"] in report.content["filters"]
