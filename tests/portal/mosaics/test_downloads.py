"""A mosaic as PNG: of a chosen size, in bounded time and memory."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image
from rest_framework.test import APIClient

from ml.imaging.slides.pyramids import write_pyramid
from portal.archive.storage import files as archive_storage
from portal.core.errors import UnavailableError
from portal.mosaics import downloads
from portal.mosaics.models import Mosaic

GREEN, WIDTH, HEIGHT = (40, 160, 60), 1600, 900


@pytest.fixture
def large(built: Mosaic) -> Mosaic:
    """A mosaic whose pixels are all green, in four levels."""
    assert built.canvas is not None
    path = archive_storage.derived_folder(built.pk) / "mosaic.tif"
    path.parent.mkdir(parents=True)
    write_pyramid(np.full((HEIGHT, WIDTH, 3), GREEN, np.uint8), path)
    built.canvas.pixels_path = archive_storage.relative(path)
    built.canvas.width_px, built.canvas.height_px = WIDTH, HEIGHT
    built.canvas.save()
    return built


def url(mosaic: Mosaic) -> str:
    return f"/api/v1/mosaics/{mosaic.pk}/image.png"


def picture(answer: Any) -> Image.Image:
    assert answer.status_code == 200, answer.json()
    return Image.open(io.BytesIO(b"".join(answer.streaming_content)))


def test_the_longer_side_has_the_requested_length_without_enlarging(
    api: APIClient, large: Mosaic
) -> None:
    png = picture(api.get(url(large), {"size": 160}))
    assert (png.format, png.size) == ("PNG", (160, 90))
    assert np.abs(np.asarray(png)[..., :3].astype(int) - GREEN).max() <= 3
    assert picture(api.get(url(large), {"size": downloads.PNG_LARGEST})).size == (WIDTH, HEIGHT)


def test_a_small_one_is_read_from_a_small_level(api: APIClient, large: Mosaic) -> None:
    """The full level is overwritten: who reads it finds no picture."""
    assert large.canvas is not None
    path = archive_storage.resolve(large.canvas.pixels_path)
    with tifffile.TiffFile(path) as tiff:
        page = tiff.pages[0]
        tiles = list(zip(page.dataoffsets, page.databytecounts, strict=True))
    with path.open("r+b") as file:
        for offset, length in tiles:
            file.seek(offset)
            file.write(bytes(length))
    assert picture(api.get(url(large), {"size": 700})).size == (700, 394)
    broken = api.get(url(large), {"size": WIDTH})
    assert (broken.status_code, broken.json()["code"]) == (503, "unavailable")
    assert left_behind(large) == ["700.png"], "half a picture is not kept"


def left_behind(mosaic: Mosaic) -> list[str]:
    folder = archive_storage.cache_folder(mosaic.canvas_id)
    return [path.name.split("-")[-1] for path in folder.iterdir()]


def test_a_second_request_is_answered_from_the_first_ones_file(
    api: APIClient, large: Mosaic, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = api.get(url(large), {"size": 200})
    monkeypatch.setattr(downloads, "_write_png", None)
    again = api.get(url(large), {"size": 200})
    assert b"".join(first.streaming_content) == b"".join(again.streaming_content)
    same = api.get(url(large), {"size": 200}, headers={"If-None-Match": first["ETag"]})
    assert same.status_code == 304


@pytest.mark.parametrize(
    ("size", "words"),
    [("4097", "At most 4096 px; pyramid.tif holds all pixels"), ("63", "64"), ("x", "integer")],
)
def test_other_sizes_are_refused_clearly(
    api: APIClient, large: Mosaic, size: str, words: str
) -> None:
    answer = api.get(url(large), {"size": size})
    assert answer.status_code == 400
    assert words in str(answer.json()["errors"]["size"])


def test_a_download_that_takes_too_long_is_stopped(
    api: APIClient, large: Mosaic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "PNG_WITHIN_S", 0.0)
    answer = api.get(url(large), {"size": 1500})
    assert answer.status_code == 503
    assert "takes too long" in answer.json()["detail"]
    assert left_behind(large) == []


def test_a_process_renders_one_download_at_a_time(
    large: Mosaic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the first, and gives up in time where that one does not end."""
    started, go_on = threading.Event(), threading.Event()

    def write(source: Path, target: Path, size_px: int, *, ends: float) -> None:
        started.set()
        go_on.wait(10)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"png")

    monkeypatch.setattr(downloads, "_write_png", write)
    target = archive_storage.cache_folder(large.pk) / "one.png"
    first = threading.Thread(target=downloads._make_png, args=(target, target, 100))
    first.start()
    assert started.wait(10)
    monkeypatch.setattr(downloads, "PNG_WITHIN_S", 0.05)
    with pytest.raises(UnavailableError):
        downloads._make_png(target, target, 100)
    go_on.set()
    first.join()
    monkeypatch.setattr(downloads, "_write_png", None)
    downloads._make_png(target, target, 100)  # there already
