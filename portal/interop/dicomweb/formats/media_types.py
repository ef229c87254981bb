"""Media types accepted by DICOMweb clients, and multipart responses (DICOM PS3.18, 8.7)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ml.imaging.dicom.transfer_syntax import DECODED, EXPLICIT, OCTETS, media_type_of

DICOM, JSON = "application/dicom", "application/dicom+json"
MAX_MEDIA_RANGES = 40  # of one Accept header; a viewer sends a dozen
_COMMAS = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
_SEMICOLONS = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*$)')


@dataclass(frozen=True, slots=True)
class AcceptedMedia:
    """A media type that a client accepts.

    Attributes:
        media_type: Type of a part in a multipart response; "*/*" for any.
        syntax: Transfer syntax, "*" for any, "" if not given.
        in_parts: multipart/related.
    """

    media_type: str
    syntax: str
    in_parts: bool


class AnswerPart(NamedTuple):
    """A part of a multipart response: media type, URL, and its bytes in pieces."""

    media_type: str
    address: str
    pieces: Iterable[bytes]


class FrameCoding(NamedTuple):
    """Media type and transfer syntax in which frames are sent."""

    media_type: str
    syntax: str
    is_decoded: bool
    in_parts: bool


def parse_accept(accept: str) -> list[AcceptedMedia]:
    """The kinds of an ``Accept``, the best first; anything where it says nothing."""
    ranked: list[tuple[float, AcceptedMedia]] = []
    for media_range in _COMMAS.split(accept)[:MAX_MEDIA_RANGES]:
        name, *words = (word.strip() for word in _SEMICOLONS.split(media_range))
        parameters = {
            key.strip().lower(): value.strip().strip('"')
            for key, _, value in (word.partition("=") for word in words)
        }
        name, in_parts = name.lower(), name.lower().startswith("multipart/")
        media_type = (parameters.get("type", "*/*") if in_parts else name or "*/*").lower()
        weight = _weight(parameters.get("q", "1"))
        if weight > 0:
            ranked.append(
                (weight, AcceptedMedia(media_type, parameters.get("transfer-syntax", ""), in_parts))
            )
    return [media_range for _, media_range in sorted(ranked, key=lambda pair: -pair[0])]


def frame_coding(kinds: list[AcceptedMedia], stored: str) -> FrameCoding | None:
    """Encoding of stored frames for a client that accepts ``kinds``; None if there is none.

    Stored bytes are sent unchanged if the client accepts them. ``application/octet-stream`` without
    a transfer syntax means plain pixels, with "*" the stored bytes of any encoding.
    """
    name, is_plain = media_type_of(stored), media_type_of(stored) == OCTETS
    for kind in kinds:
        in_parts = kind.in_parts or kind.media_type == "*/*"
        if kind.media_type in {"*/*", "image/*"} and kind.syntax in {"", "*", stored}:
            if kind.media_type == "image/*" and is_plain:
                continue
            return FrameCoding(name, stored, False, in_parts)
        if kind.media_type == name and not is_plain and kind.syntax in {"", "*", stored}:
            return FrameCoding(name, stored, False, in_parts)
        if kind.media_type != OCTETS:
            continue
        if kind.syntax in {"*", stored} or (is_plain and kind.syntax in {"", EXPLICIT}):
            return FrameCoding(OCTETS, stored, False, in_parts)
        if kind.syntax in {"", EXPLICIT} and stored in DECODED:
            return FrameCoding(OCTETS, EXPLICIT, True, in_parts)
    return None


def file_kind(kinds: list[AcceptedMedia], stored: str) -> AcceptedMedia | None:
    """The first that lets a file go out as it is stored: they are not coded again."""
    return next(
        (
            kind
            for kind in kinds
            if kind.media_type in {DICOM, "*/*", "application/*"}
            and kind.syntax in {"", "*", stored}
        ),
        None,
    )


def takes_json(kinds: list[AcceptedMedia]) -> bool:
    """Return whether JSON will do; XML is not written."""
    names = {"*/*", "application/*", JSON, "application/json"}
    return any(kind.media_type in names for kind in kinds)


def picture_kind(kinds: list[AcceptedMedia]) -> str | None:
    """JPEG or PNG, whichever is preferred; None if neither is accepted."""
    for kind in kinds:
        if kind.media_type in {"*/*", "image/*", "image/jpeg"}:
            return "image/jpeg"
        if kind.media_type == "image/png":
            return "image/png"
    return None


def boundary(seed: str) -> str:
    """A line that no part holds, but by chance of one in 2**128: the same for the same answer."""
    return hashlib.sha256(f"boundary of {seed}".encode()).hexdigest()[:32]


def in_parts(parts: Iterable[AnswerPart], line: str) -> Iterator[bytes]:
    """The body of ``multipart/related``."""
    lead = ""
    for part in parts:
        yield (
            f"{lead}--{line}\r\nContent-Type: {part.media_type}\r\n"
            f"Content-Location: {part.address}\r\n\r\n"
        ).encode()
        yield from part.pieces
        lead = "\r\n"
    yield f"\r\n--{line}--\r\n".encode()


def parts_type(media_type: str, line: str) -> str:
    """Content type of a ``multipart/related`` body."""
    return f'multipart/related; type="{media_type}"; boundary={line}'


def _weight(text: str) -> float:
    try:
        return min(float(text), 1.0)
    except ValueError:
        return 0.0
