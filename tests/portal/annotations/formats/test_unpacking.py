"""Documents as they are sent: packed, several at once, in other encodings."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from portal.annotations.documents import DocumentError
from portal.annotations.formats import unpacking
from portal.annotations.models import Roi
from portal.annotations.services.exchange import roi_import
from portal.annotations.services.reading import file_source
from portal.archive.models import Canvas
from portal.labs.models import User
from tests.portal.annotations.staging import counts, run, stage
from tests.portal.annotations.support import box, collection, feature, statuses

pytestmark = pytest.mark.django_db


def geojson(*names: str) -> bytes:
    features = [feature(box(20 * n, 1, 20 * n + 9, 9), name=name) for n, name in enumerate(names)]
    return json.dumps(collection(*features), ensure_ascii=False).encode()


def asap(encoding: str, name: str = "Drüse", *, declared: str = "") -> bytes:
    points = "".join(f'<Coordinate X="{x}" Y="{y}"/>' for x, y in ((1, 1), (9, 1), (9, 9)))
    return (
        f'<?xml version="1.0" encoding="{declared or encoding}"?><ASAP_Annotations><Annotations>'
        f'<Annotation Name="{name}" Type="Polygon"><Coordinates>{points}</Coordinates>'
        "</Annotation></Annotations></ASAP_Annotations>"
    ).encode(encoding)


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "."), data)
    return out.getvalue()


def brought(canvas: Canvas, user: User, data: bytes) -> Any:
    return roi_import(canvas=canvas, user=user, document=file_source(io.BytesIO(data), canvas))


def names() -> list[str]:
    return sorted(Roi.objects.values_list("name", flat=True))


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(geojson("Drüse")),
        zipped(a__geojson=geojson("Drüse")),
        zipped(a__geojson__gz=gzip.compress(geojson("Drüse"))),
        gzip.compress(geojson("Drüse").decode().encode("utf-16")),
        *(geojson("Drüse").decode().encode(item) for item in ("utf-16", "utf-16-be", "utf-8-sig")),
        geojson("Drüse").decode().encode("utf-32"),
        *(asap(item) for item in ("utf-8", "utf-16", "iso-8859-1", "windows-1252")),
        asap("utf-8-sig", declared="utf-8"),
        asap("utf-16-le", declared="utf-16"),
        asap("utf-8", declared="utf-16"),
        zipped(a__xml=asap("utf-16")),
    ],
)
def test_a_document_is_read_as_it_was_packed_and_encoded(
    canvas: Canvas, annotator: User, data: bytes
) -> None:
    assert statuses(brought(canvas, annotator, data)) == ["created"]
    assert names() == ["Drüse"]


def test_several_documents_of_an_archive_are_one_import(canvas: Canvas, annotator: User) -> None:
    data = zipped(
        b__geojson=geojson("b", "b2"),
        a__xml=asap("utf-8", "a"),
        photo__png=b"\x89PNG\r\n\x1a\n" + bytes(99),
    )
    report = brought(canvas, annotator, data)
    assert statuses(report) == ["created"] * 3 and names() == ["a", "b", "b2"]
    assert report.format == "mixed" and "photo.png" in report.image_decided


def test_documents_with_the_name_of_the_canvas_are_read(canvas: Canvas, annotator: User) -> None:
    data = zipped(**{"Section 1__geojson": geojson("mine"), "Section 2__geojson": geojson("x")})
    report = brought(canvas, annotator, data)
    assert statuses(report) == ["created", "refused"] and names() == ["mine"]
    assert report.items[1].message == "Polygon “x”: it belongs to another image: Section 2.geojson"
    assert "Section 1.geojson" in report.image_decided


def test_an_archive_is_imported_by_a_job(canvas: Canvas, annotator: User, storage: Path) -> None:
    row = run(stage(canvas, annotator, zipped(a__geojson=geojson("a"), b__xml=asap("utf-8"))))
    assert (row.format, counts(row)) == ("mixed", (2, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(geojson("a"))[:-9], "truncated or damaged"),
        (b"\x1f\x8b" + bytes(50), "truncated or damaged"),
        (zipped(a__png=b"x"), "a.png"),
        (zipped(a__geojson=geojson("a"))[:-30], "truncated"),
        (zipped(a__geojson=geojson("a"), b__geojson=geojson("b")[:-9]), "b.geojson"),
        (zipped(**{"../x": geojson("a")}), "leads outside"),
        (geojson("a").decode().encode("utf-16")[:-1], "UTF-16"),
        (gzip.compress(gzip.compress(geojson("a"))), "not recognised"),
    ],
)
def test_a_damaged_archive_is_refused_with_its_reason(
    canvas: Canvas, annotator: User, data: bytes, words: str
) -> None:
    with pytest.raises(DocumentError, match=words):
        brought(canvas, annotator, data)
    assert not Roi.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gzip", "zip", "gzip in zip"])
def test_a_bomb_is_refused_before_it_fills_memory_or_disk(
    canvas: Canvas, annotator: User, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(unpacking, "_FREE_BYTES", 2**20)
    packed = gzip.compress(b'{"type": "FeatureCollection"' + b" " * 2**26)
    data = {
        "gzip": packed,
        "zip": zipped(a__json=b'{"type": "FeatureCollection"' + b" " * 2**26),
        "gzip in zip": zipped(a__json__gz=packed),
    }[kind]
    tracemalloc.start()
    try:
        with pytest.raises(DocumentError, match="unpack"):
            brought(canvas, annotator, data)
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    finally:
        tracemalloc.stop()
