"""Images, manifests and annotations of IIIF over REST."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
import shapely
from django.test import Client
from PIL import Image

from portal.annotations.services.rois import roi_create
from portal.archive.models import Slide, Video
from portal.interop.web_annotation import selectors
from tests.portal.interop.conftest import Lab1
from tests.portal.interop.iiif.presentation_rules import presentation_errors


def _image(held: Lab1, rest: str) -> Any:
    return held.client().get(f"/api/v1/iiif/{held.world.canvas.pk}{rest}")


def test_a_tile_of_info_json_is_the_stored_tile(held: Lab1) -> None:
    info = _image(held, "/info.json").json()
    tile = info["tiles"][0]
    side = tile["width"]
    image = _image(held, f"/0,0,{side},{side}/{side},{side}/0/default.jpg")
    stored = held.client().get(f"/api/v1/canvases/{held.world.canvas.pk}/tiles/0/0/0.jpg")
    finest = len(held.world.canvas.levels) - 1
    if finest:
        path = f"/api/v1/canvases/{held.world.canvas.pk}/tiles/{finest}/0/0.jpg"
        stored = held.client().get(path)
    assert image.content == stored.content
    assert 'rel="canonical"' in image["Link"]


@pytest.mark.parametrize(
    ("rest", "size", "mode"),
    [
        ("/0,0,64,32/max/90/default.jpg", (32, 64), "RGB"),
        ("/0,0,64,32/32,/0/gray.jpg", (32, 16), "L"),
        ("/0,0,64,32/max/180/bitonal.png", (64, 32), "1"),
        ("/square/!50,50/0/color.png", (50, 50), "RGB"),
    ],
)
def test_pixels_match_the_request(held: Lab1, rest: str, size: tuple[int, int], mode: str) -> None:
    with Image.open(io.BytesIO(_image(held, rest).content)) as image:
        assert (image.size, image.mode) == (size, mode)


def test_mirroring_precedes_rotation(held: Lab1) -> None:
    plain = Image.open(io.BytesIO(_image(held, "/0,0,64,32/max/0/default.png").content))
    rotated = Image.open(io.BytesIO(_image(held, "/0,0,64,32/max/!90/default.png").content))
    wanted = plain.transpose(Image.Transpose.FLIP_LEFT_RIGHT).transpose(Image.Transpose.ROTATE_270)
    assert rotated.tobytes() == wanted.tobytes()


def test_a_current_copy_is_not_sent_again(held: Lab1) -> None:
    address = f"/api/v1/iiif/{held.world.canvas.pk}/0,0,64,32/max/0/default.png"
    first = held.client().get(address)
    again = held.client().get(address, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert first["Cache-Control"].startswith("private")


def test_cross_origin_requests_need_a_token(held: Lab1) -> None:
    canvas, other_origin = held.world.canvas, {"Origin": "https://viewer.example"}
    preflight = other_origin | {"Access-Control-Request-Method": "GET"}
    readable = [
        f"iiif/{canvas.pk}/info.json",
        f"canvases/{canvas.pk}/manifest/",
        f"canvases/{canvas.pk}/annotations/",
        f"cases/{canvas.case_id}/manifest/",
        "dicomweb/studies",
    ]
    for address in readable:
        client = Client().options(f"/api/v1/{address}", headers=preflight)
        assert (client.status_code, client["Access-Control-Allow-Origin"]) == (200, "*")
        assert "Authorization" in client["Access-Control-Allow-Headers"]
        assert "POST" not in client["Access-Control-Allow-Methods"]
        refused = Client().get(f"/api/v1/{address}", headers=other_origin)
        assert (refused.status_code, refused["Access-Control-Allow-Origin"]) == (401, "*")
        shown = held.client().get(f"/api/v1/{address}", headers=other_origin)
        assert (shown.status_code, shown["Access-Control-Allow-Origin"]) == (200, "*")
        assert "Access-Control-Allow-Credentials" not in shown


def test_other_addresses_allow_no_request_of_another_origin(held: Lab1) -> None:
    canvas, other_origin = held.world.canvas, {"Origin": "https://viewer.example"}
    preflight = other_origin | {"Access-Control-Request-Method": "GET"}
    paths = [
        "api/v1/cases/",
        f"api/v1/cases/{canvas.case_id}/",
        f"api/v1/canvases/{canvas.pk}/",
        "",
    ]
    for path in paths:
        for answer in (
            held.client().get(f"/{path}", headers=other_origin),
            held.client().options(f"/{path}", headers=preflight),
        ):
            assert "Access-Control-Allow-Origin" not in answer


def test_a_video_has_a_manifest_and_no_image(held: Lab1) -> None:
    canvas = held.world.video.canvas
    assert held.client().get(f"/api/v1/iiif/{canvas.pk}/info.json").status_code == 404
    manifest = held.client().get(f"/api/v1/canvases/{canvas.pk}/manifest/").json()
    assert presentation_errors(manifest) == []
    body = manifest["items"][0]["items"][0]["items"][0]["body"]
    assert body["type"] == "Video" and body["duration"] > 0
    media = held.client().get(re.sub("^http://[^/]+", "", body["id"]))
    assert media.status_code == 200


def test_a_manifest_names_a_video_by_its_content_type(held: Lab1) -> None:
    video = held.world.video
    path = f"assets/{video.lab_id}/{video.asset.sha256[:2]}/{video.asset.sha256}"
    Video.objects.filter(pk=video.pk).update(container="matroska,webm", media_path=path)
    manifest = held.client().get(f"/api/v1/canvases/{video.canvas_id}/manifest/").json()
    body = manifest["items"][0]["items"][0]["items"][0]["body"]
    media = held.client().get(re.sub("^http://[^/]+", "", body["id"]))
    assert body["format"] == media["Content-Type"] == "video/webm"


def test_manifests_are_valid_and_their_links_resolve(held: Lab1) -> None:
    case, canvas = held.world.case, held.world.canvas
    Slide.objects.filter(canvas=canvas).update(stain="PAS")
    body = held.client().get(f"/api/v1/canvases/{canvas.pk}/manifest/").json()
    data = {"label": {"en": ["Stain"]}, "value": {"none": ["PAS"]}}
    assert data in body["items"][0]["metadata"]
    full_manifest = held.client().get(f"/api/v1/cases/{case.pk}/manifest/").json()
    for manifest in (body, full_manifest):
        assert presentation_errors(manifest) == []
    assert body["items"][0] in full_manifest["items"]
    assert len(full_manifest["items"]) == 2
    for address in _addresses(body["items"][0]):
        answer = held.client().get(re.sub("^http://[^/]+", "", address))
        assert answer.status_code in {200, 303}, address
    text = json.dumps(full_manifest)
    assert case.patient_key and case.patient_key not in text


def _addresses(canvas: dict[str, Any]) -> list[str]:
    body = canvas["items"][0]["items"][0]["body"]
    return [
        body["id"],
        body["service"][0]["id"],
        canvas["thumbnail"][0]["id"],
        canvas["annotations"][0]["id"],
    ]


def test_annotations_describe_the_regions(held: Lab1) -> None:
    _drawn(held)
    path = f"/api/v1/canvases/{held.world.canvas.pk}/annotations/"
    page = held.client().get(path, headers={"Accept": "application/ld+json"})
    assert page["Content-Type"].startswith("application/ld+json")
    document = page.json()
    assert presentation_errors(document) == []
    area, line, points = document["items"]
    label = {"type": "TextualBody", "purpose": "tagging", "value": "Swept", "format": "text/plain"}
    assert area["body"][0] == label
    svg, box = area["target"]["selector"]
    assert box["value"] == "xywh=10,10,390,390"
    assert shapely.Polygon(_path(svg["value"])).area == 390**2
    assert line["motivation"] == "highlighting"
    assert _path(line["target"]["selector"][0]["value"]) == [(5.0, 5.0), (90.0, 45.5)]
    assert points["target"]["selector"][0]["value"].count("<circle") == 2
    assert "next" not in document


def _drawn(held: Lab1) -> None:
    for geometry in (
        {"type": "LineString", "coordinates": [[5, 5], [90, 45.5]]},
        {"type": "MultiPoint", "coordinates": [[7, 8], [9, 10]]},
    ):
        roi_create(canvas=held.world.canvas, user=held.manager, geometry=geometry)


def _path(svg: str) -> list[tuple[float, float]]:
    match = re.search(r' d="M([^"Z]+)', svg)
    assert match is not None
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+),([\d.]+)", match[1])]


def test_pages_lead_on(held: Lab1, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "PAGE_SIZE", 2)
    _drawn(held)
    path = f"/api/v1/canvases/{held.world.canvas.pk}/annotations/"
    first = held.client().get(path).json()
    second = held.client().get(re.sub("^http://[^/]+", "", first["next"])).json()
    ids = [item["id"] for page in (first, second) for item in page["items"]]
    assert len(set(ids)) == 3 and len(first["items"]) == 2
    assert second["prev"] == first["id"] and "next" not in second


def test_a_page_of_more_annotations_needs_no_more_queries(
    held: Lab1, django_assert_max_num_queries: Any
) -> None:
    for _ in range(5):
        _drawn(held)
    path = f"/api/v1/canvases/{held.world.canvas.pk}/annotations/"
    with django_assert_max_num_queries(9):  # token, membership, canvas, ROIs, the audit log's five
        assert len(held.client().get(path).json()["items"]) == 11


def test_a_broken_manifest_would_be_seen(held: Lab1) -> None:
    path = f"/api/v1/canvases/{held.world.canvas.pk}/manifest/"
    manifest = held.client().get(path).json()
    manifest["items"][0]["width"] = 0
    manifest["label"] = "plain"
    assert presentation_errors(manifest) == [
        "/label: texts by language",
        "/items/0/width: a positive integer",
    ]
