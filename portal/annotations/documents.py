"""A GeoJSON document as a stream of features, only one of which is in memory at a time.

The document is JSON, so its members are in any order and its values of any length. Each one
is parsed by the parser of the standard library from a window of the text, which grows until the
value fits.
"""

from __future__ import annotations

import codecs
import json
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, NoReturn, Self

from portal.core.errors import InvalidInputError

MAX_VALUE_CHARS = 32 * 2**20
"""One feature: 100,000 vertices, the most that an ROI may have, take about 4 MB."""
_READ_BYTES = 2**18
_SPACE = " \t\r\n"
_AFTER = (*_SPACE, ",", "]", "}", ":")
"""A value ends before one of these: the 1 of a window that ends there may be the 1 of 1.5."""
_DECODER = json.JSONDecoder()
_MEMBERS = ("type", "geometry", "properties", "id", "nucleusGeometry", "crs")
_PLANAR = ("pixel", "image")


class DocumentError(InvalidInputError):
    """The document as a whole cannot be read."""

    code = "invalid-document"


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The place after a feature of a document: reading can resume there.

    Attributes:
        at_byte: bytes before it.
        in_object: the features are a member of an object.
    """

    at_byte: int
    in_object: bool


def features_read(stream: IO[bytes], *, since: ResumePoint | None = None) -> FeatureStream:
    """The features of a FeatureCollection, a bare array, or a single Feature, parsed, in order.

    Args:
        stream: UTF-8, read once, in small parts.
        since: only those after it, in a document that was read to its end before.
    Raises:
        DocumentError: not JSON, none of these, cut short, nested too deeply, or in a coordinate
            system that is not the image's. Raised while reading, perhaps after some features.
    """
    return FeatureStream(stream, since)


class FeatureStream(Iterator[Any]):
    """Features one after the other, and the place that was reached."""

    def __init__(self, stream: IO[bytes], since: ResumePoint | None) -> None:
        self._start = since.at_byte if since else 0
        self._in_object: bool | None = since.in_object if since else None
        if since:
            stream.seek(since.at_byte)
        self._text = Window(stream)
        self._features = self._read_resumed(since) if since else self._read_document()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return next(self._features)

    def place(self) -> ResumePoint | None:
        """Position after the last feature; None if the document is that feature."""
        if self._in_object is None:
            return None
        return ResumePoint(self._start + self._text.byte_at(), self._in_object)

    def _read_document(self) -> Iterator[Any]:
        text = self._text
        first = text.peek()
        if first == "[":
            self._in_object = False
            yield from items(text)
        elif first == "{":
            yield from self._collection()
        else:
            raise _not_geojson("text" if first else "nothing")
        if text.peek():
            text.fail("there is text after the end of the document")

    def _read_resumed(self, since: ResumePoint) -> Iterator[Any]:
        """The document was recognised at its first reading."""
        yield from _items_on(self._text)
        if since.in_object and self._text.take(",", "}") == ",":
            for name in _members_on(self._text):
                if name == "features" and self._text.peek() == "[":
                    yield from items(self._text)
                else:
                    self._text.value()

    def _collection(self) -> Iterator[Any]:
        text = self._text
        fields: dict[str, Any] = {}
        for name in members(text):
            if name == "features" and text.peek() == "[":
                self._in_object = True
                yield from items(text)
                continue
            value = text.value()
            if name == "crs":
                crs_check(value)
            if name in _MEMBERS:
                fields[name] = value
        kind = fields.get("type")
        if kind == "Feature" and not self._in_object:
            yield fields
        elif kind != "FeatureCollection":
            raise _not_geojson(reprlib.repr(kind))
        elif not self._in_object:
            raise DocumentError("GeoJSON: expected a FeatureCollection with an array of features.")


def crs_check(crs: object) -> None:
    """Refuse coordinates on the globe or in microns: ROIs are in pixels of the image."""
    if crs is None:
        return
    try:
        crs_text = json.dumps(crs)[:200]
    except RecursionError:
        raise DocumentError("GeoJSON: its coordinate system is nested too deeply.") from None
    if not any(word in crs_text.lower() for word in _PLANAR):
        raise DocumentError(
            f"GeoJSON: the coordinate system (crs) is {crs_text}. Regions are in pixels of the"
            " image: export without a coordinate system.",
            code="crs",
        )


def _not_geojson(actual: str) -> DocumentError:
    return DocumentError(
        f"GeoJSON: expected a FeatureCollection or an array of features, got {actual}."
    )


def members(text: Window) -> Iterator[str]:
    """Names of an object's members; the caller reads each value before it asks for the next."""
    text.take("{")
    if text.peek() == "}":
        text.take("}")
        return
    yield from _members_on(text)


def _members_on(text: Window) -> Iterator[str]:
    while True:
        name = text.value()
        if not isinstance(name, str):
            text.fail("expected a name")
        text.take(":")
        yield name
        if text.take(",", "}") == "}":
            return


def items(text: Window) -> Iterator[Any]:
    """The values of an array, parsed, in order."""
    text.take("[")
    if text.peek() == "]":
        text.take("]")
        return
    yield text.value()
    yield from _items_on(text)


def _items_on(text: Window) -> Iterator[Any]:
    """The values that follow one of them."""
    while text.take(",", "]") == ",":
        yield text.value()


class Window:
    """The part of a JSON text that is being read."""

    def __init__(self, stream: IO[bytes], *, kind: str = "GeoJSON") -> None:
        self._stream, self._kind = stream, kind
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._before, self._is_end = "", 0, 0, False
        self._read_bytes = 0
        self._last = 0  # characters of the last value, where it was long

    def peek(self) -> str:
        """The next character that is not space; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text) or not self._read_more(_READ_BYTES):
                return self._text[self._at : self._at + 1]

    def take(self, *expected: str) -> str:
        """Consume the next character; an error if it is none of these."""
        token = self.peek()
        if token not in expected or not token:
            self.fail(f"expected {' or '.join(expected)}, found {token or 'the end'}")
        self._at += 1
        return token

    def value(self) -> Any:
        """The next value, parsed."""
        self.peek()
        while len(self._text) - self._at < self._last and self._read_more(self._last):
            pass  # values after a long one are usually as long: avoids parsing each twice
        size = _READ_BYTES
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                self.fail("it is nested too deeply")
            except ValueError as error:
                if self._is_end:
                    self.fail(getattr(error, "msg", str(error)))
            else:
                if self._is_end or self._text[end : end + 1] in _AFTER:
                    self._last = end - self._at if end - self._at > _READ_BYTES else 0
                    self._at = end
                    return value
            if len(self._text) - self._at > MAX_VALUE_CHARS:
                self.fail(f"one value is longer than {MAX_VALUE_CHARS // 2**20} million characters")
            self._read_more(size)
            size *= 2  # a long value is not parsed again for each small part

    def skip(self) -> None:
        """Go beyond the next value; of an array however long, one item is in memory."""
        if self.peek() == "[":
            for _ in items(self):
                pass
        else:
            self.value()

    def byte_at(self) -> int:
        """Bytes of the stream before the next character."""
        unread_bytes = len(self._decoder.getstate()[0]) + len(self._text[self._at :].encode())
        return self._read_bytes - unread_bytes

    def fail(self, reason: str) -> NoReturn:
        """Refuse the document, and say where."""
        at = self._before + self._at
        raise DocumentError(f"{self._kind}: invalid JSON at character {at:,}: {reason}.")

    def _read_more(self, size: int) -> bool:
        """Read on; False at the end."""
        if self._is_end:
            return False
        data = self._stream.read(size)
        self._read_bytes += len(data)
        self._is_end = not data
        try:
            added = self._decoder.decode(data, final=self._is_end)
        except UnicodeDecodeError:
            self.fail("it is not UTF-8")
        self._before += self._at
        self._text, self._at = self._text[self._at :] + added, 0
        return not self._is_end
