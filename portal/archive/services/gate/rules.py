"""Change a lab's rules for incoming files."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.db import transaction

from portal.archive.models import IntakeRules
from portal.archive.rules import require_intake
from portal.core.events import event_emit
from portal.labs.models import Lab, User


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeRuleValues:
    """The rules a manager wants; see ``IntakeRules``."""

    takes_names_out: bool
    must_be_clean: bool
    titles_from_files: bool
    identifying_text: str
    other_text: str
    faces: str
    ignored_words: list[str]
    keeps_originals: bool = False


def intake_rules_set(*, lab: Lab, user: User, values: IntakeRuleValues) -> IntakeRules:
    """Say how the lab takes files in; emits ``intake_rules.changed``.

    Files that are there already stay as they are.

    Raises:
        ForbiddenError: not a manager.
    """
    require_intake(user, lab.pk)
    with transaction.atomic():
        rules, _ = IntakeRules.objects.update_or_create(lab=lab, defaults=asdict(values))
        payload = {"lab_id": str(lab.pk), "user_id": str(user.pk), **asdict(values)}
        event_emit("intake_rules.changed", lab_id=lab.pk, payload=payload)
    return rules
