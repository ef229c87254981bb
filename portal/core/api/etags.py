"""ETags: what has not changed is 304 when asked for again; a change says what it was made from."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_200_OK, HTTP_201_CREATED

from portal.core.http.files import etag_matches

_READS = ("GET", "HEAD")
_TAGGED = (HTTP_200_OK, HTTP_201_CREATED)


class TaggedAnswers:
    """A mixin of views. Put it before the other bases.

    What is read is tagged by its bytes, unless the view gave it a tag. Files and streams tag
    themselves. Programs keep answers by these tags. No browser does, unless the view says so:
    answers name patients.

    Attributes:
        keeps_tags: the view gives tags of its own, which say nothing of the whole answer: that of
            an ROI is its version.
        edit_tag: of the object in the answer; empty if nobody edits it.
    """

    keeps_tags = False
    edit_tag = ""

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """The tag is written once the answer is."""
        answer: Response = super().finalize_response(  # type: ignore[misc] # of the view
            request, response, *args, **kwargs
        )
        has_tag = request.method in _READS or self.edit_tag
        if has_tag and answer.status_code in _TAGGED and isinstance(answer, Response):
            known = partial(
                _tagged, request._request, keeps_tags=self.keeps_tags, edit_tag=self.edit_tag
            )
            answer.add_post_render_callback(known)
        return answer


def tag_of(content: bytes, *, edit_tag: str = "") -> str:
    """The tag of an answer.

    What comes before the dot names what people edit, and is all that ``If-Match`` goes by: a
    count in the answer that went up must not refuse a change. What follows names the whole answer.
    """
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    return f'"{edit_tag}.{digest}"' if edit_tag else f'"{digest}"'


def _tagged(
    request: HttpRequest, answer: HttpResponse, *, keeps_tags: bool, edit_tag: str
) -> HttpResponse | None:
    """A 304 in its place where the client has the answer; None: it stays as it is."""
    is_kept_nowhere = "no-store" in answer.get("Cache-Control", "") and not edit_tag
    if is_kept_nowhere or (keeps_tags and "ETag" in answer):
        return None
    if "ETag" not in answer:
        answer["ETag"] = tag_of(answer.content, edit_tag=edit_tag)
    if request.method not in _READS or not etag_matches(request, answer["ETag"]):
        return None
    unchanged = HttpResponse(status=304, headers=dict(answer.headers))
    del unchanged["Content-Type"]
    return unchanged
