"""Reads of retrieval."""

from portal.retrieval.selectors.candidates import organs_of
from portal.retrieval.selectors.comparison import EncoderComparison, encoder_compare
from portal.retrieval.selectors.embeddings import (
    EMBED_KIND,
    embed_job,
    embedding_current,
    embeddings_of_other_kinds,
    roi_to_embed,
    rois_with_embedding,
    rois_without_embedding,
    stain_of,
    vector_of,
)
from portal.retrieval.selectors.encoders import (
    BACKFILL_KIND,
    backfill_jobs_open,
    backfill_key,
    encoder_default,
    encoder_for,
    encoder_get,
    encoder_kind_for,
    encoder_next,
)
from portal.retrieval.selectors.readers import readers
from portal.retrieval.selectors.search import (
    EXPAND_MOST,
    K_MOST,
    Hit,
    LabelVote,
    NotEmbeddedError,
    SimilarFilters,
    SimilarQuery,
    SimilarResult,
    similar_search,
)
from portal.retrieval.selectors.snapshots import (
    IndexSource,
    IndexState,
    index_entries,
    index_source,
    index_states,
    snapshot_latest,
)

__all__ = [
    "BACKFILL_KIND",
    "EMBED_KIND",
    "EXPAND_MOST",
    "K_MOST",
    "EncoderComparison",
    "Hit",
    "IndexSource",
    "IndexState",
    "LabelVote",
    "NotEmbeddedError",
    "SimilarFilters",
    "SimilarQuery",
    "SimilarResult",
    "backfill_jobs_open",
    "backfill_key",
    "embed_job",
    "embedding_current",
    "embeddings_of_other_kinds",
    "encoder_compare",
    "encoder_default",
    "encoder_for",
    "encoder_get",
    "encoder_kind_for",
    "encoder_next",
    "index_entries",
    "index_source",
    "index_states",
    "organs_of",
    "readers",
    "roi_to_embed",
    "rois_with_embedding",
    "rois_without_embedding",
    "similar_search",
    "snapshot_latest",
    "stain_of",
    "vector_of",
]
