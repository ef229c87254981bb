"""The ``vit`` descriptor: an adapted vision transformer, at key points or densely.

``describe`` samples the map of patch descriptors at key points. ``match_dense`` is the paper's own
protocol: patches, mutual arg-max, a threshold, then phase correlation.

Source: dinov2-adaptation-endoscopic-matching, section III-A.
"""

from __future__ import annotations

import dataclasses
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.nn import functional

from ml.errors import BadInputError, ShapeError, WeightsError
from ml.keypoints.phase import refine_shift
from ml.keypoints.pixels import to_grey, to_u8
from ml.networks.vit_adapter import SMALL, SmallVitConfig, VitConfig, VitMatcher
from ml.types import ArrayF32, ArrayI64, ImageU8, Keypoints, Matches

ARCHITECTURE = "vit-adapter"
WEIGHTS = Path(__file__).resolve().parent.parent / "weights" / "vit.safetensors"
PREFIX = "vit:"
"""``vit:PATH_OR_NAME``: a weights file of ours, or a transformers model without adaptation."""

THRESHOLD = 0.95
"""Similarity above which a patch match is kept (paper, after eq. 6)."""

_BLOCK = 1024
_MIN_PATCHES = 2


@dataclasses.dataclass(frozen=True, slots=True)
class DenseConfig:
    """Switches of ``match_dense``: the rows of the paper's table III."""

    threshold: float = THRESHOLD  # least similarity
    refine: bool = True  # phase correlation, eq. 7-8
    window_px: int = 48  # side of its windows, in pixels of the network's input (paper: the patch)
    min_peak: float = 0.0  # windows that agree less stay where they are; above 0 measured worse
    resample: int = 1  # maps are sampled so many times finer, bilinear ("+ feature resampling": 2)


class VitDescriptor:
    """Descriptors of an adapted vision transformer.

    Attributes:
        name, dim, detector, ratio: see ``ml.keypoints.describe.Descriptor``.
        network: the model, in evaluation mode.
    """

    detector = "akaze"  # its points repeat better here than SIFT's: 484 against 313 matches
    ratio = 0.95  # on frames 3 and 4 of sinus-4584, with more of them right at every ratio

    def __init__(self, name: str, network: VitMatcher, *, version: str = "") -> None:
        self.name, self.version = name, version
        self.network = network.eval()
        self.dim = network.width

    def describe(self, image: npt.NDArray[Any], xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """Sample the descriptor map at points.

        Args:
            image: (H, W[, 1|3|4]) of any size and depth; it is scaled so that the tokens stay
                bounded. xy: (N, 2) pixels. response: (N,), unused.
        Returns:
            (N, dim) float32, unit length; zero rows for points outside the image.
        Raises:
            ShapeError: xy is not (N, 2) or not finite, response is not (N,), or no image.
        """
        points = np.asarray(xy, np.float32)
        if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
            raise ShapeError("xy", expected="(N, 2) finite pixels", actual=str(points.shape))
        if np.shape(response) != (len(points),):
            expected = f"({len(points)},)"
            raise ShapeError("response", expected=expected, actual=str(np.shape(response)))
        rows = np.zeros((len(points), self.dim), np.float32)
        height, width = np.asarray(image).shape[:2] if np.ndim(image) >= 2 else (0, 0)
        inside = (points >= 0).all(axis=1) & (points <= (width - 1, height - 1)).all(axis=1)
        if not inside.any():
            to_u8(image)
            return rows
        features, scale = self.describe_map(image)
        rows[inside] = _sampled(features, _to_input(points[inside], scale), self.network.patch_px)
        return rows

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """As ``describe``: the transformer sees the surroundings, scale and angle are not used."""
        return self.describe(image, keypoints.xy, keypoints.response)

    def describe_map(self, image: npt.NDArray[Any]) -> tuple[Tensor, tuple[float, float]]:
        """The whole map of an image.

        Returns:
            features: (E, h, w), unit length along E.
            scale: pixels of the network's input per pixel of the image, along x and y.
        """
        pixels, scale = self._input(image)
        batch = torch.from_numpy(pixels).permute(2, 0, 1)[None].float().div(255)
        with torch.inference_mode():
            features = self.network(batch)[0]
        return torch.nan_to_num(features), scale

    def _input(self, image: npt.NDArray[Any]) -> tuple[ImageU8, tuple[float, float]]:
        """The image as RGB at the network's size, and the scale along x and y."""
        rgb = _to_rgb(image)
        height, width = rgb.shape[:2]
        patch_px, most = self.network.patch_px, self.network.config.max_tokens
        shrink = min(1.0, float(np.sqrt(most * patch_px**2 / (height * width))))
        # an extreme aspect keeps two patches on its short side, and no more than ``most`` in all
        rows = max(int(height * shrink / patch_px), _MIN_PATCHES)
        columns = max(int(width * shrink / patch_px), _MIN_PATCHES)
        rows, columns = min(rows, max(most // columns, 2)), min(columns, max(most // rows, 2))
        size = (columns * patch_px, rows * patch_px)
        method = cv2.INTER_AREA if size[0] <= width else cv2.INTER_LINEAR
        resized = cv2.resize(rgb, size, interpolation=method)
        return np.asarray(resized, np.uint8), (size[0] / width, size[1] / height)


def match_dense(
    image_a: npt.NDArray[Any],
    image_b: npt.NDArray[Any],
    *,
    descriptor: VitDescriptor | None = None,
    config: DenseConfig | None = None,
) -> Matches:
    """Match the patches of two images, without a detector: the paper's own protocol.

    Args:
        image_a, image_b: (H, W[, 1|3|4]), source and target, any sizes.
        descriptor: the shipped ``vit`` by default.
    Returns:
        Matches: pixels of each image, score = similarity, highest first; the points of a are the
        refined ones, those of b are patch centres.
    Raises:
        BadInputError: a switch out of range. ShapeError: what is not an image.
    Source: dinov2-adaptation-endoscopic-matching, eq. 5-8.
    """
    config, descriptor = config or DenseConfig(), descriptor or load("vit")
    if config.resample < 1 or config.window_px < 8:
        raise BadInputError(
            "resample, window_px: expected at least 1 and 8,"
            f" got {config.resample} and {config.window_px}"
        )
    (map_a, scale_a), (map_b, scale_b) = (descriptor.describe_map(i) for i in (image_a, image_b))
    step_px = descriptor.network.patch_px / config.resample
    rows_a, at_a = _grid(map_a, step_px, config.resample)
    rows_b, at_b = _grid(map_b, step_px, config.resample)
    pairs, similarity = mutual_patches(rows_a, rows_b)
    sure = similarity > config.threshold
    order = np.argsort(-similarity[sure], kind="stable")
    pairs, similarity = pairs[sure][order], similarity[sure][order]
    xy_a, xy_b = at_a[pairs[:, 0]], at_b[pairs[:, 1]]
    if config.refine and len(pairs):
        xy_a = xy_a + _refinement(descriptor, (image_a, image_b), (xy_a, xy_b), config)
    return Matches(_from_input(xy_a, scale_a), _from_input(xy_b, scale_b), similarity)


def mutual_patches(a: ArrayF32, b: ArrayF32) -> tuple[ArrayI64, ArrayF32]:
    """Rows that are each other's most similar.

    Args:
        a: (N, E), b: (M, E), unit length.
    Returns:
        pairs: (K, 2) int64, ordered by row of a. similarity: (K,) float32.
    Source: dinov2-adaptation-endoscopic-matching, eq. 5-6.
    """
    if not len(a) or not len(b):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    there, value = np.zeros(len(a), np.int64), np.zeros(len(a), np.float32)
    back, best = np.zeros(len(b), np.int64), np.full(len(b), -np.inf, np.float32)
    for start in range(0, len(a), _BLOCK):
        block = a[start : start + _BLOCK] @ b.T
        there[start : start + len(block)] = block.argmax(axis=1)
        value[start : start + len(block)] = block.max(axis=1)
        row, top = block.argmax(axis=0), block.max(axis=0)
        better = top > best
        back[better], best[better] = row[better] + start, top[better]
    mutual = np.flatnonzero(back[there] == np.arange(len(a)))
    return np.stack([mutual, there[mutual]], axis=1), value[mutual]


@lru_cache(maxsize=4)
def load(name: str = "vit") -> VitDescriptor:
    """The descriptor by name: ``vit``, or ``vit:`` with a weights file or a transformers model.

    A file of ours holds the adaptation and, for the small backbone, the backbone too; for a named
    backbone it holds the name. A transformers model alone gives its own features: the paper's
    baseline.

    Raises:
        WeightsError: missing, damaged, of another architecture, or a backbone not to be had.
    """
    if not name.startswith(PREFIX):
        return descriptor_from_file(WEIGHTS, name=name)
    target = name.removeprefix(PREFIX)
    if target.endswith(".safetensors"):
        return descriptor_from_file(Path(target), name=name)
    if target in {"", SMALL}:
        raise WeightsError("vit: expected a path or name after the colon, got none")
    return VitDescriptor(name, VitMatcher(VitConfig(backbone=target, layers=0, heads=1)))


def descriptor_from_file(path: Path, *, name: str = "vit") -> VitDescriptor:
    """A descriptor from a file written by ``save_descriptor``.

    Raises:
        WeightsError: see ``load``.
    """
    metadata, tensors = _read(path)
    try:
        config = vit_config_from_dict(json.loads(metadata["config"]))
    except (BadInputError, KeyError, TypeError, ValueError) as error:
        raise WeightsError(f"{path.name}: unreadable configuration: {error}") from error
    network = VitMatcher(config)
    expected = {key: tuple(value.shape) for key, value in _stored(network).items()}
    actual = {key: tuple(value.shape) for key, value in tensors.items()}
    if expected != actual:
        wrong = sorted(k for k in expected | actual if expected.get(k) != actual.get(k))[0]
        raise WeightsError(
            f"{path.name}: {wrong!r}: expected {expected.get(wrong)}, got {actual.get(wrong)}"
        )
    network.load_state_dict({k: v.float() for k, v in tensors.items()}, strict=False)
    return VitDescriptor(name, network, version=metadata.get("version", ""))


def save_descriptor(path: Path, network: VitMatcher, *, version: str) -> None:
    """Write what was trained (in half precision) and the configuration, whole or not at all.

    A backbone of ``transformers`` is named, not copied.
    """
    from safetensors.torch import save_file

    tensors = {key: value.half().contiguous() for key, value in _stored(network).items()}
    metadata = {
        "architecture": ARCHITECTURE,
        "version": version,
        "config": json.dumps(dataclasses.asdict(network.config), sort_keys=True),
    }
    temporary = path.with_name(f".{path.name}.tmp")
    save_file(tensors, temporary, metadata=metadata)
    temporary.chmod(0o644)
    temporary.replace(path)


def vit_config_from_dict(values: dict[str, Any]) -> VitConfig:
    """A configuration from plain data.

    Raises:
        BadInputError: an unknown key.
    """
    small = dict(values.get("small", {}))
    _refuse_unknown(VitConfig, values)
    _refuse_unknown(SmallVitConfig, small)
    if "stem" in small:
        small["stem"] = tuple(small["stem"])
    return VitConfig(**{**values, "small": SmallVitConfig(**small)})


def _refuse_unknown(cls: type[Any], values: dict[str, Any]) -> None:
    known = {f.name for f in dataclasses.fields(cls)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise BadInputError(f"unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")


def _stored(network: VitMatcher) -> dict[str, Tensor]:
    """The floating-point state that a file holds; counters of batches are left out."""
    is_own = network.config.backbone == SMALL
    return {
        key: value
        for key, value in network.state_dict().items()
        if value.is_floating_point() and (is_own or not key.startswith("backbone."))
    }


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise WeightsError(f"{path.name}: no such weights file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path.name}: not a safetensors file, or damaged") from error
    found = metadata.get("architecture", "unknown")
    if found != ARCHITECTURE:
        raise WeightsError(
            f"{path.name}: weights of architecture {found!r}, expected {ARCHITECTURE!r}"
        )
    return metadata, tensors


def _to_rgb(image: npt.NDArray[Any]) -> ImageU8:
    """(H, W, 3) uint8 of a grey, RGB or RGBA image of any bit depth."""
    pixels = to_u8(image)
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        pixels = np.repeat(pixels.reshape(*pixels.shape[:2], 1), 3, axis=2)
    return np.ascontiguousarray(pixels[:, :, :3])


def _to_input(xy: ArrayF32, scale: tuple[float, float]) -> ArrayF32:
    """Pixels of the image to pixels of the network's input, centres at whole numbers."""
    return np.asarray((xy + 0.5) * np.array(scale) - 0.5, np.float32)


def _from_input(xy: ArrayF32, scale: tuple[float, float]) -> ArrayF32:
    return np.asarray((xy + 0.5) / np.array(scale) - 0.5, np.float32)


def _sampled(features: Tensor, xy: ArrayF32, patch_px: float) -> ArrayF32:
    """(K, E) unit rows of an (E, h, w) map at (K, 2) pixels of the input."""
    height, width = features.shape[1:]
    cell = (xy + 0.5) / patch_px - 0.5
    grid = torch.from_numpy(cell / (max(width - 1, 1), max(height - 1, 1)) * 2 - 1).float()
    values = functional.grid_sample(
        features[None], grid[None, :, None], padding_mode="border", align_corners=True
    )
    rows: ArrayF32 = functional.normalize(values[0, :, :, 0].T, dim=1).numpy()
    return rows


def _grid(features: Tensor, step_px: float, resample: int) -> tuple[ArrayF32, ArrayF32]:
    """Unit rows on a regular grid of the input, and its (K, 2) positions there."""
    rows, columns = np.mgrid[: features.shape[1] * resample, : features.shape[2] * resample].astype(
        np.float32
    )
    xy = np.stack([columns.ravel(), rows.ravel()], axis=1)
    xy = np.asarray((xy + 0.5) * step_px - 0.5, np.float32)
    if resample == 1:
        return features.flatten(1).T.contiguous().numpy(), xy
    return _sampled(features, xy, step_px * resample), xy


def _refinement(
    descriptor: VitDescriptor,
    images: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    points: tuple[ArrayF32, ArrayF32],
    config: DenseConfig,
) -> ArrayF32:
    """(K, 2) shift of the points of a, in pixels of the network's input."""
    windows = [
        _windows(to_grey(descriptor._input(image)[0]), xy, config.window_px)
        for image, xy in zip(images, points, strict=True)
    ]
    reach = descriptor.network.patch_px // 2
    reach = min(reach, config.window_px // 2 - 2)
    return refine_shift(*windows, reach_px=reach, min_peak=config.min_peak)


def _windows(grey: ImageU8, xy: ArrayF32, side: int) -> npt.NDArray[np.float64]:
    """(K, side, side) windows centred on points, bilinear, the border mirrored."""
    offset = np.arange(side, dtype=np.float32) - (side - 1) / 2
    x = (xy[:, 0, None, None] + offset[None, None, :]).repeat(side, axis=1)
    y = (xy[:, 1, None, None] + offset[None, :, None]).repeat(side, axis=2)
    rows = [
        cv2.remap(grey.astype(np.float32), u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
        for u, v in zip(x, y, strict=True)
    ]
    return np.asarray(np.stack(rows), np.float64)
