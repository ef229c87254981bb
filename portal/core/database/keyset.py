"""Keyset pagination: positions in an ordered list by values of a row, stable under changes.

With an index on the order every page costs the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import connections
from django.db.models import F, Model, Q, QuerySet
from django.db.models.expressions import OrderBy


@dataclass(frozen=True, slots=True)
class SortColumn:
    """Column of an order.

    Attributes:
        name: Name as in a filter, possibly across relations.
        has_nulls: Whether values may be null.
        nulls_last: Whether nulls come last in forward direction.
        read: Converts the JSON form to a value.
    """

    name: str
    is_descending: bool
    has_nulls: bool
    nulls_last: bool
    read: Callable[[Any], Any]

    def order(self, *, backward: bool) -> OrderBy:
        """Expression for ``order_by``."""
        last = self.nulls_last != backward
        return OrderBy(
            F(self.name),
            descending=self.is_descending != backward,
            nulls_last=True if self.has_nulls and last else None,
            nulls_first=True if self.has_nulls and not last else None,
        )

    def same(self, value: Any) -> Q:
        """Condition for rows with this value."""
        return Q(**{f"{self.name}__isnull": True} if value is None else {self.name: value})

    def beyond(self, value: Any, *, backward: bool, or_same: bool = False) -> Q | None:
        """Condition for rows after this value; None if there can be none."""
        null_is_beyond = self.has_nulls and self.nulls_last != backward
        if value is None:
            if or_same:
                return self.same(None) if null_is_beyond else Q()
            return None if null_is_beyond else Q(**{f"{self.name}__isnull": False})
        way = "lt" if self.is_descending != backward else "gt"
        condition = Q(**{f"{self.name}__{way}{'e' if or_same else ''}": value})
        return condition | self.same(None) if null_is_beyond else condition


@dataclass(frozen=True, slots=True)
class Order:
    """Total order of a list, with the primary key as its last column."""

    columns: tuple[SortColumn, ...]

    @classmethod
    def of(cls, rows: QuerySet[Any]) -> Order:
        """Order of a query; the first of repeated columns counts."""
        query, model = rows.query, rows.model
        fields = query.order_by or (query.default_ordering and model._meta.ordering) or ()
        nulls_first = connections[rows.db].features.order_by_nulls_first
        columns = [_column(rows, field, nulls_first=nulls_first) for field in fields]
        key = model._meta.pk.name
        if key not in {column.name for column in columns}:
            columns.append(_column(rows, "pk", nulls_first=nulls_first))
        return cls(tuple({column.name: column for column in reversed(columns)}.values())[::-1])

    @property
    def name(self) -> str:
        """Name of the order, unique within a model."""
        return ",".join(
            f"{'-' if column.is_descending else ''}{column.name}" for column in self.columns
        )

    def rows(
        self, rows: QuerySet[Any], *, after: Sequence[Any] | None, backward: bool
    ) -> QuerySet[Any]:
        """Rows beyond the row with these values, nearest first; None: from the end."""
        ordered = rows.order_by(*(column.order(backward=backward) for column in self.columns))
        return (
            ordered
            if after is None
            else ordered.filter(self._condition_beyond(after, backward=backward))
        )

    def values(self, row: Any) -> list[Any]:
        """Values of a row in the list's order, as JSON."""
        return [_json_value(_value(row, column.name)) for column in self.columns]

    def read(self, values: Sequence[Any]) -> list[Any]:
        """The reverse of ``values``."""
        pairs = zip(self.columns, values, strict=True)
        return [None if value is None else column.read(value) for column, value in pairs]

    def _condition_beyond(self, values: Sequence[Any], *, backward: bool) -> Q:
        condition = Q()
        for at, column in enumerate(self.columns):
            further = column.beyond(values[at], backward=backward)
            if further is None:
                continue
            for before, value in zip(self.columns[:at], values, strict=False):
                further = before.same(value) & further
            condition |= further
        # This condition is implied, but an index range scan can answer it.
        return (
            self.columns[0].beyond(values[0], backward=backward, or_same=True) or Q()
        ) & condition


def _column(rows: QuerySet[Any], ordering: Any, *, nulls_first: bool) -> SortColumn:
    if isinstance(ordering, OrderBy):
        name, descending = str(getattr(ordering.expression, "name", "")), ordering.descending
        explicit = True if ordering.nulls_last else False if ordering.nulls_first else None
    else:
        name, descending, explicit = (
            str(ordering).removeprefix("-"),
            str(ordering).startswith("-"),
            None,
        )
    if name == "pk":
        name = rows.model._meta.pk.name
    annotation = rows.query.annotations.get(name.partition("__")[0])
    if annotation is not None:
        has_nulls, field = True, annotation.output_field
    else:
        has_nulls, field = _field(rows.model, name)
    nulls_last = nulls_first == descending if explicit is None else explicit
    return SortColumn(name, descending, has_nulls, nulls_last, field.to_python)


def _field(model: type[Model], name: str) -> tuple[bool, Any]:
    """Return whether a field or a relation leading to it may be null, and the field."""
    has_nulls, field = False, None
    for part in name.split("__"):
        try:
            field = model._meta.get_field(part)
        except FieldDoesNotExist:
            raise ValueError(
                f"{model.__name__} is ordered by {name}, which is not a column"
            ) from None
        has_nulls = has_nulls or bool(getattr(field, "null", False))
        model = field.related_model or model
    return has_nulls, field


def _value(row: Any, name: str) -> Any:
    for part in name.split("__"):
        row = getattr(row, part) if row is not None else None
    return row.pk if isinstance(row, Model) else row


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | float) else str(value)
