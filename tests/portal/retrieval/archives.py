"""An archive to learn from: outlines whose vectors know a label, behind what does not matter."""

from __future__ import annotations

import numpy as np

from portal.jobs.models import Job
from portal.retrieval import selectors, services
from portal.retrieval.models import EncoderKind
from portal.retrieval.services import EncoderFacts
from tests.portal.retrieval.conftest import box_vector


def encoder_registered():
    facts = EncoderFacts("box", "1", "abc", 4, "histology")
    return services.encoder_register(facts=facts, is_default=True)


def filled(world, *, patients=15, each=4, learnable=True, labelled=True, seed=0, user=None):
    """ROIs of two labels, told apart by their size alone, if at all; where they lie is chance.

    Returns:
        The ROIs, by patient.
    """
    encoder = encoder_registered()
    rng = np.random.default_rng(seed)
    names = world.labels("large", "small") if labelled else (None, None)
    made = []
    for patient in range(patients):
        canvas = world.canvas(world.case(f"L{patient}", f"patient {patient}"))
        own = []
        for number in range(each):
            kind = number % 2 if learnable else int(rng.integers(2))
            size = 40 - 14 * (number % 2) + int(rng.integers(0, 5))
            left, top = (int(at) for at in rng.integers(0, 80, 2))
            roi = world.roi(canvas, left, top, size, user=user, label=names[kind])
            embedded(roi, encoder)
            own.append(roi)
        made.append(own)
    Job.objects.all().delete()
    return made


def embedded(roi, encoder):
    ring = roi.geometry["coordinates"][0]
    xs, ys = zip(*ring, strict=True)
    services.embedding_save(
        roi_id=roi.pk,
        geometry=roi.geometry,
        encoder=encoder,
        vector=box_vector((min(xs), min(ys), max(xs), max(ys))),
        patch_count=1,
        seconds=0.0,
    )


def learned(world, manager, kind=EncoderKind.HISTOLOGY):
    """Ask for a metric and let it be learned."""
    learning = services.learning_ask(lab=world.lab, kind=kind, user=manager)
    world.run_jobs()
    return selectors.learning_get(manager, learning.pk)
