"""The image's files: linted, non-root, and in step with the settings. ``test_booted`` boots it."""

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
    text = (ROOT / "docker" / "Dockerfile").read_text()
    users = re.findall(r"^USER (\S+)", text, re.M)
    assert users == ["10001:10001"]  # a group of its own as well, which celery looks for
    assert "groupadd --gid 10001" in text and "useradd --uid 10001 --gid 10001" in text


def test_the_entrypoint_is_valid_shell_and_knows_every_role() -> None:
    script = ROOT / "docker" / "entrypoint.sh"
    subprocess.run(["sh", "-n", script], check=True)
    cases = set(re.findall(r"^  ([a-z-]+)\)$", script.read_text(), re.M))
    assert cases == ROLES


def test_compose_runs_every_role_with_known_variables_only(compose: dict[str, dict]) -> None:
    services = compose["services"]
    images = {"tessera", "tessera-gpu"}
    ours = [service for service in services.values() if service.get("image") in images]
    assert {service["command"][0] for service in ours} == ROLES
    settings = "".join(path.read_text() for path in (ROOT / "portal").rglob("*.py"))
    for name in services["web"]["environment"]:
        assert f'"{name}"' in settings, f"{name} is set in compose.yaml but read by no setting"


def test_compose_contains_no_secret(compose: dict[str, dict]) -> None:
    environment = compose["services"]["web"]["environment"]
    assert environment["TESSERA_SECRET_KEY"].startswith("${TESSERA_SECRET_KEY:?")


def test_every_copied_path_is_in_the_repository() -> None:
    text = (ROOT / "docker" / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M):
        for source in line.split()[:-1]:
            assert list(ROOT.glob(source.rstrip("*") + ("*" if "*" in source else ""))), source


def test_the_image_has_the_driver_of_the_database_that_compose_runs() -> None:
    assert "postgres" in (ROOT / "docker" / "compose.yaml").read_text()
    for lock in ("cpu", "gpu"):
        assert "psycopg-binary==" in (ROOT / "requirements" / f"{lock}.txt").read_text()


def test_only_the_proxy_is_reachable_and_its_address_is_counted(
    compose: dict[str, dict[str, object]],
) -> None:
    services = compose["services"]
    assert [name for name, item in services.items() if "ports" in item] == ["proxy"]  # type: ignore[operator]
    trusted = services["web"]["environment"]["TESSERA_TRUSTED_PROXIES"]  # type: ignore[index]
    assert trusted == "${TESSERA_TRUSTED_PROXIES:-1}"


def test_every_role_has_a_health_check(compose: dict[str, dict]) -> None:
    assert compose["services"].keys() >= ROLES
    for name in compose["services"].keys() - {"migrate"}:  # which ends
        assert compose["services"][name]["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name


def test_object_storage_is_off_by_default_and_has_no_default_key(
    compose: dict[str, dict],
) -> None:
    services = compose["services"]
    assert services["objects"]["profiles"] == ["objects"] and "ports" not in services["objects"]
    assert services["web"]["environment"]["TESSERA_STORE"] == "${TESSERA_STORE:-folder}"
    keys = [value for name, value in services["objects"]["environment"].items()]
    assert keys == ["${TESSERA_S3_ACCESS_KEY:-}", "${TESSERA_S3_SECRET_KEY:-}"]


def test_the_gpu_worker_reserves_the_device_and_starts_only_by_its_profile(
    compose: dict[str, dict],
) -> None:
    worker = compose["services"]["gpu-worker"]
    (device,) = worker["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
    assert worker["profiles"] == ["gpu"]
    assert worker["build"]["args"]["ACCELERATOR"] == "gpu"


def test_only_the_secret_key_has_no_default() -> None:
    text = (ROOT / "docker" / "compose.yaml").read_text()
    assert set(re.findall(r"\$\{(\w+):\?", text)) == {"TESSERA_SECRET_KEY"}


def test_every_image_can_be_named_by_digest_and_defaults_to_a_tag(
    compose: dict[str, dict],
) -> None:
    for name, service in compose["services"].items():
        image = service["image"]
        if image not in {"tessera", "tessera-gpu"}:
            assert re.fullmatch(r"\$\{[A-Z]+_IMAGE:-[\w/.-]+:[\w.-]+\}", image), name
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    stages = re.findall(r"^FROM (\S+)", dockerfile, re.M)
    assert stages and set(stages) == {"${NODE_IMAGE}", "${PYTHON_IMAGE}"}
    arguments = dict(re.findall(r"^ARG (NODE|PYTHON)_IMAGE=(\S+)$", dockerfile, re.M))
    given = compose["services"]["web"]["build"]["args"]
    assert given["NODE_IMAGE"] == f"${{NODE_IMAGE:-{arguments['NODE']}}}"
    assert given["PYTHON_IMAGE"] == f"${{PYTHON_IMAGE:-{arguments['PYTHON']}}}"


def test_the_check_of_images_refuses_floating_tags() -> None:
    digest = "@sha256:" + "0a" * 32
    names = ("NODE_IMAGE", "PYTHON_IMAGE", "POSTGRES_IMAGE", "REDIS_IMAGE", "PROXY_IMAGE")
    right = dict.fromkeys(names, f"name:1{digest}")

    def check(**images: str) -> tuple[int, str]:
        done = subprocess.run(
            ["sh", ROOT / "docker" / "images.sh"],
            env={"PATH": "/usr/bin:/bin"} | right | images,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    assert check() == (0, "")
    assert check(OBJECTS_IMAGE=f"objects:1{digest}") == (0, "")  # of a profile: named or left out
    assert check(OBJECTS_IMAGE="objects:1")[0] == 1
    assert check(MILVUS_IMAGE="milvus:1")[0] == 1
    for wrong in ("postgres:16", "", "postgres@sha256:12", "postgres@sha256:" + "zz" * 32):
        code, text = check(POSTGRES_IMAGE=wrong)
        assert code == 1 and text.startswith("POSTGRES_IMAGE must be an image by digest")


@pytest.mark.parametrize("lock", ["cpu", "gpu"])
def test_every_package_of_a_lock_is_pinned_by_hash(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    packages = re.split(r"^(?=[a-z0-9])", text, flags=re.M)[1:]
    assert len(packages) > 50
    for package in packages:
        assert re.match(r"[\w.-]+(?:\[[\w,-]+\])?==\S+", package), package[:80]
        assert "--hash=sha256:" in package, package[:80]
    assert "://" not in text  # no registry's name
    assert ("nvidia-" in text) == (lock == "gpu")


@pytest.mark.parametrize("lock", ["cpu", "gpu"])
def test_a_lock_contains_the_requirements_in_the_versions_of_the_constraints(lock: str) -> None:
    import tomllib

    def named(line: str) -> str:
        return re.split(r"[\[><=~! ;]", line)[0].lower().replace("_", "-")

    pins = (ROOT / "requirements" / f"{lock}.txt").read_text()
    locked = dict(re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==([^\s;+]+)", pins, re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    more = (*extras[lock], *extras["milvus"], *extras["postgres"], *extras["s3"])
    needed = {named(requirement) for requirement in (*project["dependencies"], *more)}
    assert needed - set(locked) == set(), "make lock"
    constraints = (ROOT / "constraints.txt").read_text()
    wanted = {
        named(name): version
        for name, version in re.findall(r"^([\w.-]+)==([^\s+]+)", constraints, re.M)
    }
    differ = {name for name, version in locked.items() if wanted.get(name, version) != version}
    assert differ == set(), "make lock"
