"""Choice of a document's image for a canvas, and its description."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest

from portal.annotations.documents import DocumentError
from portal.annotations.formats.registry import reader_of
from portal.annotations.formats.types import Plane
from portal.annotations.qupath import Problem
from tests.portal.annotations.formats.reading import SLIDE, VIDEO, read

STILL = replace(SLIDE, name="frame_0.png")


def cvat(*images: tuple[str, int, int], number: int = 0) -> str:
    inner = "".join(
        f'<image id="{place}" name="{name}" width="{width}" height="{height}">'
        f'<box label="polyp" xtl="{10 * place}" ytl="1" xbr="{10 * place + 9}" ybr="9"/></image>'
        for place, (name, width, height) in enumerate(images, number)
    )
    return f"<annotations><version>1.1</version>{inner}</annotations>"


def coco(*images: tuple[str, int, int], number: int = 0) -> str:
    listed = [
        {"id": place, "file_name": name, "width": width, "height": height}
        for place, (name, width, height) in enumerate(images, number)
    ]
    ring = [[1, 1, 9, 1, 9, 9]]
    shapes = [
        {"id": row["id"], "image_id": row["id"], "category_id": 1, "segmentation": ring}
        for row in listed
    ]
    categories = [{"id": 1, "name": "polyp"}]
    return json.dumps({"images": listed, "annotations": shapes, "categories": categories})


def decided(text: str, plane: Plane) -> str:
    stream = io.BytesIO(text.encode())
    return reader_of(stream).image_decided(io.BytesIO(text.encode()), plane)


def split(text: str, plane: Plane) -> tuple[list[Any], list[Problem]]:
    features = read(text, plane)
    problems = [feature for feature in features if isinstance(feature, Problem)]
    return [feature for feature in features if not isinstance(feature, Problem)], problems


each_format = pytest.mark.parametrize("written", [cvat, coco])


@each_format
def test_the_image_with_the_name_of_the_canvas_is_read_if_two_have_its_size(written: Any) -> None:
    text = written(("frame_0.png", 1000, 800), ("frame_1.png", 1000, 800))
    features, problems = split(text, STILL)
    assert len(features) == 1
    assert [problem.reason for problem in problems] == [
        "it belongs to another image: frame_1.png, 1000 x 800 pixels"
    ]
    assert all("polyp" in problem.shape for problem in problems)
    assert "frame_0.png" in decided(text, STILL) and "name" in decided(text, STILL)


@each_format
@pytest.mark.parametrize(
    "name", ["a/b/FRAME_0.PNG", "a\\frame_0.jpg", "frame_0", "frame\u200b_0.png"]
)
def test_folders_suffixes_and_case_do_not_matter(written: Any, name: str) -> None:
    features, problems = split(written((name, 1000, 800), ("x.png", 1000, 800)), STILL)
    assert (len(features), len(problems)) == (1, 1)


@each_format
def test_none_of_several_is_read_where_none_has_the_name(written: Any) -> None:
    text = written(("a.png", 1000, 800), ("b.png", 1000, 800), ("c.png", 10, 8))
    assert split(text, STILL)[0] == []
    assert "none its name" in decided(text, STILL)


@each_format
def test_an_image_of_the_name_and_another_size_does_not_give_way_to_another(written: Any) -> None:
    text = written(("frame_0.png", 10, 8), ("b.png", 1000, 800))
    assert split(text, STILL)[0] == []
    assert "another size" in decided(text, STILL)


@each_format
def test_a_single_image_of_another_name_is_read_with_a_notice(written: Any) -> None:
    text = written(("scan 7.png", 1000, 800))
    assert len(split(text, STILL)[0]) == 1
    assert "by its size" in decided(text, STILL) and "scan 7.png" in decided(text, STILL)


@each_format
def test_two_images_of_one_name_are_both_refused(written: Any) -> None:
    text = written(("a/frame_0.png", 1000, 800), ("b/frame_0.png", 1000, 800))
    assert split(text, STILL)[0] == []
    assert "2 images" in decided(text, STILL)


@each_format
@pytest.mark.parametrize("suffix", ["jpg", "jp2", "ome.tif"])
def test_on_a_video_the_number_in_the_name_is_the_frame(written: Any, suffix: str) -> None:
    names = (f"frame_000030.{suffix}", 1000, 800), (f"frame_000075.{suffix}", 1000, 800)
    features, _ = split(written(*names), VIDEO)
    assert [feature.t for feature in features] == [30, 75]
    assert "number at the end of its name" in decided(written(*names), VIDEO)


@each_format
def test_an_image_without_a_number_is_refused_on_a_video(written: Any) -> None:
    text = written(("frame_12.png", 1000, 800), ("cover.png", 1000, 800))
    features, problems = split(text, VIDEO)
    assert [feature.t for feature in features] == [12]
    assert [problem.reason for problem in problems] == [
        "the name of its image, cover.png, contains no frame number"
    ]


@each_format
def test_frames_of_the_video_with_the_name_of_the_canvas_are_read(written: Any) -> None:
    size = 1000, 800
    text = written(("Sweep/frame_3.png", *size), ("Other/frame_4.png", *size))
    features, problems = split(text, VIDEO)
    assert ([feature.t for feature in features], len(problems)) == ([3], 1)
    assert "other videos were not read" in decided(text, VIDEO)
    text = written(("A/frame_3.png", *size), ("B/frame_4.png", *size))
    assert split(text, VIDEO)[0] == []
    assert "images of 2 videos" in decided(text, VIDEO)


def test_cvat_images_without_a_name_are_frames_by_their_id() -> None:
    text = cvat(("x", 1000, 800), number=7).replace(' name="x"', "")
    assert [feature.t for feature in read(text, VIDEO)] == [7]


def test_tracks_over_several_frames_are_refused_on_one_image() -> None:
    shape = '<box frame="{}" outside="0" keyframe="1" xtl="1" ytl="1" xbr="9" ybr="9"/>'
    several = f'<track id="4" label="polyp">{shape.format(3)}{shape.format(9)}</track>'
    features, problems = split(f"<annotations>{several}</annotations>", STILL)
    assert features == [] and len(problems) == 2
    assert "frame 3" in problems[0].reason and problems[0].shape == "box “Track 4” (polyp)"
    track = f'<track id="4" label="polyp">{shape.format(3)}</track>'
    assert len(split(f"<annotations>{track}</annotations>", STILL)[0]) == 1


def test_asap_is_refused_on_a_video_because_it_names_no_frame() -> None:
    text = "<ASAP_Annotations><Annotations/></ASAP_Annotations>"
    with pytest.raises(DocumentError, match="frame"):
        read(text, VIDEO)
