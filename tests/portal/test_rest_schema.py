"""The API keeps what its schema promises: schemathesis, with ids that exist and ids that do not."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import openapi_spec_validator
import pytest
import schemathesis
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from schemathesis import checks
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import CoverageScenario, TestPhase

from portal.labs.models import Lab, Membership, Role, TokenScope, User
from portal.labs.services.tokens import token_create
from tests import world

pytest_plugins = [
    "schemathesis.pytest.plugin"
]  # left out of all other runs: its import takes seconds
EXAMPLES = 6  # besides those of schemathesis' coverage, some fifty an operation
KNOWN: dict[str, str] = {}
TRIED: set[tuple[object, ...]] = set()

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")
# Made where it is run: to make the examples takes eight seconds, which each worker of pytest-xdist
# would spend to collect them.
schema = schemathesis.pytest.from_fixture("read_schema")


def _filter_case(context: Any, case: Any) -> bool:
    """One wrong type for each value of an address: all of them arrive as text."""
    if case.meta.phase.name != TestPhase.COVERAGE:
        return True
    data = case.meta.phase.data
    if data.scenario != CoverageScenario.INCORRECT_TYPE or data.parameter_location not in (
        ParameterLocation.PATH,
        ParameterLocation.QUERY,
    ):
        return True
    place = (case.operation.label, data.parameter_location, data.parameter, data.location)
    is_new = place not in TRIED
    TRIED.add(place)
    return is_new


def _map_path_parameters(context: Any, path_parameters: dict[str, Any]) -> dict[str, Any]:
    """Half of the ids tried are of objects that exist, so that the fuzzer gets past the 404s."""
    word = context.operation.path.split("/")[3]
    for name, value in (path_parameters or {}).items():
        if name in {"id", "roi_id"} and sum(str(value).encode()) % 2:
            path_parameters[name] = KNOWN.get(word, value)
    return path_parameters


def _map_body(context: Any, body: Any) -> Any:
    """Replace the ids of ``case``, ``canvas``, ``roi`` and ``video`` in a body."""
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


def _map_headers(context: Any, headers: dict[str, Any]) -> dict[str, Any]:
    """Half of the changes are of whatever is there; but for ROIs, all others of nothing that is."""
    if headers and "If-Match" in headers and sum(str(headers["If-Match"]).encode()) % 2:
        headers["If-Match"] = "*"
    return headers


@pytest.fixture(scope="module")
def secret(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The token of a manager in a lab that has one of everything."""
    folder = tmp_path_factory.mktemp("schema")
    with django_db_blocker.unblock(), world.rolled_back(folder):
        lab = Lab.objects.create(name="Schema", slug="schema")
        manager = User.objects.create_user("manager@schema.example", "correct horse battery")
        Membership.objects.create(user=manager, lab=lab, role=Role.MANAGER)
        KNOWN.update(world.build(lab, manager, folder).ids())
        _, result = token_create(
            user=manager, name="fuzz", scope=TokenScope.WRITE, expires_in=timedelta(days=1)
        )
        yield result


@pytest.fixture
def read_schema(request: pytest.FixtureRequest, db: None) -> schemathesis.schemas.BaseSchema:
    """The schema as the portal serves it."""
    request.node._nodeid = request.node.nodeid  # schemathesis wants it; pytest 9 has it no more
    schema = schemathesis.openapi.from_wsgi("/api/v1/schema/?format=json", get_wsgi_application())
    # tests/portal/access/test_matrix.py asks every address for every method it does not have.
    schema.config.phases.coverage.unexpected_methods = {"options"}
    schema.hook("filter_case")(_filter_case)
    schema.hook("map_path_parameters")(_map_path_parameters)
    schema.hook("map_body")(_map_body)
    schema.hook("map_headers")(_map_headers)
    return schema


class Caller:
    """Sends the cases with a token; what is written is rolled back after each operation."""

    def __init__(self, secret: str) -> None:
        self.headers = {"Authorization": f"Bearer {secret}"}
        self.operation = ""
        self.before = transaction.savepoint()

    def call(self, case: Any) -> Any:
        if case.operation.label != self.operation:
            self.roll_back()
            self.operation = case.operation.label
        return case.call(headers=self.headers)

    def roll_back(self) -> None:
        connection.check_constraints()
        transaction.savepoint_rollback(self.before)


@pytest.fixture
def caller(secret: str, db: None) -> Iterator[Caller]:
    made = Caller(secret)
    yield made
    made.roll_back()


@pytest.mark.slow
@pytest.mark.endurance
@pytest.mark.timeout(900)
@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_the_schema_describes(case: Any, caller: Caller) -> None:
    answer = caller.call(case)
    stored = [
        checks.not_a_server_error,
        checks.content_type_conformance,
        checks.status_code_conformance,
    ]
    if "fields" not in (case.query or {}):  # which leaves out what the schema requires
        stored.append(checks.response_schema_conformance)
    case.validate_response(answer, checks=tuple(stored))


@pytest.mark.django_db
def test_the_schema_is_valid_and_every_error_is_problem_json(tmp_path: Path) -> None:
    """By its specification, and without a warning of what writes it."""
    file = tmp_path / "schema.json"
    call_command("spectacular", "--fail-on-warn", format="openapi-json", file=str(file))
    document = json.loads(file.read_text())
    assert document["openapi"] == "3.1.0"
    openapi_spec_validator.validate(document)
    assert "nullable" not in file.read_text()  # a word of 3.0, which 3.1 reads over
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
