"""File names of downloads."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath
from urllib.parse import quote

from portal.core.text import name_clean

_NOT_IN_NAMES = dict.fromkeys(map(ord, '/\\:*?"<>|'), "_")  # of some file system
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
_UNSAFE_IN_ASCII = re.compile(r"[^A-Za-z0-9 ._()+,=@#-]+")
_UNQUOTED = "!#$&+-.^_`|~"  # besides letters and digits: RFC 8187, attr-char
_LETTERS = {"ß": "ss", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "œ": "oe", "đ": "d", "ł": "l"}
_MAX_CHARS = 200  # as titles have


def attachment(name: str, suffix: str = "", *, fallback: str) -> str:
    """Value of ``Content-Disposition`` by RFC 6266: a UTF-8 name and an ASCII fallback.

    Args:
        name: Name as shown. Path separators, control and directional characters and characters
            that file systems refuse are replaced or removed.
        suffix: Suffix with its dot (``.svs``, ``-rois.csv``).
        fallback: ASCII stem for names without ASCII letters or digits.
    """
    stem = _stem(name)
    plain = _ascii(stem)
    if not re.search(r"[A-Za-z0-9]", _ascii(PurePosixPath(stem).stem)):
        plain = fallback
    full_name = f"{stem or fallback}{suffix}"
    value = f'attachment; filename="{plain}{suffix}"'
    if full_name != f"{plain}{suffix}":
        value += f"; filename*=UTF-8''{quote(full_name, safe=_UNQUOTED)}"
    return value


def _stem(name: str) -> str:
    text = name_clean(name).translate(_NOT_IN_NAMES)[:_MAX_CHARS].strip(" .")
    return f"_{text}" if _RESERVED.match(text) else text


def _ascii(stem: str) -> str:
    """Transliterate to ASCII; other characters are removed."""
    text = "".join(_LETTERS.get(letter, letter) for letter in stem)
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return " ".join(_UNSAFE_IN_ASCII.sub("_", plain).split()).replace(" .", ".").strip(" .")
