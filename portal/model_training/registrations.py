"""Registrations of model training with lower apps."""

from __future__ import annotations

from portal.embeddings.selectors.lab_encoders import ENCODER_WEIGHTS
from portal.model_training.selectors.learnings import learning_weights

ENCODER_WEIGHTS.register("lab")(learning_weights)
