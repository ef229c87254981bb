"""docs/benchmarks-gpu.md out of what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from tests.bench.gpu.measures import Figure

NOT_RUN = """# Benchmarks on a GPU

These were not run: no GPU was at hand. On a machine with one, `make bench-gpu` measures patches a
second (the shipped encoder, ResNet-50, ViT-L, each as it is and compiled), matched pairs, mosaic
frames, and the build and search of indexes of 1 and 10 million vectors, each on the GPU and on the
processors of the same machine, and writes them here, with whether `TESSERA_COMPILE=1` pays.
`OUT=folder make gpu-once` runs the tests that need a GPU and these measures within ten minutes, and
leaves what it found in the folder.

The command was tried out whole with the processor in the place of the GPU:
`python -m tests.bench.gpu --stand-in --quick --out FILE` fills every row in a tiny size by the code
for a GPU. Its figures say nothing of one, and it refuses to write them here.
"""
COMPILED = ", compiled"
Measured = Mapping[str, Mapping[str, Figure]]


def report(gpu: Measured, processors: Measured, *, device: str, missing: Sequence[str] = ()) -> str:
    """The page: by measure and name what the GPU and the processors did.

    Args:
        missing: measures that came to no end.
    """
    networks = gpu.get("networks", {}).values()
    peak = max(
        (network.value * network.operations for network in networks if _is_peak(network)),
        default=0.0,
    )
    lines = [
        "# Benchmarks on a GPU",
        "",
        "Written by `make bench-gpu`; no figure here is typed by hand. The ratio says how many "
        "times faster the GPU was than the processors of the same machine and run. The share is of "
        f"the device's peak: {peak / 1e12:.2f} TFLOP/s, measured by a large matrix product in half "
        "precision; counted are products and convolutions, of a search the distances to every row, "
        "of a build those to the centres of its lists.",
        "",
        f"{device}; {datetime.now(UTC):%Y-%m-%d %H:%M UTC}.",
        "",
        "| What | GPU | Processors | Ratio | Share of peak |",
        "|---|---|---|---|---|",
    ]
    for measure, figures in gpu.items():
        for what, figure in figures.items():
            others = processors.get(measure, {})
            # processors compile nothing: what is compiled is held against what they do
            other = others.get(what.removesuffix(COMPILED))
            lines.append(_line(what, figure, other, peak))
    lines += _compile_gains(gpu)
    if missing:
        lines += ["", f"Not measured: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def _compile_gains(gpu: Measured) -> list[str]:
    """Sentence on the gain of ``TESSERA_COMPILE=1`` for every network measured both ways."""
    figures = gpu.get("networks", {})
    gains = [
        f"{name.removeprefix('Patches, ')} {fast.value / figures[name].value:.2f} times as fast"
        for what, fast in figures.items()
        if what.endswith(COMPILED) and (name := what.removesuffix(COMPILED)) in figures
    ]
    if not gains:
        return []
    first = next(what for what in figures if what.endswith(COMPILED))
    pays = figures[first].value > figures[first.removesuffix(COMPILED)].value
    verdict = "pays" if pays else "does not pay"
    return ["", f"`TESSERA_COMPILE=1` {verdict} here. Compiled, {', '.join(gains)}."]


def _is_peak(figure: Figure) -> bool:
    return figure.unit == "products/s"


def _line(what: str, figure: Figure, other: Figure | None, peak: float) -> str:
    ratio = ""
    if other is not None and not _is_peak(figure):
        faster = figure.value / other.value if figure.more_is_better else other.value / figure.value
        ratio = f"{faster:.2f}x"
    share = f"{figure.operations_a_second / peak:.2%}" if figure.operations and peak else ""
    return f"| {what} | {_text(figure)} | {_text(other) if other else ''} | {ratio} | {share} |"


def _text(figure: Figure) -> str:
    digits = 4 if figure.value < 0.1 else 2 if figure.value < 100 else 0
    return f"{figure.value:,.{digits}f} {figure.unit}"
