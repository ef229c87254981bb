"""An encoder of endoscopy trained on a lab's mosaics and a video: from the question to searches."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
from PIL import Image

from ml.imaging.videos.frame_table_file import save_frame_table
from ml.imaging.videos.video import probe_video
from ml.training.common.run import TrainingRun
from ml.training.roi import lab_encoder
from ml.training.roi.endoscopy import EndoscopyTrainConfig, train_endoscopy
from portal.archive.models import Asset, Modality, Video
from portal.embeddings.models import Embedding
from portal.embeddings.selectors.embeddings import vector_of
from portal.embeddings.selectors.encoders import encoder_of_lab
from portal.jobs.models import Job, JobState
from portal.model_training.selectors.folders import learning_folder
from portal.model_training.selectors.learnings import learning_get
from portal.model_training.selectors.results import LearningResult
from portal.model_training.services.learnings import TrainingLimits, learning_submit
from portal.search.services.similar_cases import roi_search
from tests.ml.roi.conftest import draw_mucosa
from tests.ml.training.roi.test_endoscopy import TINY
from tests.portal.embedded_rois import World, jobs
from tests.world import moving_video_file

PATIENTS, SIDE_PX = 14, 200
STEP_PTS = 512  # of the video's frames
URL = "/api/v1/learnings/"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """A tiny replacement of the shipped encoder: 6 dimensions instead of 512."""
    folder = tmp_path_factory.mktemp("shipped")
    (folder / "stills").mkdir()
    Image.fromarray(draw_mucosa(220, 260, seed=90)).save(folder / "stills" / "a-0.png")
    run = TrainingRun(dataclasses.replace(TINY, name="scope"), folder / "out")
    train_endoscopy(run, data=folder)
    return run.weights


@pytest.fixture
def archive(lab, annotator, storage, monkeypatch, settings, shipped):
    """Regions of two labels on mosaics, and of the last patient on frames of a video."""
    settings.TESSERA_ENCODERS = {**settings.TESSERA_ENCODERS, Modality.ENDOSCOPY: str(shipped)}
    few = partial(EndoscopyTrainConfig, regions=24, rounds=2, side_px=(60.0, 90.0))
    monkeypatch.setattr(lab_encoder, "EndoscopyTrainConfig", few)
    frames = "portal.annotations.selectors.frames.frame_pts"
    monkeypatch.setattr(frames, lambda canvas: STEP_PTS * np.arange(12))
    world = World(lab, annotator, storage)
    world.names = world.labels("rough", "smooth")
    world.made = [drawn(world, patient) for patient in range(PATIENTS - 1)]
    world.made.append(filmed(world))
    world.run_jobs()
    return world


def drawn(world, patient):
    """A mosaic with a region on either half."""
    canvas = world.canvas(world.case(f"E{patient}", f"patient {patient}"), kind="mosaic")
    pixels = draw_mucosa(SIDE_PX, 2 * SIDE_PX, seed=patient)
    Image.fromarray(pixels).save(world.storage / canvas.pixels_path)
    canvas.width_px, canvas.height_px = 2 * SIDE_PX, SIDE_PX
    canvas.save()
    return [
        world.roi(canvas, SIDE_PX * at + 20, 20, SIDE_PX - 40, label=world.names[at])
        for at in range(2)
    ]


def filmed(world):
    """A video with a region on its first frame and on a later one."""
    canvas = world.canvas(world.case("film", "patient on film"), kind="video")
    path = moving_video_file(world.storage)
    canvas.pixels_path, canvas.width_px, canvas.height_px = path.name, 256, 192
    canvas.save()
    save_frame_table(probe_video(path).frames, world.storage / "frames.npz")
    asset = Asset.objects.create(lab=canvas.lab, sha256="5" * 64, size_bytes=1, media_type="v")
    Video.objects.create(
        lab=canvas.lab, case=canvas.case, canvas=canvas, asset=asset, frames_path="frames.npz"
    )
    return [
        world.roi(canvas, 20, 20, 150, label=world.names[at], frame_pts=at * 4 * STEP_PTS)
        for at in range(2)
    ]


def searched(user, roi, **options):
    plain = {"k": 40, "expand": 0, "diffuse": False}
    return roi_search(roi=roi, user=user, options={**plain, **options})


@pytest.mark.slow
def test_an_endoscopy_encoder_is_fitted_compared_activated_and_rolled_back(
    archive, manager, api_as
):
    api = api_as(manager)
    response = api.post(URL, {"method": "encoder", "kind": "endoscopy"}, format="json")
    assert response.status_code == 202
    archive.run_jobs()
    learning = learning_get(manager, response.json()["id"])
    assert Job.objects.get(pk=learning.job_id).state == JobState.SUCCEEDED
    assert not learning_folder(learning.lab_id, learning.pk).exists()
    result = LearningResult.from_json(learning.result)
    assert (result.regions, result.patients, result.test_patients) == (28, 14, 5)
    assert (result.learned_regions, result.learned_patients) == (18, 9)
    assert {change.label for change in result.changes} == {"rough", "smooth"}
    assert result.chosen == f"fitted from {learning.base}"
    body = api.get(f"{URL}{learning.pk}/").json()
    assert body["training"]["steps"] == 0 and body["training"]["loss"] == []
    assert body["compared_with"]["id"] == body["base"]["id"] == str(learning.base_id)
    lab_encoder = learning.encoder
    assert (lab_encoder.kind, lab_encoder.dim, lab_encoder.is_trained) == ("endoscopy", 6, True)
    assert encoder_of_lab("endoscopy", archive.lab.pk) == learning.base

    query = archive.made[-1][1]  # on a frame of the video
    before = searched(manager, query)
    assert before.query.encoder == learning.base and len(before.hits) == 26
    type(learning).objects.filter(pk=learning.pk).update(is_better=True)  # 24 squares prove nothing
    assert api.post(f"{URL}{learning.pk}/promote/").status_code == 202
    archive.run_jobs()
    assert {job.state for job in jobs("encoder_embed")} == {JobState.SUCCEEDED}
    assert learning_get(manager, learning.pk).use == "yes"
    after = searched(manager, query)
    assert after.query.encoder == lab_encoder and len(after.hits) == 26
    vectors = {row.encoder_id: vector_of(row) for row in Embedding.objects.filter(roi=query)}
    assert 0 < np.linalg.norm(vectors[lab_encoder.pk] - vectors[learning.base_id]) < 2

    new = drawn(archive, PATIENTS)[0]
    archive.run_jobs()
    assert searched(manager, new).query.encoder == lab_encoder
    assert new.pk in {hit.roi.pk for hit in searched(manager, query, k=60).hits}
    again = learning_submit(
        lab=archive.lab,
        kind=Modality.ENDOSCOPY,
        user=manager,
        training=TrainingLimits(),
    )
    archive.run_jobs()
    again = learning_get(manager, again.pk)
    assert (again.base, again.compared_with) == (learning.base, lab_encoder)
    assert LearningResult.from_json(again.result).regions == 30

    assert api.post(f"{URL}{learning.pk}/roll-back/").json()["use"] == "no"
    back = searched(manager, query)
    assert back.query.encoder == learning.base
    old = {hit.roi.pk: hit.distance for hit in before.hits}
    assert old.items() <= {hit.roi.pk: hit.distance for hit in back.hits}.items()
