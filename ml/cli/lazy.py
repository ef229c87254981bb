"""Sub-commands whose module is imported on demand."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

Registry = Mapping[str, tuple[str, str]]
"""Name to (module, line of help). A module has ``add_arguments(parser)`` and
``run(args, progress) -> dict``; it may have ``describe(result) -> str``."""


class LazyParser(argparse.ArgumentParser):
    """A parser that imports ``module_name`` for its arguments when it is first used."""

    module_name: str | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the arguments, then parse as argparse does."""
        if self.module_name is not None:
            name, self.module_name = self.module_name, None
            importlib.import_module(name).add_arguments(self)
        return super().parse_known_args(args, namespace)


def add_lazy_parsers(
    parser: argparse.ArgumentParser, *, dest: str, registry: Registry
) -> list[LazyParser]:
    """Add one sub-command for each entry of ``registry`` without importing it.

    Returns:
        Their parsers.
    """
    children = parser.add_subparsers(
        dest=dest, metavar=dest.upper(), required=True, parser_class=LazyParser
    )
    child_parsers = []
    for name, (module, line) in registry.items():
        child = children.add_parser(name, help=line, description=line)
        child.module_name = module
        child_parsers.append(child)
    return child_parsers


def module_of(registry: Registry, name: str) -> ModuleType:
    """Import the module of an entry."""
    return importlib.import_module(registry[name][0])
