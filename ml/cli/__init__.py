"""Command line: one module per command, imported on demand.

A command module has ``add_parser(subparsers) -> None`` and ``run(args) -> Mapping``, whose result
``--json OUT`` writes. It may have ``describe(result) -> str``, the text to print; without it each
plain value is a line. The dispatcher adds ``--json`` and ``--figures`` to every leaf parser.

Exit codes: 0 done, 2 bad input (one line on standard error), 130 interrupted, 1 a bug (traceback).
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from ml.cli.output import check_writable, describe_result, show, write_figures, write_json
from ml.errors import MlError

COMMANDS: Mapping[str, str] = {
    "embed": "embed regions of interest into vectors",
    "encoder": "make an encoder from a published network, list the foundation models",
    "match": "match the key points of two images",
    "mosaic": "build a mosaic from a video or a folder of frames",
    "index": "build, search and inspect a vector index",
    "train": "train a network by a named scheme",
    "evaluate": "score retrieval, matching, epipolar geometry or mosaics",
}
"""Commands with their line of help; ``--help`` imports none of them."""

EXIT_BAD_INPUT = 2  # argparse's own for a bad command line
EXIT_INTERRUPTED = 130  # the shell's: 128 + SIGINT
_REFUSED = (
    MlError,
    ModuleNotFoundError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code.

    Args:
        argv: arguments after the program's name; None takes ``sys.argv``.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    name = _command_of(words)
    try:
        module = importlib.import_module(f"ml.cli.{name}") if name else None
        args = _parser(name, module).parse_args(words)
        return _run(module, args) if module is not None else 0
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return EXIT_INTERRUPTED
    except _REFUSED as error:
        return _refuse(_message(error))
    except BrokenPipeError:
        # The reader of the output has closed it, as in ``| head``.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(module: ModuleType, args: argparse.Namespace) -> int:
    out: str | None = args.json
    for path in (out, args.figures):
        if path is not None and path != "-":
            check_writable(Path(path))
    result: Mapping[str, object] = module.run(args)
    if out is not None:
        write_json(result, out)
    if args.figures is not None:
        write_figures(result, Path(args.figures))
    if out != "-":
        show(getattr(module, "describe", describe_result)(result))
    return 0


def _command_of(words: Sequence[str]) -> str | None:
    """Command among ``words``: the first word that is no option."""
    first = next((word for word in words if not word.startswith("-")), None)
    return first if first in COMMANDS else None


def _parser(name: str | None, module: ModuleType | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ml", description="Tessera's images and models on the command line."
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command, line in COMMANDS.items():
        if command == name and module is not None:
            module.add_parser(subparsers)
            for leaf in _leaves(subparsers.choices[command]):
                _add_json_options(leaf)
        else:
            subparsers.add_parser(command, help=line)
    return parser


def _leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Parsers below ``parser`` (itself included) that have no further sub-command."""
    nested = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not nested:
        yield parser
    for action in nested:
        for child in action.choices.values():
            yield from _leaves(child)


def _add_json_options(parser: argparse.ArgumentParser) -> None:
    if "--json" not in parser._option_string_actions:
        parser.add_argument(
            "--json",
            metavar="OUT",
            default=None,
            help="write the result as JSON; - writes it to the standard output",
        )
    parser.add_argument(
        "--figures",
        metavar="OUT",
        help=(
            "write the same without times, rows of single pairs and points of curves (docs/results)"
        ),
    )


def _refuse(message: str) -> int:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return EXIT_BAD_INPUT


def _message(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"this needs the Python package {error.name!r}, which is not installed"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {(error.strerror or 'cannot be opened').lower()}"
    return str(error)
