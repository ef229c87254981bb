"""``python -m tests.killing.switch_control begin|go-on FOLDER``: an archive goes over to Qdrant.

The client's local mode stands in for a server. Each request says so on a line of its own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

COUNT, A_REQUEST = 600, 40


def main() -> int:
    """Fill an archive and begin to switch, or go on; say what came of it."""
    action, folder = sys.argv[1], Path(sys.argv[2])
    os.environ |= {
        "TESSERA_INDEX_ENGINE": "qdrant",
        "TESSERA_QDRANT_URL": f"folder:{folder / 'qdrant'}",
        "TESSERA_JOB_LEASE_S": "1",
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
        "TESSERA_DEBUG": "0",
        "TESSERA_DATABASE_URL": f"sqlite:///{folder / 'bench.sqlite3'}",
        "TESSERA_STORAGE": str(folder / "storage"),
        "TESSERA_BROKER_FOLDER": str(folder / "broker"),
        "TESSERA_LOG_LEVEL": "ERROR",
    }
    if action == "begin":
        _archive(folder)
    else:
        import django

        django.setup()
    from django.core.management import call_command

    from ml.index.qdrant import points

    points._ROWS_MOST = A_REQUEST  # a request each 40, so that there is where to be killed
    put = points.put

    def told(*args):  # type: ignore[no-untyped-def]
        for last in put(*args):
            yield last
            print("put", flush=True)

    points.put = told
    call_command("index", "switch")
    call_command("index", "verify")
    from portal.retrieval.models import IndexSnapshot

    row = IndexSnapshot.objects.order_by("-version")[0]
    print("told", json.dumps([row.engine, row.count]), flush=True)
    return 0


def _archive(folder: Path) -> None:
    from tests.bench.portal import portal_open
    from tests.bench.search import _fill

    portal = portal_open(folder)
    from portal.retrieval.models import Encoder

    encoder = Encoder.objects.create(name="switched", version="1", config_hash="0" * 64, dim=8)
    _fill(portal, encoder, COUNT, np.random.default_rng(1))


if __name__ == "__main__":
    sys.exit(main())
