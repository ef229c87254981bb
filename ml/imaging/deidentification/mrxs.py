"""De-identification of MRXS: blanks label, overview and notes in the data files, rewrites the
index.

``Slidedat.ini`` keeps the position and colour of tiles; texts, dates and bar codes are removed.
Layers other than pixels (label, overview, preview, notes of the scanner) are overwritten in place,
so that tiles keep their offsets. The ``.mrxs`` file, a picture that may show the label, is emptied.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ml.errors import CorruptFileError
from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.formats.slide_index import (
    MRXS_INDEX,
    Sections,
    file_named,
    index_of,
    is_there,
    read_index,
)

Members = list[tuple[str, Path]]
"""New name and path of each file of the set."""
_VERSION_BYTES = 5  # "01.02", before the slide's id
_HEAD_BYTES = 256  # of a data file, which repeats that id
_CHUNK_BYTES = 2**20  # overwritten at once
_MAX_DIGITS = 9  # of a count; int() refuses strings of thousands of digits
_MAX_PAGES, _MAX_ENTRIES = 10_000, 1_000_000  # of one record; a label is one entry of one page
_HASHED_HEAD = b"00000000"  # of a pseudonym: taking names out twice changes nothing
_POSITIONS = ("VIMSLIDE_POSITION_BUFFER", "StitchingIntensityLayer")
"""Layers with the positions of pixels."""
_DROPPED = {
    "ScanDataLayer_SlideBarcode": "label image",
    "ScanDataLayer_SlideThumbnail": "macro image",
    "ScanDataLayer_SlidePreview": "thumbnail image",
}
_ALLOWED = {
    "GENERAL": re.compile(
        r"SLIDE_VERSION|CURRENT_SLIDE_VERSION|SLIDE_TYPE|SLIDE_CONTENT|IMAGENUMBER_[XY]"
        r"|OBJECTIVE_\w+|CAMERA_TYPE|CAMERA_BITDEPTH|OUTPUT_RESOLUTION|ADAPTER_SIZE"
        r"|CameraImageDivisionsPerSide|TRANSFORMED_IMAGE_TYPE"
    ),
    "HIERARCHICAL": re.compile(r"(NON)?HIER_COUNT|(NON)?HIER_\d+_COUNT|HIER_\d+_\w+|\w*_MODE"),
    "DATAFILE": re.compile(r"FILE_COUNT"),
}
_ALLOWED_OF_LEVELS = re.compile(
    r"OVERLAP_[XY]|MICROMETER_PER_PIXEL_[XY]|IMAGE_\w+|DIGITIZER_\w+|FILTER_\w+|COLOR_\w+"
    r"|STORING_\w+|DATA_IN_THIS_CHANNEL|EXPOSURE_TIME|HORIZONTAL_\w+|VERTICAL_\w+|FOCUS_STEP\w*"
)
_ALLOWED_OF_POSITIONS = re.compile(r"VIMSLIDE_POSITION_\w+|COMPRESSS?ED_STITCHING_\w+")
_FIELD_NAME = re.compile(r"[A-Z][A-Z_]{2,39}")  # the name of a field, not of a person


def clean_mrxs(path: Path, cleaned: DeidentificationResult, *, key: bytes) -> Members:
    """Clean a slide in place and return the files that belong to it.

    Raises:
        CorruptFileError: The index cannot be parsed.
    """
    old = read_index(path)
    slide_id = old.get("GENERAL", {}).get("SLIDE_ID", "").encode("utf-8", "surrogateescape")
    files = [file_named(path, name) for name in _data_files(old)]
    index = file_named(path, old.get("HIERARCHICAL", {}).get("INDEXFILE", ""))
    if not is_there(index):
        raise CorruptFileError("the slide's index lacks INDEXFILE")
    _blank_layers(old, index, files, len(slide_id), cleaned)
    pseudonym = _pseudonym(slide_id, key)
    if pseudonym != slide_id:
        cleaned.add_removed("SLIDE_ID")
        for file in (index, *dict.fromkeys(files)):
            _rename(file, slide_id, pseudonym)
    if path.stat().st_size:
        cleaned.add_removed("preview in the .mrxs file")
        path.write_bytes(b"")
    members = [("slide.mrxs", path), (f"slide/{MRXS_INDEX}", index_of(path))]
    members.append(("slide/Index.dat", index))
    numbered = {file: f"Data{number:04}.dat" for number, file in enumerate(dict.fromkeys(files))}
    members += [(f"slide/{new}", file) for file, new in numbered.items()]
    names = [numbered[file] for file in files]
    new_index = _index(old, cleaned, pseudonym.decode("utf-8", "replace"), names)
    index_of(path).write_bytes(b"\xef\xbb\xbf" + new_index.encode("utf-8", "replace"))
    return members


def _data_files(sections: Sections) -> list[str]:
    listed = sections.get("DATAFILE", {})
    count = _number(listed.get("FILE_COUNT", "0"))
    try:
        names = [listed[f"FILE_{number}"] for number in range(min(count, len(listed)))]
    except KeyError as error:
        raise CorruptFileError(f"the slide's index lacks {error.args[0]}") from error
    if not all(names):
        raise CorruptFileError("the slide's index has a data file without a name")
    return names


def _index(old: Sections, cleaned: DeidentificationResult, slide_id: str, files: list[str]) -> str:
    """Text of ``Slidedat.ini`` with the allowed fields."""
    tree = old.get("HIERARCHICAL", {})
    levels = {
        value for key, value in tree.items() if re.fullmatch(r"HIER_\d+_VAL_\d+_SECTION", key)
    }
    new: Sections = {}
    positions: set[str] = set()
    for layer, _, name, level in _layers(tree):
        if name in _POSITIONS:
            positions.update(
                {
                    tree.get(f"NONHIER_{layer}_VAL_{level}_SECTION", ""),
                    f"NONHIERLAYER_{layer}_SECTION",
                }
            )
    for section, fields in old.items():
        allowed = _ALLOWED.get(section)
        if section in levels:
            allowed = _ALLOWED_OF_LEVELS
        elif section in positions:
            allowed = _ALLOWED_OF_POSITIONS
        fields_left = {
            k: v for k, v in fields.items() if allowed is not None and allowed.fullmatch(k)
        }
        if section != "HIERARCHICAL":
            _add_removed_fields(fields, fields_left, cleaned)
        if fields_left:
            new[section] = fields_left
    new.setdefault("GENERAL", {})["SLIDE_ID"] = slide_id
    written = new.setdefault("HIERARCHICAL", {})
    written["INDEXFILE"] = "Index.dat"
    for layer, _, name, level in _layers(tree):
        keeps = name in _POSITIONS
        written[f"NONHIER_{layer}_NAME"] = name if keeps else "Removed"
        for end in ("", "_SECTION", "_IMAGENUMBER_X", "_IMAGENUMBER_Y"):
            field = f"NONHIER_{layer}_VAL_{level}{end}"
            if keeps and field in tree:
                written[field] = tree[field]
            elif not end:
                written[field] = f"Removed_{level}"
    data = new.setdefault("DATAFILE", {})
    data.update({f"FILE_{number}": name for number, name in enumerate(files)})
    parts = ("".join(f"{k} = {v}\r\n" for k, v in fields.items()) for fields in new.values())
    return "".join(f"[{name}]\r\n{part}" for name, part in zip(new, parts, strict=True))


def _add_removed_fields(
    fields: dict[str, str], fields_left: dict[str, str], cleaned: DeidentificationResult
) -> None:
    for key, value in fields.items():
        if key not in fields_left and value and not re.fullmatch(r"FILE_\d+|SLIDE_ID", key):
            name = key if _FIELD_NAME.fullmatch(key) else "other fields of Slidedat.ini"
            cleaned.add_removed(name, value if _FIELD_NAME.fullmatch(key) else "")


def _layers(tree: dict[str, str]) -> Iterator[tuple[int, int, str, int]]:
    """(layer, record, layer's name, level) of the layers other than pixels, in the tree's order."""
    record = 0
    for layer in range(min(_number(tree.get("NONHIER_COUNT", "0")), len(tree))):
        count = _number(tree.get(f"NONHIER_{layer}_COUNT", "0"))
        for level in range(min(count, len(tree))):
            yield layer, record, tree.get(f"NONHIER_{layer}_NAME", ""), level
            record += 1


def _blank_layers(
    old: Sections, index: Path, files: list[Path], id_length: int, cleaned: DeidentificationResult
) -> None:
    """Overwrite the data of each layer other than positions of pixels."""
    tree = old.get("HIERARCHICAL", {})
    bytes_left = sum(file.stat().st_size for file in dict.fromkeys(files))
    with index.open("rb") as listing:
        for layer, record, name, level in _layers(tree):
            if name in _POSITIONS:
                continue
            value = tree.get(f"NONHIER_{layer}_VAL_{level}", "")
            for offset, length, number in _entries(listing, _VERSION_BYTES + id_length, record):
                bytes_left -= length
                if number >= len(files) or bytes_left < 0:
                    raise CorruptFileError("the slide's index points outside its data files")
                if length and _blank(files[number], offset, length):
                    cleaned.add_removed(_DROPPED.get(value, "notes outside the image"))


def _entries(listing: BinaryIO, roots: int, record: int) -> Iterator[tuple[int, int, int]]:
    """(offset, length, file) of a record: pages of entries, each page naming the next."""
    (root,) = _read(listing, roots + 4, 1)
    (page,) = _read(listing, root + 4 * record, 1)
    for _ in range(_MAX_PAGES):
        if page == 0:
            return
        count, following = _read(listing, page, 2)
        if count > _MAX_ENTRIES:
            break
        for number in range(count):
            _, _, offset, length, file = _read(listing, page + 8 + 20 * number, 5)
            yield offset, length, file
        page = following
    raise CorruptFileError("the slide's Index.dat is damaged: a list in it has no end")


def _read(file: BinaryIO, at: int, words: int) -> tuple[int, ...]:
    file.seek(at)
    data = file.read(4 * words)
    if len(data) < 4 * words:
        raise CorruptFileError("the slide's Index.dat is truncated or damaged")
    return struct.unpack(f"<{words}I", data)


def _blank(path: Path, offset: int, length: int) -> bool:
    """Overwrite a range with zeros; return whether it had other bytes."""
    had_data = False
    with path.open("r+b") as file:
        if offset + length > path.stat().st_size:
            raise CorruptFileError("the slide's index points outside its data files")
        for at in range(offset, offset + length, _CHUNK_BYTES):
            size = min(_CHUNK_BYTES, offset + length - at)
            file.seek(at)
            had_data = had_data or bool(file.read(size).strip(b"\0"))
            file.seek(at)
            file.write(bytes(size))
    return had_data


def _pseudonym(slide_id: bytes, key: bytes) -> bytes:
    """Pseudonym of the id's length, since it is embedded in files; zeros for a short id."""
    if slide_id.startswith(_HASHED_HEAD[: len(slide_id)]):
        return slide_id
    digest = hmac.new(key, b"mrxs:" + slide_id, hashlib.sha512).hexdigest().upper().encode()
    return (_HASHED_HEAD + digest)[: len(slide_id)].ljust(len(slide_id), b"0")


def _rename(path: Path, before: bytes, after: bytes) -> None:
    with path.open("r+b") as file:
        at = file.read(_HEAD_BYTES).find(before)
        if at >= 0:
            file.seek(at)
            file.write(after)


def _number(text: str) -> int:
    """A count; 0 if it is not a number, or has more digits than any slide needs."""
    is_count = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if is_count else 0
