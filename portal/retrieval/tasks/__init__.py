"""Work of retrieval. The only package here that reaches torch, and only inside its functions."""

from portal.retrieval.tasks.embedding import canvas_embed, roi_embed
from portal.retrieval.tasks.explaining import match_explain
from portal.retrieval.tasks.indexes import index_build, lab_embed
from portal.retrieval.tasks.learning import metric_embed, metric_learn
from portal.retrieval.tasks.maps import map_draw
from portal.retrieval.tasks.own import encoder_embed
from portal.retrieval.tasks.places import tissue_sample
from portal.retrieval.tasks.queries import query_embed
from portal.retrieval.tasks.reports import report_pictures
from portal.retrieval.tasks.training import encoder_learn

__all__ = [
    "canvas_embed",
    "encoder_embed",
    "encoder_learn",
    "index_build",
    "lab_embed",
    "map_draw",
    "match_explain",
    "metric_embed",
    "metric_learn",
    "query_embed",
    "report_pictures",
    "roi_embed",
    "tissue_sample",
]
