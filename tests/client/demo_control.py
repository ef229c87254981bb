"""Answer ``slides``: the demo's slides with their ROIs, and a token of its pathologist."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from datetime import timedelta
from itertools import islice
from pathlib import Path

import django

django.setup()

from portal.labs.models import TokenScope  # noqa: E402
from portal.labs.services.tokens import token_create  # noqa: E402
from portal.operations.demo.material import SAMPLE_SLIDES, sample_material  # noqa: E402
from portal.operations.demo.people import cast  # noqa: E402
from portal.operations.demo.run import demo_run  # noqa: E402
from tests.killing.command_line import dispatch  # noqa: E402


def slides(folder: str) -> object:
    """Run the demo without its video; files are generated in ``folder``."""
    people = cast()
    with redirect_stdout(sys.stderr):  # the answer alone is on stdout
        material = list(islice(sample_material(Path(folder)), len(SAMPLE_SLIDES)))
        outcome = demo_run(material, people=people, say=print)
    _, secret = token_create(
        people.pathologist, name="demo", scope=TokenScope.WRITE, expires_in=timedelta(days=1)
    )
    return {"token": secret, "rois": len(outcome.rois), "failures": outcome.failures}


if __name__ == "__main__":
    dispatch({"slides": slides})
