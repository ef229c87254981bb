"""Base classes of API views: idempotent writes and conditional changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

from django.db import transaction
from django.db.models import Model
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from portal.core.api.etags import TAGGED, TaggedAnswers, present, require_match, tag_of
from portal.core.api.fields import SparseFields
from portal.core.api.idempotency import (
    HEADER,
    REPLAYED,
    KeyedRequest,
    StoredResponse,
    keyed_request,
    lease_held,
    lease_release,
    lease_take,
    response_find,
    response_store,
)
from portal.core.errors import StaleVersionError
from portal.core.models import BaseModel, edit_tag

_Row = TypeVar("_Row", bound=Model)
_Handler = Callable[..., HttpResponseBase]
_Edited = TypeVar("_Edited", bound=BaseModel)
WRITES = ("post", "put", "patch", "delete")
_EDITS = ("retrieve", "update", "partial_update", "destroy")


@dataclass(frozen=True, slots=True)
class Deprecation:
    """Dates (midnight, UTC) at which a view was deprecated and may be removed."""

    since: date
    until: date

    @property
    def headers(self) -> dict[str, str]:
        """Headers by RFC 9745 and RFC 8594."""
        return {
            "Deprecation": f"@{int(_moment(self.since).timestamp())}",
            "Sunset": format_datetime(_moment(self.until), usegmt=True),
        }


class ApiView(SparseFields, TaggedAnswers, APIView):
    """Base class of API views.

    A write with an ``Idempotency-Key`` runs in one transaction with the record of its response. A
    view that accepts no key gives the reason in ``takes_no_key``.
    """

    takes_no_key = ""
    holds_transaction = True
    """False for writes that take seconds or send mail. They run under a lease, without a
    transaction that would block other writes."""
    if_match: ClassVar[Mapping[str, bool]] = {}
    """Methods that change editable objects. True requires ``If-Match``, False makes it optional."""
    deprecation: ClassVar[Deprecation | None] = None
    _row: BaseModel | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate and check permissions, then wrap the handler."""
        super().initial(request, *args, **kwargs)
        name = str(request.method).lower()
        handler = getattr(self, name, None)
        if handler is None:
            return
        if request.method in self.if_match:
            handler = partial(self._in_transaction, handler)
        key = request.headers.get(HEADER)
        if key is not None and name in WRITES and not self.takes_no_key:
            handler = partial(self._idempotent, key, handler)
        setattr(self, name, handler)  # where DRF looks for it

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """Add the headers of a deprecation."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        if self.deprecation is not None:
            for name, value in self.deprecation.headers.items():
                answer[name] = value
        return answer

    def register(self, row: _Edited) -> _Edited:
        """Register the row that the request shows or changes, and check ``If-Match``.

        Raises:
            PreconditionRequiredError, NotFoundError, StaleVersionError: see ``require_match``.
        """
        if self._row is not None:
            return row
        self._row, self.edit_tag = row, edit_tag(row)
        required = self.if_match.get(str(self.request.method))
        if required is None:
            return row
        try:
            require_match(self.request, row, required=required)
        except StaleVersionError as error:
            now = present(row)
            body = self.representation(now)
            tag = tag_of(JSONRenderer().render(body), edit_tag=edit_tag(now))
            error.details |= {"current_version": tag, "current": body}
            raise
        return row

    def register_created(self, row: _Edited) -> _Edited:
        """Register the row that the request created, so that the response has its edit tag."""
        self.edit_tag = edit_tag(row)
        return row

    def representation(self, row: Any) -> Any:
        """Representation of an editable row in a response."""
        raise NotImplementedError

    def _in_transaction(
        self, handler: _Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Run a change and read the new edit tag in one transaction."""
        with transaction.atomic():
            response = handler(request, *args, **kwargs)
            if self._row is not None and response.status_code == 200:
                self.edit_tag = edit_tag(present(self._row))
            return response

    def _idempotent(
        self, key: str, handler: _Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Return the stored response to this request, or carry it out and store the response.

        Changes by a refused request, such as a counted attempt, are committed as without a key.
        """
        keyed = keyed_request(request, key)
        if not self.holds_transaction:
            return self._under_lease(keyed, handler, request, *args, **kwargs)
        with transaction.atomic():
            if (stored_response := response_find(keyed)) is not None:
                return _replay(stored_response)
            response = self._handle(handler, request, *args, **kwargs)
            if (stored := self._to_stored_response(response)) is not None:
                response_store(keyed, stored)
            return response

    def _under_lease(
        self, keyed: KeyedRequest, handler: _Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Handle a request like ``_idempotent``, with short transactions before and after it."""
        lease = lease_take(keyed)
        if isinstance(lease, StoredResponse):
            return _replay(lease)
        stored: StoredResponse | None = None
        try:
            with lease_held(lease):
                response = self._handle(handler, request, *args, **kwargs)
            stored = self._to_stored_response(response)
        finally:
            lease_release(keyed, lease, stored)
        return response

    def _handle(
        self, handler: _Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        try:
            return handler(request, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - raised on by handle_exception if a bug
            return cast(HttpResponseBase, self.handle_exception(error))

    def _to_stored_response(self, response: HttpResponseBase) -> StoredResponse | None:
        """Response to store, with its ETag; None for a stream."""
        if not isinstance(response, HttpResponse):
            return None
        headers = dict(response.headers)
        if not isinstance(response, Response):
            return StoredResponse(response.status_code, headers, response.content)
        body = b""
        if response.data is not None:
            renderer = self.request.accepted_renderer
            body = (renderer if isinstance(renderer, JSONRenderer) else JSONRenderer()).render(
                response.data
            )
            headers["Content-Type"] = response.content_type or JSONRenderer.media_type
        if self.edit_tag and response.status_code in TAGGED:
            headers["ETag"] = response["ETag"] = tag_of(body, edit_tag=self.edit_tag)
        return StoredResponse(response.status_code, headers, body)


class ApiViewSet(ApiView, GenericViewSet[_Row]):
    """Base class of view sets."""

    def get_object(self) -> _Row:
        """Return the object if it is visible to the user, and check ``If-Match``."""
        row: Any = super().get_object()
        if self.if_match and shows_one(self, self.request.method):
            self.register(row)
        typed_row: _Row = row
        return typed_row

    def representation(self, row: Any) -> Any:
        """Serialised row with the annotations of the view's query."""
        counted = self.get_queryset().filter(pk=row.pk).first()
        return self.get_serializer(counted or row).data


def shows_one(view: APIView, method: str | None) -> bool:
    """Return whether a method of a view concerns a single object and not a list or an extra
    action.
    """
    action = getattr(view, "action", None)
    return method in {"GET", "HEAD", "PUT", "PATCH", "DELETE"} and action in {None, *_EDITS}


def _replay(stored_response: StoredResponse) -> HttpResponse:
    headers = stored_response.headers | {REPLAYED: "true"}
    return HttpResponse(stored_response.body, status=stored_response.status, headers=headers)


def _moment(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)
