"""Reading the headers of tus 1.0.0: whole numbers, metadata in base64, digests."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Mapping

from django.http import HttpRequest

from portal.archive.services.transfers.writing import CHECKSUMS, Checksum
from portal.core.errors import InvalidInputError

MAX_METADATA_CHARS = 8192  # characters of Upload-Metadata; a name and a few ids


def whole_of(request: HttpRequest, name: str) -> int:
    """A header that counts bytes."""
    text = request.headers.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise InvalidInputError(f"{name}: expected a whole number of bytes.")
    return int(text)


def metadata_of(header: str) -> dict[str, str]:
    """Keys with base64 values; ``InvalidInputError`` names one whose value is not text."""
    if len(header) > MAX_METADATA_CHARS:
        raise InvalidInputError(f"Upload-Metadata: at most {MAX_METADATA_CHARS} characters.")
    metadata = {}
    for pair in filter(None, (part.strip() for part in header.split(","))):
        key, _, value = pair.partition(" ")
        try:
            metadata[key] = base64.b64decode(value.strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise InvalidInputError(f"Upload-Metadata: {key[:40]} is not base64 text.") from error
    return metadata


def id_of(metadata: Mapping[str, str], key: str) -> uuid.UUID:
    """The id of the case or the lab that metadata names."""
    try:
        return uuid.UUID(metadata.get(key, ""))
    except ValueError as error:
        raise InvalidInputError(f"Upload-Metadata: give the id of the {key} as {key}.") from error


def checksum_of(header: str) -> Checksum | None:
    """The digest of a piece; None if none was sent."""
    if not header:
        return None
    algorithm, _, digest = header.partition(" ")
    if algorithm not in CHECKSUMS:
        raise InvalidInputError(f"Upload-Checksum: expected one of {', '.join(CHECKSUMS)}.")
    try:
        return Checksum(algorithm, base64.b64decode(digest.strip(), validate=True))
    except binascii.Error as error:
        raise InvalidInputError("Upload-Checksum: the digest is not base64.") from error


def base64_of(text: str) -> str:
    """A value of metadata."""
    return base64.b64encode(text.encode()).decode()
