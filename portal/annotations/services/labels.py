"""A lab's labels: created on first need, maintained by managers, never deleted while in use."""

from __future__ import annotations

import re

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.db.models.functions import Lower

from portal.annotations.models import Label, LabelSet, Roi, RoiRevision
from portal.annotations.rules import require_manage_labels
from portal.core.errors import ConflictError, InvalidInputError
from portal.core.events import event_emit
from portal.labs.models import Lab, User

DEFAULT_SET = "Default"
STARTER_LABELS = (
    ("Tumor", "#c8553d"),
    ("Normal", "#4f9d69"),
    ("Stroma", "#7a9cc6"),
    ("Immune cells", "#8e6fb5"),
    ("Necrosis", "#6b6b6b"),
    ("Polyp", "#d98e32"),
    ("Vessel", "#b03a5b"),
    ("Artifact", "#9a8c78"),
)
# Distinct on tissue (pink, violet) and mucosa (red); taken in turn by labels without a colour.
PALETTE = ("#3d7ea6", "#d98e32", "#4f9d69", "#8e6fb5", "#c8553d", "#2a9d8f", "#b03a5b", "#7f8c3a")
NAME_MAX = 80  # as the column
_COLOR = re.compile(r"#[0-9a-fA-F]{6}\Z")


def label_set_ensure(*, lab: Lab) -> LabelSet:
    """The lab's default label set, made with a few starter labels where there is none yet."""
    known: LabelSet | None = (
        LabelSet.objects.filter(lab=lab).order_by("-is_default", "created_at").first()
    )
    if known is not None:
        return known
    with transaction.atomic():
        label_set, created = LabelSet.objects.get_or_create(
            lab=lab, name=DEFAULT_SET, defaults={"is_default": True}
        )
        if created:
            Label.objects.bulk_create(
                Label(lab=lab, label_set=label_set, name=name, color=color, position=position)
                for position, (name, color) in enumerate(STARTER_LABELS)
            )
    return label_set


def color_next(*, lab: Lab) -> str:
    """A colour for the lab's next label: the first of the palette that none has yet."""
    taken = set(Label.objects.filter(lab=lab).values_list("color", flat=True))
    free = [color for color in PALETTE if color not in taken]
    return free[0] if free else PALETTE[len(taken) % len(PALETTE)]


def label_create(
    *, lab: Lab, user: User, name: str, color: str | None = None, position: int | None = None
) -> Label:
    """Add a label at the end (or at ``position``) of the lab's default set.

    Raises:
        ForbiddenError: not a manager.
        ConflictError: the lab has a label of that name (upper and lower case are the same).
    """
    require_manage_labels(user, lab.pk)
    label_set = label_set_ensure(lab=lab)
    if position is None:
        last = label_set.labels.aggregate(last=Max("position"))["last"]
        position = 0 if last is None else last + 1
    label = Label(
        lab=lab,
        label_set=label_set,
        name=_clean_name(name),
        color=_clean_color(color or color_next(lab=lab)),
        position=position,
    )
    return _saved(label, action="created")


def label_update(
    *,
    label: Label,
    user: User,
    name: str | None = None,
    color: str | None = None,
    position: int | None = None,
) -> Label:
    """Rename, recolour or move a label; what is None stays. ROIs keep pointing at it."""
    require_manage_labels(user, label.lab_id)
    if name is not None:
        label.name = _clean_name(name)
    if color is not None:
        label.color = _clean_color(color)
    if position is not None:
        label.position = position
    return _saved(label, action="changed")


def label_delete(*, label: Label, user: User) -> None:
    """Delete a label that nothing ever used.

    Raises:
        ConflictError: an ROI, or the history of one, has it; ``details["in_use"]`` counts them.
    """
    require_manage_labels(user, label.lab_id)
    with transaction.atomic():
        in_use = Roi.everything.filter(label=label).count()
        if in_use or RoiRevision.objects.filter(label=label).exists():
            where = f"{in_use} ROIs have it" if in_use else "the history of ROIs names it"
            raise ConflictError(
                f'The label "{label.name}" cannot be deleted: {where}. Rename it instead.',
                code="label-in-use",
                details={"in_use": in_use},
            )
        payload = {"label_id": str(label.pk), "name": label.name, "action": "deleted"}
        label.delete()
        event_emit("label.deleted", lab_id=label.lab_id, payload=payload)


def label_name_refuse(name: str) -> None:
    """Raise ``InvalidInputError`` for what cannot be a label's name."""
    _clean_name(name)


def _saved(label: Label, *, action: str) -> Label:
    with transaction.atomic():
        twins = label.label_set.labels.exclude(pk=label.pk).annotate(key=Lower("name"))
        if twins.filter(key=label.name.lower()).exists():
            raise _taken(label)
        try:
            with transaction.atomic():
                label.save()
        except IntegrityError:
            raise _taken(label) from None
        payload = {"label_id": str(label.pk), "name": label.name, "action": action}
        event_emit("label.saved", lab_id=label.lab_id, payload=payload)
    return label


def _taken(label: Label) -> ConflictError:
    return ConflictError(f'The lab has a label "{label.name}" already.', code="label-exists")


def _clean_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > NAME_MAX:
        raise InvalidInputError(f"name: 1 to {NAME_MAX} characters.")
    return name


def _clean_color(color: str) -> str:
    if not _COLOR.match(color):
        raise InvalidInputError(f"color: {color!r:.40} is not of the form #rrggbb.")
    return color.lower()
