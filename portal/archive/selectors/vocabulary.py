"""Reads of a lab's vocabulary."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from portal.archive.models import Case, VocabularyTerm
from portal.archive.models.vocabulary import MAX_CODE_LENGTH
from portal.core.errors import NotFoundError
from portal.core.text import name_key
from portal.labs.models import User


@dataclass(frozen=True, slots=True)
class CaseWord:
    """A word for organ or diagnosis, with the codes that the labs' vocabularies give it."""

    term: str
    code: str = ""

    @property
    def shown(self) -> str:
        """The word and its code."""
        return f"{self.term} · {self.code}" if self.code else self.term


def vocabulary_list(
    *, user: User, lab_id: uuid.UUID | None = None, field: str = "", text: str = ""
) -> QuerySet[VocabularyTerm]:
    """Terms of the person's labs by field and name.

    Args:
        text: Words that occur in the term, or the beginning of its code.
    """
    terms: QuerySet[VocabularyTerm] = VocabularyTerm.objects.owned_by(user)
    if lab_id is not None:
        terms = terms.filter(lab_id=lab_id)
    if field:
        terms = terms.filter(field=field)
    if key := name_key(text):
        in_term = Q()
        for word in key.split()[:10]:
            in_term &= Q(term_key__contains=word)
        terms = terms.filter(in_term | Q(code__istartswith=key))
    return terms


def vocabulary_term_get(*, user: User, term_id: uuid.UUID) -> VocabularyTerm:
    """A term; ``NotFoundError`` if it is of none of the person's labs."""
    term: VocabularyTerm | None = vocabulary_list(user=user).filter(pk=term_id).first()
    if term is None:
        raise NotFoundError("No such term.")
    return term


def words_coded(user: User, words: Mapping[str, list[str]]) -> dict[str, list[CaseWord]]:
    """Words of each field with their codes, in the order given. One query."""
    codes: dict[tuple[str, str], list[str]] = {}
    keys = {name_key(word) for row in words.values() for word in row}
    terms = VocabularyTerm.objects.owned_by(user).filter(term_key__in=keys).exclude(code="")
    for field, key, code in terms.values_list("field", "term_key", "code"):
        word_codes = codes.setdefault((field, key), [])
        if code not in word_codes:
            word_codes.append(code)
    return {
        field: [CaseWord(word, ", ".join(codes.get((field, name_key(word)), ()))) for word in row]
        for field, row in words.items()
    }


def words_of_vocabulary(user: User) -> dict[str, list[str]]:
    """All terms of the person's labs, by field. One query."""
    terms_of_field: dict[str, list[str]] = {}
    terms = VocabularyTerm.objects.owned_by(user)
    for field, term in terms.values_list("field", "term"):
        terms_of_field.setdefault(field, []).append(term)
    return terms_of_field


def vocabulary_spelling(lab_id: uuid.UUID, words: Mapping[str, str]) -> dict[str, str]:
    """The lab's terms for words of fields: of the same name in any spelling, or by their code.

    A code that several terms share matches none of them. One query; none without words.
    """
    term_filter = Q()
    for field, word in words.items():
        if word:
            term_filter |= Q(field=field) & (Q(term_key=name_key(word)) | _is_code(word))
    if not term_filter:
        return {}
    rows = VocabularyTerm.objects.filter(term_filter, lab_id=lab_id)
    spellings: dict[str, dict[str, str]] = {}
    for field, key, term in rows.values_list("field", "term_key", "term"):
        spellings.setdefault(field, {})[key] = term
    spelled = {}
    for field, terms in spellings.items():
        if (key := name_key(words[field])) in terms:
            spelled[field] = terms[key]
        elif len(terms) == 1:
            (spelled[field],) = terms.values()
    return spelled


def coded_cases(cases: QuerySet[Case], codes: Collection[str], *, field: str = "") -> dict[str, Q]:
    """Condition on a case for each code: the vocabulary of its lab has it for organ or diagnosis.

    Empty for a code that no term has. One query; none if no code is short enough.

    Args:
        cases: Only vocabularies of their labs are read.
        field: Only this one of the two.
    """
    conditions = {code: Q() for code in codes}
    code_filter = Q()
    for code in codes:
        if 0 < len(code) <= MAX_CODE_LENGTH:
            code_filter |= Q(code__iexact=code)
    if not code_filter:
        return conditions
    labs = cases.order_by().values("lab_id")
    terms = VocabularyTerm.objects.filter(code_filter, lab_id__in=labs)
    if field:
        terms = terms.filter(field=field)
    for lab_id, of, term, term_code in terms.values_list("lab_id", "field", "term", "code"):
        for code in codes:
            if code.casefold() == term_code.casefold():
                conditions[code] |= Q(**{"lab_id": lab_id, f"{of}__iexact": term})
    return conditions


def case_worded(cases: QuerySet[Case], field: str, value: str) -> QuerySet[Case]:
    """Cases with this word or code in a field."""
    coded = coded_cases(cases, [value], field=field)[value]
    return cases.filter(Q(**{f"{field}__iexact": value}) | coded)


def _is_code(word: str) -> Q:
    return Q(code__iexact=word) if 0 < len(word) <= MAX_CODE_LENGTH else Q(pk__in=())
