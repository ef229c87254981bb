"""Rows of a table of sweeps made anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ml.errors import BadInputError
from ml.evaluation.mosaic.renewed import renew_table
from ml.evaluation.mosaic.table import SWEEPS
from ml.files import write_json
from ml.reports.figures import figures_of


def _row(sweep: str, method: str, loops: int) -> dict[str, Any]:
    return {"sweep": sweep, "method": method, "loops": loops, "wall_s": 1.0}


def _table(*rows: dict[str, Any]) -> Any:
    names = {row["sweep"] for row in rows}
    return {"data_set": "simulated", "sweeps": {n: SWEEPS[n] for n in names}, "rows": list(rows)}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "simulated.json"
    old = _table(_row("loops", "tessera", 1), _row("glide", "sift-chain", 2))
    write_json(path, {"protocol": "mosaic", **figures_of(old)})
    return path


def test_new_rows_take_the_place_of_old_ones_and_others_stay(kept: Path) -> None:
    fresh = _table(_row("glide", "tessera", 7), _row("glide", "sift-chain", 8))
    merged = renew_table(kept, fresh)
    found = [(row["sweep"], row["method"], row["loops"]) for row in merged["rows"]]
    assert found == [("glide", "tessera", 7), ("glide", "sift-chain", 8), ("loops", "tessera", 1)]
    assert list(merged["sweeps"]) == ["glide", "loops"]
    assert merged["sweeps"]["loops"] == SWEEPS["loops"]
    written = json.loads(kept.read_text())
    assert written["protocol"] == "mosaic"
    assert written["rows"] == [
        {key: value for key, value in row.items() if key != "wall_s"} for row in merged["rows"]
    ]


def test_a_sweep_that_was_filmed_otherwise_is_refused(kept: Path) -> None:
    held = json.loads(kept.read_text())
    held["sweeps"]["loops"]["frames"] = 9
    write_json(kept, held)
    with pytest.raises(BadInputError, match=r"simulated\.json: loops: expected .*frames=800"):
        renew_table(kept, _table(_row("glide", "tessera", 7)))
    write_json(kept, {"data_set": "fetoscopy"})
    with pytest.raises(BadInputError, match="expected simulated sweeps"):
        renew_table(kept, _table(_row("glide", "tessera", 7)))
