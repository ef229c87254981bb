"""The descriptors of two papers, retrained: ``triplet``, ``cnn`` and ``graph``."""

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
from ml.networks.device import REFERENCE, Compute, chosen_compute
from ml.networks.keypoint_cnn import KeypointCnn
from ml.networks.keypoint_gnn import KeypointGnn, normalised_positions
from ml.networks.triplet_cnn import TripletCnn
from ml.types import ArrayF32, ImageU8, Keypoints

DETECTOR = "sift"
"""Both papers detect by SIFT where they compare descriptors."""

PATCH_CHUNK = 512
"""Patches described at once: of 128 px they are 32 MB."""

TILE_PX = 1536
"""Side of the parts an image is computed in: at most about 0.5 GB of feature maps."""

PAD_PX = 64
"""Half a patch: so far a window may reach beyond the border of the image, which is mirrored."""

_MARGIN_PX = PAD_PX + 32
"""Half a patch and the reach of layers 1 to 6: with this much around it, a part is exact."""

_STRIDE_PX = 16
"""Parts begin and end at multiples of this, so that they are pooled as the whole image would be."""


def load(name: str) -> LearnedDescriptor:
    """The shipped descriptor of that name, or ``NAME:FILE``, which goes by the whole of it.

    Raises:
        WeightsError: its file is missing, damaged, or of another descriptor.
    """
    family, has_file, file = name.partition(":")
    found = descriptor_from_file(Path(file) if has_file else WEIGHTS_FOLDER / SHIPPED[family])
    if found.name != family:
        raise WeightsError(f"{Path(file).name}: holds {found.name}, expected {family}")
    found.name = name
    return found


def descriptor_from_file(path: str | Path) -> LearnedDescriptor:
    """A descriptor from a file of ``save_descriptor``.

    Raises:
        WeightsError: no such file, damaged, or of another architecture.
    """
    stored = read_descriptor(Path(path))
    return LearnedDescriptor(
        stored.name,
        stored.network,
        graph=stored.graph,
        ratio=stored.ratio,
        version=stored.version,
        compute=chosen_compute(),
    )


class LearnedDescriptor:
    """A network over the upright 128 px window of each key point, on grey after CLAHE.

    Scale and angle of the detector are not used, as in both papers. Rows are of unit length; rows
    of points outside the image are zero, which never match.

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
            image: (H, W[, 1|3|4]), see ``pixels.to_grey``. xy: (N, 2) pixels. response: (N,),
                not used.
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
            rows[inside] = self._described(grey, np.ascontiguousarray(points[inside]))
        return rows

    def describe_keypoints(self, image: npt.NDArray[Any], keypoints: Keypoints) -> ArrayF32:
        """As ``describe``: these networks look at a fixed window, whatever the detector found."""
        return self.describe(image, keypoints.xy, keypoints.response)

    def _described(self, grey: ImageU8, xy: ArrayF32) -> ArrayF32:
        with torch.inference_mode():
            if isinstance(self.network, TripletCnn):
                vectors = self._of_patches(self.network, grey, xy)
            else:
                vectors = over_image(self.network, grey, xy, compute=self.compute)
            if self.graph is not None:
                positions = normalised_positions(
                    torch.from_numpy(xy).to(self.compute.device),
                    size_px=(grey.shape[0], grey.shape[1]),
                    position=self.graph.config.position,
                )
                vectors = self.graph(vectors, positions)
            unit: ArrayF32 = functional.normalize(vectors, dim=1).float().cpu().numpy()
        return unit

    def _of_patches(self, network: TripletCnn, grey: ImageU8, xy: ArrayF32) -> Tensor:
        side = network.config.patch_px
        parts = []
        for start in range(0, len(xy), PATCH_CHUNK):
            part = xy[start : start + PATCH_CHUNK]
            patches = cut_patches(grey, part, side_px=side, support_px=float(side))
            with self.compute.precision():
                parts.append(network(patches.to(self.compute.device)).float())
        return torch.cat(parts)


def over_image(
    network: KeypointCnn, grey: ImageU8, xy: ArrayF32, *, compute: Compute = REFERENCE
) -> Tensor:
    """Features of key points by layers shared over the image, in parts of bounded size.

    Args:
        network: on the device of ``compute``.
        grey: (H, W) uint8. xy: (N, 2) float32 pixels inside it, N >= 1.
    Returns:
        (N, dim), not normalised.
    """
    device = compute.device
    rows = torch.empty((len(xy), network.config.dim), device=device)
    for members, plane, origin in _parts(grey, xy, step=network.config.map_px):
        local = torch.from_numpy(xy[members] - origin).to(device)
        with compute.precision():
            shared = network.shared(as_plane(plane).to(device))
        # Half precision would round the places that are sampled by more than a pixel.
        found = network.at_points(shared.float(), local)
        rows[torch.from_numpy(members).to(device)] = found
    return rows


def as_plane(grey: ImageU8) -> Tensor:
    """(H, W) uint8 to (1, 1, H, W) in [0, 1], channels last."""
    plane = torch.from_numpy(np.ascontiguousarray(grey)).float().div_(255.0)[None, None]
    return plane.contiguous(memory_format=torch.channels_last)


def padded(grey: ImageU8, *, step: int) -> ImageU8:
    """The image mirrored ``PAD_PX`` beyond its border, and up to sides of whole ``step``."""
    height, width = grey.shape
    below, right = (-(side + 2 * PAD_PX) % step for side in (height, width))
    return np.asarray(
        cv2.copyMakeBorder(
            grey, PAD_PX, PAD_PX + below, PAD_PX, PAD_PX + right, cv2.BORDER_REFLECT_101
        )
    )


def _parts(
    grey: ImageU8, xy: ArrayF32, *, step: int
) -> Iterator[tuple[npt.NDArray[np.int64], ImageU8, ArrayF32]]:
    """Key points of each part, the part with its margin, and where its corner lies in the image."""
    whole = padded(grey, step=step)
    cell = np.floor((xy + PAD_PX) / TILE_PX).astype(np.int64)
    for column, row in np.unique(cell, axis=0):
        members = np.flatnonzero((cell == (column, row)).all(axis=1))
        x0, y0 = (_whole_strides(max(0, int(c) * TILE_PX - _MARGIN_PX)) for c in (column, row))
        x1, y1 = (_whole_strides((int(c) + 1) * TILE_PX + _MARGIN_PX) for c in (column, row))
        plane = whole[y0:y1, x0:x1]
        origin = np.array([x0 - PAD_PX, y0 - PAD_PX], np.float32)
        yield members, plane, origin


def _whole_strides(length_px: int) -> int:
    return length_px // _STRIDE_PX * _STRIDE_PX
