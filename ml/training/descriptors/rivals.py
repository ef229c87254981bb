"""The rivals of table 2 on our data: ``python -m ml train rivals``.

The same CNN by three losses, and on top of it the graph network or a matcher in the manner of
SuperGlue: equally many steps each over the same stills, then one validation.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor, nn

from ml.config import config_from_file
from ml.errors import BadInputError
from ml.files import write_json
from ml.keypoints import Descriptor, load_descriptor
from ml.keypoints.descriptors.classical import BEST_FORM
from ml.keypoints.descriptors.learned import descriptor_from_file
from ml.networks.device import REFERENCE, Compute
from ml.networks.keypoint_gnn import normalised_positions
from ml.reports.cards import update_card
from ml.reports.tables import markdown_table
from ml.training.common.run import History, TrainingRun, add_run_arguments
from ml.training.common.steps import descend, half_cosine, set_rate
from ml.training.descriptors.cnn import train_contrast
from ml.training.descriptors.contrast import ContrastLearner, ViewPair, kept_rows
from ml.training.descriptors.contrast_config import ContrastConfig, short_config
from ml.training.descriptors.graph import joint_config
from ml.training.descriptors.validate import FAMILIES, NNT_FIGURES, validate
from ml.training.descriptors.views import KeypointStill, read_stills
from ml.types import ArrayF32, ArrayI64, ImageU8, Progress

CNN_LOSSES = ("contrast", "sosnet", "hynet")
MATCHER = "superglue"

DONE = "done.json"
"""In the folder of a method whose training is over: its validation."""

Scores = dict[str, dict[str, float]]
"""By family, see ``validate``."""


class Rivals(TypedDict):
    """What a comparison returns: ``rows`` by method, see ``validate``; ``table`` is Markdown."""

    steps: int
    stills: int
    held_out: int
    rows: dict[str, Scores]
    table: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m ml train rivals``."""
    add_run_arguments(parser, has_card=True)


def run(args: argparse.Namespace, progress: Progress) -> Rivals:
    """Train and compare by command line arguments; see ``compare``."""
    config = config_from_file(short_config(), args.config)
    stills, held_out = read_stills(args.data, config.stills, progress=progress)
    return compare(TrainingRun.of(args, config, progress), stills, held_out)


def describe(result: Rivals) -> str:
    """The table alone."""
    return f"{result['table']}\n"


def compare(
    run: TrainingRun[ContrastConfig],
    stills: Sequence[KeypointStill],
    held_out: Sequence[KeypointStill],
) -> Rivals:
    """Train each method in a folder of its own, from where it stopped; score all alike.

    The run's ``card`` gets the table.

    The graph network and the matcher start from the CNN by contrast, which the matcher leaves as it
    is; so both have seen twice as many steps as the CNNs.

    Raises:
        BadInputError: no still is held out.
    Source: graph-ssl-endoscopic-matching, section 4.4, table 2.
    """
    config = run.config
    if not held_out:
        names = " and ".join(config.stills.held_out)
        raise BadInputError(f"operations {names}: no still of them to validate on")
    rows = {}
    for loss in CNN_LOSSES:
        own = run.part(dataclasses.replace(config, loss=loss), loss)
        rows[loss] = _trained(own, stills, held_out)
    cnn = run.out / "contrast" / f"{config.name}.safetensors"
    joint = joint_config()
    network = dataclasses.replace(joint.graph, dim=config.network.dim)
    graph = dataclasses.replace(config, name="graph", has_graph=True, graph=network, far=joint.far)
    rows["graph"] = _trained(run.part(graph, "graph", start=cnn), stills, held_out)
    matcher = dataclasses.replace(config, name=MATCHER, train_cnn=False)
    last = run.part(matcher, MATCHER, start=cnn)
    rows[MATCHER] = _once(last, lambda: validate(train_matcher(last, stills, held_out), held_out))
    sift = load_descriptor("sift")
    rows["sift"] = validate(sift, held_out)
    rows[f"sift ({BEST_FORM})"] = validate(sift, held_out, carried=True)
    head = (
        f"{config.steps} steps each over {len(stills)} stills; nearest neighbours on stills of"
        f" operations {' and '.join(config.stills.held_out)}, {config.stills.keypoints} key points"
        " each."
    )
    table = f"{head}\n\n{rivals_table(rows)}"
    if run.card is not None:
        update_card(run.card, "rivals", table)
    return {
        "steps": config.steps,
        "stills": len(stills),
        "held_out": len(held_out),
        "rows": rows,
        "table": table,
    }


def train_matcher(
    run: TrainingRun[ContrastConfig],
    stills: Sequence[KeypointStill],
    held_out: Sequence[KeypointStill],
) -> MatcherRival:
    """Train the matcher on the features of the CNN of ``run.start``, which stays as it is."""
    if run.start is None:
        raise BadInputError("start: expected the weights of a trained CNN, got none")
    config = run.config
    with run.learning():
        learner = MatcherLearner(config, stills, held_out, start=run.start, compute=run.compute)
        run.train(learner, steps=config.steps, checkpoint_every=config.checkpoint_every)
    run.write_log({**run.summary()})
    return MatcherRival(descriptor_from_file(run.start), learner.matcher.eval())


@dataclass(frozen=True, slots=True)
class PairMatcherConfig:
    """Sizes of a ``PairMatcher``; SuperGlue has 256 numbers and nine layers of each kind."""

    dim: int = 128  # of the features
    heads: int = 4  # of each attention
    layers: int = 2  # of each kind, within and across in turn
    sinkhorn: int = 20  # rounds of the assignment


TEMPERATURE = 0.08
"""Of the cosines that an untrained matcher assigns by: that of the contrastive loss."""


class PairMatcher(nn.Module):
    """Features and places of two sets of points to an assignment, with a bin for the unmatched.

    Untrained it assigns by the features' own cosines, as the graph network begins with what the
    CNN says: from random weights a short run learns nothing.

    Source: Sarlin et al. 2020 (SuperGlue), section 3.
    """

    def __init__(self, config: PairMatcherConfig) -> None:
        super().__init__()
        self.config = config
        dim = config.dim
        self.position = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, dim))
        self.attention = nn.ModuleList(
            nn.MultiheadAttention(dim, config.heads, batch_first=True)
            for _ in range(2 * config.layers)
        )
        self.update = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
            for _ in range(2 * config.layers)
        )
        self.last = nn.Linear(dim, dim)
        self.bin = nn.Parameter(torch.tensor(1.0))
        with torch.no_grad():
            for layer in (self.last, *(each[-1] for each in (self.position, *self.update))):
                for parameter in layer.parameters():
                    parameter.zero_()
            self.last.weight.fill_diagonal_(math.sqrt(math.sqrt(dim) / TEMPERATURE))

    def forward(self, a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> Tensor:
        """Logarithms of the assignment.

        Args:
            a, b: (N, dim) features and (N, 2) positions in [-1, 1], (M, dim) and (M, 2).
        Returns:
            (N + 1, M + 1); the last row and column are the bins.
        """
        x, y = (
            nn.functional.normalize(features, dim=1)[None] + self.position(where)[None]
            for features, where in (a, b)
        )
        for number, (attend, update) in enumerate(zip(self.attention, self.update, strict=True)):
            of_x, of_y = (y, x) if number % 2 else (x, y)
            to_x, to_y = (
                attend(own, other, other, need_weights=False)[0]
                for own, other in ((x, of_x), (y, of_y))
            )
            x = x + update(torch.cat([x, to_x], dim=-1))
            y = y + update(torch.cat([y, to_y], dim=-1))
        scores = self.last(x)[0] @ self.last(y)[0].T / math.sqrt(self.config.dim)
        return assignment(scores, self.bin, rounds=self.config.sinkhorn)


def assignment(scores: Tensor, bin_score: Tensor, *, rounds: int) -> Tensor:
    """(N + 1, M + 1) logarithms: rows and columns of the N x M part and its bins sum to 1.

    Source: Sarlin et al. 2020, section 3.2: Sinkhorn in logarithms; the bins take what is left.
    """
    n, m = scores.shape
    full = torch.cat([scores, bin_score.expand(n, 1)], dim=1)
    full = torch.cat([full, bin_score.expand(1, m + 1)], dim=0)
    rows = torch.cat([scores.new_zeros(n), scores.new_tensor([math.log(max(m, 1))])])
    columns = torch.cat([scores.new_zeros(m), scores.new_tensor([math.log(max(n, 1))])])
    u, v = torch.zeros_like(rows), torch.zeros_like(columns)
    for _ in range(rounds):
        u = rows - torch.logsumexp(full + v[None], dim=1)
        v = columns - torch.logsumexp(full + u[:, None], dim=0)
    out: Tensor = full + u[:, None] + v[None]
    return out


class MatcherLearner:
    """A ``PairMatcher`` over the pairs of a ``ContrastLearner`` whose CNN is frozen."""

    def __init__(
        self,
        config: ContrastConfig,
        stills: Sequence[KeypointStill],
        held_out: Sequence[KeypointStill],
        *,
        start: Path,
        compute: Compute = REFERENCE,
    ) -> None:
        self.config, self.compute = config, compute
        self._drawn = ContrastLearner(
            config, stills, held_out=held_out, start=start, compute=compute
        )
        self.matcher = PairMatcher(PairMatcherConfig(dim=config.network.dim)).to(compute.device)
        self.modules = {"matcher": self.matcher}
        self.optimiser = torch.optim.Adam(self.matcher.parameters(), lr=config.learning_rate)

    def step(self, number: int, history: History) -> float:
        """One pair: each view loses some nodes, which belong into the other one's bin."""
        config = self.config
        rng = np.random.default_rng((config.seed, number))
        set_rate(self.optimiser, config.learning_rate * half_cosine(number, config.steps))
        pair = self._drawn.pair(rng)
        rows = [kept_rows(rng, len(pair.xy[0]), least_share=config.least_share) for _ in range(2)]
        sides = [_side(pair, side, rows[side]) for side in (0, 1)]
        with self.compute.learning():
            logs = self.matcher(*sides)
        return descend(self.optimiser, assignment_loss(logs.float(), rows[0], rows[1]))


def assignment_loss(logs: Tensor, rows_a: ArrayI64, rows_b: ArrayI64) -> Tensor:
    """Mean negative logarithm of every node's true place: its partner, or the bin.

    Args:
        logs: (N + 1, M + 1) of ``PairMatcher``. rows_a, rows_b: ascending, which nodes they are.
    """
    _, at_a, at_b = np.intersect1d(rows_a, rows_b, return_indices=True)
    only_a = np.setdiff1d(np.arange(len(rows_a)), at_a)
    only_b = np.setdiff1d(np.arange(len(rows_b)), at_b)
    told = [logs[at_a, at_b], logs[only_a, -1], logs[-1, only_b]]
    return -torch.cat(told).mean()


class MatcherRival:
    """A trained matcher as a ``PairMatching``."""

    def __init__(self, descriptor: Descriptor, matcher: PairMatcher) -> None:
        self._descriptor, self._matcher = descriptor, matcher

    def nearest(
        self, a: ImageU8, xy_a: ArrayF32, b: ImageU8, xy_b: ArrayF32
    ) -> tuple[ArrayI64, ArrayF32]:
        """The likeliest partner of each point of a; its distance is one minus the likelihood."""
        sides = []
        for image, xy in ((a, xy_a), (b, xy_b)):
            rows = self._descriptor.describe(image, xy, np.ones(len(xy), np.float32))
            sides.append((torch.from_numpy(rows), _where(xy, (image.shape[0], image.shape[1]))))
        with torch.inference_mode():
            found = self._matcher(*sides)[:-1, :-1].exp().max(dim=1)
        pairs = np.stack([np.arange(len(xy_a)), found.indices.numpy()], axis=1)
        return pairs, np.asarray(1 - found.values.numpy(), np.float32)


def rivals_table(rows: dict[str, Scores]) -> str:
    """NN precision by family; over all families those under the threshold of the best F1."""
    families = (*FAMILIES, "all")
    cells = [
        [
            name,
            *(f"{found[family]['precision']:.4f}" for family in families),
            *(f"{found['all'][key]:.4f}" for key in NNT_FIGURES),
        ]
        for name, found in rows.items()
    ]
    return markdown_table(["NN precision", *families, *NNT_FIGURES.values()], cells)


def _once(run: TrainingRun[ContrastConfig], make: Callable[[], Scores]) -> Scores:
    """The scores of a method: computed, or kept from an earlier run of the same length."""
    path = run.out / DONE
    if path.is_file():
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["steps"] == run.config.steps:
            kept: Scores = told["validation"]
            return kept
    found = make()
    if len(run.losses) == run.config.steps:
        write_json(path, {"steps": run.config.steps, "validation": found})
    return found


def _trained(
    run: TrainingRun[ContrastConfig],
    stills: Sequence[KeypointStill],
    held_out: Sequence[KeypointStill],
) -> Scores:
    return _once(run, lambda: train_contrast(run, stills, held_out)["validation"])


def _side(pair: ViewPair, side: int, rows: ArrayI64) -> tuple[Tensor, Tensor]:
    features = pair.features[side][rows].detach()
    return features, _where(pair.xy[side][rows], pair.size_px).to(features.device)


def _where(xy: ArrayF32, size_px: tuple[int, int]) -> Tensor:
    return normalised_positions(
        torch.from_numpy(np.ascontiguousarray(xy)), size_px=size_px, position="image"
    )
