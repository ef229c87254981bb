"""Errors that people may read: a stable code, a sentence, details, and an HTTP status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class PortalError(Exception):
    """Base. The API renders it as problem+json, a page as a friendly message."""

    status = 400
    code = "error"
    title = "The request could not be carried out"

    def __init__(
        self, message: str, *, code: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.details = dict(details or {})


class InvalidInputError(PortalError):
    """Invalid input; the message names the field and the valid values."""

    status, code, title = 400, "invalid-input", "The input is not valid"


class ForbiddenError(PortalError):
    """The object is visible, but the role does not allow this."""

    status, code, title = 403, "forbidden", "Not allowed"


class NotFoundError(PortalError):
    """The object does not exist, or the user may not see it."""

    status, code, title = 404, "not-found", "Not found"


class ConflictError(PortalError):
    """The state of the object does not allow this now."""

    status, code, title = 409, "conflict", "In conflict with the current state"


class StaleVersionError(PortalError):
    """``If-Match`` names a version that is no longer the current one."""

    status, code, title = 412, "stale-version", "Someone else changed this in the meantime"


class TooLargeInputError(PortalError):
    """More bytes than the documented limit."""

    status, code, title = 413, "too-large", "Too large"


class KeyReusedError(PortalError):
    """An ``Idempotency-Key`` that was used for another request."""

    status, code, title = 422, "key-reused", "This key was used for another request"


class PreconditionRequiredError(PortalError):
    """A write without ``If-Match``."""

    status, code, title = 428, "precondition-required", "If-Match is required"


class TooManyRequestsError(PortalError):
    """Too many requests or attempts. The message says when or how to try again."""

    status, code, title = 429, "too-many-requests", "Too many requests"


class UnavailableError(PortalError):
    """A part the request needs is down for the moment."""

    status, code, title = 503, "unavailable", "Not available right now"


class StorageFullError(PortalError):
    """The storage is full; nothing was stored."""

    status, code, title = 507, "storage-full", "Storage is full"


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, then its causes and contexts; each once."""
    known_ids: set[int] = set()
    while error is not None and id(error) not in known_ids:
        known_ids.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
