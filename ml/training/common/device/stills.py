"""Pictures kept on the device, so that a still is uploaded once and not for each of its views."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from torch import Tensor

from ml.networks.device import Compute

KEPT_BYTES = 512 << 20
"""Some 400 stills of 720 x 576 px in colour; beyond that, those unused for longest go."""


class KeptPlanes:
    """Arrays of a training's stills on a device, as they are stored, up to this many bytes."""

    def __init__(self, compute: Compute, *, most_bytes: int = KEPT_BYTES) -> None:
        self._compute, self._most = compute, most_bytes
        self._kept: OrderedDict[int, tuple[np.ndarray, Tensor]] = OrderedDict()
        self._bytes = 0

    def __call__(self, array: np.ndarray) -> Tensor:
        """The array on the device; it is recognised as long as it is the same object."""
        name = id(array)
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name][1]
        tensor = self._compute.sent(np.ascontiguousarray(array))
        self._kept[name] = (array, tensor)  # held, so that no other array gets its name
        self._bytes += array.nbytes
        while self._bytes > self._most and len(self._kept) > 1:
            _, (old, _) = self._kept.popitem(last=False)
            self._bytes -= old.nbytes
        return tensor
