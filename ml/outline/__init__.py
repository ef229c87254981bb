"""The outline of what lies under a click, proposed for a person to accept; without torch.

>>> from ml.outline import propose_outline
>>> found = propose_outline(image, (310.0, 220.0))
>>> found.rings[found.likely]        # (N, 2) float64, pixels of the image
"""

from __future__ import annotations

from ml.outline.propose import Outline, OutlineConfig, propose_outline

__all__ = ["Outline", "OutlineConfig", "propose_outline"]
