"""Pages: the viewer."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from portal.annotations.services.rois import roi_create, roi_delete
from portal.archive.models import Canvas, Slide
from portal.labs.models import User
from tests.portal.archive.support import text_of

pytestmark = pytest.mark.django_db


def test_the_viewer_gets_its_canvas(page: Client, slide: Slide) -> None:
    body = text_of(page.get(f"/canvases/{slide.canvas_id}/"))
    assert 'id="canvas-data"' in body
    assert "/tiles/" in body


@pytest.mark.parametrize("path", ["", "compare/"])
def test_a_button_has_its_text_as_accessible_name(page: Client, slide: Slide, path: str) -> None:
    """Speech input uses the visible label (WCAG 2.1, 2.5.3)."""
    body = text_of(page.get(f"/canvases/{slide.canvas_id}/{path}"))
    buttons = re.findall(r'<button[^>]*aria-label="([^"]*)"[^>]*>([^<>]*)</button>', body)
    named = [(name, text) for name, text in buttons if re.search(r"\w", text)]
    assert named
    assert [name for name, text in named if text.strip() not in name] == []


def test_the_tray_lists_the_images_of_the_case_and_no_others(
    page: Client, slide: Slide, still: Slide, foreign_slide: Slide
) -> None:
    listed = re.findall(r'data-tray-image="([^"]+)"', _tray(page, still))
    assert listed == [str(slide.canvas_id), str(still.canvas_id)]
    assert page.get(f"/canvases/{foreign_slide.canvas_id}/tray/").status_code == 404
    assert 'data-image-count="2"' in text_of(page.get(f"/canvases/{still.canvas_id}/"))


def test_the_tray_shows_stain_and_number_of_regions(
    page: Client, still: Slide, annotator: User
) -> None:
    Slide.objects.filter(pk=still.pk).update(stain="H&E")
    ring = [[0, 0], [90, 0], [90, 90], [0, 0]]
    rois = [
        roi_create(
            canvas=still.canvas,  # type: ignore[arg-type]
            user=annotator,
            geometry={"type": "Polygon", "coordinates": [ring]},
        ).roi
        for _ in range(3)
    ]
    roi_delete(roi=rois[0], user=annotator, expected_version=1)
    assert "H&amp;E" in _tray(page, still)
    assert " · 2 regions" in _tray(page, still)


@pytest.mark.parametrize("count", [1, 20])
def test_the_tray_takes_the_same_number_of_queries_for_one_and_twenty_images(
    page: Client, still: Slide, count: int, django_assert_max_num_queries: Any
) -> None:
    canvas = Canvas.objects.get(pk=still.canvas_id)
    for number in range(count):
        canvas.pk, canvas.name, canvas._state.adding = None, f"n-{number}", True
        canvas.save(force_insert=True)
    with django_assert_max_num_queries(11):
        assert _tray(page, still).count("data-tray-image") == count + 1


def test_only_managers_are_offered_a_new_label(
    page: Client, client: Client, still: Slide, manager: User
) -> None:
    path = f"/canvases/{still.canvas_id}/"
    assert "data-label-name" not in text_of(page.get(path))
    client.force_login(manager)
    assert "data-label-name" in text_of(client.get(path))


def _tray(page: Client, slide: Slide) -> str:
    return text_of(page.get(f"/canvases/{slide.canvas_id}/tray/"))
