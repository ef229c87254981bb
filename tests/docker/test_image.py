"""The image's files: linted, non-root, and in step with the settings. (Booted by a later step.)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROLES = {"web", "worker", "gpu-worker", "beat", "migrate"}


@pytest.fixture(scope="module")
def compose() -> dict[str, dict[str, object]]:
    return yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())


def test_the_dockerfile_is_clean_to_hadolint() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run(
        [hadolint, ROOT / "docker" / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_does_not_run_as_root() -> None:
    users = re.findall(r"^USER (\S+)", (ROOT / "docker" / "Dockerfile").read_text(), re.M)
    assert users and users[-1] not in {"root", "0"}


def test_the_entrypoint_is_valid_shell_and_knows_every_role() -> None:
    script = ROOT / "docker" / "entrypoint.sh"
    subprocess.run(["sh", "-n", script], check=True)
    cases = set(re.findall(r"^  ([a-z-]+)\)$", script.read_text(), re.M))
    assert cases == ROLES


def test_compose_runs_every_role_with_known_variables_only(compose: dict[str, dict]) -> None:
    services = compose["services"]
    roles = {name for name, service in services.items() if service.get("image") == "tessera"}
    assert (
        roles
        == ROLES
        == {service["command"][0] for name, service in services.items() if name in roles}
    )
    settings = "".join(path.read_text() for path in (ROOT / "portal" / "config").rglob("*.py"))
    for name in services["web"]["environment"]:
        assert f'"{name}"' in settings, f"{name} is set in compose.yaml but read by no setting"


def test_compose_keeps_no_secret(compose: dict[str, dict]) -> None:
    environment = compose["services"]["web"]["environment"]
    assert environment["TESSERA_SECRET_KEY"].startswith("${TESSERA_SECRET_KEY:?")
    assert "${POSTGRES_PASSWORD:?" in environment["TESSERA_DATABASE_URL"]


def test_every_copied_path_is_in_the_repository() -> None:
    text = (ROOT / "docker" / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M):
        for source in line.split()[:-1]:
            assert list(ROOT.glob(source.rstrip("*") + ("*" if "*" in source else ""))), source


def test_the_image_has_the_driver_of_the_database_that_compose_runs() -> None:
    assert "postgres" in (ROOT / "docker" / "compose.yaml").read_text()
    assert '".[${ACCELERATOR},postgres]"' in (ROOT / "docker" / "Dockerfile").read_text()
