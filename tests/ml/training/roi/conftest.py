"""A tiny atlas: patients with blocks of tissue, cut into tiles as Deep Zoom cuts them."""

from __future__ import annotations

import csv
from typing import Any

import cv2
import numpy as np
import pytest

from tests.ml.roi.conftest import draw_tissue

COLUMNS = ("file", "use", "patient", "block", "level", "path", "mpp_est")


def dense_tissue(height: Any, width: Any, **values: Any) -> Any:
    """(height, width, 3) uint8: tissue whose stroma is stained well, too."""
    return (draw_tissue(height, width, **values) * 0.8).astype(np.uint8)


@pytest.fixture(scope="session")
def tissue() -> Any:
    """``tissue(height, width, seed=, nuclei_per_mpx=, radius_px=)`` -> (H, W, 3) uint8."""
    return dense_tissue


def write_block(
    folder: Any,
    pixels: Any,
    name: Any,
    *,
    patient: Any,
    column: Any = 4,
    row: Any = 6,
    **values: Any,
) -> Any:
    """Four tiles of a block (510, 510, 3), each with a pixel of its neighbours; rows of a table."""
    rows = []
    for dy in range(2):
        for dx in range(2):
            file = f"{name}-{dx}{dy}.png"
            tile = pixels[254 * dy : 254 * dy + 256, 254 * dx : 254 * dx + 256]
            cv2.imwrite(str(folder / file), tile[..., ::-1])
            known = {
                "file": file,
                "use": "train",
                "patient": patient,
                "block": name,
                "level": "0",
                "path": f"slide/12/{column + dx}_{row + dy}.jpeg",
                "mpp_est": "0.5",
            }
            rows.append({**known, **values})
    return rows


def write_table(path: Any, rows: Any) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="session")
def atlas(tmp_path_factory: Any) -> Any:
    """The table of an atlas of three patients, one of them with two blocks."""
    folder = tmp_path_factory.mktemp("atlas")
    rows = []
    for number, patient in enumerate(("p1", "p2", "p2", "p3")):
        pixels = dense_tissue(510, 510, seed=number, nuclei_per_mpx=600 + 500 * number)
        tinted = np.clip(pixels * (1.0, 1.0 - 0.05 * number, 1.0), 0, 255).astype(np.uint8)
        rows += write_block(folder, tinted, f"b{number}", patient=patient)
    write_table(folder / "index.csv", rows)
    return folder / "index.csv"
