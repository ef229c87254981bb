"""Writes of what is learned from a lab's archive."""

from portal.retrieval.services.learning.acts import (
    HOURS,
    HOURS_MOST,
    STEPS,
    STEPS_LEAST,
    STEPS_MOST,
    WantedTraining,
    learning_ask,
    learning_promote,
    learning_roll_back,
)
from portal.retrieval.services.learning.folders import (
    TrainingFolder,
    learning_folder_claim,
    learning_folder_drop,
    learning_folders_drop,
    training_ended,
)
from portal.retrieval.services.learning.kept import (
    learning_save,
    learning_trained_for,
    learning_trained_save,
)
from portal.retrieval.services.learning.mapping import metric_part, metric_switch
from portal.retrieval.services.learning.own import archive_embed_submit, own_save, own_write

__all__ = [
    "HOURS",
    "HOURS_MOST",
    "STEPS",
    "STEPS_LEAST",
    "STEPS_MOST",
    "TrainingFolder",
    "WantedTraining",
    "archive_embed_submit",
    "learning_ask",
    "learning_folder_claim",
    "learning_folder_drop",
    "learning_folders_drop",
    "learning_promote",
    "learning_roll_back",
    "learning_save",
    "learning_trained_for",
    "learning_trained_save",
    "metric_part",
    "metric_switch",
    "own_save",
    "own_write",
    "training_ended",
]
