"""Production settings really serve: uvicorn, collected static files, a sign-in page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests import databases
from tests.ports import free_port
from tests.processes import wait_until_served

ROOT = Path(__file__).resolve().parents[4]


def _get(port: int, path: str) -> tuple[int, str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Host": "t.example"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.status, answer.read().decode(errors="replace")


@pytest.mark.slow
@pytest.mark.endurance
def test_the_portal_serves_under_production_settings(tmp_path: Path) -> None:
    if not (ROOT / "static" / "dist" / "app.js").exists():
        pytest.skip("static/dist is not built: run `npm run build`")
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.config.settings.production",
        "TESSERA_SECRET_KEY": "0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQ",
        "TESSERA_ALLOWED_HOSTS": "t.example",
        "TESSERA_TLS": "0",
        "TESSERA_DATABASE_URL": databases.migrated(tmp_path / "db.sqlite3"),
        "TESSERA_STORAGE": str(tmp_path / "storage"),
        "TESSERA_BROKER_FOLDER": str(tmp_path / "broker"),
        "TESSERA_STATIC_ROOT": str(tmp_path / "static"),
        "TESSERA_WEB_WORKERS": "1",  # each takes seconds of a processor to start
    }
    collect = [sys.executable, "manage.py", "collectstatic", "--no-input", "-v", "0"]
    subprocess.run(collect, cwd=ROOT, env=env, check=True)
    port = free_port()
    command = [sys.executable, "manage.py", "serve", "--web-only", "--port", str(port)]
    server = subprocess.Popen(command, cwd=ROOT, env=env)
    try:
        address = f"http://127.0.0.1:{port}/healthz"
        wait_until_served(server, address, headers={"Host": "t.example"})
        assert _get(port, "/healthz") == (200, '{"status": "ok"}')
        status, page = _get(port, "/accounts/login/")
        assert status == 200 and "Sign in" in page
        hashed = re.findall(r"/static/app\.[0-9a-f]{12}\.(?:css|js)", page)
        assert len(hashed) == 2, "static files are not served under their content's hash"
        for path in hashed:
            assert _get(port, path)[0] == 200
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/accounts/login/", timeout=10)
        assert refused.value.code == 400  # a host that is not ours
    finally:
        server.terminate()
        server.wait(15)
