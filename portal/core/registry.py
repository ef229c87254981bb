"""Registries by which apps extend a lower app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Registry(Generic[Key, Value]):
    """Values by key, in the order in which they were registered.

    A registry is a constant of the app that reads it. Other apps fill it in their modules
    ``subscribers`` (events) and ``registrations`` (all else), which ``CoreConfig.ready`` imports::

        @JOB_TARGETS.register("mosaic")
        def mosaics_shown(user: User) -> QuerySet[Mosaic]: ...
    """

    def __init__(self, values: Mapping[Key, tuple[Value, ...]] | None = None) -> None:
        self._values: dict[Key, tuple[Value, ...]] = dict(values or {})

    def register(self, key: Key) -> Callable[[Value], Value]:
        """Decorator that adds a function under a key; repeated additions are ignored."""

        def add(value: Value) -> Value:
            values = self.all(key)
            if value not in values:
                self._values[key] = (*values, value)
            return value

        return add

    def all(self, key: Key) -> tuple[Value, ...]:
        """All values of a key."""
        return self._values.get(key, ())

    def items(self) -> list[tuple[Key, Value]]:
        """All pairs of key and value."""
        return [(key, value) for key, values in self._values.items() for value in values]
