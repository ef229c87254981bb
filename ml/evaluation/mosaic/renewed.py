"""Rows of some simulated sweeps and methods put into the table of an earlier run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from ml.errors import BadInputError
from ml.evaluation.common.card_table import read_results
from ml.evaluation.mosaic.baselines import METHODS
from ml.evaluation.mosaic.simulate import SweepConfig
from ml.evaluation.mosaic.table import SWEEPS, SweepRow, SweepTable
from ml.files import write_json
from ml.reports.figures import figures_of


def renew_table(path: Path, table: SweepTable) -> SweepTable:
    """Replace in a file of ``--figures`` the rows that ``table`` has anew; the others stay.

    Returns:
        What the file holds then, in the order in which sweeps and methods are known.
    Raises:
        BadInputError: the file holds no sweeps, or one with another configuration.
    """
    old = read_results([path])[0]
    if old.get("data_set") != table["data_set"]:
        raise BadInputError(f"{path.name}: expected simulated sweeps")
    sweeps = {name: _config(path, name, held) for name, held in old["sweeps"].items()}
    sweeps |= table["sweeps"]
    rows: dict[tuple[str, str], SweepRow] = {
        (row["sweep"], row["method"]): row for row in (*old["rows"], *table["rows"])
    }
    merged = cast(
        "SweepTable",
        {
            "data_set": table["data_set"],
            "sweeps": {name: sweeps[name] for name in SWEEPS if name in sweeps},
            "rows": [
                rows[name, method]
                for name in SWEEPS
                for method in METHODS
                if (name, method) in rows
            ],
        },
    )
    write_json(path, {"protocol": old.get("protocol", "mosaic"), **figures_of(merged)})
    return merged


def _config(path: Path, name: str, held: dict[str, Any]) -> SweepConfig:
    config = SweepConfig(**held)
    if SWEEPS.get(name) != config:
        raise BadInputError(f"{path.name}: {name}: expected {SWEEPS.get(name)}, got {config}")
    return config
