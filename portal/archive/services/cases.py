"""Cases: create, change, delete."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypedDict, Unpack
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from portal.archive.models import Case, TrashEntry, VocabularyField
from portal.archive.rules import require_edit
from portal.archive.selectors.vocabulary import vocabulary_spelling
from portal.archive.services.items import require_prepared
from portal.archive.services.trash import trash_put
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.core.text import name_clean, name_key, text_clean
from portal.labs.models import Lab, User

MAX_TAGS = 20  # beyond it a list of tags cannot be read
MAX_TAG_LENGTH = 40  # a tag is a word or two, shown as a pill
_VOCABULARY = {"organ", "procedure", "diagnosis"}  # words that a lab's cases share
_TEXT = ("accession", "patient_key", "organ", "procedure", "diagnosis", "clinical_question")


class CaseFields(TypedDict, total=False):
    """Fields of a case other than its accession number."""

    patient_key: str
    age_band: str
    sex: str
    organ: str
    procedure: str
    diagnosis: str
    tags: Iterable[str]
    clinical_question: str
    notes: str


def case_create(*, lab: Lab, user: User, accession: str, **fields: Unpack[CaseFields]) -> Case:
    """Create a case in a lab. Emits ``case.created``.

    Raises:
        ForbiddenError: below annotator.
        InvalidInputError: a value is not valid; ``details["errors"]`` names the field.
        ConflictError: the lab has a case of that accession number.
    """
    require_edit(user, lab.pk)
    case = Case(lab=lab, created_by=user)
    return _save(case, {"accession": accession, **fields}, event="case.created")


def case_update(*, case: Case, user: User, **changes: Any) -> Case:
    """Change any of ``CaseFields`` or the accession number; raises what ``case_create`` raises.

    Emits ``case.changed``.
    """
    require_edit(user, case.lab_id)
    return _save(case, changes, event="case.changed")


def case_delete(*, case: Case, user: User) -> TrashEntry:
    """Put a case into the trash, with all that it holds.

    Raises:
        NotFoundError: it was deleted in the meantime.
        ConflictError: something in it is still being prepared.
    """
    require_edit(user, case.lab_id)
    with transaction.atomic():
        require_prepared([*case.slides.all(), *case.videos.all()])
        return trash_put(item=case, user=user)


def _emit(case: Case, event: str) -> None:
    event_emit(event, lab_id=case.lab_id, payload={"case_id": str(case.pk)})


def _save(case: Case, values: Mapping[str, Any], *, event: str) -> Case:
    unknown = set(values) - {*_TEXT, "age_band", "sex", "tags", "notes"}
    if unknown:
        raise InvalidInputError(f"A case has no field {', '.join(sorted(unknown))}.")
    is_new = case._state.adding
    for name, value in values.items():
        setattr(case, name, _clean(name, value))
    words = {name: getattr(case, name) for name in _VOCABULARY & values.keys()}
    for name, word in words_spelled(case.lab_id, words, changed=[case.pk]).items():
        setattr(case, name, word)
    case.search_text = search_text(case)
    _validate(case)
    try:
        with transaction.atomic():
            if is_new:
                case.save(force_insert=True)
            else:  # only these fields: the case may have been put into the trash since it was read
                case.save(update_fields=[*values, "search_text", "updated_at"])
            _emit(case, event)
    except IntegrityError:
        raise ConflictError(
            f"This lab already has a case {case.accession}.", code="accession-taken"
        ) from None
    return case


def words_spelled(
    lab_id: UUID, words: Mapping[str, str], *, changed: Collection[UUID]
) -> dict[str, str]:
    """Words of fields as the lab's vocabulary writes them, or else as its other cases do.

    Args:
        words: A code of the vocabulary is replaced by its term.
        changed: Cases that get the words; their own spelling does not count.
    """
    terms = {name: word for name, word in words.items() if name in VocabularyField.values}
    spelled = vocabulary_spelling(lab_id, terms)
    other_cases = Case.objects.filter(lab_id=lab_id).exclude(pk__in=changed)
    return {
        name: spelled.get(name) or _as_spelled_before(other_cases, name, word)
        for name, word in words.items()
    }


def _as_spelled_before(cases: QuerySet[Case], name: str, word: str) -> str:
    """The word as the cases write it: "colon" and "Colon" would be two organs."""
    if not word:
        return word
    same = cases.filter(**{f"{name}__iexact": word}).order_by("created_at")
    return same.values_list(name, flat=True).first() or word


def _clean(name: str, value: Any) -> Any:
    if name == "tags":
        return tags_clean(value)
    if name == "notes":
        return text_clean(str(value))
    return name_clean(str(value)) if name in _TEXT else value


def _validate(case: Case) -> None:
    try:
        case.clean_fields(exclude=["lab", "created_by"])
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidInputError(
            f"{field}: {messages[0]}", details={"errors": error.message_dict}
        ) from None


def tags_clean(tags: Iterable[str]) -> list[str]:
    """Trimmed, without duplicates (ignoring case), in the order given."""
    by_key: dict[str, str] = {}
    for tag in tags:
        text = name_clean(str(tag)).lstrip("# ")
        if len(text) > MAX_TAG_LENGTH:
            raise InvalidInputError(
                f"tags: a tag has at most {MAX_TAG_LENGTH} characters; {text[:20]!r}... has "
                f"{len(text)}."
            )
        if text:
            by_key.setdefault(name_key(text), text)
    if len(by_key) > MAX_TAGS:
        raise InvalidInputError(f"tags: a case has at most {MAX_TAGS} tags; got {len(by_key)}.")
    return list(by_key.values())


def search_text(case: Case) -> str:
    """Text that the case list searches; see ``Case``."""
    lines = [name_key(str(getattr(case, name))) for name in _TEXT]
    lines.append(name_key(case.notes).lstrip("# "))  # a line after a "#" is a tag
    lines += [f"#{name_key(tag)}" for tag in case.tags]
    return "\n" + "\n".join(line for line in lines if line) + "\n"
