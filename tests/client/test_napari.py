"""The reader of napari against a portal: its layers, and what it refuses. napari is not needed."""

from __future__ import annotations

import io
import tomllib
import uuid
from fnmatch import fnmatch
from importlib import import_module

import numpy as np
import pytest
import yaml
from PIL import Image

from tessera_client import Client, NotFoundError, SignInError, TesseraError
from tessera_client.models import Level
from tessera_client.napari import TiledLevel, get_reader
from tests.client.conftest import SOURCES
from tests.world import slide_file

CANVAS = "canvases/00000000-0000-4000-8000-000000000000"
SQUARE = [[10, 20], [110, 20], [110, 120], [10, 120], [10, 20]]
HOLE = [[30, 40], [30, 60], [50, 60], [50, 40], [30, 40]]


@pytest.fixture
def tessera(seat, tmp_path, monkeypatch):
    monkeypatch.setenv("TESSERA_URL", seat.url)
    monkeypatch.setenv("TESSERA_TOKEN", seat.managers)
    with Client(seat.url, seat.managers, transfers=tmp_path / "transfers.json") as client:
        yield client


@pytest.fixture
def canvas(tessera, tmp_path):
    return tessera.canvas(
        tessera.upload(tessera.create_case(f"NAPARI-{uuid.uuid4()}"), slide_file(tmp_path)).canvas
    )


def opened(address):
    return get_reader(address)(address)


def address_of(seat, canvas):
    return f"tessera://{seat.url.partition('://')[2]}/canvases/{canvas.id}"


def test_pixels_are_those_of_the_tiles_on_every_level(seat, tessera, canvas):
    (layer,) = opened(address_of(seat, canvas))
    levels, result, kind = layer
    assert kind == "image" and result["multiscale"] and result["rgb"]
    assert (result["name"], result["scale"]) == (canvas.name, (0.5, 0.5))
    assert result["units"] == ("um", "um")
    assert [item.shape for item in levels] == [(lv.height, lv.width, 3) for lv in canvas.levels]
    for i, (level, lazy) in enumerate(zip(canvas.levels, levels, strict=True)):
        pixels = np.zeros((level.height, level.width, 3), np.uint8)
        for y in range(0, level.height, level.tile_height):
            for x in range(0, level.width, level.tile_width):
                place = (len(levels) - 1 - i, x // level.tile_width, y // level.tile_height)
                tile = np.asarray(Image.open(io.BytesIO(tessera.tile(canvas, *place))))
                part = pixels[y : y + level.tile_height, x : x + level.tile_width]
                part[:] = tile[: part.shape[0], : part.shape[1]]
        assert np.array_equal(np.asarray(lazy), pixels)
        high, wide = level.height, level.width
        window = np.s_[high // 3 : high - 2, wide // 4 : wide - 1]
        assert np.array_equal(lazy[window], pixels[window])


def test_indexing_equals_an_array_and_loads_only_the_needed_tiles():
    image = np.random.default_rng(5).integers(0, 255, (70, 100, 3), dtype=np.uint8)
    requests = []

    def tile(x, y):
        requests.append((x, y))
        return image[y * 32 : y * 32 + 32, x * 32 : x * 32 + 32]

    lazy = TiledLevel(Level(100, 70, 1.0, 32, 32), tile)
    for key in (
        np.s_[:], np.s_[...], np.s_[3], np.s_[-1, 5], np.s_[10:50, 30:70], np.s_[..., 1],
        np.s_[60:, 90:, :2], np.s_[::7, ::-3], np.s_[5:5], np.s_[:, 99:200], np.s_[1, ..., 2],
        np.s_[np.int64(4), 2:9, np.int64(0)],
    ):  # fmt: skip
        assert np.array_equal(lazy[key], image[key]), key
    assert lazy[5:5].shape == image[5:5].shape and len(lazy) == 70
    with pytest.raises(IndexError):
        lazy[70]
    requests.clear()
    assert lazy[33:40, 40:60].shape == (7, 20, 3)
    assert requests == [(1, 1)]


def test_rois_come_as_shapes_and_points_with_names_labels_and_colours(seat, tessera, canvas):
    label = tessera.create_label("Napari gland", color="#12ab34")
    holed = {"type": "Polygon", "coordinates": [SQUARE, HOLE]}
    roi = tessera.create_roi(canvas, holed, label=label.id, name="First")
    line = tessera.create_roi(canvas, {"type": "LineString", "coordinates": [[1, 2], [3, 40]]})
    point = tessera.create_roi(canvas, {"type": "Point", "coordinates": [7, 9]}, name="Here")
    _, shapes, points = opened(f"{seat.url}/canvases/{canvas.id}/?x=1&roi={roi.id}#here")
    drawn, result, kind = shapes
    assert kind == "shapes" and result["scale"] == (0.5, 0.5)
    at = result["features"]["id"].index(roi.id)
    assert result["shape_type"][at] == "polygon"
    assert result["features"]["name"][at] == "First"
    assert result["features"]["label"][at] == "Napari gland"
    assert result["edge_color"][at] == "#12ab34"
    rows, columns = drawn[at].T
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (20, 120, 10, 110)
    edges = [frozenset(map(tuple, pair)) for pair in zip(drawn[at], drawn[at][1:], strict=False)]
    assert sorted(map(edges.count, set(edges))) == [1] * 8 + [2]  # there and back to the hole
    at = result["features"]["id"].index(line.id)
    assert result["shape_type"][at] == "path" and result["edge_color"][at] == "#ffff00"
    assert drawn[at].tolist() == [[2, 1], [40, 3]]
    drawn, result, kind = points
    assert kind == "points" and drawn.tolist() == [[9, 7]]
    assert result["features"] == {"id": [point.id], "name": ["Here"], "label": [""]}


def test_an_outline_without_holes_ends_without_its_first_vertex(seat, tessera, canvas):
    tessera.create_roi(canvas, SQUARE)
    _, (drawn, _, _) = opened(address_of(seat, canvas))
    assert len(drawn[0]) == len(SQUARE) - 1


def test_other_addresses_are_left_to_other_readers():
    for other in (
        "slide.svs",
        "tessera://host/cases/1/",
        f"/{CANVAS}",
        "https://example.org/canvases/",
        [f"tessera://host/{CANVAS}"],
    ):
        assert get_reader(other) is None, other


def test_the_token_is_sent_only_to_its_portal(seat, canvas, monkeypatch):
    for elsewhere in ("tessera://other.example", "https://other.example", f"{seat.url}0"):
        with pytest.raises(TesseraError, match="token"):
            opened(f"{elsewhere}/canvases/{canvas.id}/")
    missing = address_of(seat, canvas)
    monkeypatch.setenv("TESSERA_TOKEN", seat.others)
    with pytest.raises(NotFoundError):
        opened(missing)
    monkeypatch.setenv("TESSERA_TOKEN", "tess_unknown")
    with pytest.raises(SignInError):
        opened(missing)
    monkeypatch.delenv("TESSERA_TOKEN")
    with pytest.raises(TesseraError, match="TESSERA_TOKEN"):
        opened(missing)


def test_the_manifest_names_existing_commands():
    project = tomllib.loads((SOURCES / "pyproject.toml").read_text())
    name = project["project"]["name"]
    package, _, file = project["project"]["entry-points"]["napari.manifest"][name].partition(":")
    assert file in project["tool"]["setuptools"]["package-data"][package]
    manifest = yaml.safe_load((SOURCES / "src" / package / file).read_text())
    assert set(manifest) == {"name", "display_name", "contributions"} and manifest["name"] == name
    (command,) = manifest["contributions"]["commands"]
    assert set(command) == {"id", "title", "python_name"} and command["id"].startswith(f"{name}.")
    module, _, function = command["python_name"].partition(":")
    assert getattr(import_module(module), function) is get_reader
    (reader,) = manifest["contributions"]["readers"]
    assert set(reader) == {"command", "filename_patterns", "accepts_directories"}
    assert reader["command"] == command["id"] and reader["accepts_directories"] is False
    for scheme in ("tessera", "http", "https"):
        address = f"{scheme}://portal.example:8000/{CANVAS}/"
        assert any(fnmatch(address, pattern) for pattern in reader["filename_patterns"])
        assert get_reader(address)
