"""Learning from a lab's archive, and mapping the archive by what was learned."""

from __future__ import annotations

import uuid
from functools import partial

from django.db import OperationalError

from ml.errors import MlError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, task
from portal.retrieval import selectors, services
from portal.retrieval.selectors import LEARN_KIND, METRIC_KIND
from portal.retrieval.tasks.ending import has_ended
from portal.retrieval.tasks.own import own_wanted


@task(
    LEARN_KIND,
    title="Learn from the archive",
    priority=Priority.BULK,
    retry_on=(OSError,),
)
def metric_learn(context: JobContext, *, learning_id: str) -> JobResult:
    """Learn a metric from a lab's regions; compare it, on patients kept aside, with what is in use.

    It writes once, at its end: killed before, the next attempt begins again.
    """
    learning = selectors.learning_to_run(uuid.UUID(learning_id))
    if learning is None:
        return {"skipped": "deleted"}
    if learning.result is not None:
        return {"skipped": "already learned"}
    from ml.index.learning.archive import learn_from_archive

    context.progress(0, 0, "reading")
    of = selectors.lab_material(learning.lab_id, learning.base)
    before = selectors.searched_by(learning.lab_id, learning.base, of)
    of = of.part(before.rows)
    try:
        found = learn_from_archive(of.material, before=before.vectors, progress=context.progress)
    except MlError as error:
        raise UserError(str(error), code=error.code) from error
    context.progress(1, 1, "writing")
    with context.effect():
        services.learning_save(learning=learning, found=found, of=of, before=before)
    return {"outcome": "better" if found.is_better else "not better", "regions": len(of.rois)}


@task(
    METRIC_KIND,
    title="Embed the archive with what was learned",
    priority=Priority.BULK,
    retry_on=(OSError, OperationalError),  # two who lock many rows: the database ends one of them
)
def metric_embed(context: JobContext, *, encoder_id: str) -> JobResult:
    """Map a lab's vectors part by part, then let the lab's searches use them.

    A part lasts once it is written: killed or stopped in between, the next attempt does the rest.
    """
    encoder = own_wanted(encoder_id)
    if encoder is None:
        return {"skipped": "no longer wanted"}
    before, total = selectors.map_progress(encoder)
    done = before
    while encoder is not None:
        context.progress(min(done, total), total, "embedding regions")
        with context.part():
            looked_at = services.metric_part(encoder)
        done += looked_at
        if looked_at:
            context.give_way()
        elif has_ended(context, partial(services.metric_switch, encoder)):
            return {"regions": done, "mapped": done - before}
        encoder = own_wanted(encoder_id)
    return {"skipped": "no longer wanted"}
