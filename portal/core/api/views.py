"""What every view of the API is: a POST under an ``Idempotency-Key`` is carried out once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from django.db import transaction
from django.db.models import Model
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from portal.core.api.answers import NamedRequest, Replay, answer_begin, answer_keep, key_checked

REPLAYED = "Idempotency-Replayed"
_Row = TypeVar("_Row", bound=Model)
_Handler = Callable[..., HttpResponseBase]


class ApiView(APIView):
    """A view of the API.

    A POST and its answer are one transaction where it carries an ``Idempotency-Key``. A view whose
    POST is not says why in ``takes_no_key``; one that remembers keys by itself, in its own rows,
    says ``keeps_keys``.
    """

    takes_no_key = ""
    keeps_keys = False

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Who asks and whether they may is known afterwards, and nothing was done yet."""
        super().initial(request, *args, **kwargs)
        key = request.headers.get("Idempotency-Key")
        if request.method == "POST" and key is not None and remembers(self):
            handler = partial(self._once, key_checked(key), getattr(self, "post"))  # noqa: B009
            setattr(self, "post", handler)  # noqa: B010 - where DRF looks for who answers

    def _once(
        self, key: str, handler: _Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """What this request was answered before, or the answer that it gets now.

        What a refusal changed (an attempt that is counted) is kept, as it is without a key.
        """
        asked = _asked(request, key)
        with transaction.atomic():
            if (known := answer_begin(asked)) is not None:
                return HttpResponse(
                    known.body, status=known.status, headers=known.headers | {REPLAYED: "true"}
                )
            try:
                response = handler(request, *args, **kwargs)
            except Exception as error:  # noqa: BLE001 - raised on by handle_exception if a bug
                response = self.handle_exception(error)
            answer_keep(asked, _answer(response))
            return response


class ApiViewSet(ApiView, GenericViewSet[_Row]):
    """The views of one kind of object."""


def remembers(view: object) -> bool:
    """Whether POSTs of this view are carried out once by the key alone."""
    return isinstance(view, ApiView) and not view.takes_no_key and not view.keeps_keys


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
