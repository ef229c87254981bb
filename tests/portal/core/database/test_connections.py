"""Distinguish errors of a database that is away from bugs."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, InternalError, OperationalError, ProgrammingError
from django.db.transaction import TransactionManagementError
from psycopg import errors

from portal.core.connections import database_is_away


def _raised(error: DatabaseError, cause: Exception | None) -> DatabaseError:
    error.__cause__ = cause
    return error


@pytest.mark.django_db
@pytest.mark.parametrize(
    "error",
    [
        _raised(OperationalError("deadlock detected"), errors.DeadlockDetected()),
        _raised(OperationalError("canceling statement"), errors.QueryCanceled()),
        _raised(OperationalError("terminating connection"), errors.AdminShutdown()),
        _raised(InternalError("idle"), errors.IdleInTransactionSessionTimeout()),
        _raised(TransactionManagementError("ended"), errors.LockNotAvailable()),
        OperationalError("database is locked"),
    ],
)
def test_a_transaction_ended_by_the_database_can_be_tried_again(error: DatabaseError) -> None:
    assert database_is_away(error)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "error",
    [
        _raised(ProgrammingError("no such column"), errors.UndefinedColumn()),
        OperationalError("no such table"),
        ValueError("a bug"),
        None,
    ],
)
def test_a_bug_is_not_tried_again(error: Exception | None) -> None:
    assert not database_is_away(error)
