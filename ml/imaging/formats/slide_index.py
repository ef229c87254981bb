"""Index files of slides that consist of several files: ``Slidedat.ini`` of MRXS, VMS and VMU.

Only names are read here; ``ml.imaging.formats.multi_file`` checks that they stay in the folder.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from ml.errors import CorruptFileError

MRXS_INDEX = "Slidedat.ini"
MAX_INDEX_BYTES = 4 * 1024 * 1024  # a real one has some hundred kilobytes
Sections = dict[str, dict[str, str]]
"""Values by section and key, as in GLib's key files."""
_VMS_REQUIRED = re.compile(r"(ImageFile(\(\d+(,\d+)*\))?|MapFile)")
_VMS_OPTIONAL = re.compile(r"(OptimisationFile|MacroImage)")
"""OpenSlide needs the first; without the second it reads slower, or shows less."""
_SHOWN = 80  # characters of a name in a message


def index_of(path: Path) -> Path:
    """Text file that names the slide's other files: ``Slidedat.ini`` of an ``.mrxs``, else the
    file itself."""
    return path.with_suffix("") / MRXS_INDEX if path.suffix.lower() == ".mrxs" else path


def read_index(path: Path) -> Sections:
    """Read the index of a slide by the path of the file that is opened.

    Raises:
        CorruptFileError: far too long.
    """
    with index_of(path).open("rb") as file:
        text = file.read(MAX_INDEX_BYTES + 1)
    if len(text) > MAX_INDEX_BYTES:
        raise CorruptFileError(f"the slide's index has more than {MAX_INDEX_BYTES:,} bytes")
    sections: Sections = {}
    section: dict[str, str] = {}
    for line in text.decode("utf-8", "surrogateescape").removeprefix("\ufeff").splitlines():
        plain = line.strip()
        if plain.startswith("[") and plain.endswith("]"):
            section = sections.setdefault(plain[1:-1], {})
        elif "=" in plain and not plain.startswith("#"):
            key, _, value = plain.partition("=")
            section[key.strip()] = value.strip()
    return sections


def file_named(path: Path, name: str) -> Path:
    """Path of a file named by a slide's index: below its folder, even with a leading slash.

    OpenSlide joins the two in the same way.
    """
    return Path(f"{index_of(path).parent}/{name}")


def files_named(path: Path, sections: Sections, *, include_optional: bool = False) -> list[Path]:
    """The files that an index names, each once, in its order.

    Args:
        path: the file that is opened.
        include_optional: also files that a slide can be read without.
    """
    names = _names(path, sections, include_optional=include_optional)
    return list(dict.fromkeys(file_named(path, name) for name in names if name))


def names_absolute_paths(path: Path, sections: Sections) -> bool:
    """Return whether an index names a file by an absolute path."""
    names = _names(path, sections, include_optional=True)
    return any(PurePosixPath(name).is_absolute() for name in names)


def _names(path: Path, sections: Sections, *, include_optional: bool) -> list[str]:
    if path.suffix.lower() == ".mrxs":
        names = [sections.get("HIERARCHICAL", {}).get("INDEXFILE", "")]
        names += [
            value
            for key, value in sections.get("DATAFILE", {}).items()
            if re.fullmatch(r"FILE_\d+", key)
        ]
        return names
    return [
        value
        for section in sections.values()
        for key, value in section.items()
        if _VMS_REQUIRED.fullmatch(key) or (include_optional and _VMS_OPTIONAL.fullmatch(key))
    ]


def missing_from(path: Path) -> list[Path]:
    """Required files of a slide of several files that do not exist."""
    if not index_of(path).is_file():
        return [index_of(path)]
    return [file for file in files_named(path, read_index(path)) if not is_there(file)]


def is_there(file: Path) -> bool:
    """Return whether a path is a file; False for a name that no file can have."""
    try:
        return file.is_file()
    except OSError:  # too long for a name, or a folder that may not be entered
        return False


def incomplete(path: Path, missing: list[Path]) -> str:
    """Sentence that names the missing files."""
    first = _printable(missing[0].relative_to(path.parent).as_posix())
    others = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
    verb = "are" if others else "is"
    return f"the slide is incomplete: {first}{others} {verb} missing; send it with all its files"


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:_SHOWN]
