"""Configurations as frozen dataclasses: from plain data, unknown keys refused; their hash."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ml.errors import BadInputError
from ml.networks.gcn import GcnConfig
from ml.networks.patch_cnn import PatchCnnConfig
from ml.networks.textons import TextonConfig
from ml.roi.features import FEATURE_DIM, FEATURES_NAME
from ml.roi.graph import EDGE_PX
from ml.roi.sampling import SamplingConfig

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """All that decides what vector a region gets, apart from the weights."""

    kind: str = "histology"  # what it was trained for; it embeds any image
    features: str = FEATURES_NAME  # patch encoder, see encoders.registry
    patch_cnn: PatchCnnConfig = field(default_factory=PatchCnnConfig)  # where ``features`` has it
    textons: TextonConfig = field(default_factory=TextonConfig)  # where ``features`` has them
    stain: str = "ruifrok"  # see stained.STAINS
    keep_strength: float = 0.0  # share of the staining strength left, see with_strength_kept
    edge_px: float = EDGE_PX  # longest edge of the graph
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    network: GcnConfig = field(default_factory=lambda: GcnConfig(in_dim=FEATURE_DIM))


def config_from_dict(cls: type[T], values: Mapping[str, Any], *, where: str = "config") -> T:
    """A configuration dataclass from plain data; nested dataclasses from nested objects.

    Raises:
        BadInputError: an unknown key, or a value of another type than the default's.
    """
    hints = typing.get_type_hints(cls)
    known = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - known)
    if unknown:
        names = ", ".join(sorted(known))
        raise BadInputError(f"{where}: unknown key {unknown[0]!r}; known: {names}")
    arguments = {}
    for name, value in values.items():
        arguments[name] = _converted(hints[name], value, f"{where}.{name}")
    return cls(**arguments)


def config_from_file(default: T, path: Path | None) -> T:
    """The configuration, of the default's class, in a JSON file; without a file the default.

    Raises:
        BadInputError: not JSON, or as ``config_from_dict``.
    """
    if path is None:
        return default
    try:
        values = json.loads(path.read_text())
    except ValueError as error:
        raise BadInputError(f"{path.name}: not JSON: {error}") from error
    return config_from_dict(type(default), values, where=path.name)


def config_hash(config: Any, *more: bytes) -> str:
    """16 hexadecimal digits over a configuration (and, if given, the bytes of its weights)."""
    text = json.dumps(dataclasses.asdict(config), sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode())
    for data in more:
        digest.update(data)
    return digest.hexdigest()[:16]


def _converted(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise BadInputError(f"{where}: expected an object, got {value!r}")
        return config_from_dict(hint, value, where=where)
    if typing.get_origin(hint) is tuple and isinstance(value, list | tuple):
        return tuple(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and (
        not isinstance(value, hint) or (hint is int and isinstance(value, bool))
    ):
        raise BadInputError(f"{where}: expected {hint.__name__}, got {value!r}")
    return value
