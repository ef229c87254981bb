"""What API views share: a POST under a key is done once, a change is made from what was seen."""

from __future__ import annotations

import json
import uuid
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
from rest_framework.status import HTTP_201_CREATED
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from portal.core.api.answers import (
    NamedRequest,
    Replay,
    answer_begin,
    answer_keep,
    answer_reserve,
    answer_settle,
    key_checked,
)
from portal.core.api.conditions import present, require_match
from portal.core.api.etags import TaggedAnswers, tag_of
from portal.core.api.fields import SparseFields
from portal.core.errors import StaleVersionError
from portal.core.models import BaseModel, edit_tag
from portal.core.reserved import reserved

REPLAYED = "Idempotency-Replayed"
_Row = TypeVar("_Row", bound=Model)
_Handler = Callable[..., HttpResponseBase]
_Edited = TypeVar("_Edited", bound=BaseModel)
_EDITS = ("retrieve", "update", "partial_update", "destroy")


@dataclass(frozen=True, slots=True)
class Leaving:
    """When a view was announced to go, and from when on it may be gone (midnight, UTC)."""

    since: date
    until: date

    @property
    def headers(self) -> dict[str, str]:
        """As RFC 9745 and RFC 8594 write them."""
        return {
            "Deprecation": f"@{int(_moment(self.since).timestamp())}",
            "Sunset": format_datetime(_moment(self.until), usegmt=True),
        }


class ApiView(SparseFields, TaggedAnswers, APIView):
    """A view of the API.

    A POST and its answer are one transaction where it carries an ``Idempotency-Key``. A view that
    takes no key says why in ``takes_no_key``; one that remembers keys by itself, in its own rows,
    says ``keeps_keys``.
    """

    takes_no_key = ""
    keeps_keys = False
    works_apart = False
    """Its POST takes seconds before it writes, or sends mail: no transaction is open meanwhile, and
    nobody else's write waits for it."""
    if_match: ClassVar[Mapping[str, bool]] = {}
    """Methods that change what people edit. True: two may edit the same text, and a change has to
    say what it was made from. False: it is only switched, set or deleted, and may say so."""
    leaving: ClassVar[Leaving | None] = None
    """Of a view that is to go: the schema marks it, and its answers say when."""
    _row: BaseModel | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check who asks and whether they may, then wrap the method that will answer."""
        super().initial(request, *args, **kwargs)
        name = str(request.method).lower()
        handler = getattr(self, name, None)
        key = request.headers.get("Idempotency-Key")
        if name == "post" and key is not None and handler is not None and remembers(self):
            setattr(self, name, partial(self._once, key_checked(key), handler))
        elif request.method in self.if_match and handler is not None:
            setattr(self, name, partial(self._in_one, handler))  # where DRF looks for who answers

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """Add the headers that say when the view goes."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        if self.leaving is not None:
            for name, value in self.leaving.headers.items():
                answer[name] = value
        return answer

    def seen(self, row: _Edited) -> _Edited:
        """The row that this request shows or changes: a change has to be made from what it is now.

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
            body = self.shown(now)
            tag = tag_of(JSONRenderer().render(body), edit_tag=edit_tag(now))
            error.details |= {"current_version": tag, "current": body}
            raise
        return row

    def made(self, row: _Edited) -> _Edited:
        """The row that this request made: its answer has the tag for a change of it."""
        self.edit_tag = edit_tag(row)
        return row

    def shown(self, row: Any) -> Any:
        """How an answer shows a row that people edit."""
        raise NotImplementedError

    def _in_one(
        self, handler: _Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """A change, and the tag of what it left before anybody else can change that."""
        with transaction.atomic():
            response = handler(request, *args, **kwargs)
            if self._row is not None and response.status_code == 200:
                self.edit_tag = edit_tag(present(self._row))
            return response

    def _once(
        self, key: str, handler: _Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """The earlier answer to this request, or the one that it gets now.

        What a refusal changed (an attempt that is counted) is kept, as it is without a key.
        """
        asked = _asked(request, key)
        if self.works_apart:
            return self._apart(asked, handler, request, *args, **kwargs)
        with transaction.atomic():
            if (known := answer_begin(asked)) is not None:
                return _replayed(known)
            response = self._handled(handler, request, *args, **kwargs)
            answer_keep(asked, self._kept(response))
            return response

    def _apart(
        self, asked: NamedRequest, handler: _Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """As ``_once``, with a short transaction before the work and one after it."""
        known = answer_reserve(asked)
        if isinstance(known, Replay):
            return _replayed(known)
        kept: Replay | None = None
        try:
            with reserved(known):
                response = self._handled(handler, request, *args, **kwargs)
            kept = self._kept(response)
        finally:
            answer_settle(asked, known, kept)
        return response

    def _handled(
        self, handler: _Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        try:
            return handler(request, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - raised on by handle_exception if a bug
            return cast(HttpResponseBase, self.handle_exception(error))

    def _kept(self, response: HttpResponseBase) -> Replay:
        """The answer as it goes out, with the tag of what it made."""
        kept = _answer(response)
        if self.edit_tag and kept.status == HTTP_201_CREATED:
            kept.headers["ETag"] = response["ETag"] = tag_of(kept.body, edit_tag=self.edit_tag)
        return kept


class ApiViewSet(ApiView, GenericViewSet[_Row]):
    """The views of one kind of object."""

    def get_object(self) -> _Row:
        """Found among what this person may see."""
        row: Any = super().get_object()
        if self.if_match and shows_one(self, self.request.method):
            self.seen(row)
        found: _Row = row
        return found

    def shown(self, row: Any) -> Any:
        """With all that is counted of it."""
        counted = self.get_queryset().filter(pk=row.pk).first()
        return self.get_serializer(counted or row).data


def shows_one(view: APIView, method: str | None) -> bool:
    """Whether a method of a view is about the object itself, and not a list or a step of it."""
    action = getattr(view, "action", None)
    return method in {"GET", "HEAD", "PUT", "PATCH", "DELETE"} and action in {None, *_EDITS}


def remembers(view: object) -> bool:
    """Whether POSTs of this view are carried out once by the key alone."""
    return isinstance(view, ApiView) and not view.takes_no_key and not view.keeps_keys


def _replayed(known: Replay) -> HttpResponse:
    headers = known.headers | {REPLAYED: "true"}
    return HttpResponse(known.body, status=known.status, headers=headers)


def _moment(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)


def _asked(request: Request, key: str) -> NamedRequest:
    token = getattr(request.auth, "pk", "session")
    query = sorted((name, request.query_params.getlist(name)) for name in request.query_params)
    return NamedRequest(
        person_id=cast(uuid.UUID, request.user.pk),
        place=f"{token} {request.method} {request.path}",
        key=key,
        text=json.dumps([query, request.data], sort_keys=True, default=str),
    )


def _answer(response: HttpResponseBase) -> Replay:
    """As it goes out: all views that remember answer JSON, or nothing."""
    data = response.data if isinstance(response, Response) else None
    headers = dict(response.headers)
    if data is not None:
        kind = getattr(response, "content_type", None)
        headers["Content-Type"] = kind or JSONRenderer.media_type
    body = b"" if data is None else JSONRenderer().render(data)
    return Replay(response.status_code, headers, body)
