"""The compare page: who may see which image, and the choices offered."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.archive.models import Canvas, Slide
from tests.portal.archive.support import text_of

pytestmark = pytest.mark.django_db


def test_images_of_another_lab_and_malformed_ids_are_not_found(
    page: Client, still: Slide, foreign_slide: Slide
) -> None:
    path = f"/canvases/{still.canvas_id}/compare/"
    assert page.get(f"{path}?with={still.canvas_id}&with={still.canvas_id}").status_code == 200
    for other in (foreign_slide.canvas_id, "nonsense", ""):
        assert page.get(f"{path}?with={still.canvas_id}&with={other}").status_code == 404


def test_choices_come_from_the_case_and_the_users_labs_and_can_be_searched(
    page: Client, still: Slide, slide: Slide, foreign_slide: Slide
) -> None:
    path = f"/canvases/{slide.canvas_id}/compare/choices/"
    text = text_of(page.get(path))
    assert str(still.canvas_id) in text
    assert "same case" in text
    assert str(foreign_slide.canvas_id) not in text
    narrowed = text_of(page.get(f"{path}?q=SAMPLE"))
    assert str(slide.canvas_id) in narrowed
    assert str(still.canvas_id) not in narrowed
    assert "No image has" in text_of(page.get(f"{path}?q=theirs"))


@pytest.mark.parametrize("count", [1, 20])
def test_choices_take_the_same_number_of_queries_for_one_and_twenty_images(
    page: Client, still: Slide, count: int, django_assert_max_num_queries: Any
) -> None:
    canvas = Canvas.objects.get(pk=still.canvas_id)
    for number in range(count):
        canvas.pk, canvas.name, canvas._state.adding = None, f"n-{number}", True
        canvas.save(force_insert=True)
    with django_assert_max_num_queries(11):
        assert (
            text_of(page.get(f"/canvases/{still.canvas_id}/compare/choices/")).count("n-") >= count
        )
    with django_assert_max_num_queries(15):
        page.get(f"/canvases/{still.canvas_id}/compare/?with={canvas.pk}")
