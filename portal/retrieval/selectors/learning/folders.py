"""Where a training of a lab's encoder works: its pictures, its checkpoint, what it embedded."""

from __future__ import annotations

import uuid
from pathlib import Path

from portal.core.storage_layout import Place, ids_in


def learning_folder(lab_id: uuid.UUID, learning_id: uuid.UUID) -> Path:
    """Of one training, in scratch: the next attempt finds it, and it is swept after two days."""
    return Place.TRAININGS.path(lab_id, learning_id)


def learning_folders(lab_id: uuid.UUID) -> list[Path]:
    """Those of a lab that are there; they hold pictures of its regions: an erasure needs them."""
    return sorted(path for path in Place.TRAININGS.entries() if str(lab_id) in ids_in(path.name))
