"""Texts inside slides: the fields that may name somebody are overwritten by as many blanks.

What readers need to know of the scan stays, so that the slide opens as before.
"""

from __future__ import annotations

import re

from ml.imaging.deidentify.cleaned import Cleaned

APERIO_KEPT = frozenset(
    {
        "AppMag", "MPP", "StripeWidth", "Left", "Top", "OriginalWidth", "OriginalHeight",
        "LineCameraSkew", "LineAreaXOffset", "LineAreaYOffset", "Focus Offset", "DisplayColor",
        "Exposure Time", "Exposure Scale", "ICC Profile", "Gamma", "ImageWidth", "OverlapX",
        "OverlapY", "Offset", "SessonMode", "CalibrationAverageRed", "CalibrationAverageGreen",
        "CalibrationAverageBlue", "Physical Size", "ScannerType",
    }
)  # fmt: skip
"""Of Aperio's fields: optics, geometry and colour. All others go, whatever they are called."""
_NDPI_KEPT = frozenset({"Product", "Objective.Lens.Magnificant"})
_TELLING = re.compile(
    r"(?i)patient|person|user|operator|file.?name|(file|image).?path|date|^time$|scan.?time"
    r"|barcode|label|accession|serial|host|institution|hospital|physician|pathologist|author"
    r"|creator|owner|artist|comment|remark|description|title|email|case.?id|slide.?id|image.?id"
    r"|first.?name|last.?name|middle.?name|display.?name|scanscope|pim_dp_image_data|unit.?number"
    r"|address|birth|^sex$|job|project.?name"
)
"""Names of XML elements, attributes and properties that may tell who it is, or when."""
_ELEMENT = re.compile(rb"<([\w:.-]+)((?:\s[^<>]*)?)>([^<>]+)</\1\s*>")
_ATTRIBUTE = re.compile(rb"([\w:.-]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_NAMED_VALUE = re.compile(rb"<name>([^<>]*)</name>(\s*)<value([^<>]*)>([^<>]*)</value>")
_TAG = re.compile(rb"<[^!?/][^<>]*>")
_OME_IMAGE = re.compile(rb"<(?:[\w.-]+:)?Image\s")
_PLAIN_NAME = re.compile(
    r"(?i)\s*(?:(?:label|macro|overview|thumbnail)(?:[ _-]?image)?"
    r"|(?:image|scan|slide)[ :_-]?\d*)\s*"
)
"""Harmless image names in OME-XML; other names are often those of files."""
_NAME_OF = re.compile(rb"\bName\s*=\s*\"([^\"]*)\"")
_TECHNICAL = re.compile(
    r"\s*(level=\d+ mag=[\d.]+ quality=[\d.]+|thumbnail|label([ _]image)?|macro|overview"
    r"|probability[ _]image|label_image)\s*",
    re.IGNORECASE,
)
_MEDSCAN = "MedScan"
"""Trestle's software; its description holds the overlaps of tiles and nothing else."""


def clean_description(data: bytes, software: str, cleaned: Cleaned) -> bytes:
    """An ImageDescription, as long as before."""
    text = data.rstrip(b"\0 \r\n")
    if not text or software.startswith(_MEDSCAN):
        return data
    if text.lstrip().startswith((b"<", b"\xef\xbb\xbf<")):
        return _xml(data, cleaned)
    if text.startswith(b"Aperio"):
        return _fields(data, b"|", APERIO_KEPT, cleaned)
    if _TECHNICAL.fullmatch(text.decode("latin-1")):
        return data
    cleaned.took("ImageDescription")
    return _blank(data)


def clean_properties(data: bytes, cleaned: Cleaned) -> bytes:
    """Hamamatsu's list of properties, one a line."""
    return _fields(data, b"\n", _NDPI_KEPT, cleaned)


def clean_xmp(data: bytes, cleaned: Cleaned) -> bytes:
    """An XMP packet. Ventana's describes the scan, which is needed; any other is blanked."""
    if b"iScan" in data or b"EncodeInfo" in data:
        return _xml(data, cleaned)
    if not data.strip(b"\0 "):
        return data
    cleaned.took("XMP")
    return b" " * len(data)


def _fields(data: bytes, between: bytes, kept: frozenset[str], cleaned: Cleaned) -> bytes:
    """``name = value`` one after the other; what stands before the first stays."""
    parts = data.split(between)
    for number, part in enumerate(parts):
        name, equals, value = part.partition(b"=")
        word = name.strip().decode("latin-1")
        if not equals or word in kept or not value.strip(b"\0 \r\n"):
            continue
        if number == 0 and between == b"|":  # Aperio's head: library, size and coding
            continue
        parts[number] = name + equals + _blank(value)
        cleaned.took(word)
    return between.join(parts)


def _xml(data: bytes, cleaned: Cleaned) -> bytes:
    """Values of telling elements, attributes and name-value pairs, blanked where they stand."""

    def attributes(tag: re.Match[bytes]) -> bytes:
        is_image = _OME_IMAGE.match(tag[0]) is not None

        def attribute(found: re.Match[bytes]) -> bytes:
            name, value = found[1].decode("latin-1"), found[2]
            text = value[1:-1].decode("latin-1")
            is_name = is_image and name == "Name" and not _PLAIN_NAME.fullmatch(text)
            return blanked(found, name, value) if is_name or _tells(name) else found[0]

        return _ATTRIBUTE.sub(attribute, tag[0])

    def blanked(found: re.Match[bytes], name: str, value: bytes) -> bytes:
        if not value[1:-1].strip():
            return found[0]
        cleaned.took(name)
        return found[0][: -len(value)] + value[:1] + b" " * (len(value) - 2) + value[-1:]

    def element(found: re.Match[bytes]) -> bytes:
        name = found[1].decode("latin-1")
        named = _NAME_OF.search(found[2])
        if named is not None:  # Philips: <Attribute Name="...">value</Attribute>
            name = named[1].decode("latin-1")
        text = found[3]
        if not _tells(name) or not text.strip():
            return found[0]
        cleaned.took(name)
        start = found.start(3) - found.start()
        return found[0][:start] + b" " * len(text) + found[0][start + len(text) :]

    def pair(found: re.Match[bytes]) -> bytes:
        name = found[1].decode("latin-1")
        aperio = name.removeprefix("aperio.") in APERIO_KEPT
        if aperio or not (_tells(name.rsplit(".", 1)[-1]) or name.startswith("aperio.")):
            return found[0]
        if not found[4].strip():
            return found[0]
        cleaned.took(name)
        start = found.start(4) - found.start()
        return found[0][:start] + b" " * len(found[4]) + found[0][start + len(found[4]) :]

    data = _NAMED_VALUE.sub(pair, data)  # what libvips writes of a slide it has converted
    data = _ELEMENT.sub(element, data)
    return _TAG.sub(attributes, data)


def _tells(name: str) -> bool:
    return _TELLING.search(name.rsplit(":", 1)[-1]) is not None


def _blank(value: bytes) -> bytes:
    """Blanks; line ends and the final zero stay."""
    return bytes(byte if byte in b"\r\n\0" else 0x20 for byte in value)
