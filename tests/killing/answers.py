"""A module of this folder as a process that answers: a list of words a line in, JSON a line out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping


def answer(functions: Mapping[str, Callable[..., object]]) -> None:
    """Call what the command line names; without one, what each line of the input names."""
    if sys.argv[1:]:
        name, *arguments = sys.argv[1:]
        json.dump(functions[name](*arguments), sys.stdout)
        return
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(functions[name](*arguments)), flush=True)
