"""Labels and encoders of a crate, matched with those of the lab."""

from __future__ import annotations

import re
import uuid

from django.db.models import Q
from django.utils import timezone

from portal.annotations.models import Label, LabelSet
from portal.annotations.services.labels import MAX_DEPTH, label_set_ensure
from portal.core.text import name_key
from portal.embeddings.models import Encoder
from portal.interop.rocrate.formats.reader import CrateError, shown
from portal.interop.rocrate.services.imports.rows import CaseRows

_COLOR = re.compile(r"#[0-9a-fA-F]{6}\Z")


def encoders_match(rows: CaseRows) -> None:
    """An encoder is known by its configuration; none is made, for its weights are not here."""
    for pk, encoder in rows.described.items():
        candidates = Encoder.objects.filter(Q(lab=None) | Q(lab=rows.lab), dim=encoder.dim)
        existing = candidates.filter(
            name=encoder.name, version=encoder.version, config_hash=encoder.config_hash
        ).first()
        if existing is not None:
            rows.encoders[pk] = existing


def labels_match(rows: CaseRows) -> list[Label]:
    """Fill ``rows.labels`` for those in use; returns the labels to create, parents first.

    A label is matched by id, else by name, ignoring case, since names are unique in a lab. A
    retired one is matched by id only.

    Raises:
        CrateError: a label is below itself, or its colour is invalid.
    """
    new_labels: list[Label] = []
    label_set = label_set_ensure(lab=rows.lab) if rows.used else LabelSet()
    for pk in sorted(rows.used):
        for label in _path(rows, pk):
            if label.pk not in rows.labels:
                rows.labels[label.pk] = _matching_label_id(rows, label, label_set, new_labels)
    return new_labels


def _path(rows: CaseRows, pk: uuid.UUID) -> list[Label]:
    """Labels from the top of the tree to this one."""
    path: list[Label] = []
    above: uuid.UUID | None = pk
    while above is not None:
        label = rows.vocabulary.get(above)
        if label is None or label in path or not _COLOR.match(label.color):
            raise CrateError(
                f"records/labels.jsonl: {shown(above)}: its parent or its colour is not valid."
            )
        path.insert(0, label)
        above = label.parent_id
    return path[-MAX_DEPTH:]


def _matching_label_id(
    rows: CaseRows, label: Label, label_set: LabelSet, new_labels: list[Label]
) -> uuid.UUID:
    lab_labels = Label.objects.filter(lab=rows.lab)
    lab_label = lab_labels.filter(pk=label.pk).first()
    if lab_label is None and label.retired_at is None:
        live = lab_labels.filter(label_set=label_set, retired_at=None)
        lab_label = live.filter(name_key=name_key(label.name)).first()
    if lab_label is not None:
        return lab_label.pk
    twin = next(
        (
            made_label
            for made_label in new_labels
            if name_key(made_label.name) == name_key(label.name)
        ),
        None,
    )
    if twin is not None and label.retired_at is None and twin.retired_at is None:
        return twin.pk
    is_free = not Label.objects.filter(pk=label.pk).exists()
    keys = {
        *lab_labels.values_list("key", flat=True),
        *(made_label.key for made_label in new_labels),
    }
    new = Label(
        pk=label.pk if is_free else uuid.uuid4(),
        lab=rows.lab,
        label_set=label_set,
        name=label.name,
        color=label.color,
        position=label.position,
        parent_id=rows.labels.get(label.parent_id) if label.parent_id else None,
        key="" if label.key in keys else label.key,
        retired_at=label.retired_at,
        created_at=label.created_at,
        updated_at=timezone.now(),
    )
    new_labels.append(new)
    return new.pk
