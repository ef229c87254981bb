"""An archive to learn from: outlines whose vectors know a label, behind what does not matter."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
from PIL import Image

from portal.annotations.models import Roi, RoiAction, RoiRevision
from portal.annotations.services.fields import roi_shape
from portal.annotations.services.rois import roi_prepare
from portal.annotations.services.writing import label_words, roi_revision
from portal.archive.models import Modality
from portal.embeddings.models import Embedding
from portal.embeddings.services.embeddings import embedding_save
from portal.embeddings.services.encoders import EncoderIdentity, encoder_register
from portal.jobs.models import Job
from portal.model_training.selectors.learnings import learning_get
from portal.model_training.services.learnings import learning_promote, learning_submit
from tests.ml.training.roi.conftest import dense_tissue
from tests.portal.embedded_rois import box_vector, square

SIDE_PX = 256


def encoder_registered() -> Any:
    facts = EncoderIdentity("box", "1", "abc", 4, "histology")
    return encoder_register(facts=facts, is_default=True)


def filled(
    world: Any,
    *,
    patients: Any = 15,
    each: Any = 4,
    learnable: Any = True,
    labelled: Any = True,
    seed: Any = 0,
    user: Any = None,
) -> Any:
    """ROIs of two labels that differ at most in size; their positions are random.

    The rows are those of ``roi_create`` and ``embedding_save``, written together.

    Returns:
        The ROIs, by patient.
    """
    encoder = encoder_registered()
    rng = np.random.default_rng(seed)
    names = world.labels("large", "small") if labelled else (None, None)
    made = []
    for patient in range(patients):
        canvas = world.canvas(world.case(f"L{patient}", f"patient {patient}"))
        of_canvas = []
        for number in range(each):
            kind = number % 2 if learnable else int(rng.integers(2))
            size = 40 - 14 * (number % 2) + int(rng.integers(0, 5))
            left, top = (int(at) for at in rng.integers(0, 80, 2))
            of_canvas.append(
                _drawn(canvas, square(left, top, size), user or world.user, names[kind])
            )
        made.append(of_canvas)
    rois = [roi for of_canvas in made for roi in of_canvas]
    Roi.all_objects.bulk_create(rois)
    words = label_words(world.lab.pk)
    RoiRevision.objects.bulk_create(
        roi_revision(roi, RoiAction.CREATE, roi.created_by, words=words) for roi in rois
    )
    Embedding.objects.bulk_create(_vector(roi, encoder) for roi in rois)
    Job.objects.all().delete()
    return made


def _drawn(canvas: Any, geometry: Any, user: Any, label: Any) -> Any:
    return roi_prepare(
        canvas=canvas,
        user=user,
        shape=roi_shape(canvas, geometry),
        frame=None,
        label=label,
        name="",
        roi_id=uuid.uuid4(),
        foreign={},
    )


def _vector(roi: Any, encoder: Any) -> Any:
    return Embedding(
        encoder=encoder,
        roi=roi,
        roi_version=roi.version,
        lab_id=roi.lab_id,
        canvas_id=roi.canvas_id,
        vector=np.ascontiguousarray(_numbers(roi), dtype="<f4").tobytes(),
        patch_count=1,
        seconds=0.0,
    )


def _numbers(roi: Any) -> Any:
    xs, ys = zip(*roi.geometry["coordinates"][0], strict=True)
    return box_vector((min(xs), min(ys), max(xs), max(ys)))


def embedded(roi: Any, encoder: Any) -> None:
    embedding_save(
        roi_id=roi.pk,
        geometry=roi.geometry,
        encoder=encoder,
        vector=_numbers(roi),
        patch_count=1,
        seconds=0.0,
    )


def learned(world: Any, manager: Any, kind: Any = Modality.HISTOLOGY) -> Any:
    """Ask for a metric and let it be learned."""
    learning = learning_submit(lab=world.lab, kind=kind, user=manager)
    world.run_jobs()
    return learning_get(manager, learning.pk)


def promoted(world: Any, manager: Any) -> Any:
    """An archive, and a metric of it that is being put in use."""
    rois = filled(world)
    learning = learned(world, manager)
    learning_promote(learning=learning, user=manager)
    return rois, learning


def as_embedded(world: Any, encoder: Any, vectors: Any) -> None:
    """The rows that embedding the same pictures wrote for the first test."""
    rois = [roi for halves in world.made for roi in halves]
    encoder.save(force_insert=True)
    for row, roi in zip(vectors, rois, strict=True):
        row.pk, row.lab, row.roi, row.canvas = None, world.lab, roi, roi.canvas
        row.save(force_insert=True)
    Job.objects.all().delete()


def drawn(world: Any, patient: Any) -> Any:
    """A still of 1 um per pixel with a region on either half; the labels lie side by side."""
    canvas = world.canvas(world.case(f"T{patient}", f"patient {patient}"))
    halves = [
        dense_tissue(SIDE_PX, SIDE_PX, seed=2 * patient + at, nuclei_per_mpx=1200 + 1500 * at)
        for at in range(2)
    ]
    picture = Image.fromarray(np.concatenate(halves, axis=1))
    picture.save(world.storage / canvas.pixels_path, compress_level=1)
    canvas.width_px, canvas.height_px = 2 * SIDE_PX, SIDE_PX
    canvas.mpp_x = canvas.mpp_y = 1.0
    canvas.save()
    return [
        world.roi(canvas, SIDE_PX * at + 4, 4, SIDE_PX - 8, label=world.names[at])
        for at in range(2)
    ]
