"""The grammar of IIIF's image requests, by hand-worked values."""

from __future__ import annotations

import pytest

from portal.core.errors import InvalidInputError
from portal.interop.iiif.formats.image_requests import MAX_SIDE_PX, ImageRequest, image_request

CANVAS = (6000, 4000)


def request(
    region: str = "full",
    size: str = "max",
    rotation: str = "0",
    quality: str = "default",
    extension: str = "jpg",
) -> ImageRequest:
    return image_request(region, size, rotation, quality, extension, canvas=CANVAS)


@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("full", (0, 0, 6000, 4000)),
        ("square", (1000, 0, 4000, 4000)),
        ("10,20,30,40", (10, 20, 30, 40)),
        ("5990,3990,100,100", (5990, 3990, 10, 10)),
        ("pct:50,25,10,10.5", (3000, 1000, 600, 420)),
    ],
)
def test_a_region_is_cut_at_the_edges(text: str, box: tuple[int, ...]) -> None:
    parsed = request(text)
    assert (parsed.left, parsed.top, parsed.width, parsed.height) == box


@pytest.mark.parametrize(
    ("region", "size", "out"),
    [
        ("full", "max", (2048, 1365)),
        ("0,0,600,400", "max", (600, 400)),
        ("full", "300,", (300, 200)),
        ("full", ",300", (450, 300)),
        ("full", "pct:10", (600, 400)),
        ("full", "100,90", (100, 90)),
        ("full", "!100,90", (100, 66)),
        ("0,0,600,400", "!900,900", (600, 400)),  # as large as it is, not larger
        ("full", "!9000,9000", (2048, 1365)),
        ("0,0,6000,1", "3,", (3, 1)),
    ],
)
def test_a_size_is_never_enlarged(region: str, size: str, out: tuple[int, int]) -> None:
    assert request(region, size).out == out


@pytest.mark.parametrize(
    ("region", "size"),
    [("0,0,60,40", "61,"), ("0,0,60,40", "pct:101"), ("0,0,60,40", "60,41"), ("full", "3000,")],
)
def test_enlarging_or_too_large_requests_are_refused(region: str, size: str) -> None:
    with pytest.raises(InvalidInputError):
        request(region, size)
    assert MAX_SIDE_PX == 2048


@pytest.mark.parametrize(
    "part",
    [
        {"region": "6000,0,1,1"},
        {"region": "0,0,0,5"},
        {"region": "-1,0,5,5"},
        {"region": "pct:0,0,0,0"},
        {"region": "1,2,3"},
        {"region": "٣,0,5,5"},
        {"size": "full"},
        {"size": "0,"},
        {"size": ","},
        {"size": "!5,"},
        {"size": "^max"},
        {"size": "pct:0"},
        {"size": "9999999999,"},
        {"rotation": "45"},
        {"rotation": "450"},
        {"rotation": "-90"},
        {"quality": "native"},
        {"extension": "tif"},
    ],
)
def test_requests_outside_the_grammar_are_refused_by_name(part: dict[str, str]) -> None:
    name = {"extension": "format"}.get(next(iter(part)), next(iter(part)))
    with pytest.raises(InvalidInputError, match=f"^{name}: "):
        request(**part)


@pytest.mark.parametrize(
    ("parts", "canonical"),
    [
        (("full", "max", "0"), "full/max/0/default.jpg"),
        (("0,0,6000,4000", "2048,1365", "360"), "full/max/0/default.jpg"),
        (("pct:50,25,10,10", "300,", "!90"), "3000,1000,600,400/300,200/!90/default.jpg"),
    ],
)
def test_the_same_pixels_have_one_address(parts: tuple[str, str, str], canonical: str) -> None:
    assert request(*parts).canonical(CANVAS) == canonical
