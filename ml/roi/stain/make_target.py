"""Write the stains of a slide as the target of normalisation.

``python -m ml.roi.stain.make_target SLIDE [--out ml/roi/stain/target.py]``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ml.errors import BadInputError, MlError
from ml.imaging.slides.slide import open_slide
from ml.roi.stain.estimate import estimate_stain
from ml.roi.stain.storage import stain_to_dict

_HEADER = '''"""The target slide: {name}. Written by ``python -m ml.roi.stain.make_target``."""

from __future__ import annotations

TARGET: dict[str, object] = {{
'''


def write_target(slide_path: Path, out_path: Path) -> Path:
    """Write the stains of a slide as a Python module, to five decimals.

    Raises:
        BadInputError: The stains cannot be estimated; the message has the reason.
    """
    with open_slide(slide_path) as slide:
        estimate = estimate_stain(slide)
    if estimate.method == "none":
        raise BadInputError(f"{slide_path.name} cannot be the target slide: {estimate.reason}")
    lines = [_HEADER.format(name=slide_path.name)]
    lines += [f'    "{key}": {_text(value)},\n' for key, value in stain_to_dict(estimate).items()]
    out_path.write_text("".join(lines) + "}\n")
    return out_path


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; exit code 2 on bad input."""
    parser = argparse.ArgumentParser(prog="python -m ml.roi.stain.make_target")
    parser.add_argument("slide", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("target.py"))
    args = parser.parse_args(argv)
    try:
        sys.stdout.write(f"{write_target(args.slide, args.out)}\n")
    except (MlError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _text(value: object) -> str:
    if isinstance(value, list):
        inner = ", ".join(_text(item) for item in value)
        if len(inner) < 80:
            return f"[{inner}]"
        return "[\n" + "".join(_rows(value)) + "    ]"
    if isinstance(value, str):
        return '"' + value.replace('"', "'") + '"'
    return str(round(value, 5)) if isinstance(value, float) else str(value)


def _rows(values: list[object]) -> list[str]:
    """Lines of nested lists, with eight numbers per line."""
    if isinstance(values[0], list):
        return [f"        {_nested_text(item)},\n" for item in values]
    return [f"        {', '.join(_text(v) for v in values)},\n"]


def _nested_text(values: object) -> str:
    assert isinstance(values, list)  # noqa: S101 - an estimate holds lists of lists only
    lines = [
        "            " + ", ".join(_text(v) for v in values[start : start + 8]) + ",\n"
        for start in range(0, len(values), 8)
    ]
    return "[\n" + "".join(lines) + "        ]"


if __name__ == "__main__":
    sys.exit(main())
