"""The page of similar cases and the ROI's picture."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest
from django.template.loader import render_to_string
from PIL import Image

from ml.errors import EmptyRegionError
from portal.annotations.models import Label, LabelSet
from portal.annotations.services.rois import roi_delete
from portal.jobs.models import Job


@pytest.fixture
def pair(world):
    query = world.embedded(world.canvas(world.case("A1", "p1")), 100, 100)
    hit = world.embedded(world.canvas(world.case("A2", "p2")), 130, 100, name="gland 7")
    return query, hit


def similar(page, roi, query="", **headers):
    return page.get(f"/rois/{roi.pk}/similar/{query}", headers=headers)


def test_the_page_shows_hits_with_links_into_the_viewer(page, pair):
    answer = similar(page, pair[0])
    text = answer.content.decode()
    assert answer.status_code == 200
    assert "gland 7" in text
    assert "A2" in text
    assert f"/canvases/{pair[1].canvas_id}/?roi={pair[1].pk}" in text
    assert f"/rois/{pair[1].pk}/thumbnail.jpg?v=1" in text
    assert "distance 30" not in text, "bare distances only where they are asked for"
    assert "distance 30.000" in similar(page, pair[0], "?distances=on").content.decode()


def test_the_same_patient_can_be_included(page, world, pair):
    sibling = world.embedded(pair[0].canvas, 101, 100, name="sibling")
    assert "sibling" not in similar(page, pair[0]).content.decode()
    assert str(sibling.pk) in similar(page, pair[0], "?same_patient=on").content.decode()


def test_the_order_by_distance_can_be_requested(page, pair):
    assert "through similar regions in between" in similar(page, pair[0]).content.decode()
    assert "by way of" not in similar(page, pair[0], "?plain=on").content.decode()


def test_htmx_gets_only_the_results(page, pair):
    text = similar(page, pair[0], **{"HX-Request": "true"}).content.decode()
    assert '<div id="similar"' in text
    assert "<html" not in text


def test_the_page_polls_while_a_region_is_being_embedded(page, world, pair):
    fresh = world.roi(pair[0].canvas, 300, 300)
    text = similar(page, fresh).content.decode()
    assert "Waiting for a worker" in text
    assert 'hx-trigger="every 2s"' in text
    assert Job.objects.filter(target_id=fresh.pk).count() == 1
    world.run_jobs()
    assert "gland 7" in similar(page, fresh).content.decode()


def test_an_empty_result_has_an_empty_state(page, world):
    only = world.embedded(world.canvas(world.case("A1")))
    assert "No similar region found" in similar(page, only).content.decode()


def test_a_failed_embedding_has_a_reason_and_can_be_retried(page, world, encoder):
    encoder.fails_with = EmptyRegionError("the region holds no tissue")
    roi = world.embedded(world.canvas(world.case("A1")))
    text = similar(page, roi).content.decode()
    assert "the region holds no tissue" in text
    assert "Try again" in text
    encoder.fails_with = None
    assert page.post(f"/rois/{roi.pk}/embed/").status_code == 302
    world.run_jobs()
    assert "No similar region found" in similar(page, roi).content.decode()


def test_invalid_url_parameters_are_ignored(page, pair):
    query = "?label=x&kind=z&k=7&since=soon&review_state=y&case=z&limit=9"
    assert "gland 7" in similar(page, pair[0], query).content.decode()


def test_a_filter_value_without_regions_can_be_removed(page, pair):
    text = similar(page, pair[0], "?organ=Heart").content.decode()
    assert "No similar region found" in text
    assert 'aria-label="Drop Organ: heart"' in text and "Drop a filter" in text
    text = similar(page, pair[0], "?case=only").content.decode()
    assert 'aria-label="Drop Cases: This case"' in text and "Drop a filter" in text
    pair[1].canvas.case.delete()
    text = similar(page, pair[0]).content.decode()
    assert "No region of this kind was searched" in text and "Drop a filter" not in text


def test_a_deleted_roi_has_no_page_and_no_picture(page, world, pair):
    roi_delete(roi=pair[0], user=world.user, expected_version=1)
    assert similar(page, pair[0]).status_code == 404
    assert page.get(f"/rois/{pair[0].pk}/thumbnail.jpg").status_code == 404


def test_the_picture_shows_the_outline_in_the_labels_colour(page, world):
    labels = LabelSet.objects.create(lab=world.lab, name="Findings")
    blue = Label.objects.create(lab=world.lab, label_set=labels, name="Blue", color="#0000ff")
    roi = world.roi(world.canvas(world.case("A1")), 100, 100, 60, label=blue)
    answer = page.get(f"/rois/{roi.pk}/thumbnail.jpg?v=1")
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/jpeg")
    assert "max-age" in answer["Cache-Control"]
    pixels = np.asarray(Image.open(io.BytesIO(answer.content))).astype(int)
    assert pixels.shape == (240, 320, 3)
    is_blue = (pixels[..., 2] > 150) & (pixels[..., 0] < 90)
    rows, columns = np.nonzero(is_blue)
    side = 60 * 240 / (60 * 1.36)
    assert abs((np.ptp(columns) + 1) - side) < 6
    assert abs((np.ptp(rows) + 1) - side) < 6
    again = page.get(f"/rois/{roi.pk}/thumbnail.jpg", headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304


def test_a_line_contrasts_with_dark_and_light_tissue(page, world):
    labels = LabelSet.objects.create(lab=world.lab, name="Findings")
    for color, tissue in (("#0000c0", "#100878"), ("#ffd400", "#f8e8a0")):
        label = Label.objects.create(lab=world.lab, label_set=labels, name=color, color=color)
        canvas = world.canvas(world.case(color))
        Image.new("RGB", (400, 400), tissue).save(world.storage / canvas.pixels_path)
        roi = world.roi(canvas, 100, 100, 60, label=label)
        shown = page.get(f"/rois/{roi.pk}/thumbnail.jpg").content
        grey = np.asarray(Image.open(io.BytesIO(shown)).convert("L")).astype(int)
        assert np.abs(grey - grey[2, 2]).max() > 100


def test_a_picture_is_made_once(page, world, monkeypatch):
    roi = world.roi(world.canvas(world.case("A1")))
    first = page.get(f"/rois/{roi.pk}/thumbnail.jpg").content
    (world.storage / roi.canvas.pixels_path).unlink()
    assert page.get(f"/rois/{roi.pk}/thumbnail.jpg").content == first


def test_missing_pixels_are_a_404(page, world):
    roi = world.roi(world.canvas(world.case("A1")))
    (world.storage / roi.canvas.pixels_path).unlink()
    assert page.get(f"/rois/{roi.pk}/thumbnail.jpg").status_code == 404


def test_the_page_is_few_queries(page, world, pair, django_assert_max_num_queries):
    other = world.canvas(world.case("A3", "p3"))
    for i in range(15):
        world.roi(other, i * 20, 200)
    world.run_jobs()
    similar(page, pair[0])
    with django_assert_max_num_queries(22):  # three count the searched set
        similar(page, pair[0])


def test_counts_of_filters_have_separators():
    value = SimpleNamespace(count=10_012, is_chosen=False, color="")
    link = SimpleNamespace(value=value, element_id="demo", query="", text="demo")
    page = render_to_string("search/_facet_value.html", {"link": link, "here": "/"})
    assert "10,012" in page
