"""Reads shared by several standards."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from django.db.models import Q

from portal.archive.models import Canvas, Case, VocabularyField, VocabularyTerm
from portal.archive.selectors.canvases import canvas_list
from portal.archive.selectors.cases import case_get
from portal.core.text import name_key
from portal.labs.models import User

MAX_CANVASES_PER_CASE = 500  # a manifest of 600 kB; the list of canvases over REST has all
ICD_O = "http://terminology.hl7.org/CodeSystem/icd-o-3"
_ICD_O_CODE = {
    VocabularyField.ORGAN: re.compile(r"C\d\d(\.\d)?"),  # topography
    VocabularyField.DIAGNOSIS: re.compile(r"\d{4}/\d"),  # morphology
}


@dataclass(frozen=True, slots=True)
class CodedTerm:
    """A term with its code.

    Attributes:
        system: URI of the code's system.
    """

    term: str
    code: str
    system: str


def case_canvases(*, user: User, case_id: uuid.UUID) -> tuple[Case, list[Canvas]]:
    """A case and its canvases, oldest first."""
    case = case_get(user=user, case_id=case_id)
    canvases = canvas_list(user=user).filter(case=case)
    canvases = canvases.order_by("created_at", "id")
    return case, list(canvases[:MAX_CANVASES_PER_CASE])


def case_codes(case: Case) -> dict[str, CodedTerm]:
    """Organ and diagnosis of a case that its lab's vocabulary has a code for. One query.

    A code that does not look like ICD-O-3 is of the lab's own system, ``urn:uuid:<lab>``: a
    vocabulary does not say which classification its codes are from.
    """
    words = Q()
    for field in VocabularyField.values:
        words |= Q(field=field, term_key=name_key(getattr(case, field)))
    terms = VocabularyTerm.objects.filter(words, lab_id=case.lab_id).exclude(code="")
    return {
        field: CodedTerm(term, code, _system(case, field, code))
        for field, term, code in terms.values_list("field", "term", "code")
    }


def _system(case: Case, field: str, code: str) -> str:
    is_icd_o = _ICD_O_CODE[VocabularyField(field)].fullmatch(code)
    return ICD_O if is_icd_o else f"urn:uuid:{case.lab_id}"
