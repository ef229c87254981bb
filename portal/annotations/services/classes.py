"""Mapping from the classes of a document to labels."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from portal.annotations.formats.types import is_no_label
from portal.annotations.models import Label
from portal.annotations.services.labels import (
    label_create,
    label_name_refuse,
    label_set_ensure,
)
from portal.annotations.services.reports import ImportClass
from portal.archive.models import Canvas
from portal.core.errors import InvalidInputError, PortalError
from portal.core.text import name_key
from portal.labs.models import User

MAX_CLASSES = 1_000  # a file with more uses classes for something else

ClassesFound = Mapping[str, tuple[str, str | None, int]]
"""Map from ``name_key`` to first spelling of the name, its colour, and number of features."""


class Classes:
    """The classes of a document, and the label of each.

    Args:
        chosen: by ``name_key``, what somebody decided: a label's id, or None for no label.
        may_create: classes that the lab's labels lack become labels; otherwise they are refused.
        is_preview: nothing is written.
    """

    def __init__(
        self,
        classes: ClassesFound,
        *,
        canvas: Canvas,
        user: User,
        chosen: Mapping[str, uuid.UUID | None],
        may_create: bool,
        is_preview: bool,
    ) -> None:
        self._canvas, self._user = canvas, user
        self._may_create, self._is_preview = may_create, is_preview
        self.labels: dict[str, Label | None] = {}
        self.problems: dict[str, str] = {}
        if len(classes) > MAX_CLASSES:
            raise InvalidInputError(
                f"GeoJSON: {len(classes):,} different classes; {MAX_CLASSES:,} at most."
            )
        if classes and not is_preview:
            label_set_ensure(lab=canvas.lab)  # a new lab's starter labels count as known
        every = Label.objects.filter(lab_id=canvas.lab_id).select_related("merged_into")
        labels = [
            lab_label for lab_label in every.order_by("-position") if lab_label.retired_at is None
        ]
        self._by_id = {label.pk: label for label in labels}
        merged = {
            name_key(lab_label.name): lab_label.merged_into
            for lab_label in every
            if lab_label.merged_into
        }
        self._known = {  # a merged class maps to the label it was merged into
            name: target for name, target in merged.items() if target.retired_at is None
        } | {name_key(label.name): label for label in labels}
        self.all = tuple(self._decide_class(key, classes[key], chosen) for key in classes)

    def _decide_class(
        self,
        key: str,
        described: tuple[str, str | None, int],
        chosen: Mapping[str, uuid.UUID | None],
    ) -> ImportClass:
        name, color, count = described
        try:
            outcome, label = self._label(key, name, color, chosen)
        except PortalError as error:
            self.problems[key] = f"class {name[:80]!r}: {error.message}"
            return ImportClass(name[:80], color, count, "refused", problem=error.message)
        self.labels[key] = label
        is_there = label is not None and not (outcome == "created" and self._is_preview)
        return ImportClass(
            name,
            color,
            count,
            outcome,
            label_id=label.pk if label and is_there else None,
            label_name=label.name if label else "",
        )

    def _label(
        self, key: str, name: str, color: str | None, chosen: Mapping[str, uuid.UUID | None]
    ) -> tuple[str, Label | None]:
        if key in chosen:
            label_id = chosen[key]
            if label_id is None:
                return "none", None
            if label_id not in self._by_id:
                raise InvalidInputError("the label chosen for it is not a label of this lab.")
            return "mapped", self._by_id[label_id]
        if key in self._known:
            return "known", self._known[key]
        if is_no_label(name):
            return "none", None
        if not self._may_create:
            raise InvalidInputError(
                "the lab has no such label. Choose one of its labels, or ask a manager to add it."
            )
        if self._is_preview:
            label_name_refuse(name)
            return "created", Label(lab_id=self._canvas.lab_id, name=name, color=color or "")
        return "created", label_create(
            lab=self._canvas.lab, user=self._user, name=name, color=color
        )
