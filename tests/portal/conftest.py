"""Fixtures of every test of the portal, which inspect uploads in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

if TYPE_CHECKING:
    from portal.annotations.models import Label
    from portal.archive.models import Canvas
    from portal.labs.models import Lab


@pytest.fixture(autouse=True)
def _look_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look at an arriving file runs in this process: a child costs a quarter of a second.

    ``tests/portal/archive/test_inspection.py`` has real ones. Where a module inspects all files in
    this process (``tests.world.in_process``), it still does.
    """
    from ml.imaging.formats.sniff import sniff_file
    from portal.archive import inspection

    others = inspection.run_limited

    def run(target: str, arguments: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        if target == "ml.imaging.formats.sniff:sniff_file":
            return sniff_file(**arguments)
        return others(target, arguments, **options)

    monkeypatch.setattr(inspection, "run_limited", run)


@pytest.fixture
def backup_folder(tmp_path: Path, transactional_db: None) -> Path:
    """Destination of a test's backups. The tests' database is made without migrations."""
    MigrationRecorder(connection).ensure_schema()
    return tmp_path / "backups"


@pytest.fixture
def canvas(lab: Lab) -> Canvas:
    """A slide's canvas of the lab, 1000 x 800 px."""
    from tests.portal.annotations.conftest import make_canvas

    return make_canvas(lab)


@pytest.fixture
def label(lab: Lab) -> Label:
    """The lab's label "Tumor"."""
    from portal.annotations.services.labels import label_set_ensure

    return label_set_ensure(lab=lab).labels.get(name="Tumor")
