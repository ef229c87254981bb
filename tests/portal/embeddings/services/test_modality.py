"""Regions follow the modality of their image: encoder, vectors and the set that is searched."""

from __future__ import annotations

import pytest

from ml.imaging.videos.frame_table_file import save_frame_table
from ml.imaging.videos.video import probe_video
from portal.archive.models import Asset, Video
from portal.archive.services.modality import canvas_modality_set, case_modality_set
from portal.embeddings.models import Embedding
from portal.embeddings.selectors.encoders import encoder_default, encoder_for
from portal.jobs.worker.runner import job_run
from portal.search.selectors.similar_cases import SimilarQuery, similar_search
from tests.portal.embedded_rois import jobs
from tests.world import moving_video_file

pytestmark = pytest.mark.django_db(transaction=True)


def current(roi):
    rows = Embedding.objects.filter(roi=roi, superseded_at=None)
    return [row.encoder.name for row in rows.select_related("encoder")]


def found_from(world, roi):
    query = SimilarQuery(roi=roi, encoder=encoder_for(roi))
    return {hit.roi for hit in similar_search(world.user, query).hits}


def frame_roi(world):
    """An embedded region on the first frame of a video."""
    canvas = world.canvas(world.case("film"), kind="video")
    path = moving_video_file(world.storage)
    canvas.pixels_path, canvas.width_px, canvas.height_px = path.name, 256, 192
    canvas.save()
    save_frame_table(probe_video(path).frames, world.storage / "frames.npz")
    asset = Asset.objects.create(lab=canvas.lab, sha256="5" * 64, size_bytes=1, media_type="v")
    Video.objects.create(
        lab=canvas.lab, case=canvas.case, canvas=canvas, asset=asset, frames_path="frames.npz"
    )
    return world.embedded(canvas, 20, 20, 90, frame_pts=0)


def test_stills_frames_and_mosaics_of_endoscopy_are_searched_jointly(world):
    still = world.embedded(world.canvas(world.case("A"), modality="endoscopy"))
    mosaic = world.embedded(world.canvas(world.case("B"), kind="mosaic"))
    tissue = world.embedded(world.canvas(world.case("D")))
    frame = frame_roi(world)
    assert {encoder_for(roi).name for roi in (still, mosaic, frame)} == {"scope"}
    assert found_from(world, still) == {mosaic, frame}
    assert found_from(world, frame) == {mosaic, still}
    assert found_from(world, mosaic) == {still, frame}
    assert found_from(world, tissue) == set()


def test_a_region_is_embedded_again_by_the_other_encoder(world):
    roi = world.embedded(canvas := world.canvas(world.case("A")))
    tissue = world.embedded(world.canvas(world.case("B")))
    scope = world.embedded(world.canvas(world.case("C"), modality="endoscopy"))
    assert found_from(world, tissue) == {roi}
    canvas_modality_set(canvas=canvas, user=world.user, modality="endoscopy")
    assert found_from(world, tissue) == set()  # at once
    world.run_jobs()
    assert current(roi) == ["scope"]
    assert found_from(world, tissue) == set()
    roi.refresh_from_db()
    roi.canvas.refresh_from_db()
    assert found_from(world, scope) == {roi}
    assert found_from(world, roi) == {scope}
    canvas_modality_set(canvas=canvas, user=world.user, modality="histology")
    world.run_jobs()
    assert current(roi) == ["box"]
    assert found_from(world, tissue) == {roi}


def test_all_regions_of_a_case_are_embedded_again(world):
    case = world.case("A")
    rois = [world.embedded(world.canvas(case)) for _ in range(2)]
    case_modality_set(case=case, user=world.user, modality="endoscopy")
    world.run_jobs()
    assert [current(roi) for roi in rois] == [["scope"], ["scope"]]


def test_a_modality_set_while_a_region_is_embedded_wins(world, encoder):
    canvas = world.canvas(world.case("A"))
    roi = world.roi(canvas)
    (job,) = jobs()
    real = encoder._embedded

    def embedded(polygon, progress):
        if canvas.modality == "histology":
            canvas_modality_set(canvas=canvas, user=world.user, modality="endoscopy")
        return real(polygon, progress)

    encoder._embedded = embedded
    job_run(job.pk)
    world.run_jobs()
    assert current(roi) == ["scope"]


def test_only_the_encoder_of_its_modality_has_yet_to_embed_a_region(world):
    from portal.embeddings.selectors.embeddings import rois_without_embedding

    world.embedded(canvas := world.canvas(world.case("A")))
    world.embedded(world.canvas(world.case("B"), modality="endoscopy"))
    canvas_modality_set(canvas=canvas, user=world.user, modality="endoscopy")
    missing = {
        kind: rois_without_embedding(lab_id=world.lab.pk, encoder=encoder_default(kind)).count()
        for kind in ("histology", "endoscopy")
    }
    assert missing == {"histology": 0, "endoscopy": 1}
