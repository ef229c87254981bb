"""The OpenAPI document: rendered once per process, served compressed and by ETag.

Rendering takes seconds of processor time and drf-spectacular is not safe in several threads, so it
runs once, under a lock. The document depends only on the code, not on the user.

Swagger UI takes seconds to read OpenAPI 3.1, and does so again for each operation that is opened;
the page of the API therefore reads the same document in OpenAPI 3.0. Programs read 3.1: in 3.0 a
reference cannot be null.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from threading import RLock
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.settings import patched_settings
from rest_framework.permissions import AllowAny
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder
from rest_framework.views import APIView

from portal.core.http.audit_rules import not_audited
from portal.core.http.files import bytes_response

OPENAPI, OPENAPI_OF_PAGE = "3.1.0", "3.0.3"
CACHE = "public, no-cache"
"""The document is the same for everybody; a copy is used after asking whether it changed."""


@dataclass(frozen=True, slots=True)
class SchemaDocument:
    """A rendered form of the document."""

    content: bytes
    compressed: bytes
    tag: str

    @classmethod
    def of(cls, content: bytes) -> SchemaDocument:
        """Compress and tag a rendered document."""
        tag = hashlib.blake2b(content, digest_size=16).hexdigest()
        return cls(content, gzip.compress(content, mtime=0), tag)


class SchemaCache:
    """The documents of this process, each rendered at its first use."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._documents: dict[tuple[str, str], SchemaDocument] = {}

    def document(self, form: str, version: str = OPENAPI) -> SchemaDocument:
        """The document as ``json`` or ``yaml``; concurrent callers wait for one rendering."""
        key = (form, version)
        if (cached := self._documents.get(key)) is not None:
            return cached
        with self._lock:
            if key not in self._documents:
                if form == "yaml":
                    content = _yaml(self.document("json", version).content)
                else:
                    content = _json(version)
                self._documents[key] = SchemaDocument.of(content)
            return self._documents[key]

    def clear(self) -> None:
        """Forget the documents."""
        with self._lock:
            self._documents = {}


def _json(version: str) -> bytes:
    with patched_settings({"OAS_VERSION": version}):
        schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    text = json.dumps(schema, cls=JSONEncoder, ensure_ascii=False, separators=(",", ":"))
    return text.encode()


def _yaml(content: bytes) -> bytes:
    return bytes(OpenApiYamlRenderer().render(json.loads(content)))  # type: ignore[no-untyped-call]


schema_cache = SchemaCache()


class _Negotiated(BaseRenderer):
    """Takes part in content negotiation; errors of the view are rendered as JSON."""

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        """An error."""
        return json.dumps(data, cls=JSONEncoder).encode()


class YamlDocument(_Negotiated):
    """YAML under its registered name."""

    media_type, format = "application/vnd.oai.openapi", "yaml"


class PlainYamlDocument(_Negotiated):
    """YAML under its general name."""

    media_type, format = "application/yaml", "yaml"


class JsonDocument(_Negotiated):
    """JSON under its registered name."""

    media_type, format = "application/vnd.oai.openapi+json", "json"


class PlainJsonDocument(_Negotiated):
    """JSON under its general name."""

    media_type, format = "application/json", "json"


@not_audited("no data of patients")
class SchemaView(APIView):
    """The OpenAPI document, as YAML or JSON by ``?format=`` or ``Accept``."""

    schema: Any = None  # the document does not describe itself
    version = OPENAPI
    permission_classes = (AllowAny,)
    renderer_classes = (
        YamlDocument,
        PlainYamlDocument,
        JsonDocument,
        PlainJsonDocument,
    )

    def get(self, request: Request) -> HttpResponse:
        """The OpenAPI document, gzip if the client accepts it; 304 if its copy is current."""
        renderer: Any = request.accepted_renderer
        document = schema_cache.document(renderer.format, self.version)
        is_compressed = accepts_gzip(request._request)
        response = bytes_response(
            request._request,
            document.compressed if is_compressed else document.content,
            etag=f'"{document.tag}{".gz" if is_compressed else ""}"',
            media_type=renderer.media_type,
            cache=CACHE,
        )
        if is_compressed and response.status_code == 200:
            response["Content-Encoding"] = "gzip"
        response["Content-Disposition"] = f'inline; filename="tessera.{renderer.format}"'
        patch_vary_headers(response, ("Accept", "Accept-Encoding"))
        return response


def accepts_gzip(request: HttpRequest) -> bool:
    """Return whether ``Accept-Encoding`` accepts gzip (named or ``*``, not ``q=0``)."""
    weights: dict[str, float] = {}
    for part in request.headers.get("Accept-Encoding", "").split(","):
        name, _, weight = part.partition(";")
        try:
            weights[name.strip().lower()] = float(weight.strip().lower().removeprefix("q=") or 1)
        except ValueError:
            weights[name.strip().lower()] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0
