"""Texts in slide files: fields that may identify somebody are overwritten with blanks.

Fields that readers need stay, so that the slide opens as before.
"""

from __future__ import annotations

import re

from ml.imaging.deidentification.result import DeidentificationResult

APERIO_FIELDS = frozenset(
    {
        "AppMag", "MPP", "StripeWidth", "Left", "Top", "OriginalWidth", "OriginalHeight",
        "LineCameraSkew", "LineAreaXOffset", "LineAreaYOffset", "Focus Offset", "DisplayColor",
        "Exposure Time", "Exposure Scale", "ICC Profile", "Gamma", "ImageWidth", "OverlapX",
        "OverlapY", "Offset", "SessonMode", "CalibrationAverageRed", "CalibrationAverageGreen",
        "CalibrationAverageBlue", "Physical Size", "ScannerType",
    }
)  # fmt: skip
"""Aperio fields to keep: optics, geometry and colour. All others are removed, whatever their
name."""
_NDPI_FIELDS = frozenset({"Product", "Objective.Lens.Magnificant"})
_IDENTIFYING = re.compile(
    r"(?i)patient|person|user|operator|file.?name|(file|image).?path|date|^time$|scan.?time"
    r"|barcode|label|accession|serial|host|institution|hospital|physician|pathologist|author"
    r"|creator|owner|artist|comment|remark|description|title|email|case.?id|slide.?id|image.?id"
    r"|first.?name|last.?name|middle.?name|display.?name|scanscope|pim_dp_image_data|unit.?number"
    r"|address|birth|^sex$|job|project.?name"
)
"""Names of XML elements, attributes and properties that may identify a person or a date."""
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


def clean_description(data: bytes, software: str, cleaned: DeidentificationResult) -> bytes:
    """Clean an ImageDescription; the length does not change."""
    text = data.rstrip(b"\0 \r\n")
    if not text or software.startswith(_MEDSCAN):
        return data
    if text.lstrip().startswith((b"<", b"\xef\xbb\xbf<")):
        return _blank_xml(data, cleaned)
    if text.startswith(b"Aperio"):
        return _blank_fields(data, b"|", APERIO_FIELDS, cleaned)
    if _TECHNICAL.fullmatch(text.decode("latin-1")):
        return data
    cleaned.add_removed("ImageDescription", data)
    return _blank(data)


def clean_properties(data: bytes, cleaned: DeidentificationResult) -> bytes:
    """Clean Hamamatsu's list of properties, one a line; the length does not change."""
    return _blank_fields(data, b"\n", _NDPI_FIELDS, cleaned)


def clean_xmp(data: bytes, cleaned: DeidentificationResult) -> bytes:
    """Clean an XMP packet: Ventana's, which describes the scan, stays; any other is blanked."""
    if b"iScan" in data or b"EncodeInfo" in data:
        return _blank_xml(data, cleaned)
    if not data.strip(b"\0 "):
        return data
    cleaned.add_removed("XMP")
    return b" " * len(data)


def _blank_fields(
    data: bytes, separator: bytes, allowed: frozenset[str], cleaned: DeidentificationResult
) -> bytes:
    """Blank the values of a list of ``name = value``; text before the first separator stays."""
    parts = data.split(separator)
    for number, part in enumerate(parts):
        name, equals, value = part.partition(b"=")
        word = name.strip().decode("latin-1")
        if not equals or word in allowed or not value.strip(b"\0 \r\n"):
            continue
        if number == 0 and separator == b"|":  # Aperio's head: library, size and coding
            continue
        parts[number] = name + equals + _blank(value)
        cleaned.add_removed(word, value)
    return separator.join(parts)


def _blank_xml(data: bytes, cleaned: DeidentificationResult) -> bytes:
    """Blank the values of identifying elements, attributes and name-value pairs in place."""

    def attributes(tag: re.Match[bytes]) -> bytes:
        is_image = _OME_IMAGE.match(tag[0]) is not None

        def attribute(match: re.Match[bytes]) -> bytes:
            name, value = match[1].decode("latin-1"), match[2]
            text = value[1:-1].decode("latin-1")
            is_name = is_image and name == "Name" and not _PLAIN_NAME.fullmatch(text)
            return blank_value(match, name, value) if is_name or _is_identifying(name) else match[0]

        return _ATTRIBUTE.sub(attribute, tag[0])

    def blank_value(match: re.Match[bytes], name: str, value: bytes) -> bytes:
        if not value[1:-1].strip():
            return match[0]
        cleaned.add_removed(name, value[1:-1])
        return match[0][: -len(value)] + value[:1] + b" " * (len(value) - 2) + value[-1:]

    def element(match: re.Match[bytes]) -> bytes:
        name = match[1].decode("latin-1")
        name_attribute = _NAME_OF.search(match[2])
        if name_attribute is not None:  # Philips: <Attribute Name="...">value</Attribute>
            name = name_attribute[1].decode("latin-1")
        text = match[3]
        if not _is_identifying(name) or not text.strip():
            return match[0]
        cleaned.add_removed(name, text)
        start = match.start(3) - match.start()
        return match[0][:start] + b" " * len(text) + match[0][start + len(text) :]

    def pair(match: re.Match[bytes]) -> bytes:
        name = match[1].decode("latin-1")
        aperio = name.removeprefix("aperio.") in APERIO_FIELDS
        if aperio or not (_is_identifying(name.rsplit(".", 1)[-1]) or name.startswith("aperio.")):
            return match[0]
        if not match[4].strip():
            return match[0]
        cleaned.add_removed(name, match[4])
        start = match.start(4) - match.start()
        return match[0][:start] + b" " * len(match[4]) + match[0][start + len(match[4]) :]

    data = _NAMED_VALUE.sub(pair, data)  # what libvips writes of a slide it has converted
    data = _ELEMENT.sub(element, data)
    return _TAG.sub(attributes, data)


def _is_identifying(name: str) -> bool:
    return _IDENTIFYING.search(name.rsplit(":", 1)[-1]) is not None


def _blank(value: bytes) -> bytes:
    """Replace bytes by blanks; line ends and the final zero stay."""
    return bytes(byte if byte in b"\r\n\0" else 0x20 for byte in value)
