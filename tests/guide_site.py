"""Build the guide in a folder of its own, as ``make docs`` does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs" / "guide"


def build(project: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a project's folder."""
    command = [Path(sys.executable).parent / "zensical", "build", "--strict"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def guide_site(project: Path) -> Path:
    """Build the guide in an empty folder; returns the folder that the portal serves."""
    shutil.copytree(GUIDE, project / "docs" / "guide")
    shutil.copy(ROOT / "zensical.toml", project)
    done = build(project)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return project / "build" / "guide"
