"""Job that learns a metric from a lab's archive."""

from __future__ import annotations

import uuid

from ml.errors import MlError
from portal.core.tasks import JobContext, JobResult, Priority, UserError, job_task
from portal.model_training.selectors.learnings import LEARN_KIND, learning_to_run
from portal.model_training.selectors.training_data import search_baseline, training_data
from portal.model_training.services.results import learning_metric_save


@job_task(
    LEARN_KIND,
    title="Adjust the search model",
    priority=Priority.BULK,
    retry_on=(OSError,),
)
def metric_learn(context: JobContext, *, learning_id: str) -> JobResult:
    """Learn a metric from a lab's regions and compare it on held-out patients.

    The result is written at the end: after an interruption, the next attempt starts again.
    """
    learning = learning_to_run(uuid.UUID(learning_id))
    if learning is None:
        return {"skipped": "deleted"}
    if learning.result is not None:
        return {"skipped": "already learned"}
    from ml.index.metric_learning.training import learn_from_archive

    context.progress(0, 0, "reading")
    data = training_data(learning.lab_id, learning.base)
    baseline = search_baseline(learning.lab_id, learning.base, data)
    data = data.part(baseline.rows)
    try:
        outcome = learn_from_archive(
            data.material, before=baseline.vectors, progress=context.progress
        )
    except MlError as error:
        raise UserError(str(error), code=error.code) from error
    context.progress(1, 1, "writing")
    with context.effect():
        learning_metric_save(learning=learning, outcome=outcome, data=data, baseline=baseline)
    return {"outcome": "better" if outcome.is_better else "not better", "regions": len(data.rois)}
