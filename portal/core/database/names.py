"""Columns of names, normalised to one spelling in the database and in every query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.lookups import Contains, IContains, IExact

from portal.core.text import name_clean, name_key

if TYPE_CHECKING:
    _CharField = models.CharField[str, str]
else:
    _CharField = models.CharField


class NameField(_CharField):
    """A name as ``name_clean`` spells it.

    It is cleaned when it is validated, written and compared with, so a unique constraint on the
    column holds for all spellings of a name.
    """

    def to_python(self, value: Any) -> Any:
        """Clean the value for a comparison."""
        return name_clean(value) if isinstance(value, str) else super().to_python(value)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Clean the value, on the object too, before it is saved."""
        value = self.to_python(super().pre_save(model_instance, add))
        setattr(model_instance, self.attname, value)
        return value

    def get_prep_value(self, value: Any) -> Any:
        """Clean the value of a write or a comparison."""
        return self.to_python(super().get_prep_value(value))

    def deconstruct(self) -> Any:
        """Deconstruct to a plain column, so that migrations need no code of the portal."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs


@NameField.register_lookup
class _NameIExact(IExact):
    prepare_rhs = True


@NameField.register_lookup
class _NameContains(Contains):
    prepare_rhs = True


@NameField.register_lookup
class _NameIContains(IContains):
    prepare_rhs = True


class NameKeyField(_CharField):
    """Key shared by all spellings of another column's name, in any case: ``name_key``.

    Args:
        of: the column. It is written with that column: list both where only some are.
    """

    def __init__(self, *args: Any, of: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **{"editable": False, **kwargs})
        self._of = of

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Follows from the name."""
        value = name_key(getattr(model_instance, self._of))
        setattr(model_instance, self.attname, value)
        return value

    def deconstruct(self) -> Any:
        """Deconstruct to a plain column."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs
