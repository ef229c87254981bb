"""Texts that name the other files of a slide: ``Slidedat.ini`` of MRXS, and VMS and VMU themselves.

Only names are read here. Whether they stay in their folder is ``ml.imaging.formats.sets``'s to say.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from ml.errors import CorruptFileError

MRXS_INDEX = "Slidedat.ini"
MAX_INDEX_BYTES = 4 * 1024 * 1024  # a real one has some hundred kilobytes
Sections = dict[str, dict[str, str]]
"""Values by section and key, as GLib's key files have them."""
_VMS_NEEDED = re.compile(r"(ImageFile(\(\d+(,\d+)*\))?|MapFile)")
_VMS_HELPS = re.compile(r"(OptimisationFile|MacroImage)")
"""Without the first OpenSlide opens nothing; without the second it reads slower, or shows less."""
_SHOWN = 80  # characters of a name in a message


def index_of(path: Path) -> Path:
    """The text that names the others: beside an ``.mrxs`` in its folder, else the file itself."""
    return path.with_suffix("") / MRXS_INDEX if path.suffix.lower() == ".mrxs" else path


def read_index(path: Path) -> Sections:
    """The index of a slide by the name of the file that is opened.

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
    """The file that the index of a slide means by a name: below its folder, also where it begins
    with a slash, as OpenSlide puts the two together.
    """
    return Path(f"{index_of(path).parent}/{name}")


def files_named(path: Path, sections: Sections, *, all_of_them: bool = False) -> list[Path]:
    """The files that an index names, each once, in its order.

    Args:
        path: the file that is opened. all_of_them: those too that a slide can be read without.
    """
    names = _names(path, sections, all_of_them=all_of_them)
    return list(dict.fromkeys(file_named(path, name) for name in names if name))


def names_whole_paths(path: Path, sections: Sections) -> bool:
    """Whether an index names a file by its whole path, which leads out of any folder."""
    names = _names(path, sections, all_of_them=True)
    return any(PurePosixPath(name).is_absolute() for name in names)


def _names(path: Path, sections: Sections, *, all_of_them: bool) -> list[str]:
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
        if _VMS_NEEDED.fullmatch(key) or (all_of_them and _VMS_HELPS.fullmatch(key))
    ]


def missing_from(path: Path) -> list[Path]:
    """Files that a slide of several files needs and that are not there."""
    if not index_of(path).is_file():
        return [index_of(path)]
    return [file for file in files_named(path, read_index(path)) if not is_there(file)]


def is_there(file: Path) -> bool:
    """Whether it is a file, also where no file can have the name that was given."""
    try:
        return file.is_file()
    except OSError:  # too long for a name, or a folder that may not be entered
        return False


def incomplete(path: Path, missing: list[Path]) -> str:
    """A sentence that names what is missing."""
    first = _printable(missing[0].relative_to(path.parent).as_posix())
    more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
    verb = "are" if more else "is"
    return f"the slide is incomplete: {first}{more} {verb} missing; send it with all its files"


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:_SHOWN]
