"""Each measure of one device, run in a process of its own under ``TESSERA_DEVICE``."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import ml
from ml.gpu import COMPILE_VARIABLE
from ml.networks.device import Compiled, Compute, device_report, select_compute
from ml.networks.vision_transformer import TransformerConfig, VisionTransformer
from tests.bench.resnet50 import resnet50

WEIGHTS = Path(ml.__file__).parent / "weights" / "patch-cnn.safetensors"
DIM = 128
CLUSTERS = 2_000  # of the index's vectors: real ones come in clumps too
VIT_L = TransformerConfig(
    width=1024, depth=24, heads=16, patch_px=16, input_px=224, hidden=4096, layer_scale=False
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Amount of each measurement."""

    patches: int
    image_batch: int
    pairs: int
    frames: int
    vectors: tuple[int, ...]
    queries: int
    matrix: int
    vit: TransformerConfig = VIT_L
    repeats: int = 3


FULL = Sizes(2_048, 256, 30, 100, (1_000_000, 10_000_000), 200, 8_192)
PROCESSOR = Sizes(64, 8, 10, 100, (1_000_000, 10_000_000), 50, 2_048)
SMALL_VIT = replace(VIT_L, width=64, depth=1, heads=2, hidden=64, input_px=64)
QUICK = Sizes(1, 1, 1, 8, (20_000,), 5, 256, SMALL_VIT, 1)
"""Tries every row out, with small images and a transformer of one block; published nowhere."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing measured on one device.

    Attributes:
        value, unit: of it. more_is_better: a rate; False for a time.
        operations: of one unit, multiplications and additions, as torch counts those of products
            and convolutions, or as they follow from the sizes; 0 where they are not counted.
    """

    value: float
    unit: str
    more_is_better: bool = True
    operations: float = 0.0

    @property
    def operations_a_second(self) -> float:
        """Operations a second, to compare with the device's peak."""
        seconds = {"s": 1.0, "ms": 1e-3}
        rate = self.value if self.more_is_better else 1 / (self.value * seconds[self.unit])
        return rate * self.operations


Figures = dict[str, Figure]


def networks(sizes: Sizes) -> Figures:
    """Patches a second through the shipped encoder, ResNet-50 and ViT-L, and the device's peak."""
    from ml.roi.encoders.patch_cnn import load_patch_cnn
    from ml.roi.stain.deconvolution import estimate_stains

    compute, repeats = select_compute(), sizes.repeats
    rng = np.random.default_rng(1)
    patches = list(rng.integers(0, 256, (sizes.patches, 224, 224, 3), dtype=np.uint8))
    stains = estimate_stains(patches[0])
    side = sizes.vit.input_px
    images = rng.standard_normal((sizes.image_batch, 3, side, side)).astype(np.float32)
    with patch.dict(os.environ, {COMPILE_VARIABLE: "0"}):
        plain = load_patch_cnn(WEIGHTS)
    operations = _operations(lambda: plain.encode(patches[:1], stains))
    result = {}
    for name, compiles in (("", "0"), (", compiled", "1"))[: 2 if compute.batched else 1]:
        with patch.dict(os.environ, {COMPILE_VARIABLE: compiles}):
            encoder = load_patch_cnn(WEIGHTS)  # as a worker loads it
        seconds = _seconds(partial(encoder.encode, patches, stains), compute, repeats)
        what = f"Patches, shipped encoder (patch-cnn){name}"
        result[what] = Figure(len(patches) / seconds, "patches/s", operations=operations)
    others = ("ResNet-50", resnet50()), ("ViT-L/16", VisionTransformer(sizes.vit))
    for name, network in others:
        what = f"Patches of {side} px, {name}"
        result[what] = _network(network, images, compute, repeats=repeats)
        if compute.batched:  # a processor always computes the reference
            fast = Compiled(network)
            result[f"{what}, compiled"] = _network(network, images, compute, fast, repeats=repeats)
    side = sizes.matrix
    result["Matrix product: the peak that shares refer to"] = Figure(
        1 / _seconds(_product(side, compute), compute, repeats),
        "products/s",
        operations=2.0 * side**3,
    )
    return result


def pairs(sizes: Sizes) -> Figures:
    """Pairs of endoscopic frames matched a second by the default descriptor."""
    from ml.keypoints import match_images
    from tests.bench.keypoints import endoscopic_pair

    images = endoscopic_pair()
    operations = _operations(lambda: match_images(*images))
    began = time.perf_counter()
    for _ in range(sizes.pairs):
        match_images(*images)
    rate = sizes.pairs / (time.perf_counter() - began)
    return {"Pairs of 576 x 720 px matched": Figure(rate, "pairs/s", operations=operations)}


def mosaic(sizes: Sizes) -> Figures:
    """Frames a second of a whole mosaic."""
    from ml.imaging.samples.video import make_sample_video
    from ml.imaging.videos.video import iter_frames
    from ml.mosaic import build_mosaic
    from ml.mosaic.config import MosaicConfig

    with tempfile.TemporaryDirectory() as name:
        video = Path(name) / "sweep.mp4"
        make_sample_video(video)
        stop = [pts for _, pts, _ in iter_frames(video)][: sizes.frames][-1]
        config = MosaicConfig(end_pts=stop)  # decoded as in a job, ahead of a GPU
        counted = _operations(lambda: build_mosaic(video, Path(name) / "first", config=config))
        began = time.perf_counter()
        built = build_mosaic(video, Path(name) / "mosaic", config=config)
        seconds = time.perf_counter() - began
    frames = len(built.frames)
    rate = Figure(frames / seconds, "frames/s", operations=counted / frames)
    return {f"Mosaic of {frames} frames": rate}


def index(sizes: Sizes) -> Figures:
    """Building and searching indexes of clustered vectors, plain and with half of them allowed."""
    from ml.index import open_index
    from ml.index.files.engine import IndexConfig

    seconds: Figures = {}
    for count in sizes.vectors:
        vectors = _clustered(count)
        with tempfile.TemporaryDirectory() as name:
            least = min(IndexConfig().ivf_above, count - 1)  # lists also where few are tried out
            config = IndexConfig(gpu_above=0, ivf_above=least)
            began = time.perf_counter()
            open_index(Path(name) / "i", dim=DIM, config=config).build(np.arange(count), vectors)
            what = f"Index of {count:,} vectors"
            built_s = time.perf_counter() - began
            seconds[f"{what}: build"] = Figure(
                built_s, "s", more_is_better=False, operations=_distances_to_centres(count)
            )
            reader = open_index(Path(name) / "i", dim=DIM, config=config)
            half = np.arange(0, count, 2)
            for how, allowed in (("search", None), ("search, half allowed", half)):
                spent = _searches_ms(reader, vectors[: sizes.queries], allowed)
                seconds[f"{what}: {how}, median"] = Figure(
                    spent,
                    "ms",
                    more_is_better=False,
                    operations=2.0 * DIM * count,  # a GPU looks at every row
                )
    return seconds


NEEDS: Mapping[str, tuple[str, ...]] = {
    "networks": ("cv2", "shapely", "openslide", "pyvips", "av", "torch_geometric"),
    "pairs": ("cv2", "scipy"),
    "mosaic": ("cv2", "scipy", "av", "pyvips", "openslide"),
    "index": ("faiss",),
}
"""Packages without which a measure cannot begin: a machine with a GPU need not have them."""

MEASURES: Mapping[str, Callable[[Sizes], Figures]] = {
    "networks": networks,
    "pairs": pairs,
    "mosaic": mosaic,
    "index": index,
}


def device_name() -> str:
    """Name of the chosen device."""
    return str(device_report())


def _network(
    network: nn.Module,
    images: np.ndarray[Any, Any],
    compute: Compute,
    fast: Callable[[Tensor], Tensor] | None = None,
    *,
    repeats: int,
) -> Figure:
    """Measured as it is, or ``fast`` in its place."""

    def pooled(batch: Tensor) -> Tensor:
        with compute.precision():
            return (fast or network)(batch).flatten(1)

    network.eval()
    network.to("cpu")  # where its operations are counted, measured before or not
    first_image = torch.from_numpy(images[:1])
    with torch.inference_mode():
        operations = _operations(lambda: network(first_image))
    network.to(compute.device)
    batch = len(images)
    seconds = _seconds(
        lambda: compute.forward(pooled, images, reference=batch, batch=batch), compute, repeats
    )
    return Figure(batch / seconds, "patches/s", operations=operations)


def _product(side: int, compute: Compute) -> Callable[[], Tensor]:
    matrix = torch.randn(side, side, device=compute.device)
    matrix = matrix.to(compute.half) if compute.batched else matrix
    return lambda: matrix @ matrix


def _operations(call: Callable[[], object]) -> float:
    with FlopCounterMode(display=False) as counter:
        call()
    return float(counter.get_total_flops())


def _seconds(call: Callable[[], object], compute: Compute, repeats: int) -> float:
    """The median of a few calls after a first one that warms up."""
    spent = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        call()
        if compute.device.type == "cuda":
            torch.cuda.synchronize(compute.device)
        spent.append(time.perf_counter() - began)
    return float(np.median(spent[1:]))


def _distances_to_centres(count: int) -> float:
    """Operations of the centres of a base's lists, and of finding the nearest of each vector."""
    from ml.index.files.segments.centroids import ROUNDS
    from ml.index.files.segments.inverted_lists import PER_LIST, max_list_count

    n_lists = max_list_count(count)
    sample = min(count, n_lists * PER_LIST)
    return 2.0 * DIM * n_lists * (ROUNDS * sample + count)


def _searches_ms(
    reader: Any, queries: np.ndarray[Any, Any], allowed: np.ndarray[Any, Any] | None
) -> float:
    spent = []
    for q in queries + np.float32(0.01):
        began = time.perf_counter()
        reader.search(q, 25, allowed=allowed)
        spent.append(time.perf_counter() - began)
    return float(np.median(spent) * 1e3)


def _clustered(count: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(7)
    centres = rng.standard_normal((CLUSTERS, DIM)).astype(np.float32)
    vectors = centres[rng.integers(0, CLUSTERS, count)]
    for start in range(0, count, 100_000):
        part = vectors[start : start + 100_000]
        part += 0.3 * rng.standard_normal(part.shape).astype(np.float32)
    return vectors
