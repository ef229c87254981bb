"""Pages: the viewer."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from portal.archive.models import Slide
from tests.portal.archive.support import text_of

pytestmark = pytest.mark.django_db


def test_the_viewer_gets_its_canvas(page: Client, slide: Slide) -> None:
    body = text_of(page.get(f"/canvases/{slide.canvas_id}/"))
    assert 'id="canvas-data"' in body
    assert "/tiles/" in body


@pytest.mark.parametrize("path", ["", "beside/"])
def test_a_button_is_called_by_what_is_written_on_it(page: Client, slide: Slide, path: str) -> None:
    """Who speaks to the computer says what they read (WCAG 2.1, 2.5.3)."""
    body = text_of(page.get(f"/canvases/{slide.canvas_id}/{path}"))
    buttons = re.findall(r'<button[^>]*aria-label="([^"]*)"[^>]*>([^<>]*)</button>', body)
    named = [(name, text) for name, text in buttons if re.search(r"\w", text)]
    assert named
    assert [name for name, text in named if text.strip() not in name] == []
