"""Searches over REST by two web processes that share PostgreSQL and an index on Milvus."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tessera_client import Client
from tests import services
from tests.killing.harness import Portal
from tests.killing.uploads import CONTROL
from tests.milvus_server import RunningMilvus
from tests.ports import HOST, free_port
from tests.processes import wait_until_served
from tests.world import slide_file

pytestmark = [pytest.mark.services, pytest.mark.timeout(600)]
ROUNDS = 2
STARTED_S = 120.0


def square(left: int, size: int) -> list[list[int]]:
    return [[left, 20], [left + size, 20], [left + size, 20 + size], [left, 20 + size]]


@pytest.fixture
def addresses(tmp_path, milvus: RunningMilvus) -> Iterator[tuple[Portal, list[str], str]]:
    """The portal, the addresses of two API processes of it, and a token."""
    with services.own_database() as database:
        portal = Portal(tmp_path, database, "filesystem://", lambda: None)
        portal.env |= {"TESSERA_INDEX_ENGINE": "milvus", "TESSERA_MILVUS_URL": milvus.url}
        portal.env["TESSERA_JOB_LEASE_S"] = "60"  # nobody is killed here
        try:
            token = portal.ask(CONTROL, "seat", "client")["token"]
            urls = [f"http://{HOST}:{free_port()}" for _ in range(2)]
            for command, url in zip(("serve", "web"), urls, strict=True):
                port = url.rpartition(":")[2]
                process = portal.start([sys.executable, "manage.py", command, "--port", port])
                wait_until_served(process, f"{url}/healthz", within_s=STARTED_S)
            yield portal, urls, token
        finally:
            portal.ask_no_more()
            portal.close()


def test_both_find_the_newest_region_and_none_that_was_deleted(addresses, tmp_path):
    portal, urls, token = addresses
    one, two = (Client(url, token, transfers=tmp_path / "transfers.json") for url in urls)
    with one, two:
        wanted, archive = (
            one.upload(one.create_case(name, patient_key=name), slide_file(tmp_path)).canvas
            for name in ("W-1", "A-1")
        )
        requested = one.create_roi(wanted, square(20, 200))
        same_patient = one.create_roi(wanted, square(21, 200))
        present = {one.create_roi(archive, square(40 * n, 150)).id for n in range(6)}
        for roi in (*present, same_patient, requested):
            one.search(roi)  # waits for its vector
        versions = set()
        for number in range(ROUNDS):
            portal.call("manage.py", "index", "rebuild", "--now")
            newest = (one, two)[number % 2].create_roi(archive, square(20 + number, 200))
            one.search(newest)
            present.add(newest.id)
            for client in (one, two):
                answer = client.request(
                    "POST", "search/", json={"roi": requested.id, "k": 50}
                ).json()
                versions.add(answer["index"]["version"])
                assert {hit["roi"]["id"] for hit in answer["results"]} == present
            (two, one)[number % 2].delete_roi(newest)
            present.discard(newest.id)
            for client in (one, two):
                results = client.search(requested, k=50).results
                assert {hit.roi.id for hit in results} == present
        assert len(versions) == ROUNDS
        assert "on milvus" in portal.call("manage.py", "index", "status")
