"""``python -m tests.deploy_check``: ``manage.py check --deploy`` under production settings."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Run the check with a made-up secret; warnings fail."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {
            "DJANGO_SETTINGS_MODULE": "portal.config.settings.production",
            "TESSERA_SECRET_KEY": "0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQ",
            "TESSERA_ALLOWED_HOSTS": "tessera.example",
            "TESSERA_DATABASE_URL": f"sqlite:///{folder}/check.sqlite3",
            "TESSERA_STORAGE": folder,
            "TESSERA_BROKER_FOLDER": folder,
        }
        command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
        return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
