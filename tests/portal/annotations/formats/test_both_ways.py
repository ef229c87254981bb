"""Round trips of each format, except for the losses listed in reference/formats.md."""

from __future__ import annotations

import csv
import io
import json
import re
import uuid
from dataclasses import replace
from typing import Any

import highdicom
import numpy as np
import pydicom
import pytest
import shapely
import tifffile
from PIL import Image

from portal.annotations.formats import masks, pictures
from portal.annotations.formats.registry import READERS, WRITERS, reader_of
from portal.annotations.formats.tables import cell
from portal.annotations.formats.types import ExportChoices, Plane
from portal.annotations.geometry import shape_from_geojson
from portal.annotations.marks import outline_from_geojson
from portal.annotations.models import Label, Roi, RoiKind
from portal.annotations.qupath import Feature, feature_read
from portal.annotations.services.fields import shape_fields, shape_kind
from portal.core.errors import InvalidInputError
from tests.portal.annotations.support import box, ellipse, polygon

PLANE = Plane(uuid.UUID(int=1), "Section", 1000, 800, 0.5, 0.5)
VIDEO = Plane(uuid.UUID(int=2), "Sweep", 1000, 800, None, None, is_video=True)
MARKUP = """<b>"T' & ]]>=1"""
RING = {
    "type": "Polygon",
    "coordinates": [
        [[10, 10], [200, 10], [200, 200.25], [10, 200], [10, 10]],
        [[50, 50], [100, 50], [100, 100], [50, 100], [50, 50]],
    ],
}
TWO = {
    "type": "MultiPolygon",
    "coordinates": [box(300, 300, 340, 350)["coordinates"], box(400, 300, 440, 350)["coordinates"]],
}


def roi(geometry: Any, *, label: str = "Tumor", **fields: Any) -> Roi:
    shape = outline_from_geojson(geometry, width_px=1000, height_px=800)
    named = Label(name=label, color="#c80000") if label else None
    kind = shape_kind(shape, RoiKind.POLYGON)
    return Roi(label=named, shape=kind, **({"name": "One"} | fields | shape_fields(shape)))


def written(name: str, *rois: Roi, plane: Plane = PLANE, **choices: Any) -> bytes:
    pieces = WRITERS[name].write(lambda: iter(rois), plane, ExportChoices(**choices))
    return b"".join(pieces)


def read(data: bytes, *, plane: Plane = PLANE) -> list[Feature]:
    reader = reader_of(io.BytesIO(data))
    return [feature_read(raw) for raw in reader.read(io.BytesIO(data), plane)]


def outline(feature: Feature) -> Any:
    shape = shape_from_geojson(feature.geometry, width_px=1000, height_px=800)
    assert not shape.notes
    return shapely.geometry.shape(shape.geometry)


@pytest.mark.parametrize("name", sorted(READERS.keys() & WRITERS.keys()))
def test_a_format_that_is_written_is_recognised_and_read_back(name: str) -> None:
    rois = [roi(polygon((1.25, 2), (90.5, 3), (40, 77.77))), roi(ellipse(500, 400, 80, 50))]
    data = written(name, *rois)
    assert reader_of(io.BytesIO(data)).name == name
    back = read(data)
    assert [(item.name, item.label) for item in back] == [("One", "Tumor")] * 2
    for item, was in zip(back, rois, strict=True):
        assert outline(item).equals(shapely.geometry.shape(was.geometry))


@pytest.mark.parametrize("name", sorted(READERS.keys() & WRITERS.keys()))
def test_a_region_without_a_label_has_none_when_it_is_read_back(name: str) -> None:
    (back,) = read(written(name, roi(box(1, 1, 50, 50), label="")))
    assert back.label == ""


@pytest.mark.parametrize("name", sorted(READERS.keys() & WRITERS.keys()))
def test_markup_in_names_and_labels_is_text(name: str) -> None:
    back = read(written(name, roi(box(1, 1, 50, 50), label=MARKUP, name=MARKUP + "\0\x07")))
    assert (back[0].label, back[0].name.replace("\x07", "")) == (MARKUP, MARKUP)


def test_holes_and_parts_keep_their_area() -> None:
    rois = [roi(RING), roi(TWO)]
    coco = [outline(item) for item in read(written("coco", *rois))]
    for item, was in zip(coco, rois, strict=True):
        assert item.symmetric_difference(shapely.geometry.shape(was.geometry)).area < 1.0
    assert len(coco[0].interiors) == 1
    asap = shapely.union_all([outline(item) for item in read(written("asap", *rois))])
    assert asap.area == pytest.approx(sum(item.area_px for item in rois), abs=1.0)


def test_many_holes_are_cut_without_a_gap() -> None:
    holes = [box(x, y, x + 4, y + 4)["coordinates"][0] for x in range(10, 400, 9) for y in (20, 40)]
    raw = {"type": "Polygon", "coordinates": [box(0, 0, 420, 60)["coordinates"][0], *holes]}
    (back,) = read(written("coco", roi(raw)))
    read_outline = outline(back)
    assert (read_outline.area, len(read_outline.interiors)) == (
        420 * 60 - 16 * len(holes),
        len(holes),
    )


def test_frames_of_a_video_are_images_of_coco() -> None:
    data = written("coco", roi(box(1, 1, 9, 9), frame_index=7), plane=VIDEO)
    assert json.loads(data)["images"][0]["file_name"] == "frame_000007.png"
    assert [feature.t for feature in read(data, plane=VIDEO)] == [7]


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+1", "-1", "@A1", "\t=1", "\r=1", "\n=1", " =1", "\xa0=1"),
        *("\u200b=1", "\ufeff@A1", "\u202e-1", "＝1", "＋1", "－1", "＠A1"),
    ],
)
def test_no_spreadsheet_takes_a_text_for_a_formula(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["Tumour", "a=b", "(-)", "1-2", "Ä+", "", "😀", "<para>"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert cell(text) == text


def test_a_table_has_measures_with_units_and_no_formulas() -> None:
    text = written("csv", roi(box(0, 0, 30, 40), name="=1+1"), roi(RING)).decode("utf-8-sig")
    first, second = csv.DictReader(io.StringIO(text))
    assert first["name"] == "'=1+1"
    assert (first["area_px"], first["area_um2"]) == ("1200.0", "300.0")
    assert (first["perimeter_um"], first["feret_um"]) == ("70.0", "25.0")
    assert (second["holes"], second["parts"]) == ("1", "1")
    assert float(second["solidity"]) < 1
    unscaled = written("csv", roi(box(0, 0, 30, 40)), plane=VIDEO).decode("utf-8-sig")
    assert next(csv.DictReader(io.StringIO(unscaled)))["area_um2"] == ""


@pytest.mark.parametrize("step", [1, 4])
def test_a_mask_contains_each_pixel_whose_centre_is_inside(step: int) -> None:
    rois = [roi(RING), roi(TWO, label=""), roi(ellipse(700, 560, 200, 150), label="Stroma")]
    with tifffile.TiffFile(io.BytesIO(written("mask", *rois, downsample=step))) as file:
        page, result = file.pages[0], file.asarray()
        table = json.loads(page.tags["ImageDescription"].value)
    assert (page.is_tiled, result.shape) == (True, (800 // step, 1000 // step))
    assert [row["label"] for row in table["values"]] == ["(none)", "Tumor", "(no label)", "Stroma"]
    y, x = np.mgrid[: result.shape[0], : result.shape[1]] * step + step / 2
    for value, item in enumerate(rois, start=1):
        shape = shapely.geometry.shape(item.geometry)
        differs = (result == value) != shapely.contains_xy(shape, x, y)
        centres = shapely.points(x[differs], y[differs])
        assert shapely.dwithin(shapely.boundary(shape), centres, 1e-9).all()


def test_a_mask_tile_equals_the_slow_way_for_any_outline() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        shape = shapely.make_valid(shapely.Polygon(rng.uniform(-40, 100, (9, 2))))
        y, x = np.mgrid[:64, :64] + 0.5
        assert (masks.filled(shape, 0, 0, 64) == shapely.contains_xy(shape, x, y)).all()


def test_invalid_masks_are_refused() -> None:
    large = Plane(uuid.UUID(int=3), "Huge", 300_000, 300_000, None, None)
    for plane, choices in ((large, {}), (VIDEO, {}), (PLANE, {"downsample": 3})):
        with pytest.raises(InvalidInputError):
            written("mask", roi(RING), plane=plane, **choices)


def test_dicom_annotations_are_read_by_highdicom_in_pixels_of_the_matrix() -> None:
    data = written("dicom", roi(box(10, 20, 60, 80)), roi(RING, label="Stroma"), roi(TWO, label=""))
    result = highdicom.ann.annread(io.BytesIO(data))
    groups = {group.label: group for group in result.get_annotation_groups()}
    assert set(groups) == {"Tumor", "Stroma", "No label"}
    (first,) = groups["Tumor"].get_graphic_data("2D")
    assert shapely.Polygon(first).equals(shapely.box(10, 20, 60, 80))
    assert len(groups["No label"].get_graphic_data("2D")) == 2
    assert str(result.PatientName) == ""  # who it is stays in the portal
    again = highdicom.ann.annread(io.BytesIO(written("dicom", roi(RING))))
    assert again.StudyInstanceUID == result.StudyInstanceUID


def test_a_picture_shows_the_region_its_outline_and_a_scale_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        pictures,
        "window_pixels",
        lambda plane, window, size, pts: np.full((size[1], size[0], 3), 200, np.uint8),
    )
    region = roi(box(100, 100, 500, 400))
    data = written("png", region, roi_id=region.pk, width_px=800)
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
    assert pixels.shape[1] == 800
    red = (pixels[..., 0] > 180) & (pixels[..., 1] < 40)
    assert 1000 < red.sum() < 20_000
    corner = pixels[-80:, :200]
    assert (corner.min(axis=2) > 250).sum() > 500  # white ink of the bar and its text
    unscaled = Plane(uuid.UUID(int=1), "S", 1000, 800, None, None)
    bare = np.asarray(Image.open(io.BytesIO(written("png", plane=unscaled))).convert("RGB"))
    assert (bare == 200).all()


@pytest.mark.parametrize(
    ("most", "length"), [(1, 1), (1.9, 1), (260, 200), (4999, 2000), (0.3, 0.2)]
)
def test_a_scale_bar_has_a_round_length(most: float, length: float) -> None:
    assert pictures.bar_um(most) == pytest.approx(length)


def test_tracks_go_to_cvat_and_come_back() -> None:
    """With an interruption, a part that is there for some frames only, and a hole cut open."""
    keys = [
        {"index": 4, "geometry": box(20, 10, 120, 60), "outside": False},
        {"index": 6, "geometry": None, "outside": True},
        {"index": 9, "geometry": box(30, 10, 130, 60), "outside": False},
    ]
    region = roi(box(10, 10, 110, 60), name=MARKUP, label="A & B", frame_index=2, track=keys)
    (back,) = read(written("cvat", region, plane=VIDEO), plane=VIDEO)
    assert (back.t, back.name, back.label) == (2, MARKUP, "A & B")
    assert outline(back).equals(shapely.geometry.shape(region.geometry))
    assert [(key["index"], key["outside"]) for key in back.track] == [
        (4, False),
        (6, True),
        (9, False),
    ]
    for key, was in zip(back.track, keys, strict=True):
        if not was["outside"]:
            drawn = shapely.geometry.shape(key["geometry"])
            assert drawn.equals(shapely.geometry.shape(was["geometry"]))
    parts = roi(TWO, frame_index=1, track=[{"index": 3, "geometry": RING, "outside": False}])
    features = read(written("cvat", parts, plane=VIDEO), plane=VIDEO)
    assert {feature.t for feature in features} == {1}
    united = shapely.union_all([outline(feature) for feature in features])
    assert united.equals(shapely.geometry.shape(TWO))
    later = [
        shapely.geometry.shape(key["geometry"]) for feature in features for key in feature.track
    ]
    other = shapely.union_all(later).symmetric_difference(shapely.geometry.shape(RING))
    assert other.area < 1  # where it is cut, an edge gets a corner of two decimals


def test_web_annotations_are_on_the_canvas_and_keep_holes_and_parts() -> None:
    page = json.loads(written("web", roi(RING), roi(TWO, label=""), roi(RING, frame_pts=90)))
    ring, two, _ = page["items"]
    assert ring["target"]["selector"][0]["value"].count("Z") == 2
    assert two["target"]["selector"][0]["value"].count("M") == 2
    assert two["motivation"] == "highlighting"
    assert str(PLANE.canvas_id) in ring["target"]["source"]["id"]
    film = replace(VIDEO, time_base_s=0.01)
    (report,) = json.loads(written("web", roi(RING, frame_pts=90), plane=film))["items"]
    assert report["target"]["selector"][1]["value"] == "t=0.900000&xywh=10,10,190,191"


@pytest.mark.parametrize(
    "name",
    [
        "A\\B",
        "W" * 120,
        "é" * 120,
        "😀" * 70,
        "a\x00b\x1b[31m",
        "a\r\nb",
        "\u202eA\u2066",
        "<b>&",
        "^=~",
        " A ",
    ],
)
def test_a_hostile_label_is_one_value_in_dicom(name: str) -> None:
    data = written("dicom", roi(RING, label=name))
    dataset = pydicom.dcmread(io.BytesIO(data))
    (group,) = dataset.AnnotationGroupSequence
    assert isinstance(group.AnnotationGroupLabel, str)
    assert 0 < len(group.AnnotationGroupLabel) <= 64
    assert not re.search(r"[\x00-\x1f\\\\]", group.AnnotationGroupLabel)
