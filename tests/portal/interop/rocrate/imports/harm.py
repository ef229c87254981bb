"""Crates changed by somebody who means harm, and an import that takes none of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.archive.models import Asset, Canvas, Case
from portal.core.errors import InvalidInputError
from portal.core.storage_layout import root as storage_root
from portal.interop.rocrate.services.imports.cases import case_import
from portal.jobs.models import Job
from tests.portal.interop.conftest import Lab1

METADATA = "ro-crate-metadata.json"
Entity = dict[str, Any]


def metadata_change(folder: Path, change: Callable[[list[Entity]], None]) -> None:
    """Change what the metadata list."""
    path = folder / METADATA
    document = json.loads(path.read_text())
    change(document["@graph"])
    path.write_text(json.dumps(document))


def file_put(folder: Path, name: str, data: bytes) -> None:
    """Write a file and have the metadata name it as it is."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    entity = {
        "@id": name,
        "@type": "File",
        "contentSize": str(len(data)),
        "sha256": hashlib.sha256(data).hexdigest(),
    }

    def change(graph: list[Entity]) -> None:
        graph[:] = [resource for resource in graph if resource["@id"] != name] + [entity]

    metadata_change(folder, change)


def row_change(folder: Path, table: str, change: Callable[[Entity], None], at: int = 0) -> None:
    """Change a row, with a hash that is right."""
    name = f"records/{table}.jsonl"
    rows = [json.loads(line) for line in (folder / name).read_bytes().splitlines()]
    change(rows[at])
    file_put(folder, name, b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def refused(portal: Lab1, path: Path, match: str) -> None:
    """The import says why, and nothing of it is here."""
    with pytest.raises(InvalidInputError, match=match):
        case_import(source=path, lab=portal.lab, user=portal.manager)
    assert not Case.all_objects.exists() and not Asset.objects.exists()
    assert not Canvas.all_objects.exists() and not Job.objects.exists()
    placed = [path for name in ("assets", "derived") for path in (storage_root() / name).rglob("*")]
    assert placed == []
