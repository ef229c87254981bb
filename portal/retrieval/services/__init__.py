"""Writes of retrieval."""

from portal.retrieval.services.embeddings import (
    embedding_save,
    embeddings_supersede,
    is_scaled_so,
    stain_save,
    unembeddable_save,
)
from portal.retrieval.services.encoders import (
    EncoderFacts,
    encoder_approve,
    encoder_register,
    encoder_reject,
    encoder_switch_if_complete,
)
from portal.retrieval.services.explanations import (
    explanation_save,
    explanations_sweep,
    query_match_explain,
    roi_match_explain,
)
from portal.retrieval.services.indexes import (
    INDEX_KIND,
    BuiltIndex,
    index_build_if_due,
    index_build_submit,
    index_name,
    index_publish,
    index_version_next,
    indexes_forget,
)
from portal.retrieval.services.judgements import judgement_clear, judgement_set
from portal.retrieval.services.learning import (
    learning_ask,
    learning_promote,
    learning_roll_back,
    learning_save,
)
from portal.retrieval.services.mapping import metric_part, metric_switch
from portal.retrieval.services.maps import (
    label_confirm,
    label_confirmation_clear,
    map_draw,
    map_save,
)
from portal.retrieval.services.places import (
    PLACES_MOST,
    SamplePart,
    places_or_job,
    sample_add,
    samples_sweep,
    slide_look_through,
)
from portal.retrieval.services.queries import (
    PICTURE_BYTES,
    QUERY_DAYS,
    QueryAsked,
    queries_sweep,
    query_create,
    query_embed_request,
    query_embedded_save,
    query_mark,
    query_remove,
)
from portal.retrieval.services.reports import (
    REPORT_HITS,
    report_again,
    report_create,
    report_delete,
    report_pictures_make,
)
from portal.retrieval.services.search import similar_or_embed, similar_to_query
from portal.retrieval.services.submissions import (
    canvas_embed_submit,
    canvas_scaled,
    canvases_restored,
    embed_request,
    embed_submit_missing,
    roi_changed,
    rois_saved_in_bulk,
)
from portal.retrieval.services.titles import titles_follow
from portal.retrieval.services.training_sets import TrainingSet, training_set_write

__all__ = [
    "INDEX_KIND",
    "PICTURE_BYTES",
    "PLACES_MOST",
    "QUERY_DAYS",
    "REPORT_HITS",
    "BuiltIndex",
    "EncoderFacts",
    "QueryAsked",
    "SamplePart",
    "TrainingSet",
    "canvas_embed_submit",
    "canvas_scaled",
    "canvases_restored",
    "embed_request",
    "embed_submit_missing",
    "embedding_save",
    "embeddings_supersede",
    "encoder_approve",
    "encoder_register",
    "encoder_reject",
    "encoder_switch_if_complete",
    "explanation_save",
    "explanations_sweep",
    "index_build_if_due",
    "index_build_submit",
    "index_name",
    "index_publish",
    "index_version_next",
    "indexes_forget",
    "is_scaled_so",
    "judgement_clear",
    "judgement_set",
    "label_confirm",
    "label_confirmation_clear",
    "learning_ask",
    "learning_promote",
    "learning_roll_back",
    "learning_save",
    "map_draw",
    "map_save",
    "metric_part",
    "metric_switch",
    "places_or_job",
    "queries_sweep",
    "query_create",
    "query_embed_request",
    "query_embedded_save",
    "query_mark",
    "query_match_explain",
    "query_remove",
    "report_again",
    "report_create",
    "report_delete",
    "report_pictures_make",
    "roi_changed",
    "roi_match_explain",
    "rois_saved_in_bulk",
    "sample_add",
    "samples_sweep",
    "similar_or_embed",
    "similar_to_query",
    "slide_look_through",
    "stain_save",
    "titles_follow",
    "training_set_write",
    "unembeddable_save",
]
