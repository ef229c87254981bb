"""Rules of erasure for each table: found through foreign keys, or declared here.

Rows that are deleted with a case (``on_delete=CASCADE``, at any distance) need no declaration. A
Django check refuses any other model without one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db.models import CASCADE, ForeignObjectRel, Model

from portal.archive.models import Case


class TableRule(StrEnum):
    """Rule for a table whose rows are not deleted with a case."""

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
    "archive.TrashEntry": TableRule.BY_CASE,
    "archive.IntakeRules": TableRule.PORTAL,
    "archive.LabQuota": TableRule.PORTAL,
    "archive.RedactionTemplate": TableRule.PORTAL,
    "archive.StorageIdentity": TableRule.PORTAL,
    "archive.VocabularyTerm": TableRule.TYPED,
    "annotations.Label": TableRule.TYPED,
    "annotations.LabelMerge": TableRule.TYPED,
    "annotations.LabelSet": TableRule.TYPED,
    "annotations.LabelSetVersion": TableRule.TYPED,
    "annotations.ReviewRules": TableRule.PORTAL,
    "audit.AuditEntry": TableRule.RECORD,
    "audit.AuditSeal": TableRule.RECORD,
    "core.Event": TableRule.SEARCHED,
    "core.IdempotencyRecord": TableRule.EMPTIED,
    "webhooks.Webhook": TableRule.TYPED,
    "webhooks.WebhookAttempt": TableRule.SEARCHED,
    "webhooks.WebhookDelivery": TableRule.SEARCHED,
    "jobs.Job": TableRule.SEARCHED,
    "jobs.LastServed": TableRule.PORTAL,
    "jobs.WorkerHeartbeat": TableRule.PORTAL,
    "backups.Backup": TableRule.PORTAL,
    "erasure.Erasure": TableRule.RECORD,
    "inbox.NotificationPreferences": TableRule.PORTAL,
    "reader_studies.Study": TableRule.TYPED,
    "reader_studies.Study_labels": TableRule.PORTAL,
    "embeddings.Encoder": TableRule.PORTAL,
    "embeddings.IndexSnapshot": TableRule.OF_LAB,
    "model_training.Learning": TableRule.TYPED,
    "explore.RegionMap": TableRule.OF_LAB,
    "quantification.QuantificationSettings": TableRule.PORTAL,
}
WITH_CASE = "rows go with the case"
OF_PEOPLE = frozenset(
    {"account", "auth", "contenttypes", "labs", "mfa", "sessions", "sites", "socialaccount"}
)
"""Apps about users and labs: all of their tables are ``PORTAL``."""


def cascading(parent: type[Model]) -> list[Any]:
    """Foreign keys with CASCADE that point to a model."""
    relations = parent._meta.get_fields(include_hidden=True)
    return [
        relation.field
        for relation in relations
        if isinstance(relation, ForeignObjectRel) and relation.on_delete is CASCADE
    ]


def with_cases() -> list[type[Model]]:
    """Models whose rows may be deleted with a case, parents before children."""
    models: list[type[Model]] = [Case]
    for parent in models:  # grows while it is read
        models += [field.model for field in cascading(parent) if field.model not in models]
    return models


def rule_of(model: type[Model]) -> TableRule | None:
    """Rule declared for a model."""
    if model._meta.app_label in OF_PEOPLE:
        return TableRule.PORTAL
    return RULES.get(model._meta.label)


def every_table_has_a_rule(**_: object) -> list[CheckMessage]:
    """Report models without a rule: data of a patient may be in them."""
    tied = set(with_cases())
    return [
        Error(
            f"{model._meta.label} has no rule for erasures.",
            hint="Tie its rows to a case by a foreign key with CASCADE, or declare it in "
            "portal/erasure/services/tables.py.",
            id="erasure.E001",
        )
        for model in apps.get_models(include_auto_created=True)
        if model not in tied and rule_of(model) is None
    ]
