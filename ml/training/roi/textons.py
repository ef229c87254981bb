"""The dictionary of textons: whitened local measurements of many sources, clustered."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ml.config import config_hash
from ml.imaging.slides import open_slide
from ml.networks.textons import JetConfig, TextonBank, TextonConfig, nearest_word
from ml.networks.weightsfile import filled, read_tensors, whole, write_tensors
from ml.roi.config import EncoderConfig
from ml.roi.encoders.textons import NAME, TextonEncoder, local_jets
from ml.roi.features import tissue_share
from ml.roi.patches import cut_patch, patch_corners
from ml.training.roi.augment import random_look
from ml.training.roi.pool import MIN_TISSUE_SHARE, slide_pixels, stained
from ml.types import ArrayF32, Progress

WHOLE = (0.0, 0.0, 1.0, 1.0)
"""Left, top, right, bottom, as shares of a source."""


@dataclass(frozen=True, slots=True)
class TextonFitConfig:
    """How a dictionary is made."""

    patches: int = 120  # at most, of each entry of the sources
    points: int = 100  # of each patch
    whitening: float = 0.05  # added to the eigenvalues of the correlation
    rounds: int = 20  # of k-means
    density: float = 1.0  # patches per patch area that the patches are drawn from
    window: tuple[float, ...] = WHOLE  # part of a source they are drawn from


@dataclass(frozen=True, slots=True)
class _Key:
    """What a dictionary depends on."""

    fit: TextonFitConfig
    textons: TextonConfig
    stain: str
    keep_strength: float
    target_mpp: float
    files: tuple[str, ...]
    seed: int


def load_or_fit_textons(
    groups: Sequence[Sequence[Path]],
    out: Path,
    *,
    config: EncoderConfig,
    fit: TextonFitConfig,
    seed: int,
    progress: Progress,
) -> tuple[TextonEncoder, str]:
    """The dictionary of these sources, from ``out`` if it is there; and a digest of it.

    Args:
        groups: files of each entry of the sources; entries count alike up to ``fit.patches``.
    """
    names = tuple(path.name for files in groups for path in files)
    key = config_hash(
        _Key(
            fit,
            config.textons,
            config.stain,
            config.keep_strength,
            config.sampling.target_mpp,
            names,
            seed,
        )
    )
    path = out / f"textons-{key}.safetensors"
    if not path.is_file():
        jets = _measured(groups, config, fit, seed, progress)
        bank = fit_textons(jets, config.textons, fit=fit, seed=seed)
        write_tensors(
            path,
            whole(bank),
            architecture=NAME,
            name=NAME,
            version=key,
            config=config.textons,
        )
    tensors = read_tensors(path, NAME)[1]
    digest = hashlib.sha256(b"".join(t.numpy().tobytes() for _, t in sorted(tensors.items())))
    bank = filled(TextonBank(config.textons), tensors, path.name)
    return TextonEncoder(bank), digest.hexdigest()[:16]


def fit_textons(
    jets: ArrayF32, config: JetConfig, *, fit: TextonFitConfig, seed: int
) -> TextonBank:
    """A dictionary of measurements (N, jet_dim): k-means after whitening.

    Source: k-means++ (Arthur and Vassilvitskii 2007), then Lloyd's rounds.
    """
    bank = TextonBank(config)
    rows = torch.from_numpy(jets).double()
    bank.mean.copy_(rows.mean(dim=0))
    bank.deviation.copy_(rows.std(dim=0).clamp(min=1e-6))
    clipped = bank.whitened(rows.float())  # the matrix is still the identity
    centred = (clipped - clipped.mean(dim=0)).double()
    value, vector = torch.linalg.eigh(centred.T @ centred / len(centred))
    bank.whiten.copy_(vector / (value.clamp(min=0) + fit.whitening).sqrt())
    bank.words.copy_(_clustered(bank.whitened(rows.float()), config.words, fit.rounds, seed))
    return bank


def _clustered(points: Tensor, count: int, rounds: int, seed: int) -> Tensor:
    """(count, D) centres of points (N, D); a centre that loses all its points stays."""
    words = _spread(points, count, np.random.default_rng((seed, 2)))
    for _ in range(rounds):
        nearest = nearest_word(points, words)
        sums = torch.zeros_like(words).index_add_(0, nearest, points)
        counts = torch.bincount(nearest, minlength=count)[:, None]
        words = torch.where(counts > 0, sums / counts.clamp(min=1), words)
    return words


def _spread(points: Tensor, count: int, rng: np.random.Generator) -> Tensor:
    """First centres: each drawn with the squared distance from those before."""
    chosen = [int(rng.integers(len(points)))]
    distance = (points - points[chosen[0]]).square().sum(dim=1)
    for _ in range(count - 1):
        total = distance.double().cumsum(0)
        drawn = torch.searchsorted(total, float(rng.random()) * total[-1])
        chosen.append(min(int(drawn), len(points) - 1))
        distance = torch.minimum(distance, (points - points[chosen[-1]]).square().sum(dim=1))
    return points[chosen]


def _measured(
    groups: Sequence[Sequence[Path]],
    config: EncoderConfig,
    fit: TextonFitConfig,
    seed: int,
    progress: Progress,
) -> ArrayF32:
    """(N, jet_dim) measurements at random points of random patches of every entry."""
    total, done = sum(len(files) for files in groups), 0
    found: list[ArrayF32] = []
    for files in groups:
        rng = np.random.default_rng((seed, 3, done))
        chosen = set(rng.permutation(len(files))[: fit.patches].tolist())
        each = -(-fit.patches // len(files))
        for number, path in enumerate(files):
            done += 1
            if number in chosen:
                found += _of_file(path, each, config, fit, np.random.default_rng((seed, 4, done)))
            progress(done, total, "textons: measuring")
    return np.concatenate(found)


def _of_file(
    path: Path, count: int, config: EncoderConfig, fit: TextonFitConfig, rng: np.random.Generator
) -> list[ArrayF32]:
    """Measurements of at most ``count`` patches of tissue, each (points, jet_dim)."""
    with open_slide(path) as slide:
        pixels, centres = slide_pixels(slide, config, (fit.density, fit.window), 0)
    patch_px = config.sampling.patch_px
    corners = patch_corners(centres[rng.permutation(len(centres))], patch_px)
    cut = (cut_patch(pixels, corner, patch_px) for corner in corners)
    patches = [patch for patch in cut if tissue_share(patch) >= MIN_TISSUE_SHARE][:count]
    if not patches:
        return []
    same = random_look(rng, stain=0.0, zoom=0.0)
    patches, stains = stained(patches, pixels, same, config)
    jets = (local_jets(patch, stains, config.textons) for patch in patches)
    return [rows[rng.permutation(len(rows))[: fit.points]] for rows in jets]
