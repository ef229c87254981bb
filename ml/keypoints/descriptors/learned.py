"""Descriptors ``triplet``, ``cnn`` and ``graph`` of two papers, with our training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from ml.errors import WeightsError
from ml.files import WEIGHTS_FOLDER
from ml.keypoints.descriptors.learned_weights import SHIPPED, read_descriptor
from ml.keypoints.descriptors.patches import cut_patches
from ml.keypoints.descriptors.points import checked_points, inside_image
from ml.keypoints.pixels import equalise, to_grey
from ml.networks.device import REFERENCE, Compute, select_compute
from ml.networks.keypoint_cnn import KeypointCnn
from ml.networks.keypoint_gnn import KeypointGnn, normalised_positions
from ml.networks.triplet_cnn import TripletCnn
from ml.types import ArrayF32, ImageU8, Keypoints

DETECTOR = "sift"
"""Detector of both papers in comparisons of descriptors."""

PATCH_CHUNK = 512
"""Patches per chunk: 32 MB at 128 px."""

TILE_PX = 1536
"""Side of the tiles in which an image is computed: about 0.5 GB of feature maps."""

PAD_PX = 64
"""Reflected margin of an image: half a patch."""

_MARGIN_PX = PAD_PX + 32
"""Margin with which a tile is exact: half a patch and the receptive field of layers 1 to 6."""

_STRIDE_PX = 16
"""Tiles start and end at multiples of this, so that pooling is that of the image."""


def load(name: str) -> LearnedDescriptor:
    """Load a shipped descriptor by name, or from a file by ``NAME:FILE``.

    Raises:
        WeightsError: The file is missing, damaged, or of another descriptor.
    """
    family, has_file, file = name.partition(":")
    loaded = descriptor_from_file(Path(file) if has_file else WEIGHTS_FOLDER / SHIPPED[family])
    if loaded.name != family:
        raise WeightsError(f"{Path(file).name}: holds {loaded.name}, expected {family}")
    loaded.name = name
    return loaded


def descriptor_from_file(path: str | Path) -> LearnedDescriptor:
    """Load a descriptor from a file of ``save_descriptor``.

    Raises:
        WeightsError: Missing or damaged file, or another architecture.
    """
    stored = read_descriptor(Path(path))
    return LearnedDescriptor(
        stored.name,
        stored.network,
        graph=stored.graph,
        ratio=stored.ratio,
        version=stored.version,
        compute=select_compute(),
    )


class LearnedDescriptor:
    """Descriptor by a network on the upright 128 px window of each key point, after CLAHE.

    Scale and angle of the detector are not used, as in both papers. Rows have unit length; rows of
    points outside the image are zero and never match.

    Source: adaptive-triplet-endoscopic-matching, section 2 (``triplet``);
        graph-ssl-endoscopic-matching, section 3 (``cnn``, ``graph``).
    """

    detector = DETECTOR

    def __init__(
        self,
        name: str,
        network: TripletCnn | KeypointCnn,
        *,
        graph: KeypointGnn | None = None,
        ratio: float = 0.95,
        version: str = "0",
        compute: Compute = REFERENCE,
    ) -> None:
        self.name, self.ratio, self.version = name, ratio, version
        self.dim = network.config.dim
        self.network = network.eval().to(compute.device)
        self.graph = None if graph is None else graph.eval().to(compute.device)
        self.compute = compute

    def describe(self, image: npt.NDArray[Any], xy: ArrayF32, response: ArrayF32) -> ArrayF32:
        """Describe points of an image.

        Args:
            image: (H, W[, 1|3|4]), see ``pixels.to_grey``.
            xy: (N, 2) pixels.
            response: (N,), not used.
        Returns:
            (N, dim) float32, unit rows; zero rows for points outside the image.
        Raises:
            ShapeError: xy is not (N, 2) or not finite, or response is not (N,).
        """
        points = checked_points(xy, response)
        grey = equalise(to_grey(image))
        rows = np.zeros((len(points), self.dim), np.float32)
        inside = inside_image(points, grey.shape)
        if inside.any():
            rows[inside] = self._describe(grey, np.ascontiguousarray(points[inside]))
        return rows

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """Describe key points like ``describe``; scale and angle are not used."""
        return self.describe(image, keypoints.xy, keypoints.response)

    def _describe(self, grey: ImageU8, xy: ArrayF32) -> ArrayF32:
        with torch.inference_mode():
            if isinstance(self.network, TripletCnn):
                vectors = self._describe_patches(self.network, grey, xy)
            else:
                vectors = describe_dense(self.network, grey, xy, compute=self.compute)
            if self.graph is not None:
                positions = normalised_positions(
                    torch.from_numpy(xy).to(self.compute.device),
                    size_px=(grey.shape[0], grey.shape[1]),
                    position=self.graph.config.position,
                )
                vectors = self.graph(vectors, positions)
            unit: ArrayF32 = functional.normalize(vectors, dim=1).float().cpu().numpy()
        return unit

    def _describe_patches(self, network: TripletCnn, grey: ImageU8, xy: ArrayF32) -> Tensor:
        side = network.config.patch_px
        parts = []
        for start in range(0, len(xy), PATCH_CHUNK):
            part = xy[start : start + PATCH_CHUNK]
            patches = cut_patches(grey, part, side_px=side, support_px=float(side))
            with self.compute.precision():
                parts.append(network(patches.to(self.compute.device)).float())
        return torch.cat(parts)


def describe_dense(
    network: KeypointCnn, grey: ImageU8, xy: ArrayF32, *, compute: Compute = REFERENCE
) -> Tensor:
    """Compute features of key points with layers shared over the image, in tiles.

    Args:
        network: Network on the device of ``compute``.
        grey: (H, W) uint8.
        xy: (N, 2) float32 pixels inside the image, N >= 1.
    Returns:
        (N, dim), not normalised.
    """
    device = compute.device
    rows = torch.empty((len(xy), network.config.dim), device=device)
    for members, plane, origin in _parts(grey, xy, step=network.config.map_px):
        local = torch.from_numpy(xy[members] - origin).to(device)
        with compute.precision():
            shared = network.shared(as_plane(plane).to(device))
        # Half precision would round the sample positions by more than a pixel.
        features = network.at_points(shared.float(), local)
        rows[torch.from_numpy(members).to(device)] = features
    return rows


def as_plane(grey: ImageU8) -> Tensor:
    """Convert (H, W) uint8 to (1, 1, H, W) in [0, 1], channels last."""
    plane = torch.from_numpy(np.ascontiguousarray(grey)).float().div_(255.0)[None, None]
    return plane.contiguous(memory_format=torch.channels_last)


def pad_image(grey: ImageU8, *, step: int) -> ImageU8:
    """Pad an image by ``PAD_PX`` reflected pixels, and to sides that are multiples of ``step``."""
    height, width = grey.shape
    bottom, right = (-(side + 2 * PAD_PX) % step for side in (height, width))
    return np.asarray(
        cv2.copyMakeBorder(
            grey, PAD_PX, PAD_PX + bottom, PAD_PX, PAD_PX + right, cv2.BORDER_REFLECT_101
        )
    )


def _parts(
    grey: ImageU8, xy: ArrayF32, *, step: int
) -> Iterator[tuple[npt.NDArray[np.int64], ImageU8, ArrayF32]]:
    """Yield key points, pixels with margin, and corner in the image of each tile."""
    padded = pad_image(grey, step=step)
    cell = np.floor((xy + PAD_PX) / TILE_PX).astype(np.int64)
    for column, row in np.unique(cell, axis=0):
        members = np.flatnonzero((cell == (column, row)).all(axis=1))
        x0, y0 = (_round_to_stride(max(0, int(c) * TILE_PX - _MARGIN_PX)) for c in (column, row))
        x1, y1 = (_round_to_stride((int(c) + 1) * TILE_PX + _MARGIN_PX) for c in (column, row))
        plane = padded[y0:y1, x0:x1]
        origin = np.array([x0 - PAD_PX, y0 - PAD_PX], np.float32)
        yield members, plane, origin


def _round_to_stride(length_px: int) -> int:
    return length_px // _STRIDE_PX * _STRIDE_PX
