"""Working folders of encoder training: pictures, checkpoint and embeddings."""

from __future__ import annotations

import uuid
from pathlib import Path

from portal.core.storage_layout import Place, ids_in


def learning_folder(lab_id: uuid.UUID, learning_id: uuid.UUID) -> Path:
    """Scratch folder of a training. The next attempt resumes from it; removed after two days."""
    return Place.TRAININGS.path(lab_id, learning_id)


def learning_folders(lab_id: uuid.UUID) -> list[Path]:
    """Existing training folders of a lab; erasure removes them, since they hold pictures."""
    return sorted(path for path in Place.TRAININGS.entries() if str(lab_id) in ids_in(path.name))
