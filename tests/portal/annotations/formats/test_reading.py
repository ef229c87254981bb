"""Documents of other tools, sound and hostile: each shape is read or refused with its reason."""

from __future__ import annotations

import io
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
import shapely

from portal.annotations.documents import DocumentError
from portal.annotations.formats.registry import reader_of
from portal.annotations.models import RoiKind
from portal.annotations.qupath import FeatureError, Problem, feature_read
from portal.core.errors import InvalidInputError
from tests.portal.annotations.formats.reading import SLIDE, VIDEO, area, read


def asap(*annotations: str, groups: str = "") -> str:
    return (
        "<?xml version='1.0'?><ASAP_Annotations><Annotations>"
        + "".join(annotations)
        + f"</Annotations><AnnotationGroups>{groups}</AnnotationGroups></ASAP_Annotations>"
    )


def annotation(points: str, **attributes: str) -> str:
    given = {"Name": "A", "Type": "Polygon", "PartOfGroup": "None", "Color": "#F4FA58"} | attributes
    head = " ".join(f'{key}="{value}"' for key, value in given.items())
    coordinates = "".join(
        f'<Coordinate Order="{order}" X="{point.split()[0]}" Y="{point.split()[1]}"/>'
        for order, point in enumerate(points.split(","))
    )
    return f"<Annotation {head}><Coordinates>{coordinates}</Coordinates></Annotation>"


# --- ASAP -----------------------------------------------------------------------------------------


def test_asap_shapes_groups_and_colours_are_read() -> None:
    square = "10 10,30 10,30 30,10 30"
    features = read(
        asap(
            annotation(square, PartOfGroup="Tumor"),
            annotation(square, Type="Rectangle", Name="R"),
            annotation(square, Type="Spline"),
            annotation("5 5", Type="Dot"),
            annotation("5 5", Type="Cloud"),
            groups='<Group Name="Tumor" PartOfGroup="None" Color="#ff0000"><Attributes/></Group>',
        )
    )
    assert [(feature.label, feature.color) for feature in features[:2]] == [
        ("Tumor", "#ff0000"),
        ("", "#f4fa58"),
    ]
    assert [area(feature) for feature in features[:3]] == [400.0] * 3
    assert features[2].notes == ("a spline was converted to the polygon of its points",)
    assert features[3].geometry == {"type": "MultiPoint", "coordinates": [[5, 5]]}
    assert features[4] == Problem("a Cloud of ASAP is not read")


def test_asap_coordinates_are_taken_by_their_order() -> None:
    points = [(0, "10 10"), (2, "30 30"), (1, "30 10"), (3, "10 30")]
    inner = "".join(
        f'<Coordinate Order="{n}" X="{p.split()[0]}" Y="{p.split()[1]}"/>' for n, p in points
    )
    text = asap(f'<Annotation Type="Polygon"><Coordinates>{inner}</Coordinates></Annotation>')
    assert area(read(text)[0]) == 400.0


def test_asap_numbers_that_are_none_are_refused_one_by_one() -> None:
    features = read(asap(annotation("a 1,2 2,3 3"), annotation("nan 1,2 2,9 3"), annotation("1 1")))
    assert features[0] == Problem("coordinate 0 has no numbers X and Y")
    with pytest.raises(Exception, match="finite"):
        area(features[1])
    with pytest.raises(InvalidInputError, match=r"geometry: .*\b3\b"):
        area(features[2])


# --- XML that attacks -----------------------------------------------------------------------------

_LOL = "".join(
    f'<!ENTITY l{n} "{"&l" + str(n - 1) + ";" if n else "lol"}'
    f'{("&l" + str(n - 1) + ";") * 9 if n else ""}">'
    for n in range(9)
)


@pytest.mark.parametrize(
    "text",
    [
        f"<!DOCTYPE a [{_LOL}]><ASAP_Annotations>&l8;</ASAP_Annotations>",
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><annotations>&x;</annotations>',
        '<!DOCTYPE annotations SYSTEM "http://127.0.0.1/x.dtd"><annotations/>',
        "<!DOCTYPE a [" + '<!ENTITY a "' + "x" * 60_000 + '">]><annotations>&a;</annotations>',
    ],
)
def test_entities_and_document_types_are_refused(text: str) -> None:
    tracemalloc.start()
    began = time.perf_counter()
    with pytest.raises(DocumentError, match="entities"):
        read(text)
    assert time.perf_counter() - began < 2
    assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    tracemalloc.stop()


@pytest.mark.parametrize("depth", [40, 10_000])
def test_deep_xml_is_refused(depth: int) -> None:
    text = "<annotations>" + "<a>" * depth + "</a>" * depth + "</annotations>"
    with pytest.raises(DocumentError, match="deeply"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "<annotations><track",
        "<annotations></annotation>",
        "<annotations>\x01</annotations>",
        '<?xml version="1.0" encoding="ebcdic-none"?><annotations></annotations>',
        b"<annotations>\xff\xfe</annotations>",
    ],
)
def test_broken_xml_is_refused_completely(text: str | bytes) -> None:
    with pytest.raises(DocumentError):
        read(text)


def test_a_tag_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.annotations.formats.xml.ELEMENT_BYTES", 2**20)
    with pytest.raises(DocumentError, match="larger"):
        read("<annotations><track label='" + "x" * 3 * 2**20)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_annotations() -> None:
    data = asap(*[annotation("10 10,30 10,30 30,10 30")] * 5_000).encode()
    reader = reader_of(io.BytesIO(data))
    tracemalloc.start()
    assert sum(1 for _ in reader.read(io.BytesIO(data), SLIDE)) == 5_000
    assert tracemalloc.get_traced_memory()[1] < len(data) / 4 + 2**20
    tracemalloc.stop()


@pytest.mark.slow
def test_an_outline_of_a_hundred_thousand_vertices_is_read() -> None:
    turns = np.linspace(0, 2 * np.pi, 99_000, endpoint=False)
    points = ",".join(f"{500 + 300 * np.cos(t):.4f} {400 + 300 * np.sin(t):.4f}" for t in turns)
    assert area(read(asap(annotation(points)))[0]) == pytest.approx(np.pi * 300**2, rel=1e-4)


# --- CVAT -----------------------------------------------------------------------------------------

_META = (
    "<version>1.1</version><meta><task><labels><label><name>Polyp</name><color>#00FF00</color>"
    "</label></labels><original_size><width>{0}</width><height>{1}</height></original_size>"
    "</task></meta>"
)


def cvat(inner: str, size: tuple[int, int] = (1000, 800)) -> str:
    return f"<annotations>{_META.format(*size)}{inner}</annotations>"


def shape(frame: int, *, outside: int = 0, keyframe: int = 1, more: str = "") -> str:
    return (
        f'<box frame="{frame}" outside="{outside}" occluded="0" keyframe="{keyframe}"'
        f' xtl="10" ytl="20" xbr="{50 + frame}" ybr="60" {more}></box>'
    )


def test_a_track_is_one_region_with_key_frames() -> None:
    states = [shape(0), shape(1, keyframe=0), shape(2, keyframe=0), shape(3), shape(4, outside=1)]
    (result,) = read(cvat(f'<track id="5" label="Polyp">{"".join(states)}</track>'), VIDEO)
    assert (result.t, result.name, result.label, result.color) == (0, "Track 5", "Polyp", "#00ff00")
    assert result.foreign == {"metadata": {"cvat.track": "5"}}
    assert area(result) == 40 * 40
    (key,) = result.track  # it ends after 3 by itself
    assert (key["index"], key["outside"]) == (3, False)
    assert shapely.geometry.shape(key["geometry"]).area == 43 * 40


def test_a_track_that_is_held_comes_back_or_is_broken_in_part() -> None:
    def keys(*states: str) -> Any:
        (result,) = read(cvat(f'<track id="5" label="Polyp">{"".join(states)}</track>'), VIDEO)
        return result.t, [(key["index"], key["outside"]) for key in result.track], result.notes

    held = [shape(2), *(shape(k, keyframe=0) for k in range(3, 7))]
    assert keys(*held) == (2, [(6, False)], ())  # CVAT holds it up to the end of its file
    back = [shape(0, outside=1), shape(1), shape(4, outside=1), shape(7), shape(9, outside=1)]
    assert keys(*back) == (1, [(4, True), (7, False), (9, True)], ())
    broken = '<polygon frame="5" points="1,1;b,2"/>'
    t, track, (note,) = keys(shape(1), broken, shape(8))
    assert (t, track) == (1, [(8, False)]) and note.startswith("key frame 5 left out")
    assert read(cvat(f'<track id="5" label="a">{shape(1, outside=1)}</track>'), VIDEO) == []


def test_cvat_images_ellipses_rotated_boxes_masks_lines_and_points() -> None:
    inner = (
        '<image id="0" name="a" width="1000" height="800">'
        '<ellipse label="Polyp" cx="100" cy="100" rx="40" ry="20"/>'
        '<box label="Polyp" xtl="100" ytl="100" xbr="200" ybr="150" rotation="90"/>'
        '<mask label="Polyp" rle="1, 2, 2, 2, 5" left="10" top="10" width="4" height="3"/>'
        '<polygon label="x" points="1,1;20,1;20,20"><attribute name="g">m&lt;b</attribute>'
        "</polygon>"
        '<polyline label="Polyp" points="1,1;2,2"/><points points="1,1"/></image>'
        '<image id="1" name="b" width="9" height="9"><box xtl="1" ytl="1" xbr="5" ybr="5"/></image>'
    )
    features = read(cvat(inner))
    assert features[0].kind == RoiKind.ELLIPSE
    assert area(features[0]) == pytest.approx(800 * np.pi, rel=3e-3)
    rotated = shapely.geometry.shape(features[1].geometry)
    assert rotated.bounds == pytest.approx((125, 75, 175, 175))
    assert shapely.geometry.shape(features[2].geometry).equals(
        shapely.union_all([shapely.box(11, 10, 13, 11), shapely.box(11, 11, 13, 12)])
    )
    assert features[3].foreign == {"metadata": {"cvat.g": "m<b"}}
    assert [feature.geometry["type"] for feature in features[4:6]] == ["LineString", "MultiPoint"]
    assert [feature.reason for feature in features[6:]] == [
        "it belongs to another image: b, 9 x 9 pixels",
    ]


def test_a_cvat_document_of_another_size_is_refused_completely() -> None:
    with pytest.raises(DocumentError, match=r"640 x 480 .* 1000 x 800"):
        read(cvat("", size=(640, 480)), VIDEO)


@pytest.mark.parametrize(
    "inner",
    [
        '<track id="1" label="a"><box frame="x" xtl="1" ytl="1" xbr="9" ybr="9"/></track>',
        '<track id="1" label="a"><box frame="-1" xtl="1" ytl="1" xbr="9" ybr="9"/></track>',
        '<track id="1"><box frame="1" xtl="1"/></track>',
        '<track id="1"><polygon frame="1" points="1,1;b,2;3,3"/></track>',
        '<track id="1"><mask frame="1" rle="99,99" left="0" top="0" width="4" height="4"/></track>',
        '<track id="1"><mask frame="1" rle="-9,9" left="0" top="0" width="4" height="4"/></track>',
        f'<track id="1"><mask frame="1" rle="{2**70}" left="0" top="0" width="4" height="4"/>'
        "</track>",
        '<track id="1"><mask frame="1" rle="" left="0" top="0" width="4" height="4"/></track>',
    ],
)
def test_cvat_shapes_that_are_broken_are_refused_one_by_one(inner: str) -> None:
    (result,) = read(cvat(inner), VIDEO)
    with pytest.raises(FeatureError):
        feature_read(result)


# --- by content -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b'\xef\xbb\xbf \n{"type": "FeatureCollection", "features": []}', "geojson"),
        (b'[{"type": "Feature"}]', "geojson"),
        (b'{"categories": [], "images": []}', "coco"),
        (b"<?xml version='1.0'?>\n<!-- by hand --><ASAP_Annotations>", "asap"),
        (b"<annotations><version>1.1</version>", "cvat"),
    ],
)
def test_the_content_determines_the_format(head: bytes, name: str) -> None:
    assert reader_of(io.BytesIO(head)).name == name


@pytest.mark.parametrize(
    "head", [b"", b"PK\x03\x04", b"<svg/>", b'{"a": 1}', b"\0" * 99, b"<" * 9_999]
)
def test_an_unknown_format_is_refused(head: bytes) -> None:
    with pytest.raises(DocumentError, match="recognised"):
        reader_of(io.BytesIO(head))
