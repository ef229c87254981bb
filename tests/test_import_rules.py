"""The import rules hold, and each of them fails on a planted breach."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
WEB_MAY_IMPORT = {
    "imaging",
    "index",
    "segmentation",
    "types",
    "errors",
    "geometry",
    "natural_order",
    "files",
    "config",
}
# Run by hand; imported by what the web process may import.
OWN_CONCERN = {"__main__", "extras", "gpu"}

BREACHES = {
    "ml knows nothing of Django, Celery or the portal": ("ml/types.py", "django"),
    "pixels, the index and what all share need no torch": ("ml/imaging/limits.py", "torch"),
    "a search needs no SciPy: it would take 30 MiB of each web process": (
        "ml/index/ranking/diffusion.py",
        "scipy",
    ),
    "only tasks reach torch: the web process never loads it": ("portal/core/mail.py", "ml.roi"),
    "apps, high to low": ("portal/core/errors.py", "portal.labs.models"),
    "ml, high to low": ("ml/networks/topk.py", "ml.keypoints.detect"),
    "inside a mosaic: each stage uses what earlier ones hand on": (
        "ml/mosaic/config.py",
        "ml.mosaic.report",
    ),
    "inside evaluation: each question for itself; epipolar builds on matching": (
        "ml/evaluation/common/memory.py",
        "ml.evaluation.matching.metrics",
    ),
    "inside training: each family for itself, over what all runs share": (
        "ml/training/vit/score.py",
        "ml.training.roi.losses",
    ),
    "inside imaging: from a user's file down to its bytes": (
        "ml/imaging/formats/tiff.py",
        "ml.imaging.slides.grid",
    ),
    "inside training.roi: encoders build on patches": (
        "ml/training/roi/patches/blocks.py",
        "ml.training.roi.encoder.pool",
    ),
    "inside keypoints: from two images down to pixels": (
        "ml/keypoints/pixels.py",
        "ml.keypoints.detect",
    ),
    "no module imports one that imports it, at any depth": (
        "ml/imaging/limits.py",
        "ml.imaging.slides",
    ),
    "inside an app: every module has its layer, and imports go down": (
        "portal/labs/models.py",
        "portal.labs.selectors",
    ),
    "inside interop: each standard on its own, over what several share": (
        "portal/interop/http.py",
        "portal.interop.fhir.formats",
    ),
    "inside core": ("portal/core/errors.py", "portal.core.views"),
    "inside config": ("portal/config/settings/base.py", "portal.config.urls"),
    "inside operations": ("portal/operations/processes.py", "portal.operations.health"),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's Python files and its rules."""
    target = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "pyproject.toml", target)
    for package in ("ml", "portal"):
        ignored = shutil.ignore_patterns("weights", "__pycache__", "static", "templates")
        shutil.copytree(ROOT / package, target / package, ignore=ignored)
    return target


def lint(project: Path) -> tuple[int, str]:
    """Exit status and report of the rules, as ``make check`` has them."""
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports"],
        cwd=project,
        env=os.environ | {"COLUMNS": "200", "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@contextmanager
def planted(path: Path, text: str) -> Iterator[None]:
    """A line at the end of a file, or a file of that line."""
    before = path.read_text() if path.exists() else None
    path.write_text((before or "") + text)
    try:
        yield
    finally:
        path.unlink() if before is None else path.write_text(before)


def test_the_tree_obeys_the_import_rules(copy: Path) -> None:
    status, report = lint(copy)
    assert status == 0, report
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in report


def test_each_rule_has_a_breach_to_show_it_by() -> None:
    assert [contract["name"] for contract in CONTRACTS if contract["name"] not in BREACHES] == []


@pytest.fixture(scope="module")
def broken(copy: Path) -> str:
    """The report with every breach planted at once: each rule is reported by itself."""
    with ExitStack() as stack:
        for path, imported in BREACHES.values():
            stack.enter_context(planted(copy / path, f"\nimport {imported}\n"))
        status, report = lint(copy)
    assert status == 1, report
    return report


@pytest.mark.parametrize("name", BREACHES)
def test_a_planted_breach_breaks_the_rule(broken: str, name: str) -> None:
    path, imported = BREACHES[name]
    assert f"{name} BROKEN" in broken
    importer = path.removesuffix(".py").replace("/", ".")
    of_this_rule = broken.split("Broken contracts")[1].split(f"\n{name}\n")[1]
    about = re.split(r"\n[^\n]+\n-{5,}\n", of_this_rule)[0]
    assert imported.split(".")[-1] in about and importer.split(".")[-1] in about


@pytest.mark.parametrize("path", ["ml/helpers.py", "portal/labs/helpers.py"])
def test_a_module_that_has_no_place_breaks_a_rule(copy: Path, path: str) -> None:
    with planted(copy / path, '"""Lost."""\n'):
        status, report = lint(copy)
    assert status == 1 and "helpers" in report


def test_every_room_of_ml_is_open_or_closed_to_the_web_process() -> None:
    (rule,) = [c for c in CONTRACTS if c["name"].startswith("only tasks reach torch")]
    # by its name if all of it or some of its modules are closed
    closed = {m.split(".")[1] for m in rule["forbidden_modules"] if m.startswith("ml.")}
    rooms = {path.stem for path in (ROOT / "ml").iterdir() if path.suffix == ".py"}
    rooms |= {path.parent.name for path in (ROOT / "ml").glob("*/__init__.py")}
    assert rooms - {"__init__"} == closed | WEB_MAY_IMPORT | OWN_CONCERN
    assert not closed & WEB_MAY_IMPORT
