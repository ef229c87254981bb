"""Report of the demo, in words and figures."""

from __future__ import annotations

from portal.archive.models import ItemState
from portal.core.errors import PortalError
from portal.embeddings.selectors.encoders import encoder_default
from portal.operations.demo.people import PASSWORD, Cast
from portal.operations.demo.run import DemoResult, Say
from portal.search.selectors.similar_cases import SimilarQuery, similar_search

TOP = 5  # hits named on the terminal


def report(outcome: DemoResult, *, people: Cast, say: Say) -> None:
    """Print the created objects, similar cases of one ROI, mosaics, and the time of each step."""
    say("")
    say(f"Ingested   {len(outcome.slides)} slides and stills, {len(outcome.videos)} videos")
    say(f"Embedded   {len(outcome.rois)} regions of interest")
    _similar(outcome, people, say)
    for mosaic in outcome.mosaics:
        if mosaic.state != ItemState.READY or mosaic.canvas is None:
            say(f"Mosaic     {mosaic.name}: {mosaic.error_message}")
            continue
        say(
            f"Mosaic     {mosaic.name}: {mosaic.canvas.width_px} x {mosaic.canvas.height_px} px, "
            f"{mosaic.registered_count} of {mosaic.frame_count} frames registered, "
            f"{mosaic.seconds:.1f} s"
        )
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in outcome.seconds.items())
    say(f"Time       {steps}")
    for failure in outcome.failures:
        say(f"Failed     {failure}")


def sign_in(people: Cast, *, say: Say) -> None:
    """Print how to sign in."""
    say("")
    for user in (people.pathologist, people.endoscopist, people.manager):
        say(f"Sign in    {user.email:<28} password: {PASSWORD}")


def _similar(outcome: DemoResult, people: Cast, say: Say) -> None:
    encoder = encoder_default()
    if not outcome.rois or encoder is None:
        return
    roi = outcome.rois[0]
    try:
        query = SimilarQuery(roi=roi, encoder=encoder, k=TOP)
        result = similar_search(people.pathologist, query)
    except PortalError as error:
        say(f"Similar    {error.message}")
        return
    say(
        f"Similar    to {roi.name} of {roi.canvas.case.accession} ({roi.label}), by {encoder}, "
        "other patients, nearest first:"
    )
    for hit in result.hits:
        hit_roi = hit.roi
        say(
            f"           {hit.rank}. {hit.distance:.3f}  {hit_roi.canvas.case.accession:<14} "
            f"{hit_roi.name} ({hit_roi.label or 'no label'})"
        )
