"""An installation without the extra ``worker``: pages and REST without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.databases import migrated

ROOT = Path(__file__).resolve().parents[2]
REQUESTS = """
import sys
sys.modules["torch"] = sys.modules["torch_geometric"] = None  # as if they were not installed
import django
django.setup()
from django.core.management import call_command
from django.test import Client
from portal.config.asgi import application
from portal.labs.models import Lab, Membership, User
call_command("check")
lab = Lab.objects.create(name="L", slug="l")
user = User.objects.create_user("m@l.example", "correct horse battery")
Membership.objects.create(user=user, lab=lab, role="manager")
client = Client(headers={"host": "localhost"})
client.force_login(user)
for path in ("/cases/", "/search/", "/browse/", "/mosaics/", "/api/v1/cases/", "/api/v1/docs/"):
    status = client.get(path, follow=True).status_code
    print(path, status)
print("no torch:", sys.modules["torch"] is None)
"""


def test_pages_and_rest_are_served_without_torch(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REQUESTS],
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if "TESSERA" not in name},
            "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
            "TESSERA_DATABASE_URL": migrated(tmp_path / "web.sqlite3"),
            "TESSERA_STORAGE": str(tmp_path / "storage"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "no torch: True" in done.stdout
    for path in ("/cases/", "/browse/", "/api/v1/cases/", "/api/v1/docs/"):
        assert f"{path} 200" in done.stdout, done.stdout
