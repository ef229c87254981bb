"""JSON parser with limits and precise errors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import IO, Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from portal.core.errors import TooLargeInputError
from portal.core.http.bodies import API_BODY_BYTES

MAX_VALUES = 1_000_000
"""Values of a document, about 100 bytes of memory each; an ROI of 200,000 vertices has 600,000."""
MAX_DEPTH = 32  # GeoJSON in a list of changes is 8 deep
MAX_DIGITS = 20  # an integer of 64 bits and its sign
_WINDOW_BYTES = 2**18  # checked at a time
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'"[]{},'))
_ESCAPES = re.compile(
    rb"(?<!\\)(?:\\\\)*"  # an even number of backslashes is text
    rb"\\u(?:0000|[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?P<low>[dD][c-fC-F][0-9a-fA-F]{2}))"
)


class BoundedJsonParser(BaseParser):
    """Parser that limits bytes, values, depth and digits before it parses.

    Views override ``API_BODY_BYTES`` and ``MAX_VALUES`` by ``body_limit_bytes`` and
    ``body_limit_values``.
    """

    media_type = "application/json"
    allows_nan = False

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Parse the body; the last of repeated names wins."""
        view = (parser_context or {}).get("view")
        body = _read(stream, limit=getattr(view, "body_limit_bytes", API_BODY_BYTES))
        _refuse_structure(body, max_values=getattr(view, "body_limit_values", MAX_VALUES))
        _refuse_characters(body)
        try:
            text = body.decode("utf-8-sig")
            return json.loads(
                text,
                parse_constant=None if self.allows_nan else _refuse_constant,
                parse_float=None if self.allows_nan else _finite,
                parse_int=_parse_int,
            )
        except RecursionError:
            raise _too_deep() from None
        except ValueError as error:
            raise ParseError(f"JSON parse error - {error}") from None


def _read(stream: IO[Any], *, limit: int) -> bytes:
    body: bytes = stream.read(limit + 1)
    if len(body) > limit:
        raise TooLargeInputError(
            f"The body is larger than this URL accepts: the limit is {limit:,} bytes. "
            "Send it in parts.",
            details={"limit_bytes": limit},
        )
    return body


def _refuse_structure(body: bytes, *, max_values: int) -> None:
    """Refuse too many values or levels, in one pass over the bytes."""
    if len(body) <= MAX_DEPTH:
        return
    brackets = b""
    count = 0
    for part in _structure(body):
        count += len(part)
        if count > max_values:
            raise TooLargeInputError(
                "The document has more values than this URL accepts: "
                f"the limit is about {max_values:,}. Send it in parts.",
                details={"limit_values": max_values},
            )
        brackets += part.translate(None, b",")
    for _ in range(MAX_DEPTH):
        fewer = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(fewer) == len(brackets):
            return  # nothing is left, or it is not JSON: the parser says where
        brackets = fewer
    if brackets:
        raise _too_deep()


def _structure(body: bytes) -> Iterator[bytes]:
    """Brackets and commas outside of strings, window by window."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = body.translate(None, _NOT_STRUCTURE)
    is_text = 0
    for start in range(0, len(marks), _WINDOW_BYTES):
        pieces = marks[start : start + _WINDOW_BYTES].split(b'"')
        yield b"".join(pieces[is_text::2])
        is_text ^= (len(pieces) - 1) & 1


def _refuse_characters(body: bytes) -> None:
    """Refuse null characters and unpaired surrogates, which databases cannot store."""
    for match in _ESCAPES.finditer(body) if b"\\u" in body else ():
        before = body[max(0, match.start("low") - 8) : match.start("low") - 2]
        if match["low"] is None or not re.fullmatch(rb"\\u[dD][89abAB][0-9a-fA-F]{2}", before):
            raise ParseError(
                "JSON parse error - a text holds a null character or half a surrogate pair"
            )


def _too_deep() -> ParseError:
    return ParseError(f"JSON parse error - nested too deeply: the limit is {MAX_DEPTH} levels")


def _finite(text: str) -> float:
    value = float(text)
    if math.isfinite(value):
        return value
    raise ValueError(f"{text[:40]} is too large for a number")


def _parse_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"{text[:MAX_DIGITS]}... is too long: up to {MAX_DIGITS} digits")
    return int(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
