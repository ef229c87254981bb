"""Query parameters of a DICOMweb search (QIDO-RS: DICOM PS3.18, 10.6)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from django.http import QueryDict

from ml.imaging.dicom.uids import uuid_of
from portal.core.errors import InvalidInputError
from portal.core.text import name_clean

DEFAULT_LIMIT, MAX_LIMIT = 100, 1000
MAX_OFFSET = 10_000_000  # a larger number is an error
MAX_VALUES = 50  # UIDs of one search
UIDS = ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID")
TEXTS = ("PatientID", "AccessionNumber", "StudyDescription", "SeriesDescription")
"""Attributes with wildcards: ``*`` matches any letters and ``?`` one."""
CODES = ("Modality", "ModalitiesInStudy", "SOPClassUID", "PatientSex")
EMPTY = ("PatientName", "PatientBirthDate", "ReferringPhysicianName", "StudyID")
"""They have no value here: only a search for any value finds something."""
OTHER = ("StudyDate", "InstanceNumber")
SEARCHED = (*UIDS, *TEXTS, *CODES, *EMPTY, *OTHER)
_CONTROLS = {"limit", "offset", "includefield", "fuzzymatching", "accept", "charset"}
_TAG = re.compile(r"[0-9A-Fa-f]{8}")
_MAX_LETTERS, _MAX_STARS = 64, 4  # of a text with wildcards: a match is quick


@dataclass(frozen=True, slots=True)
class DicomQuery:
    """A search.

    Attributes:
        ids: UUIDs by UID attribute; a UID that is not of this portal adds none.
        texts: Text by attribute, or a regular expression for one with wildcards.
        codes: Accepted values by attribute.
        dates: First and last day; None if open.
        is_empty: The search needs a value of an attribute that has none here.
        fields: Keywords to add; ``None`` for all.
    """

    limit: int = DEFAULT_LIMIT
    offset: int = 0
    ids: dict[str, list[uuid.UUID]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    codes: dict[str, list[str]] = field(default_factory=dict)
    dates: tuple[date | None, date | None] = (None, None)
    numbers: Sequence[int] | None = None
    is_empty: bool = False
    fields: frozenset[str] | None = frozenset()


def parse_query(params: QueryDict) -> DicomQuery:
    """Read a search.

    Raises:
        InvalidInputError: an attribute that is not searched, or a value of the wrong form.
    """
    values_by_key: dict[str, list[str]] = {}
    for key, texts in params.lists():
        if any("\0" in value for value in texts):
            raise InvalidInputError("A value contains characters that are not allowed.")
        if key not in _CONTROLS:
            values_by_key.setdefault(_keyword(key), []).extend(_split_values(texts))
    restrictions = {key: values for key, values in values_by_key.items() if _restricts(values)}
    numbers = restrictions.get("InstanceNumber")
    return DicomQuery(
        limit=_number(params.get("limit"), "limit", DEFAULT_LIMIT, MAX_LIMIT),
        offset=_number(params.get("offset"), "offset", 0, MAX_OFFSET),
        ids={name: _ids(restrictions[name]) for name in UIDS if name in restrictions},
        texts={name: _pattern(name, restrictions[name]) for name in TEXTS if name in restrictions},
        codes={name: restrictions[name] for name in CODES if name in restrictions},
        dates=_dates(restrictions.get("StudyDate")),
        numbers=[_number(number, "InstanceNumber", 0, MAX_OFFSET) for number in numbers]
        if numbers
        else None,
        is_empty=any(name in restrictions for name in EMPTY),
        fields=_fields(params.getlist("includefield")),
    )


def _split_values(values: Iterable[str]) -> list[str]:
    """Split repeated parameters at commas and backslashes."""
    return [word.strip() for value in values for word in re.split(r"[,\\]", value)]


def _restricts(values: Iterable[str]) -> bool:
    """Return whether values restrict a search: an empty value or only stars match anything."""
    return any(value.strip("*") for value in values)


def _keyword(key: str) -> str:
    from pydicom.datadict import keyword_for_tag

    name = keyword_for_tag(int(key, 16)) if _TAG.fullmatch(key) else key
    if name not in SEARCHED:
        raise InvalidInputError(
            f"{key[:60]} cannot be searched here; a search can use {', '.join(SEARCHED)}."
        )
    return name


def _ids(values: Sequence[str]) -> list[uuid.UUID]:
    if len(values) > MAX_VALUES:
        raise InvalidInputError(f"At most {MAX_VALUES} UIDs of a kind are searched at once.")
    return [uid for value in values if (uid := uuid_of(value)) is not None]


def _pattern(name: str, values: Sequence[str]) -> str:
    """A regular expression, of the whole value."""
    text = name_clean(values[0])
    if len(values) > 1 or len(text) > _MAX_LETTERS or text.count("*") > _MAX_STARS:
        raise InvalidInputError(
            f"{name}: expected one text of at most {_MAX_LETTERS} letters with at most "
            f"{_MAX_STARS} *."
        )
    return f"^{re.escape(text).replace(re.escape('*'), '.*').replace(re.escape('?'), '.')}$"


def _dates(values: Sequence[str] | None) -> tuple[date | None, date | None]:
    if not values:
        return None, None
    first, dash, last = values[0].partition("-")
    return _day(first), _day(last if dash else first)


def _day(text: str) -> date | None:
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y%m%d").date()
    except ValueError as error:
        raise InvalidInputError(
            "StudyDate: expected a date such as 20260131, or a range such as 20260101-20260131."
        ) from error


def _number(text: str | None, name: str, usual: int, max_value: int) -> int:
    if not text:
        return usual
    is_short = len(text) <= len(str(max_value)) and text.isascii() and text.isdecimal()
    if not is_short or int(text) > max_value:
        raise InvalidInputError(f"{name}: expected a number up to {max_value:,}.")
    return int(text)


def _fields(values: Sequence[str]) -> frozenset[str] | None:
    from pydicom.datadict import keyword_for_tag

    names = _split_values(values)
    if "all" in names:
        return None
    return frozenset(
        keyword_for_tag(int(name, 16)) if _TAG.fullmatch(name) else name for name in names if name
    )
