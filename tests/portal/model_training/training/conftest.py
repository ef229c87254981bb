"""An archive to train on, and a training that takes seconds."""

from __future__ import annotations

import dataclasses

import pytest

from ml.training.roi import lab_encoder
from ml.training.roi.patches.views import ViewConfig
from portal.archive.models import Modality
from portal.embeddings.models import Embedding
from portal.embeddings.selectors.encoders import encoder_default
from portal.model_training.services.learnings import TrainingLimits, learning_submit
from portal.search.services.similar_cases import roi_search
from tests.portal.embedded_rois import World
from tests.portal.model_training.archives import as_embedded, drawn

PATIENTS = 14
TINY = dataclasses.replace(
    lab_encoder.PATCHES, batch=4, warmup=1, checkpoint_every=4, view=ViewConfig(crop_px=32)
)
SHORT = TrainingLimits(steps=20, hours=1.0)
EMBEDDED = []  # encoder and vectors of the archive: the same in every test


@pytest.fixture
def archive(lab, annotator, storage, monkeypatch):
    """Regions of two labels of enough patients, embedded by the encoder that ships."""
    monkeypatch.setattr(lab_encoder, "PATCHES", TINY)
    monkeypatch.setattr(lab_encoder, "CHECKPOINT_EVERY", TINY.checkpoint_every)
    world = World(lab, annotator, storage)
    world.names = world.labels("dense", "sparse")
    world.made = [drawn(world, patient) for patient in range(PATIENTS)]
    if EMBEDDED:
        as_embedded(world, *EMBEDDED[0])
    else:
        world.run_jobs()
        vectors = Embedding.objects.order_by("roi__created_at")
        EMBEDDED.append((encoder_default(), list(vectors)))
    return world


def request_training(world, manager, wanted=SHORT):
    """Ask for an encoder."""
    return learning_submit(lab=world.lab, kind=Modality.HISTOLOGY, user=manager, training=wanted)


def searched(user, roi, *, k=40, encoder_id=None):
    """Search by distance only, without query expansion or diffusion."""
    options = {"k": k, "expand": 0, "diffuse": False}
    return roi_search(roi=roi, user=user, options=options, encoder_id=encoder_id)
