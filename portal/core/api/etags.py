"""ETags of what is read: asked again with ``If-None-Match``, what has not changed is 304."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.http.files import etag_matches

_READS = ("GET", "HEAD")


class TaggedReads:
    """Of a view. Stands before its other bases.

    An answer is tagged by its bytes, unless the view gave it a tag. Files and streams tag
    themselves. Programs keep answers by these tags. No browser does, unless the view says so:
    answers name patients.

    Attributes:
        keeps_tags: the view gives tags of its own, which say nothing of the whole answer: that of
            an ROI is its version.
    """

    keeps_tags = False

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """The tag is written once the answer is."""
        answer: Response = super().finalize_response(  # type: ignore[misc] # of the view
            request, response, *args, **kwargs
        )
        is_read = request.method in _READS and answer.status_code == 200
        if is_read and isinstance(answer, Response):
            known = partial(_tagged, request._request, keeps_tags=self.keeps_tags)
            answer.add_post_render_callback(known)
        return answer


def _tagged(request: HttpRequest, answer: HttpResponse, *, keeps_tags: bool) -> HttpResponse | None:
    """304 in its place where it is known; None: as it is."""
    if "no-store" in answer.get("Cache-Control", "") or (keeps_tags and "ETag" in answer):
        return None
    if "ETag" not in answer:
        answer["ETag"] = f'"{hashlib.blake2b(answer.content, digest_size=16).hexdigest()}"'
    if not etag_matches(request, answer["ETag"]):
        return None
    unchanged = HttpResponse(status=304, headers=dict(answer.headers))
    del unchanged["Content-Type"]
    return unchanged
