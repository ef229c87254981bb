"""The frame table as a file, ``frames.npz``: written once, when a video is inspected."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ml.types import FrameTable


def save_frame_table(table: FrameTable, path: str | Path) -> None:
    """Write a ``frames.npz``."""
    np.savez(
        path,
        pts=table.pts,
        key=table.key,
        time_base_s=table.time_base_s,
        packet=table.packet,
        seek_points=table.seek_points,
    )


def load_frame_table(path: str | Path) -> FrameTable:
    """Read a ``frames.npz`` back."""
    with np.load(path) as stored:
        return FrameTable(
            pts=stored["pts"].astype(np.int64),
            key=stored["key"].astype(np.bool_),
            time_base_s=float(stored["time_base_s"]),
            packet=stored["packet"].astype(np.int64),
            seek_points=stored["seek_points"].astype(np.int64).reshape(-1, 4),
        )
