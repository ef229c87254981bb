"""Cases: create, change, delete while empty."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, TypedDict, Unpack

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from portal.archive import storage
from portal.archive.models import Asset, Case
from portal.archive.rules import require_edit
from portal.core.errors import ConflictError, InvalidInputError
from portal.labs.models import Lab, User

MAX_TAGS = 20  # beyond it a list of tags cannot be read
MAX_TAG_LENGTH = 40  # a tag is a word or two, shown as a pill
_TEXT = ("accession", "patient_key", "organ", "procedure", "diagnosis")


class CaseFields(TypedDict, total=False):
    """What a case records besides its accession number."""

    patient_key: str
    age_band: str
    sex: str
    organ: str
    procedure: str
    diagnosis: str
    tags: Iterable[str]


def case_create(*, lab: Lab, user: User, accession: str, **fields: Unpack[CaseFields]) -> Case:
    """Create a case in a lab.

    Raises:
        ForbiddenError: below annotator.
        InvalidInputError: a value is not valid; ``details["errors"]`` names the field.
        ConflictError: the lab has a case of that accession number.
    """
    require_edit(user, lab.pk)
    case = Case(lab=lab, created_by=user)
    return _save(case, {"accession": accession, **fields})


def case_update(*, case: Case, user: User, **changes: Any) -> Case:
    """Change any of ``CaseFields`` or the accession number; the rest stays. Raises as create."""
    require_edit(user, case.lab_id)
    return _save(case, changes)


def case_delete(*, case: Case, user: User) -> None:
    """Delete an empty case, with traces of its transfers.

    Raises:
        ConflictError: it still holds slides, videos or mosaics; the message counts them.
    """
    require_edit(user, case.lab_id)
    with transaction.atomic():
        held = {
            "slide": case.slides.count(),
            "video": case.videos.count(),
            "mosaic": case.canvases.filter(kind="mosaic").count(),
        }
        if any(held.values()):
            raise ConflictError(
                f"Case {case.accession} still holds {_counted(held)}. "
                "Delete those first; a case with content is never deleted silently.",
                code="case-not-empty",
                details={"holds": held},
            )
        assets = list(Asset.objects.filter(uploads__case=case).distinct())
        unfinished = [storage.incoming_path(str(pk)) for pk in _unfinished(case)]
        case.delete()
        for path in unfinished:
            transaction.on_commit(partial(path.unlink, missing_ok=True))
        for asset in assets:
            asset_release(asset)


def asset_release(asset: Asset) -> None:
    """Delete an asset that nothing names any more; its bytes go when the transaction commits."""
    if asset.slides.exists() or asset.videos.exists() or asset.uploads.exists():
        return
    lab_id, sha256 = asset.lab_id, asset.sha256
    asset.delete()
    transaction.on_commit(lambda: storage.asset_drop(lab_id=lab_id, sha256=sha256))


def _unfinished(case: Case) -> Iterable[uuid.UUID]:
    return case.uploads.filter(asset=None).values_list("pk", flat=True)


def _save(case: Case, values: Mapping[str, Any]) -> Case:
    unknown = set(values) - {*_TEXT, "age_band", "sex", "tags"}
    if unknown:
        raise InvalidInputError(f"A case has no {', '.join(sorted(unknown))}.")
    for name, value in values.items():
        setattr(case, name, _clean(name, value))
    case.search_text = search_text(case)
    _validate(case)
    try:
        with transaction.atomic():
            case.save()
    except IntegrityError:
        raise ConflictError(
            f"There is already a case {case.accession} in this lab.", code="accession-taken"
        ) from None
    return case


def _clean(name: str, value: Any) -> Any:
    if name == "tags":
        return tags_clean(value)
    return " ".join(str(value).split()) if name in _TEXT else value


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
    kept: dict[str, str] = {}
    for tag in tags:
        text = " ".join(str(tag).split()).lstrip("#")
        if len(text) > MAX_TAG_LENGTH:
            raise InvalidInputError(
                f"tags: a tag has at most {MAX_TAG_LENGTH} characters; {text[:20]!r}... has "
                f"{len(text)}."
            )
        if text:
            kept.setdefault(text.lower(), text)
    if len(kept) > MAX_TAGS:
        raise InvalidInputError(f"tags: a case has at most {MAX_TAGS} tags; got {len(kept)}.")
    return list(kept.values())


def search_text(case: Case) -> str:
    """What the list searches; see ``Case``."""
    lines = [str(getattr(case, name)).lower() for name in _TEXT]
    lines += [f"#{tag.lower()}" for tag in case.tags]
    return "\n" + "\n".join(line for line in lines if line) + "\n"


def _counted(held: Mapping[str, int]) -> str:
    return ", ".join(
        f"{count} {name}{'' if count == 1 else 's'}" for name, count in held.items() if count
    )
