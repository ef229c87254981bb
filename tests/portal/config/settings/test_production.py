"""Production settings really serve: uvicorn, collected static files, a sign-in page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests import databases
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[4]


def _get(port: int, path: str) -> tuple[int, str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Host": "t.example"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.status, answer.read().decode(errors="replace")


@pytest.mark.slow
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
        _wait(port)
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


def _wait(port: int) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            assert _get(port, "/healthz") == (200, '{"status": "ok"}')
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the portal does not answer")
