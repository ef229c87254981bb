"""A portal that is killed while it saves: with SIGKILL, before ROIs are written or after it.

Run as a module it makes one slide and one signed-in person, and prints what they are.
For uvicorn it is the application.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

ORDER = "TESSERA_KILL_ORDER"
"""Names the file that says ``before`` or ``after``, and stands until it is carried out."""

SAVES = ("/api/v1/rois/", "/api/v1/rois/bulk/")


async def application(scope: Any, receive: Any, send: Any) -> None:
    """ASGI: the portal's; its process ends at the next save where that is ordered."""
    from portal.config.asgi import application as portal

    order = Path(os.environ[ORDER])
    is_save = scope["method"] == "POST" and scope["path"] in SAVES
    if not (is_save and order.exists()):
        await portal(scope, receive, send)
        return
    when = order.read_text()
    order.unlink()

    async def nowhere(message: Any) -> None: ...

    if when == "after":
        await portal(scope, receive, nowhere)
    os.killpg(0, signal.SIGKILL)


def main(slide: Path) -> None:
    """A lab, its annotator with a session, and a slide that was taken in."""
    import django
    from django.conf import settings

    django.setup()
    from django.test import Client

    from portal.archive.services.cases import case_create
    from portal.archive.services.items import item_receive
    from portal.jobs.worker.runner import job_run
    from portal.labs.models import Lab, Membership, User

    lab = Lab.objects.create(name="Killed", slug="killed")
    user = User.objects.create_user("annotator@killed.example", "correct horse battery")
    Membership.objects.create(lab=lab, user=user, role="annotator")
    case = case_create(lab=lab, user=user, accession="K-1")
    with slide.open("rb") as file:
        received = item_receive(case=case, file=file, filename=slide.name, user=user)
    assert received.job is not None
    job_run(received.job.pk)
    received.item.refresh_from_db()
    client = Client()
    client.force_login(user)
    canvas = received.item.canvas
    assert canvas is not None, received.item.error_message
    made = {
        "session": client.cookies[settings.SESSION_COOKIE_NAME].value,
        "pk": str(canvas.pk),
        "width_px": canvas.width_px,
        "height_px": canvas.height_px,
    }
    print(json.dumps(made))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
