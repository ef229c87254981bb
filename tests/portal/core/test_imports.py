from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("torch", "torch_geometric", "transformers")


def loaded_after(code: str) -> set[str]:
    """Heavy packages that a fresh process has loaded after running the code."""
    script = f"{code}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "portal.config.settings.test"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return set(done.stdout.split())


def test_the_web_process_never_loads_torch() -> None:
    code = "import portal.config.asgi\nfrom django.urls import get_resolver\n"
    code += "import portal.embeddings.tasks, portal.search.tasks\n"
    assert loaded_after(code + "get_resolver().url_patterns") == set()
