"""Atomic writes: a failure leaves the earlier file, and no other."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from ml.files import replacing, write_bytes, write_json, write_npz, write_text


def test_a_failed_write_leaves_the_old_file_unchanged(tmp_path: Path):
    path = tmp_path / "card.md"
    write_text(path, "old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_the_new_file_is_invisible_until_the_block_ends(tmp_path: Path):
    path = tmp_path / "video.mp4"
    with replacing(path) as temporary:
        temporary.write_bytes(b"frames")
        assert not path.exists()
        assert temporary.parent == tmp_path and temporary.suffix == ".mp4"
        assert temporary.name.startswith(".")
    assert path.read_bytes() == b"frames"


@pytest.mark.parametrize("durable", [False, True])
def test_text_bytes_json_and_arrays_round_trip(tmp_path: Path, durable: bool):
    write_bytes(tmp_path / "a", b"\x00\r\n", durable=durable)
    write_text(tmp_path / "b", "µm\n", durable=durable)
    write_json(tmp_path / "c.json", {"mpp": 0.5, "levels": [1, 2]}, durable=durable)
    assert (tmp_path / "a").read_bytes() == b"\x00\r\n"
    assert (tmp_path / "b").read_bytes() == "µm\n".encode()
    assert json.loads((tmp_path / "c.json").read_text()) == {"mpp": 0.5, "levels": [1, 2]}
    write_npz(tmp_path / "d.npz", {"n": np.arange(3), "x": np.eye(2)})
    with np.load(tmp_path / "d.npz") as stored:
        assert stored["n"].tolist() == [0, 1, 2] and stored["x"].shape == (2, 2)


def test_non_standard_json_raises_an_error_and_preserves_the_file(tmp_path: Path):
    path = tmp_path / "scores.json"
    write_json(path, [1])
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, [float("nan")])
    assert json.loads(path.read_text()) == [1]


def test_a_file_has_the_permissions_of_any_new_file(tmp_path: Path):
    (tmp_path / "plain").touch()
    expected = (tmp_path / "plain").stat().st_mode
    with replacing(tmp_path / "tile") as temporary:
        temporary.unlink()
        temporary.touch(mode=0o600)
    assert (tmp_path / "tile").stat().st_mode == expected


def test_concurrent_writers_do_not_mix(tmp_path: Path):
    path = tmp_path / "tile.jpeg"
    parts = [bytes([i]) * 200_000 for i in range(8)]
    threads = [threading.Thread(target=write_bytes, args=(path, part)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in parts and list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_raises_an_error_with_its_name(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="none"):
        write_text(tmp_path / "none" / "a", "")
    assert not list(tmp_path.iterdir())
