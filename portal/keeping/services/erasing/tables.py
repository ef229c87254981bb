"""Rules of erasure for each table: found through foreign keys, or declared here.

Rows that a case takes with it (``on_delete=CASCADE``, at any distance) need no declaration. Every
other table needs one: a check of Django's refuses a model that has none.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db.models import CASCADE, ForeignObjectRel, Model

from portal.archive.models import Case


class TableRule(StrEnum):
    """Rule for the rows of a table that no foreign key ties to a case."""

    SEARCHED = "rows that name what is erased are deleted, by id or by name"
    BY_CASE = "rows with the id of a case are deleted"
    EMPTIED = "what was answered is deleted, from all rows"
    OF_LAB = "all rows of the lab are deleted, since they are mixed of many patients"
    ORIGINALS = "rows of originals that no other case has are deleted"
    TYPED = "kept: people type into it; the certificate names columns with a name of the patient"
    RECORD = "kept: it names cases and people by ids alone"
    PORTAL = "kept: it is about the portal, its people and labs, not about patients"


RULES = {
    "archive.Asset": TableRule.ORIGINALS,
    "archive.BinEntry": TableRule.BY_CASE,
    "archive.IntakeRules": TableRule.PORTAL,
    "archive.LabQuota": TableRule.PORTAL,
    "archive.StorageIdentity": TableRule.PORTAL,
    "annotations.Label": TableRule.TYPED,
    "annotations.LabelMerge": TableRule.TYPED,
    "annotations.LabelSet": TableRule.TYPED,
    "annotations.LabelSetVersion": TableRule.TYPED,
    "annotations.ReviewRules": TableRule.PORTAL,
    "audit.AuditEntry": TableRule.RECORD,
    "audit.AuditSeal": TableRule.RECORD,
    "core.Event": TableRule.SEARCHED,
    "core.KeptAnswer": TableRule.EMPTIED,
    "hooks.Webhook": TableRule.TYPED,
    "hooks.WebhookAttempt": TableRule.SEARCHED,
    "hooks.WebhookDelivery": TableRule.SEARCHED,
    "jobs.Job": TableRule.SEARCHED,
    "jobs.JobTurn": TableRule.PORTAL,
    "jobs.WorkerSign": TableRule.PORTAL,
    "keeping.Backup": TableRule.PORTAL,
    "keeping.Erasure": TableRule.RECORD,
    "reading.Study": TableRule.TYPED,
    "reading.Study_labels": TableRule.PORTAL,
    "retrieval.Encoder": TableRule.PORTAL,
    "retrieval.IndexSnapshot": TableRule.OF_LAB,
    "retrieval.Learning": TableRule.TYPED,
    "retrieval.RegionMap": TableRule.OF_LAB,
}
WITH_CASE = "rows go with the case"
OF_PEOPLE = frozenset(
    {"account", "auth", "contenttypes", "labs", "mfa", "sessions", "sites", "socialaccount"}
)
"""Apps about people who sign in, and their labs: ``PORTAL``, all of them."""


def cascading(parent: type[Model]) -> list[Any]:
    """The foreign keys by which rows go with a row of this model."""
    relations = parent._meta.get_fields(include_hidden=True)
    return [
        relation.field
        for relation in relations
        if isinstance(relation, ForeignObjectRel) and relation.on_delete is CASCADE
    ]


def with_cases() -> list[type[Model]]:
    """Every model whose rows may go with a case, parents before children."""
    found: list[type[Model]] = [Case]
    for parent in found:  # grows while it is read
        found += [field.model for field in cascading(parent) if field.model not in found]
    return found


def rule_of(model: type[Model]) -> TableRule | None:
    """Rule declared for a model."""
    if model._meta.app_label in OF_PEOPLE:
        return TableRule.PORTAL
    return RULES.get(model._meta.label)


def every_table_has_a_rule(**_: object) -> list[CheckMessage]:
    """Refuse a model that nobody thought of: data of a patient may be in it."""
    tied = set(with_cases())
    return [
        Error(
            f"{model._meta.label} has no rule for erasures.",
            hint="Tie its rows to a case by a foreign key with CASCADE, or declare it in "
            "portal/keeping/services/erasing/tables.py.",
            id="keeping.E001",
        )
        for model in apps.get_models(include_auto_created=True)
        if model not in tied and rule_of(model) is None
    ]
