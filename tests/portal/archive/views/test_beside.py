"""Images beside each other: who may see which, and what may be chosen."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.archive.models import Canvas, Slide
from tests.portal.archive.support import text_of

pytestmark = pytest.mark.django_db


def test_those_of_another_lab_are_not_found_and_nonsense_neither(
    page: Client, still: Slide, foreign_slide: Slide
) -> None:
    path = f"/canvases/{still.canvas_id}/beside/"
    assert page.get(f"{path}?with={still.canvas_id}&with={still.canvas_id}").status_code == 200
    for other in (foreign_slide.canvas_id, "nonsense", ""):
        assert page.get(f"{path}?with={still.canvas_id}&with={other}").status_code == 404


def test_the_choices_are_of_the_case_and_of_ones_labs_and_are_narrowed(
    page: Client, still: Slide, slide: Slide, foreign_slide: Slide
) -> None:
    path = f"/canvases/{slide.canvas_id}/beside/choices/"
    everything = text_of(page.get(path))
    assert str(still.canvas_id) in everything
    assert "same case" in everything
    assert str(foreign_slide.canvas_id) not in everything
    narrowed = text_of(page.get(f"{path}?q=SAMPLE"))
    assert str(slide.canvas_id) in narrowed
    assert str(still.canvas_id) not in narrowed
    assert "No image has" in text_of(page.get(f"{path}?q=theirs"))


@pytest.mark.parametrize("count", [1, 20])
def test_the_choices_cost_the_same_for_one_and_twenty(
    page: Client, still: Slide, count: int, django_assert_max_num_queries: Any
) -> None:
    canvas = Canvas.objects.get(pk=still.canvas_id)
    for number in range(count):
        canvas.pk, canvas.name, canvas._state.adding = None, f"n-{number}", True
        canvas.save(force_insert=True)
    with django_assert_max_num_queries(11):
        assert (
            text_of(page.get(f"/canvases/{still.canvas_id}/beside/choices/")).count("n-") >= count
        )
    with django_assert_max_num_queries(15):
        page.get(f"/canvases/{still.canvas_id}/beside/?with={canvas.pk}")
