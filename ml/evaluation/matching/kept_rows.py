"""Scored pairs kept in a folder: a stopped run resumes, and only new weights are scored.

Rows are kept under everything that they depend on: the descriptor's weights and settings, the
pixels and transforms of the pairs, the protocol's settings, the code that computes them, and the
libraries below it. A comment or a docstring changes none of that; anything else does, and then the
rows are scored again. Tables are summed up from the rows in every run.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from ml.errors import BadInputError
from ml.files import write_text
from ml.types import JsonObject

ROOT = Path(__file__).resolve().parents[3]
LIBRARIES = ("numpy", "scipy", "opencv-python-headless", "torch")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """Where rows are kept; with None for a folder nothing is kept, and everything is computed.

    Attributes:
        path: made with the first rows.
    """

    path: Path | None = None

    def rows(self, key: Mapping[str, Any], kind: type[T], make: Callable[[], list[T]]) -> list[T]:
        """The rows kept under a key, or new ones, which are then kept, whole or not at all.

        Args:
            key: plain data, all that the rows depend on; ``name`` in it begins the file's name.
            kind: dataclass of a row: plain fields and arrays.
        Raises:
            BadInputError: the folder is a file.
        """
        if self.path is None:
            return make()
        if self.path.exists() and not self.path.is_dir():
            raise BadInputError(f"{self.path.name}: expected a folder to keep rows in, got a file")
        digest = digest_of(json.dumps(key, sort_keys=True).encode())
        file = self.path / f"{re.sub(r'[^A-Za-z0-9]+', '-', key['name'])}-{digest}.json"
        kept = _read(file, key)
        if kept is not None:
            return [kind(**{name: _decoded(value) for name, value in row.items()}) for row in kept]
        rows = make()
        fields = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
        plain = [{field: _encoded(getattr(row, field)) for field in fields} for row in rows]
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps({"key": dict(key), "rows": plain}))
        return rows


def digest_of(*parts: bytes) -> str:
    """32 hexadecimal digits of byte strings; where one ends counts."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def content_of(item: Any) -> str:
    """Digest of plain data, arrays, devices, dataclasses, networks and objects of them, in depth.

    Raises:
        TypeError: something in it is none of these: two such things could not be told apart.
    """
    return digest_of(*_contents(item))


def descriptor_key(descriptor: Any, protocol: str) -> dict[str, str]:
    """What rows depend on besides pairs and settings: weights, code and libraries.

    Args:
        protocol: name of the module that the rows are computed by.
    """
    return {
        "descriptor": descriptor.name,
        "state": content_of(descriptor),
        "code": code_digest(type(descriptor).__module__, protocol),
        "libraries": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
    }


@lru_cache
def code_digest(*modules: str) -> str:
    """Digest of modules of ``ml`` and of all of ``ml`` that they import; comments do not count."""
    files = imported_files(*modules)
    return digest_of(*(_without_strings(ast.parse(path.read_bytes())).encode() for path in files))


def imported_files(*modules: str) -> list[Path]:
    """The files of modules of ``ml`` and of every module of ``ml`` that they import, in order.

    A name taken from a package is followed to the module that defines it.
    """
    waiting, found = [_file_of(module) for module in modules], set()
    while waiting:
        path = waiting.pop()
        if path is None or path in found:
            continue
        found.add(path)
        waiting += _imports(ast.parse(path.read_bytes()))
    return sorted(found)


def _imports(tree: ast.AST) -> Iterator[Path | None]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_file_of(name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (_origin(node.module, name.name) for name in node.names)


def _origin(module: str, name: str) -> Path | None:
    """The file that ``from module import name`` takes the name from; None outside of ``ml``."""
    path = _file_of(f"{module}.{name}") or _file_of(module)
    if path is None or path.name != "__init__.py":
        return path
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return _origin(str(node.module), name)
    return path


def _file_of(module: str) -> Path | None:
    """The file of a module of ``ml``; None for all else."""
    if not f"{module}.".startswith("ml."):
        return None
    path = ROOT.joinpath(*module.split("."))
    both = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in both if file.is_file()), None)


def _without_strings(tree: ast.AST) -> str:
    """The syntax tree as text, without docstrings and the like."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [line for line in node.body if not _is_string(line)]
    return ast.dump(tree)


def _is_string(line: ast.stmt) -> bool:
    return (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    )


def _contents(item: Any) -> Iterator[bytes]:
    """Byte strings that stand for a value; the order of a mapping does not count."""
    yield type(item).__name__.encode()
    if item is None or isinstance(item, bool | int | float | str):
        yield repr(item).encode()
    elif isinstance(item, torch.device | torch.dtype):
        yield str(item).encode()
    elif isinstance(item, np.ndarray):
        yield f"{item.dtype}{item.shape}".encode()
        yield np.ascontiguousarray(item).tobytes()
    elif isinstance(item, torch.Tensor):
        yield from _contents(item.detach().cpu().numpy())
    elif isinstance(item, Mapping):
        for name in sorted(item):
            yield str(name).encode()
            yield from _contents(item[name])
    elif isinstance(item, Sequence):
        for value in item:
            yield from _contents(value)
    else:
        yield from _contents(_parts(item))


def _parts(item: Any) -> dict[str, object]:
    """What an object is made of."""
    if isinstance(item, torch.nn.Module):
        state = item.state_dict()
        return {"layers": repr(item), "state": state, "config": getattr(item, "config", None)}
    if dataclasses.is_dataclass(item):
        return {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    if type(item).__module__.startswith(("ml.", "tests.")):
        result: dict[str, object] = vars(item)
        return result
    raise TypeError(f"expected data that can be compared by content, got {type(item).__name__}")


def _encoded(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "values": value.tolist()}
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return np.array(value["values"], np.dtype(value["dtype"]))
    return value


def _read(file: Path, key: Mapping[str, Any]) -> list[JsonObject] | None:
    """Rows as JSON has them, None if there is no file, or one damaged or of another key."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return list(found["rows"]) if found["key"] == dict(key) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
