"""Measurements table: one unit per column, sorting, and links from rows to regions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from portal.annotations.measures import area_texts
from portal.annotations.models import Label
from portal.annotations.selectors.measurements import measurements_of
from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.archive.services.scale import canvas_scale_set
from portal.labs.models import Lab, User
from tests.portal.annotations.conftest import make_canvas
from tests.portal.annotations.support import box


@pytest.fixture
def measured(canvas: Canvas, annotator: User, label: Label) -> Canvas:
    for name, side, given in (("b", 10, label), ("a", 30, label), ("c", 20, None)):
        geometry = box(1, 1, 1 + side, 1 + side)
        roi_create(canvas=canvas, user=annotator, geometry=geometry, name=name, label=given)
    return canvas


def names(client: Client, url: str) -> list[str]:
    return re.findall(r'roi=[^"]*">(\w+)</a>', client.get(url).content.decode())


def test_lengths_are_in_microns_where_the_scale_is_known(measured: Canvas, viewer: User) -> None:
    table = measurements_of(viewer, canvas=measured)
    assert [column.title for column in table.columns][:2] == ["Area [µm²]", "Perimeter [µm]"]
    assert table.rows[0].values[:2] == (30 * 30 / 4, 4 * 30 / 2)  # half a micron a pixel
    assert [(total.name, total.count, total.area) for total in table.sums] == [
        ("Tumor", 2, 250.0),
        ("No label", 1, 100.0),
    ]


def test_areas_are_in_square_millimetres_where_none_is_small(
    canvas: Canvas, annotator: User, client: Client
) -> None:
    for side in (200, 400):
        roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 1 + side, 1 + side))
    table = measurements_of(annotator, canvas=canvas)
    assert table.columns[0].title == "Area [mm²]"
    assert [row.values[0] for row in table.rows] == [0.04, 0.01]
    client.force_login(annotator)
    text = client.get(f"/canvases/{canvas.pk}/measurements/").content.decode()
    assert "0.050 mm²" in text
    assert re.findall(r'"num">([^<]*)</td>', text)[:3] == ["0.040", "800.0", "282.8"]
    roi_create(canvas=canvas, user=annotator, geometry=box(1, 1, 9, 9))
    assert [row.values[0] for row in measurements_of(annotator, canvas=canvas).rows] == [
        40_000,
        10_000,
        16,
    ]


def test_texts_of_areas_have_one_unit() -> None:
    assert area_texts([40_000, 9_480_000], mpp_x=0.5, mpp_y=0.5) == ["0.01 mm²", "2.37 mm²"]
    assert area_texts([400, 9_480_000], mpp_x=0.5, mpp_y=0.5) == ["100 µm²", "2,370,000 µm²"]
    assert area_texts([12_345], mpp_x=None, mpp_y=None) == ["12,300 px²"]


def test_one_image_without_a_scale_reports_everything_in_pixels(
    lab: Lab, measured: Canvas, annotator: User, client: Client
) -> None:
    bare = make_canvas(lab, name="Bare", mpp_x=None, mpp_y=None)
    roi_create(canvas=bare, user=annotator, geometry=box(1, 1, 9, 9))
    table = measurements_of(annotator, case=measured.case)
    assert table.columns[0].title == "Area [px²]"
    assert {row.values[0] for row in table.rows} == {900, 400, 100, 64}
    client.force_login(annotator)
    text = client.get(f"/cases/{measured.case_id}/measurements/").content.decode()
    assert "the pixel size of Bare is not known" in text


def test_columns_sort_both_ways(measured: Canvas, client: Client, viewer: User) -> None:
    client.force_login(viewer)
    url = f"/canvases/{measured.pk}/measurements/"
    assert names(client, url) == ["a", "c", "b"]
    assert names(client, f"{url}?sort=area_um2") == ["b", "c", "a"]
    assert names(client, f"{url}?sort=-roi") == ["c", "b", "a"]
    assert names(client, f"{url}?sort=label")[0] == "c"


def test_the_table_is_read_in_few_queries(
    measured: Canvas, client: Client, viewer: User, django_assert_max_num_queries: Any
) -> None:
    client.force_login(viewer)
    with django_assert_max_num_queries(13):
        client.get(f"/canvases/{measured.pk}/measurements/")


def test_areas_follow_a_pixel_size_set_by_hand(
    measured: Canvas, annotator: User, api_as: Any, client: Client
) -> None:
    Canvas.objects.filter(pk=measured.pk).update(mpp_x=None, mpp_y=None)
    client.force_login(annotator)
    table = f"/canvases/{measured.pk}/measurements/"
    assert "Lengths are in pixels" in client.get(table).content.decode()
    canvas_scale_set(canvas=measured, user=annotator, mpp_x=0.5)
    assert "Lengths are in pixels" not in client.get(table).content.decode()
    rows = api_as(annotator).get("/api/v1/rois/", {"canvas": str(measured.pk)}).json()["results"]
    assert rows
    assert [row["area_um2"] for row in rows] == [row["area_px"] / 4 for row in rows]
