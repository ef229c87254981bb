"""Folder of development data."""

from __future__ import annotations

import os
from pathlib import Path

from ml.errors import BadInputError


def data_folder(data: Path | None) -> Path:
    """Folder given by ``--data``, by default that of TESSERA_DATA.

    Raises:
        BadInputError: Neither is given, or there is no such folder.
    """
    folder = data or os.environ.get("TESSERA_DATA")
    if not folder:
        raise BadInputError("expected --data or TESSERA_DATA, got neither")
    if not Path(folder).is_dir():
        raise BadInputError(f"{folder}: no such folder")
    return Path(folder)
