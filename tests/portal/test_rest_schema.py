"""The API keeps what its schema promises: schemathesis, with ids that exist and ids that do not."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, settings
from schemathesis import checks

from portal.labs.models import Lab, TokenScope, User
from portal.labs.services import token_create
from tests import world

EXAMPLES = 12
KNOWN: dict[str, str] = {}

schema = schemathesis.openapi.from_wsgi("/api/v1/schema/?format=json", get_wsgi_application())


@schema.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any]) -> dict[str, Any]:
    """Half of the ids tried are of objects that exist, so that the fuzzer gets past the 404s."""
    word = context.operation.path.split("/")[3]
    for name, value in (path_parameters or {}).items():
        if name in {"id", "roi_id"} and sum(str(value).encode()) % 2:
            path_parameters[name] = KNOWN.get(word, value)
    return path_parameters


@schema.hook
def map_body(context: Any, body: Any) -> Any:
    """So are those named in a body: ``case``, ``canvas``, ``roi``, ``video``."""
    words = {
        "case": "cases",
        "canvas": "canvases",
        "roi": "rois",
        "target": "canvases",
        "video": "videos",
    }
    if isinstance(body, dict):
        for name in words.keys() & body.keys():
            if sum(str(body[name]).encode()) % 2:
                body[name] = KNOWN.get(words[name], str(uuid.uuid4()))
    return body


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture
def bearer(
    lab: Lab, manager: User, storage: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """A token of a manager in a lab that has one of everything."""
    world.in_process(monkeypatch)
    KNOWN.update(world.build(lab, manager, files).ids())
    _, secret = token_create(
        user=manager, name="fuzz", scope=TokenScope.WRITE, expires_in=timedelta(days=1)
    )
    return {"Authorization": f"Bearer {secret}"}


@pytest.mark.slow
@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_the_schema_describes(case: Any, bearer: dict[str, str]) -> None:
    case.validate_response(
        case.call(headers=bearer),
        checks=(
            checks.not_a_server_error,
            checks.response_schema_conformance,
            checks.content_type_conformance,
            checks.status_code_conformance,
        ),
    )


@pytest.mark.django_db
def test_the_schema_is_valid_and_every_error_is_problem_json(client: Any, manager: User) -> None:
    client.force_login(manager)
    document = json.loads(client.get("/api/v1/schema/?format=json").content)
    assert document["openapi"].startswith("3.")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            default = operation["responses"].get("default")
            assert default, f"{method} {path} describes no error"
            assert list(default["content"]) == ["application/problem+json"]


@pytest.mark.django_db
def test_the_docs_page_needs_no_other_server(client: Any, manager: User) -> None:
    client.force_login(manager)
    page = client.get("/api/v1/docs/").content.decode()
    assert "swagger-ui" in page
    assert "https://" not in page
