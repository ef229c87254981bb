"""Documents as streams: any size, any order, and what is wrong is named with its place."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.annotations import documents
from portal.annotations.documents import DocumentError, features_read


def read(text: str | bytes) -> list[Any]:
    data = text.encode() if isinstance(text, str) else text
    return list(features_read(io.BytesIO(data)))


class Slow(io.BytesIO):
    """Stream that returns a few bytes at a time, for any requested size."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(3)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(json_values, max_size=6), st.booleans(), st.sampled_from([None, 1]))
def test_the_stream_yields_the_parsed_document(
    features: list[Any], is_ascii: bool, indent: int | None
) -> None:
    dump = {"ensure_ascii": is_ascii, "indent": indent}
    for document in (
        features,
        {"type": "FeatureCollection", "features": features, "bbox": [1, 2.5]},
        {"name": "x", "features": features, "type": "FeatureCollection"},
    ):
        text = json.dumps(document, **dump).encode("utf-8", "surrogatepass")
        try:
            text.decode()
        except UnicodeDecodeError:
            return
        assert read(text) == features
        assert list(features_read(Slow(text))) == features
        for kind in (io.BytesIO, Slow):
            places = [parsed.place() for parsed in [features_read(kind(text))] for _ in parsed]
            for at, place in enumerate(places, 1):
                assert place is not None
                assert list(features_read(kind(text), since=place)) == features[at:]


def test_one_feature_is_a_document_as_well() -> None:
    feature = {"type": "Feature", "id": "a", "geometry": {"type": "Point"}, "properties": {}}
    assert read(json.dumps(feature)) == [feature]
    single = features_read(io.BytesIO(json.dumps(feature).encode()))
    assert [single.place() for _ in single] == [None]
    assert read(b"\xef\xbb\xbf[]") == []
    (value,) = read('[{"x": NaN}]')
    assert value["x"] != value["x"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "got nothing"),
        ("<html>", "got text"),
        ('{"type": "Topology"}', "got 'Topology'"),
        ('{"type": "FeatureCollection"}', "array of features"),
        ('{"type": "FeatureCollection", "features": 5}', "array of features"),
        ('[{"a": 1}, {"b"', "character 11"),
        ('[{"a": 1} {"b": 2}]', "character 10: expected , or ], found {"),
        ('{"type": "FeatureCollection", "features": [] "x"}', "expected , or }"),
        ("[] []", "text after the end"),
        ("{5: 1}", "expected a name"),
        ("[" + "[" * 100_000, "nested too deeply"),
        ('[{"a":' * 10_000, "nested too deeply"),
        (b'["\xff\xfe"]', "not UTF-8"),
        ("[" + "9" * 5000 + "]", "character 1"),
    ],
)
def test_errors_name_their_place(text: str | bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read(text)
    assert reason in refused.value.message


def test_coordinates_on_the_globe_are_refused_and_those_of_the_image_are_not() -> None:
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
    document = {"type": "FeatureCollection", "crs": crs, "features": [1]}
    with pytest.raises(DocumentError, match="CRS84") as refused:
        read(json.dumps(document))
    assert refused.value.code == "crs"
    for fine in (None, {"type": "name", "properties": {"name": "image pixels"}}):
        assert read(json.dumps(document | {"crs": fine})) == [1]


def test_a_value_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_VALUE_CHARS", 2**20)
    with pytest.raises(DocumentError, match="longer than"):
        read('["' + "x" * 2**21 + '"]')


@pytest.mark.endurance
def test_memory_does_not_grow_with_the_document() -> None:
    ring = [[float(n), n / 7] for n in range(200)]
    feature = json.dumps({"type": "Feature", "geometry": {"coordinates": [ring]}}).encode()
    count = 4_000  # some 20 MB

    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self.parts: Iterator[bytes] = iter(
                [b"[", *([feature + b","] * (count - 1)), feature, b"]"]
            )

        def read(self, size: int = -1, /) -> bytes:
            return next(self.parts, b"")

    tracemalloc.start()
    assert sum(1 for _ in features_read(Endless())) == count  # type: ignore[arg-type]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


def test_values_as_long_as_the_one_before_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    class Counting:
        def raw_decode(self, text: str, at: int) -> tuple[object, int]:
            parsed.append(at)
            return json.JSONDecoder().raw_decode(text, at)

    monkeypatch.setattr(documents, "_DECODER", Counting())
    long = {"type": "Feature", "id": "x" * 700_000}
    assert len(list(features_read(io.BytesIO(json.dumps([long] * 6 + [1]).encode())))) == 7
    assert len(parsed) <= 3 + 5 + 1  # the window grows only for the first one
