"""``python -m ml index build|search|info``: a vector index from files of vectors."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from ml.cli.output import terminal_progress
from ml.errors import BadInputError, CorruptFileError
from ml.files import NO_ARRAYS
from ml.index import open_index
from ml.index.files.engine import FaissIndex
from ml.index.files.manifest import read_manifest
from ml.types import ArrayI64


class SearchHit(TypedDict):
    """One vector found."""

    id: int
    distance: float


class SearchReport(TypedDict):
    """The nearest vectors, with the version of the index and the tag of their source."""

    version: int
    tag: str
    results: list[SearchHit]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``index`` with its three actions."""
    parser = subparsers.add_parser("index", help="build, search and inspect a vector index")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="build the index in FOLDER from a file of vectors")
    build.add_argument("folder", type=Path)
    build.add_argument(
        "vectors", type=Path, help="(N, D) as .npy, or .npz with 'vectors' and optionally 'ids'"
    )
    build.add_argument(
        "--ids", type=Path, help="(N,) whole numbers as .npy, or as text with one on each line"
    )
    build.add_argument(
        "--tag", default="", help="name of the source of the vectors, kept with the index"
    )
    search = actions.add_parser("search", help="list the vectors nearest to a query")
    search.add_argument("folder", type=Path)
    search.add_argument("query", type=Path, help="(D,) or (N, D) as .npy")
    search.add_argument("--row", type=int, default=0, help="which row of the query file")
    search.add_argument("-k", type=int, default=10, help="how many results")
    search.add_argument("--allowed", type=Path, help="only ids that may be returned, as for --ids")
    search.add_argument("--excluded", type=Path, help="ids that must not be returned")
    info = actions.add_parser("info", help="show version, size and kind of an index")
    info.add_argument("folder", type=Path)


def run(args: argparse.Namespace) -> Mapping[str, object]:
    """Carry out one action.

    Raises:
        MlError: a file does not hold such an array, or the folder no index.
        FileNotFoundError: a file or the folder is missing.
    """
    actions: dict[str, Callable[[argparse.Namespace], Mapping[str, object]]] = {
        "build": _build,
        "search": _search,
        "info": _info,
    }
    return actions[args.action](args)


def describe(result: Mapping[str, Any]) -> str:
    """Text with a line for each hit of a search, else for each value."""
    if "results" not in result:
        return "\n".join(f"{name}: {value}" for name, value in result.items())
    lines = [f"{hit['id']:>12}  {hit['distance']:.6f}" for hit in result["results"]]
    return "\n".join(lines) or "no vectors found"


def _build(args: argparse.Namespace) -> dict[str, int | str]:
    arrays = _load(args.vectors)
    vectors = arrays["vectors"]
    if vectors.ndim != 2 or vectors.shape[1] == 0:
        raise BadInputError(f"{args.vectors.name}: expected (N, D) vectors, got {vectors.shape}")
    ids = _load_ids(args.ids) if args.ids else arrays.get("ids", np.arange(len(vectors)))
    index = open_index(args.folder, dim=vectors.shape[1], tag=args.tag)
    with terminal_progress() as progress:
        index.build(ids, vectors, progress=progress)
    return _stats(index)


def _search(args: argparse.Namespace) -> SearchReport:
    index = _existing(args.folder)
    queries = np.atleast_2d(_load(args.query)["vectors"])
    if not 0 <= args.row < len(queries):
        raise BadInputError(f"--row: expected 0 to {len(queries) - 1}, got {args.row}")
    allowed = _load_ids(args.allowed) if args.allowed else None
    excluded = _load_ids(args.excluded) if args.excluded else None
    ids, distance = index.search(queries[args.row], args.k, allowed=allowed, excluded=excluded)
    hits: list[SearchHit] = [
        {"id": int(i), "distance": float(d)} for i, d in zip(ids, distance, strict=True)
    ]
    return {"version": index.stats.version, "tag": index.stats.tag, "results": hits}


def _info(args: argparse.Namespace) -> dict[str, int | str]:
    return _stats(_existing(args.folder))


def _stats(index: FaissIndex) -> dict[str, int | str]:
    stats = index.stats
    return {name: getattr(stats, name) for name in type(stats).__slots__}


def _existing(folder: Path) -> FaissIndex:
    if not folder.is_dir():
        raise FileNotFoundError(2, "No such folder", str(folder))
    manifest = read_manifest(folder)
    if manifest is None:
        raise BadInputError(f"{folder.name} holds no index: build it first")
    return open_index(folder, dim=manifest.dim)


def _load(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Load the arrays of a .npz file, or the one of a .npy file as 'vectors', without pickles."""
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"vectors": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except FileNotFoundError:
        raise
    except NO_ARRAYS as error:
        raise CorruptFileError(f"{path.name}: expected NumPy's .npy or .npz") from error
    if "vectors" not in arrays:
        raise BadInputError(f"{path.name}: expected an array named 'vectors'")
    return arrays


def _load_ids(path: Path) -> ArrayI64:
    if path.suffix == ".npy":
        return _load(path)["vectors"]
    try:
        return np.array(path.read_text(encoding="utf-8").split(), dtype=np.int64)
    except ValueError as error:
        raise BadInputError(
            f"{path.name}: expected one whole number on each line ({error})"
        ) from error
