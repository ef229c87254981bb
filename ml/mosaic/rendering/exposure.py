"""Even out exposure between frames from the colours of matched points."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

from ml.mosaic.alignment.components import AlignedComponent
from ml.types import ArrayF32

PRIOR = 1.0
"""Pull of each frame to a gain of 1, against the links: as strong as one link."""

MAX_GAIN = 1.3
"""More than this is a change of scene or of the lamp, not of exposure."""


def frame_gains(aligned: AlignedComponent) -> dict[int, ArrayF32]:
    """Factor per channel that brings each frame to the common exposure.

    Least squares over the links' median log differences, with a pull to 1, so that a slow
    change over the whole sweep is not undone and nothing runs away.

    Returns:
        position -> (3,) float32 in [1 / 1.3, 1.3].
    """
    frames = sorted(aligned.transforms)
    row = {frame: i for i, frame in enumerate(frames)}
    links = [link for link in aligned.links if link.a in row and link.b in row]
    if not links:
        return {frame: np.ones(3, np.float32) for frame in frames}
    n, m = len(frames), len(links)
    a, b = [row[link.a] for link in links], [row[link.b] for link in links]
    index = np.arange(m)
    difference = sparse.csr_matrix(
        (np.r_[np.ones(m), -np.ones(m)], (np.r_[index, index], np.r_[a, b])), shape=(m, n)
    )
    target = np.stack([link.log_gain for link in links]).astype(np.float64)
    normal = (difference.T @ difference + PRIOR * sparse.eye(n)).tocsc()
    gains = np.stack([spsolve(normal, difference.T @ target[:, c]) for c in range(3)], axis=1)
    limited = np.exp(np.clip(gains, -np.log(MAX_GAIN), np.log(MAX_GAIN))).astype(np.float32)
    return {frame: limited[i] for i, frame in enumerate(frames)}
