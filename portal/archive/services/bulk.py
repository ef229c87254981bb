"""Changes of many cases at once: one that is refused does not stop the others."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.utils import timezone

from portal.archive.models import Case, VocabularyField
from portal.archive.services.cases import search_text, tags_clean, words_spelled
from portal.core.database.rows import rows_update
from portal.core.errors import InvalidInputError
from portal.core.events import events_emit
from portal.core.text import name_clean, name_key
from portal.labs.models import Role, User
from portal.labs.selectors import labs_with_role

MAX_CASES = 1_000  # in a request: a change of all is one transaction


@dataclass(frozen=True, slots=True)
class CaseProblem:
    """Reason why one case was left as it is.

    Attributes:
        accession: Empty if the person cannot see the case.
        code: ``not-found``, ``forbidden`` or that of the refused change.
    """

    case_id: uuid.UUID
    accession: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class BulkResult:
    """Result of a change of many cases.

    Attributes:
        changed: Ids of the cases that were changed.
        unchanged: Number of cases that needed no change.
    """

    changed: list[uuid.UUID] = field(default_factory=list)
    unchanged: int = 0
    problems: list[CaseProblem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CaseDetails:
    """Organ and diagnosis that cases had; they are the request that takes a change back."""

    cases: list[uuid.UUID]
    details: dict[str, str]


@dataclass(frozen=True, slots=True)
class DetailsResult(BulkResult):
    """Result of a change of organ and diagnosis.

    Attributes:
        before: What the changed cases had, a row for each combination of words.
    """

    before: list[CaseDetails] = field(default_factory=list)


def cases_update(*, user: User, case_ids: Sequence[uuid.UUID], **details: str) -> DetailsResult:
    """Set organ or diagnosis of cases, in one transaction. Emits ``case.changed`` for each.

    The words are spelled as each case's lab does; a code of its vocabulary is replaced by its term.

    Args:
        case_ids: 1 to ``MAX_CASES``.
        details: ``organ``, ``diagnosis`` or both; an empty word removes it.
    Raises:
        InvalidInputError: too many cases, no word, or a word that is too long.
    """
    ids, words = cases_counted(case_ids), _details_clean(details)
    result = BulkResult()
    before: dict[tuple[str, ...], list[uuid.UUID]] = {}
    with transaction.atomic():
        cases = cases_writable(user, ids, result, at_least=Role.ANNOTATOR)
        spelled = {
            lab_id: words_spelled(lab_id, words, changed=[case.pk for case in cases])
            for lab_id in {case.lab_id for case in cases}
        }
        changed: list[Case] = []
        for case in cases:
            old = tuple(str(getattr(case, name)) for name in words)
            new = spelled[case.lab_id]
            if old == tuple(new.values()):
                continue
            before.setdefault(old, []).append(case.pk)
            for name, word in new.items():
                setattr(case, name, word)
            changed.append(case)
        _save(changed, [*words], result)
    whole_result = completed(result, ids)
    rows = [CaseDetails(pks, dict(zip(words, old, strict=True))) for old, pks in before.items()]
    return DetailsResult(whole_result.changed, whole_result.unchanged, whole_result.problems, rows)


def cases_tag(
    *,
    user: User,
    case_ids: Sequence[uuid.UUID],
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
) -> BulkResult:
    """Add tags to cases and remove others, in one transaction. Emits ``case.changed`` for each.

    Args:
        case_ids: 1 to ``MAX_CASES``.
    Raises:
        InvalidInputError: too many cases, no tag, or a tag that is too long.
    """
    ids = cases_counted(case_ids)
    added, removed = tags_clean(add), {name_key(tag) for tag in tags_clean(remove)}
    if not added and not removed:
        raise InvalidInputError("add, remove: give at least one tag.")
    result = BulkResult()
    with transaction.atomic():
        changed: list[Case] = []
        for case in cases_writable(user, ids, result, at_least=Role.ANNOTATOR):
            remaining = [tag for tag in case.tags if name_key(tag) not in removed]
            try:
                tags = tags_clean([*remaining, *added])
            except InvalidInputError as error:
                result.problems.append(problem_of(case, "too-many-tags", error.message))
                continue
            if tags == case.tags:
                continue
            case.tags = tags
            changed.append(case)
        _save(changed, ["tags"], result)
    return completed(result, ids)


def cases_counted(case_ids: Collection[uuid.UUID]) -> list[uuid.UUID]:
    """Different ids in their order; ``InvalidInputError`` if there are none or too many."""
    ids = list(dict.fromkeys(case_ids))
    if not 0 < len(ids) <= MAX_CASES:
        raise InvalidInputError(
            f"cases: expected 1 to {MAX_CASES:,} cases at once, got {len(ids):,}."
        )
    return ids


def cases_writable(
    user: User, ids: Sequence[uuid.UUID], result: BulkResult, *, at_least: Role
) -> list[Case]:
    """Locked cases in whose labs the person has the role; the others become problems of the result.

    Call it in a transaction. Three queries, however many cases there are.
    """
    rows = Case.objects.select_for_update(of=("self",)).filter(
        pk__in=Case.objects.visible_to(user).filter(pk__in=ids).order_by().values("pk")
    )
    cases_by_id = {case.pk: case for case in rows.order_by("pk")}
    labs = set(labs_with_role(user, at_least=at_least).values_list("pk", flat=True))
    writable: list[Case] = []
    for pk in ids:
        case = cases_by_id.get(pk)
        if case is None:
            result.problems.append(CaseProblem(pk, "", "not-found", "There is no such case."))
        elif case.lab_id not in labs:
            detail = f"This takes the role of {at_least.label.lower()} in the lab of the case."
            result.problems.append(problem_of(case, "forbidden", detail))
        else:
            writable.append(case)
    return writable


def problem_of(case: Case, code: str, detail: str) -> CaseProblem:
    """A problem with a case that the person can see."""
    return CaseProblem(case.pk, case.accession, code, detail)


def completed(result: BulkResult, ids: Sequence[uuid.UUID]) -> BulkResult:
    """Result that counts the other cases as unchanged."""
    unchanged = len(ids) - len(result.changed) - len(result.problems)
    return BulkResult(result.changed, unchanged, result.problems)


def _details_clean(details: Mapping[str, str]) -> dict[str, str]:
    """Words as they are stored, in the order of ``VocabularyField``."""
    words = {}
    for name in VocabularyField.values:
        if name not in details:
            continue
        words[name] = name_clean(details[name])
        limit = int(getattr(Case._meta.get_field(name), "max_length", 0))
        if len(words[name]) > limit:
            raise InvalidInputError(
                f"{name}: at most {limit} characters; it has {len(words[name])}."
            )
    if not words:
        raise InvalidInputError("organ, diagnosis: give at least one of them.")
    return words


def _save(cases: Sequence[Case], names: Sequence[str], result: BulkResult) -> None:
    """Save these fields of changed cases. Emits ``case.changed`` for each."""
    for case in cases:
        case.search_text, case.updated_at = search_text(case), timezone.now()
    rows_update(cases, [*names, "search_text", "updated_at"])
    result.changed.extend(case.pk for case in cases)
    for lab_id in {case.lab_id for case in cases}:
        payloads = [{"case_id": str(case.pk)} for case in cases if case.lab_id == lab_id]
        events_emit("case.changed", lab_id=lab_id, payloads=payloads)
