"""The display range of an image of more than 8 bits: found, set, shown everywhere, taken back."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image
from rest_framework.test import APIClient

from ml.types import DisplayRange
from portal.archive.models import Canvas, Case, Slide
from portal.archive.selectors.pixels import canvas_slide_open
from portal.archive.serializers.canvases import tile_url
from portal.archive.services.display import canvas_display_range_set
from portal.archive.tiles.permits import Credential
from portal.archive.tiles.server import TILES, TileRequest
from portal.audit.models import AuditEntry
from portal.core.errors import ForbiddenError, InvalidInputError
from portal.embeddings.services.embeddings import canvas_is_unchanged
from portal.labs.models import TokenScope, User
from portal.labs.services.tokens import token_create
from tests.portal.archive.support import run_job

STORED, SEEN = (400, 1600, 2800, 4000), (25, 100, 174, 249)
FILE_RANGE = {"low": 0.0, "high": 4095.0}


def quadrants() -> Any:
    grey = np.zeros((512, 768), np.uint16)
    grey[:256, :384], grey[:256, 384:], grey[256:, :384], grey[256:, 384:] = STORED
    return grey


@pytest.fixture(params=["tiles", "png"])
def deep(
    request: pytest.FixtureRequest, case: Case, receive: Any, quick: None, tmp_path: Path
) -> Canvas:
    """A canvas of 12 bits in 16, of a tiled TIFF and of a PNG."""
    path = tmp_path / ("a.tif" if request.param == "tiles" else "a.png")
    if request.param == "tiles":
        tifffile.imwrite(path, quadrants(), tile=(256, 256), compression="deflate", metadata=None)
    else:
        Image.fromarray(quadrants()).save(path)
    received = receive(case, path, path.name)
    run_job(received.job)
    return Canvas.objects.get(slide=received.item)


def shades(data: bytes) -> tuple[int, ...]:
    """The shades of the middle of each quadrant."""
    grey = np.asarray(Image.open(io.BytesIO(data)).convert("L"))
    height, width = grey.shape
    places = [(y, x) for y in (height // 4, 3 * height // 4) for x in (width // 4, 3 * width // 4)]
    return tuple(int(grey[place]) for place in places)


def everywhere(api: APIClient, canvas: Canvas) -> list[tuple[int, ...]]:
    """Thumbnail, IIIF picture, region read for embeddings; each as its four shades."""
    about = api.get(f"/api/v1/canvases/{canvas.pk}/").json()
    iiif = api.get(f"/api/v1/iiif/{canvas.pk}/full/max/0/default.png")
    canvas.refresh_from_db()
    with canvas_slide_open(canvas) as slide:
        region = io.BytesIO()
        Image.fromarray(slide.thumbnail(512)).save(region, "PNG")
    return [
        shades(api.get(about["thumbnail_url"]).content),
        shades(iiif.content),
        shades(region.getvalue()),
    ]


def first_tile(api: APIClient, canvas: Canvas) -> tuple[bytes, str]:
    answer = api.get(f"/api/v1/canvases/{canvas.pk}/tiles/0/0/0.jpg")
    return answer.content, answer.headers["ETag"]


def assert_near(found: list[tuple[int, ...]], expected: tuple[int, ...]) -> None:
    assert np.abs(np.subtract(found, expected)).max() <= 2, found


def test_the_range_of_the_ingest_is_stored_and_shown(api: APIClient, deep: Canvas) -> None:
    about = api.get(f"/api/v1/canvases/{deep.pk}/").json()
    assert about["display_range"] == about["file_display_range"] == FILE_RANGE
    assert about["can_set_display_range"]
    assert_near(everywhere(api, deep), SEEN)


def test_another_range_is_seen_everywhere_at_once_and_taken_back(
    api: APIClient, deep: Canvas, annotator: User
) -> None:
    address = f"/api/v1/canvases/{deep.pk}/"
    before, (tile, tag) = api.get(address), first_tile(api, deep)
    wanted = {"low": 1600, "high": 4000}
    after = api.patch(address, {"display_range": wanted}, format="json")
    assert after.status_code == 200, after.content
    assert (after.json()["display_range"], after.json()["file_display_range"]) == (
        wanted, FILE_RANGE,
    )  # fmt: skip
    assert after.json()["tile_url"] != before.json()["tile_url"]
    assert after.json()["thumbnail_url"] != before.json()["thumbnail_url"]
    assert_near(everywhere(api, deep), (0, 0, 128, 255))
    other, other_tag = first_tile(api, deep)
    assert other != tile
    assert other_tag != tag
    back = api.patch(address, {"display_range": None}, format="json")
    assert back.json() == before.json()
    assert first_tile(api, deep) == (tile, tag)
    noted = AuditEntry.objects.filter(action="canvas.display_range_set").order_by("pk")
    assert [entry.details for entry in noted] == [
        {**wanted, "before": FILE_RANGE},
        {**FILE_RANGE, "before": wanted},
    ]
    assert {entry.actor_id for entry in noted} == {annotator.pk}


def test_tiles_of_a_new_range_are_served_to_those_who_saw_the_old_ones(
    api: APIClient, deep: Canvas, annotator: User
) -> None:
    _, secret = token_create(
        annotator, name="t", scope=TokenScope.READ, expires_in=timedelta(days=1)
    )
    old = tile_url(deep).format(z=0, x=0, y=0)
    request = TileRequest("GET", old, Credential("", f"Bearer {secret}"))
    assert TILES.answer(request)[0] == 200
    canvas_display_range_set(canvas=deep, user=annotator, display_range=DisplayRange(0, 9))
    new = tile_url(deep).format(z=0, x=0, y=0)
    assert new != old
    assert TILES.answer(request._replace(path=new))[0] == 200


def test_a_concurrently_set_range_is_not_overwritten(api: APIClient, deep: Canvas) -> None:
    address = f"/api/v1/canvases/{deep.pk}/"
    tag = api.get(address).headers["ETag"]
    first = {"display_range": {"low": 0, "high": 2000}}
    assert api.patch(address, first, format="json", headers={"If-Match": tag}).status_code == 200
    late = {"display_range": {"low": 0, "high": 3000}}
    assert api.patch(address, late, format="json", headers={"If-Match": tag}).status_code == 412


@pytest.mark.parametrize(
    "wanted",
    [
        {"low": 5, "high": 5},
        {"low": "dark", "high": 5},
        {"low": 1},
        {"low": 0, "high": 1e39},
        "all",
    ],
)
def test_a_range_that_is_none_is_refused(api: APIClient, deep: Canvas, wanted: Any) -> None:
    address = f"/api/v1/canvases/{deep.pk}/"
    assert api.patch(address, {"display_range": wanted}, format="json").status_code == 400
    assert api.patch(address, {}, format="json").status_code == 400
    assert Canvas.objects.get(pk=deep.pk).display_range == FILE_RANGE


def test_a_range_of_no_numbers_is_refused(deep: Canvas, annotator: User) -> None:
    for wanted in (DisplayRange(float("nan"), 1), DisplayRange(0, float("inf"))):
        with pytest.raises(InvalidInputError):
            canvas_display_range_set(canvas=deep, user=annotator, display_range=wanted)


def test_pixels_of_eight_bits_have_no_range(api: APIClient, slide: Slide) -> None:
    address = f"/api/v1/canvases/{slide.canvas_id}/"
    about = api.get(address).json()
    assert (about["display_range"], about["can_set_display_range"]) == (None, False)
    answer = api.patch(address, {"display_range": {"low": 0, "high": 9}}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "no-display-range")


def test_a_range_is_set_by_those_who_may_edit(deep: Canvas, viewer: User) -> None:
    with pytest.raises(ForbiddenError):
        canvas_display_range_set(canvas=deep, user=viewer, display_range=DisplayRange(0, 9))


def test_a_vector_of_the_previous_picture_is_discarded(deep: Canvas, annotator: User) -> None:
    read_before = Canvas.objects.get(pk=deep.pk)
    assert canvas_is_unchanged(read_before, lock=False)
    canvas_display_range_set(canvas=deep, user=annotator, display_range=DisplayRange(0, 9))
    assert not canvas_is_unchanged(read_before, lock=False)
    assert canvas_is_unchanged(Canvas.objects.get(pk=deep.pk), lock=False)
