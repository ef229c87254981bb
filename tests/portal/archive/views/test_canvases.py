"""Pages: the viewer."""

from __future__ import annotations

import pytest
from django.test import Client

from portal.archive.models import Slide
from tests.portal.archive.support import text_of

pytestmark = pytest.mark.django_db


def test_the_viewer_gets_its_canvas(page: Client, slide: Slide) -> None:
    body = text_of(page.get(f"/canvases/{slide.canvas_id}/"))
    assert 'id="canvas-data"' in body
    assert "/tiles/" in body
