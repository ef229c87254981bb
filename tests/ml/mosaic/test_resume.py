"""A build that is killed in any stage goes on and ends with the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from ml.errors import CancelledError
from ml.mosaic import build_mosaic
from ml.mosaic.checkpoints import Stages, build_key
from ml.mosaic.config import MosaicConfig

if TYPE_CHECKING:
    from tests.ml.mosaic.conftest import Sweep

KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from ml.mosaic import build_mosaic

    frames, out, work, phase = sys.argv[1:]

    def die(done, total, at):
        if at == phase and (done > 0 or total < 2):
            os.kill(os.getpid(), signal.SIGKILL)

    build_mosaic(Path(frames), Path(out), work_dir=Path(work), progress=die)
    """
)


@pytest.fixture(scope="module")
def folder(sweep: Sweep, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames")
    for i, frame in enumerate(sweep.frames[:6]):
        cv2.imwrite(str(path / f"{i:03d}.png"), frame[:, :, ::-1])
    return path


@pytest.fixture(scope="module")
def uninterrupted(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return _built(folder, tmp_path_factory.mktemp("whole") / "out", None)


def _built(folder: Path, out: Path, work: Path | None) -> dict[str, bytes]:
    build_mosaic(folder, out, work_dir=work)
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["survey", "register", "align", "blend", "write"])
def test_a_build_killed_in_a_stage_resumes_to_the_same_bytes(
    phase: str, folder: Path, uninterrupted: dict[str, bytes], tmp_path: Path
) -> None:
    out, work = tmp_path / "out", tmp_path / "work"
    code = KILLED.replace("done > 0 or total < 2", "True") if phase == "align" else KILLED
    arguments = [str(folder), str(out), str(work), phase]
    run = subprocess.run([sys.executable, "-c", code, *arguments], check=False, env=os.environ)
    assert run.returncode == -signal.SIGKILL
    assert not out.exists()
    assert any(work.iterdir()), "what was done is kept"
    seen: list[str] = []
    build_mosaic(folder, out, work_dir=work, progress=lambda d, t, at: seen.append(at))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == uninterrupted
    assert list(work.iterdir()) == []
    if phase in ("blend", "write"):
        assert not {"survey", "register", "align"} & set(seen), "finished stages are not repeated"


def test_a_cancelled_build_stores_its_stages_only_in_a_work_dir(
    folder: Path, tmp_path: Path
) -> None:
    def stop(done: int, total: int, at: str) -> None:
        if at == "blend":
            raise CancelledError("stopped by the user")

    with pytest.raises(CancelledError):
        build_mosaic(folder, tmp_path / "out", work_dir=tmp_path / "work", progress=stop)
    names = {path.name for path in (tmp_path / "work").iterdir()}
    assert {"survey.npz", "registration.npz", "aligned.npz"} <= names


def test_a_work_dir_of_another_configuration_is_not_resumed(folder: Path, tmp_path: Path) -> None:
    first = build_key(folder, None, MosaicConfig())
    assert first != build_key(folder, None, MosaicConfig(motion_model="affine"))
    Stages(tmp_path, first).save("survey", (1, 2))
    assert Stages(tmp_path, first).load("survey") == (1, 2)
    assert Stages(tmp_path, "other").load("survey") is None


def test_a_stored_stage_is_read_back_unchanged(tmp_path: Path) -> None:
    stages = Stages(tmp_path, "key")
    value = ({3: np.arange(6.0).reshape(2, 3)}, (True, None, "x", 0.1), {5: {"a": 1}})
    again = Stages(tmp_path, "key")
    stages.save("aligned", value)
    read = again.load("aligned")
    np.testing.assert_array_equal(read[0][3], value[0][3])
    assert read[1:] == value[1:]
