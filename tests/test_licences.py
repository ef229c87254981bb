"""NOTICE names what has to be named, as the installed packages say themselves."""

from __future__ import annotations

import re
from importlib.metadata import distributions, files
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTICE = (ROOT / "NOTICE").read_text()
COPYLEFT = re.compile(r"\b(?:[AL]?GPL|GNU (?:Lesser |Affero )?General Public)", re.IGNORECASE)
BUNDLED = {"av": ("libx264", "libx265"), "shapely": ("libgeos",)}


def _copyleft() -> set[str]:
    """Installed packages whose own metadata name a licence of the GPL's family."""
    names = set()
    for distribution in distributions():
        texts = [
            distribution.metadata.get("License-Expression")
            or distribution.metadata.get("License")
            or ""
        ]
        texts += [
            c
            for c in distribution.metadata.get_all("Classifier") or []
            if c.startswith("License ::")
        ]
        if any(COPYLEFT.search(text[:200]) for text in texts):
            names.add(distribution.metadata["Name"].lower().replace("_", "-"))
    return names


def test_the_licence_is_the_one_that_the_package_names() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text and "Version 2.0, January 2004" in text
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()


def test_notice_names_every_copyleft_package_that_is_installed() -> None:
    licences = _copyleft()
    assert {"pyvips-binary", "openslide-bin"} <= licences
    missing = {name for name in licences if not re.search(rf"\b{re.escape(name)}\b", NOTICE)}
    assert missing == set()


@pytest.mark.parametrize("package", BUNDLED)
def test_files_named_by_the_notice_of_a_wheel_are_in_the_wheel(package: str) -> None:
    inside = [path.name for path in files(package) or []]
    for library in BUNDLED[package]:
        assert any(name.startswith(library) for name in inside)


def test_opencv_brings_ffmpeg_without_the_gpl_encoders() -> None:
    inside = [path.name for path in files("opencv-python-headless") or []]
    assert any(name.startswith("libavcodec") for name in inside)
    assert not any(name.startswith(("libx264", "libx265")) for name in inside)


def test_notice_names_the_data_of_every_card() -> None:
    cards = " ".join(path.read_text() for path in (ROOT / "docs" / "models").glob("*.md"))
    for words in ("Pathology Atlas", "3957257", "egoodman92/laparoscopic-dataset"):
        assert words in cards and words in NOTICE
