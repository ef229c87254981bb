"""Checkpoints of the stages, so that a killed build resumes where it stopped."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ml.config import config_hash
from ml.files import write_npz, write_text
from ml.mosaic.alignment.components import AlignedComponent
from ml.mosaic.config import MosaicConfig
from ml.mosaic.frames.fixed_pattern import PatternFrames
from ml.mosaic.frames.survey import FrameCheck, FrameMeasures, Survey
from ml.mosaic.registration.links import Link
from ml.mosaic.registration.result import KeyTrail, Registration, Tracked
from ml.mosaic.result import MosaicLayer
from ml.natural_order import natural_sort

ENGINE = "2.14"
"""Changes whenever the same input and configuration would give other bytes."""

KEY_NAME = "key.json"
HASHED_BYTES = 1 << 20
"""Bytes of a file's beginning that are hashed; with name and size enough to identify the input."""

_TYPES: dict[str, type] = {
    t.__name__: t
    for t in (
        AlignedComponent,
        FrameCheck,
        KeyTrail,
        PatternFrames,
        Link,
        MosaicLayer,
        Registration,
        FrameMeasures,
        Survey,
        Tracked,
    )
}


class Stages:
    """Stage outputs in a folder, each written atomically.

    The folder belongs to a family of builds: one input and configuration, or all states of an input
    that grows. Files of another family are removed.
    """

    def __init__(self, folder: Path, key: str, *, family: str = "") -> None:
        self.folder, self.grows, self._key = folder, bool(family), key
        folder.mkdir(parents=True, exist_ok=True)
        note = folder / KEY_NAME
        if not note.is_file() or note.read_text() != (family or key):
            self.clear()
            write_text(note, family or key)

    def load(self, name: str) -> Any | None:
        """Load the checkpoint of a stage of this build; None if the stage did not finish."""
        return self._read(name, self._key)

    def load_earlier(self, name: str) -> Any | None:
        """Load the last output of a stage, also one of an earlier state of the input, or None."""
        return self._read(name, None)

    def save(self, name: str, value: Any) -> None:
        """Save the output of a stage."""
        arrays: list[npt.NDArray[Any]] = []
        tree = json.dumps(_encode(value, arrays))
        path = self.folder / f"{name}.npz"
        arrays_by_name = {f"a{i}": array for i, array in enumerate(arrays)}
        write_npz(path, {"key": np.array(self._key), "tree": np.array(tree), **arrays_by_name})

    def clear(self, *, keep: Sequence[str] = ()) -> None:
        """Remove all files and folders but those named in ``keep``."""
        for path in self.folder.iterdir():
            if path.name in keep:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def _read(self, name: str, key: str | None) -> Any | None:
        path = self.folder / f"{name}.npz"
        if not path.is_file():
            return None
        with np.load(path) as data:
            if key is not None and str(data["key"]) != key:
                return None
            return _decode(json.loads(str(data["tree"])), data)


def family_key(mask: npt.NDArray[Any] | None, config: MosaicConfig) -> str:
    """Key of all states of an input that grows at its end.

    Inputs of one mask and configuration share it; ``measure_frames`` compares their frames.
    """
    return build_key((), mask, dataclasses.replace(config, end_pts=None))


def build_key(
    frames_or_video: str | Path | Sequence[npt.NDArray[Any]] | npt.NDArray[Any],
    mask: npt.NDArray[Any] | None,
    config: MosaicConfig,
) -> str:
    """Key of an input and a configuration: equal keys give equal bytes of the mosaic."""
    digest = hashlib.sha256(f"{ENGINE} {config_hash(config)}".encode())
    if mask is not None:
        digest.update(np.ascontiguousarray(mask).tobytes())
    if isinstance(frames_or_video, (str, Path)):
        path = Path(frames_or_video)
        files = natural_sort(filter(Path.is_file, path.iterdir())) if path.is_dir() else [path]
        for file in files:
            digest.update(f"{file.name} {file.stat().st_size if file.exists() else 0}".encode())
            if file.is_file():
                with file.open("rb") as opened:
                    digest.update(opened.read(HASHED_BYTES))
    else:
        for array in frames_or_video:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _encode(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value)]
        return {
            "type": type(value).__name__,
            "fields": {name: _encode(getattr(value, name), arrays) for name in fields},
        }
    if isinstance(value, dict):
        return {"items": [[_plain(k), _encode(v, arrays)] for k, v in value.items()]}
    if isinstance(value, (tuple, list)):
        return {"tuple": [_encode(item, arrays) for item in value]}
    return _plain(value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _decode(tree: Any, data: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return data[f"a{tree['array']}"]
    if "tuple" in tree:
        return tuple(_decode(item, data) for item in tree["tuple"])
    if "items" in tree:
        return {key: _decode(value, data) for key, value in tree["items"]}
    fields = {name: _decode(value, data) for name, value in tree["fields"].items()}
    return _TYPES[tree["type"]](**fields)
