"""Advisory locks on PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import services

ROOT = Path(__file__).resolve().parents[4]
TWO_TRANSACTIONS = """
import json, sys, threading
import django
django.setup()
from django.db import InternalError, connection, transaction
from portal.core.database.locks import transaction_lock

is_locked, is_over = threading.Event(), threading.Event()
found = {}

def paused():
    try:
        with transaction.atomic():
            transaction_lock("queue", idle_timeout_s=0.2)
            is_locked.set()
            is_over.wait(30)
            connection.cursor().execute("SELECT 1")
    except InternalError:
        found["paused"] = "ended"

thread = threading.Thread(target=paused)
thread.start()
is_locked.wait(30)
with transaction.atomic():
    connection.cursor().execute("SET LOCAL statement_timeout = '20s'")
    transaction_lock("queue")
    found["other"] = "locked"
is_over.set()
thread.join()
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.services
def test_a_process_that_is_paused_with_a_lock_does_not_keep_it() -> None:
    with services.own_database() as url:
        done = subprocess.run(
            [sys.executable, "-c", TWO_TRANSACTIONS],
            cwd=ROOT,
            env=os.environ | {"TESSERA_DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == {"paused": "ended", "other": "locked"}
