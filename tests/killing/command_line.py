"""Commands of a module as a process: a list of words per line of input, JSON per line of output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping


def dispatch(functions: Mapping[str, Callable[..., object]]) -> None:
    """Call the function that the command line names, or those that the lines of the input name."""
    if sys.argv[1:]:
        name, *arguments = sys.argv[1:]
        json.dump(functions[name](*arguments), sys.stdout)
        return
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(functions[name](*arguments)), flush=True)
