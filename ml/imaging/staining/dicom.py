"""The stain in a DICOM object: the steps by which its specimen was prepared.

Source: DICOM PS3.16, TID 8001 (preparation of a specimen), TID 8003 (staining) and CID 8112.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from ml.imaging.staining.terms import EOSIN, HEMATOXYLIN, MEANINGS, STAINS, Stain, stain_named

if TYPE_CHECKING:
    from pydicom.dataset import Dataset
    from pydicom.sr.coding import Code

_CodeTuple = tuple[str, str, str]
"""Scheme, value and meaning of a code."""
_SPECIMEN: _CodeTuple = ("DCM", "121041", "Specimen Identifier")
_PROCESSING: _CodeTuple = ("DCM", "111701", "Processing type")
_STAINING: _CodeTuple = ("SCT", "127790008", "Staining")
_USING: _CodeTuple = ("SCT", "424361007", "Using substance")
_DAMAGE = (AttributeError, IndexError, KeyError, TypeError, ValueError, struct.error)
"""Exceptions that pydicom raises for invalid items."""
_EOSINS = ("83600004", "1346008")
"""Soluble in spirit, and blue shade: for a section the same as ``EOSIN``."""
_COUNTERSTAINS = {HEMATOXYLIN, EOSIN, "78869007"}  # and nuclear fast red
_MAX_STEPS = 200  # of a specimen; it has some ten


def stain_of(data: Dataset) -> str:
    """Stain that an object names by known codes, or in a known word; "" if none.

    Of codes, all have to be known: a counterstain is not taken for the stain of an antibody.
    """
    codes: set[str] = set()
    texts: list[str] = []
    try:
        for item in _substances(data):
            if item.ValueType == "CODE":
                codes.add(_known_code(item.ConceptCodeSequence[0]))
            elif item.ValueType == "TEXT":
                texts.append(stain_named(str(item.TextValue)))
    except _DAMAGE:
        return ""
    if codes and "" not in codes:
        return _named_by(codes)
    return "" if codes or len(set(texts)) != 1 else texts[0]


def preparation_of(stain: str, specimen_id: str) -> list[Dataset]:
    """Staining step of an object: by codes if the context group has them, else in words."""
    from pydicom.dataset import Dataset

    stain_entry = next(
        (known_stain for known_stain in STAINS if known_stain.name == stain), Stain(stain)
    )
    substances = [_code_item(_USING, ("SCT", code, MEANINGS[code])) for code in stain_entry.codes]
    step = Dataset()
    step.SpecimenPreparationStepContentItemSequence = [
        _text(_SPECIMEN, specimen_id),
        _code_item(_PROCESSING, _STAINING),
        *(substances or [_text(_USING, stain)]),
    ]
    return [step]


def _substances(data: Dataset) -> Iterator[Dataset]:
    """Substances that the specimens were stained with, as content items."""
    steps = 0
    for specimen in data.get("SpecimenDescriptionSequence") or ():
        for step in specimen.get("SpecimenPreparationSequence") or ():
            steps += 1
            if steps > _MAX_STEPS:
                return
            items = list(step.get("SpecimenPreparationStepContentItemSequence") or ())
            if any(_is_staining(item) for item in items):
                yield from (item for item in items if _is(item.ConceptNameCodeSequence[0], _USING))


def _is_staining(item: Dataset) -> bool:
    if item.ValueType != "CODE" or not _is(item.ConceptNameCodeSequence[0], _PROCESSING):
        return False
    return _is(item.ConceptCodeSequence[0], _STAINING)


def _is(item: Dataset, code: _CodeTuple) -> bool:
    """Return whether an item has a code, also in older spellings of SNOMED."""
    from pydicom.sr.coding import Code

    return bool(_code_of(item) == Code(code[1], code[0], ""))


def _code_of(item: Dataset) -> Code:
    from pydicom.sr.coding import Code

    return Code(str(item.CodeValue), str(item.CodingSchemeDesignator), "")


def _known_code(item: Dataset) -> str:
    """The code in SNOMED CT, older spellings included; "" where it is not a stain of the group."""
    item_code = _code_of(item)
    name = next((value for value, code in _group().items() if code == item_code), "")
    return EOSIN if name in _EOSINS else name


def _named_by(codes: set[str]) -> str:
    """The stain with most of the codes, if the others are counterstains; otherwise all names."""
    fitting = [stain for stain in STAINS if stain.codes and codes.issuperset(stain.codes)]
    fitting.sort(
        key=lambda candidate: (-len(candidate.codes), candidate.codes[0] in _COUNTERSTAINS)
    )
    if fitting and codes - set(fitting[0].codes) <= _COUNTERSTAINS:
        return fitting[0].name
    names = {stain.codes[0]: stain.name for stain in STAINS if len(stain.codes) == 1}
    return " + ".join(names.get(code) or _meaning(code) for code in sorted(codes))


def _meaning(code: str) -> str:
    """Meaning of a code in the context group."""
    text = _group()[code].meaning.removesuffix(" stain")
    return text[:1].upper() + text[1:]


@cache
def _group() -> dict[str, Code]:
    from pydicom.sr.codedict import codes

    return {code.value: code for code in codes.cid8112.concepts.values()}


def _code_item(name: _CodeTuple, value: _CodeTuple) -> Dataset:
    item = _item("CODE", name)
    item.ConceptCodeSequence = [_as_item(value)]
    return item


def _text(name: _CodeTuple, value: str) -> Dataset:
    item = _item("TEXT", name)
    item.TextValue = value
    return item


def _item(kind: str, name: _CodeTuple) -> Dataset:
    from pydicom.dataset import Dataset

    item = Dataset()
    item.ValueType, item.ConceptNameCodeSequence = kind, [_as_item(name)]
    return item


def _as_item(code: _CodeTuple) -> Dataset:
    from pydicom.dataset import Dataset

    item = Dataset()
    item.CodingSchemeDesignator, item.CodeValue, item.CodeMeaning = code
    return item
