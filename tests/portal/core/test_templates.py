from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.core.paginator import Paginator
from django.template import Context, Template
from django.template.loader import render_to_string
from django.test import RequestFactory

ROOT = Path(__file__).resolve().parents[3]


def pages(count: int, number: int, query: str = "") -> str:
    page = Paginator(range(count), 10).get_page(number)
    request = RequestFactory().get(f"/cases/?{query}")
    return render_to_string("core/_pagination.html", {"page_obj": page}, request=request)


def test_the_pages_of_a_list_keep_its_filters() -> None:
    text = pages(95, 5, "organ=colon&page=5")
    assert "41–50 of 95" in text
    assert "organ=colon&amp;page=6" in text
    assert 'aria-current="page">5<' in text
    assert "…" in text


def test_a_short_list_has_no_pages() -> None:
    assert "href" not in pages(7, 1)
    assert "7 in all" in pages(7, 1)
    assert "in all" not in pages(0, 1)


def test_the_first_page_has_none_before() -> None:
    assert 'rel="prev"' not in pages(30, 1)
    assert 'rel="next"' not in pages(30, 3)


def test_an_icon_is_silent_unless_it_has_a_label() -> None:
    template = Template('{% load ui %}{% icon "x" label=label %}')
    assert 'aria-hidden="true"' in template.render(Context({"label": ""}))
    assert 'aria-label="Close &lt;it&gt;"' in template.render(Context({"label": "Close <it>"}))


def test_a_time_is_machine_readable_and_may_be_missing() -> None:
    template = Template('{% load ui %}{% moment when "ago" "never" %}')
    when = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    assert 'datetime="2026-01-02T03:04:00+00:00"' in template.render(Context({"when": when}))
    assert template.render(Context({"when": None})) == "never"


def test_an_empty_state_may_offer_a_way_on() -> None:
    plain = render_to_string("core/_empty.html", {"title": "No cases"})
    linked = render_to_string(
        "core/_empty.html", {"title": "No cases", "action_url": "/cases/new/", "action": "New case"}
    )
    assert "<a" not in plain
    assert 'href="/cases/new/"' in linked


@pytest.mark.parametrize("name", ["logo", "favicon", "icons", "wall"])
def test_drawings_are_well_formed(name: str) -> None:
    assert ElementTree.parse(ROOT / "static" / "img" / f"{name}.svg").getroot().tag.endswith("svg")


def test_every_icon_that_templates_name_is_in_the_sprite() -> None:
    sprite = (ROOT / "static" / "img" / "icons.svg").read_text()
    known = set(re.findall(r'<symbol id="([\w-]+)"', sprite))
    named = {
        (path.name, icon)
        for path in (ROOT / "templates").rglob("*.html")
        for icon in re.findall(r'{% icon "([\w-]+)"', path.read_text())
    }
    assert {pair for pair in named if pair[1] not in known} == set()
