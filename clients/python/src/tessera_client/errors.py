"""Errors that this client raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class TesseraError(Exception):
    """The portal refused a request, or this client could not make it.

    Attributes:
        status: of HTTP; 0 if no answer came. code: stable, for programs. detail: for people.
        errors: messages by field, if values were refused.
        data: the complete answer.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        code: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> None:
        self.detail, self.status, self.code = detail, status, code
        self.data: Mapping[str, Any] = data or {}
        self.errors: Mapping[str, Any] = self.data.get("errors") or {}
        fields = "; ".join(f"{name}: {message}" for name, message in self.errors.items())
        super().__init__(f"{detail} ({fields})" if fields else detail)


class UnreachableError(TesseraError):
    """No answer came, or it was cut short, also after retries."""


class SignInError(TesseraError):
    """The token is missing, unknown, expired or revoked."""


class NotAllowedError(TesseraError):
    """The role or the token does not allow it."""


class NotFoundError(TesseraError):
    """The object does not exist, or this token may not see it."""


class ConflictError(TesseraError):
    """Somebody else changed it first, or its state does not allow the request.

    ``data["current"]`` has the object as it is now, if the portal sent it.
    """


class InvalidError(TesseraError):
    """A value was refused; ``errors`` names the fields."""


class BusyError(TesseraError):
    """Too many requests, or the portal cannot answer now, also after retries."""


class JobError(TesseraError):
    """A job failed or was cancelled; ``code`` and ``detail`` give the reason."""


_BY_STATUS = {
    400: InvalidError,
    401: SignInError,
    403: NotAllowedError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    422: InvalidError,
    423: ConflictError,
    429: BusyError,
    502: BusyError,
    503: BusyError,
    504: BusyError,
}


def problem(status: int, data: Any) -> TesseraError:
    """Error for an answer, from its ``application/problem+json`` if it has one."""
    kind = _BY_STATUS.get(status, TesseraError)
    if not isinstance(data, Mapping):
        return kind(f"The portal answered {status}.", status=status)
    detail = str(data.get("detail") or data.get("title") or f"The portal answered {status}.")
    return kind(detail, status=status, code=str(data.get("code", "")), data=data)
