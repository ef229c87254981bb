"""``mosaic.json``: what is written is read back; what is not of its format is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ml.errors import CorruptFileError
from ml.mosaic.manifest import read_manifest, to_manifest, write_manifest
from tests.ml.mosaic.conftest import dropped_frame, mosaic_result, registered_frame


def test_the_manifest_round_trips_and_another_format_raises_an_error(tmp_path: Path) -> None:
    placed = registered_frame(0, 3, covariance=np.eye(3), uncertainty_px=0.5)
    mosaic = mosaic_result(placed, dropped_frame(1, "dark"))
    write_manifest(mosaic, tmp_path)
    again = read_manifest(tmp_path)
    assert to_manifest(again) == to_manifest(mosaic)
    text = (tmp_path / "mosaic.json").read_text()
    (tmp_path / "mosaic.json").write_text(text.replace('"format": 1', '"format": 9'))
    with pytest.raises(CorruptFileError, match=r"format 9\b.*\b1$"):
        read_manifest(tmp_path)
    (tmp_path / "mosaic.json").write_text(text.replace("anchor_index", "anchor"))
    with pytest.raises(CorruptFileError, match="'anchor_index'"):
        read_manifest(tmp_path)


def test_the_manifest_path_is_not_shown_to_users(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError) as caught:
        read_manifest(tmp_path / "none")
    assert str(caught.value) == "mosaic.json: expected a mosaic manifest, found nothing to read"


def test_the_manifest_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; assert not sys.flags.utf8_mode\n"
        "from ml.mosaic.manifest import read_manifest, write_manifest\n"
        "from tests.ml.mosaic.conftest import dropped_frame, mosaic_result, registered_frame\n"
        "result = mosaic_result(registered_frame(0, 3), dropped_frame(1, 'gr\\xf6'))\n"
        "folder = Path(sys.argv[1]); write_manifest(result, folder)\n"
        "assert read_manifest(folder).frames[1].reason_code == 'gr\\xf6'\n"
    )
    latin = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=latin, check=True, timeout=60)
    assert "grö" in (tmp_path / "mosaic.json").read_text(encoding="utf-8")
