"""VMS and VMU: a new index, no overview picture, files renamed.

Comments in the JPEGs are overwritten in place, so that the offsets of restart markers stay valid.
"""

from __future__ import annotations

import re
from pathlib import Path

from ml.errors import CorruptFileError
from ml.imaging.deidentification.mrxs import Members
from ml.imaging.deidentification.result import DeidentificationResult
from ml.imaging.deidentification.stills import blank_notes
from ml.imaging.formats.slide_index import file_named, is_there, read_index

_GROUPS = ("Virtual Microscope Specimen", "Uncompressed Virtual Microscope Specimen")
_ALLOWED = frozenset(
    {
        "NoLayers", "NoJpegColumns", "NoJpegRows", "LayerSpacing", "LayerOffset", "SourceLens",
        "PhysicalWidth", "PhysicalHeight", "XOffsetFromSlideCentre", "YOffsetFromSlideCentre",
        "BitsPerPixel", "PixelOrder", "NoNGRColumns", "NoNGRRows",
    }
)  # fmt: skip
"""Fields with the position and size of the pixels."""
_FILES = {"MapFile": "map", "OptimisationFile": "slide.opt"}


def clean_vms(path: Path, cleaned: DeidentificationResult, *, key: bytes) -> Members:
    """Clean a slide in place and return the files that belong to it.

    Args:
        key: Unused: no value has to stay consistent with another slide.
    Raises:
        CorruptFileError: The group that the format requires is missing, or a JPEG cannot be parsed.
    """
    sections, ending = read_index(path), path.suffix.lower()
    group = next((name for name in _GROUPS if name in sections), None)
    if group is None:
        raise CorruptFileError(f"the slide's index lacks the group [{_GROUPS[0]}]")
    members: Members = [(f"slide{ending}", path)]
    names: dict[Path, str] = {}
    assigned: set[str] = set()
    lines = [f"[{group}]"]
    for field, value in sections[group].items():
        name = _new_name(field, ".ngr" if ending == ".vmu" else ".jpg")
        file = file_named(path, value)
        if field in _ALLOWED:
            lines.append(f"{field}={value}")
        elif name and value and name not in assigned and is_there(file):
            if file not in names:  # a file named twice is packed once
                names[file] = name
                members.append((name, file))
                if name.endswith(".jpg"):
                    blank_notes(file, cleaned)
            assigned.add(name)
            lines.append(f"{field}={names[file]}")
        elif value:
            cleaned.add_removed(
                "macro image" if field == "MacroImage" else _field_name(field), value
            )
    if len(sections) > 1:
        cleaned.add_removed("other groups of the index")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
    return members


def _new_name(field: str, ending: str) -> str:
    """New name of the file that a field names; "" for a file that is left out."""
    if match := re.fullmatch(r"ImageFile(?:\((\d+(?:,\d+)*)\))?", field):
        place = match[1].replace(",", "-") if match[1] else "0-0"
        return f"image-{place}{ending}"
    name = _FILES.get(field, "")
    return name + ending if name == "map" else name


def _field_name(field: str) -> str:
    return field if re.fullmatch(r"[A-Za-z]{3,40}", field) else "other fields of the index"
