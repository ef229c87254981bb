"""VMS and VMU without names: the index written again, no picture of the whole glass, files renamed.

Comments in the JPEGs are overwritten where they stand: the list of restart markers stays true.
"""

from __future__ import annotations

import re
from pathlib import Path

from ml.errors import CorruptFileError
from ml.imaging.deidentify.cleaned import Cleaned
from ml.imaging.deidentify.mrxs import Members
from ml.imaging.deidentify.pictures import blank_notes
from ml.imaging.formats.indexes import file_named, is_there, read_index

_GROUPS = ("Virtual Microscope Specimen", "Uncompressed Virtual Microscope Specimen")
_KEPT = frozenset(
    {
        "NoLayers", "NoJpegColumns", "NoJpegRows", "LayerSpacing", "LayerOffset", "SourceLens",
        "PhysicalWidth", "PhysicalHeight", "XOffsetFromSlideCentre", "YOffsetFromSlideCentre",
        "BitsPerPixel", "PixelOrder", "NoNGRColumns", "NoNGRRows",
    }
)  # fmt: skip
"""Where pixels lie and how large they are."""
_FILES = {"MapFile": "map", "OptimisationFile": "slide.opt"}


def clean_vms(path: Path, cleaned: Cleaned, *, key: bytes) -> Members:
    """Clean a set where it lies, and say which of its files make the slide.

    Args:
        key: unused: nothing here has to stay consistent with another slide.
    Raises:
        CorruptFileError: no group that the format names, or a JPEG that cannot be followed.
    """
    sections, ending = read_index(path), path.suffix.lower()
    group = next((name for name in _GROUPS if name in sections), None)
    if group is None:
        raise CorruptFileError(f"the slide's index lacks the group [{_GROUPS[0]}]")
    members: Members = [(f"slide{ending}", path)]
    names: dict[Path, str] = {}
    given: set[str] = set()
    lines = [f"[{group}]"]
    for field, value in sections[group].items():
        name = _renamed(field, ".ngr" if ending == ".vmu" else ".jpg")
        file = file_named(path, value)
        if field in _KEPT:
            lines.append(f"{field}={value}")
        elif name and value and name not in given and is_there(file):
            if file not in names:  # what is named twice is packed once
                names[file] = name
                members.append((name, file))
                if name.endswith(".jpg"):
                    blank_notes(file, cleaned)
            given.add(name)
            lines.append(f"{field}={names[file]}")
        elif value:
            cleaned.took("macro image" if field == "MacroImage" else _told(field))
    if len(sections) > 1:
        cleaned.took("other groups of the index")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
    return members


def _renamed(field: str, ending: str) -> str:
    """The name that a file gets, "" where the field names none that is kept."""
    if found := re.fullmatch(r"ImageFile(?:\((\d+(?:,\d+)*)\))?", field):
        place = found[1].replace(",", "-") if found[1] else "0-0"
        return f"image-{place}{ending}"
    name = _FILES.get(field, "")
    return name + ending if name == "map" else name


def _told(field: str) -> str:
    return field if re.fullmatch(r"[A-Za-z]{3,40}", field) else "other fields of the index"
