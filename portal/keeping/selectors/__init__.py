"""Reads of keeping."""

from portal.keeping.selectors.bin import (
    BinRow,
    bin_days,
    bin_get,
    bin_list,
    bin_rows,
    purge_before,
    roi_in_bin,
    rois_in_bin,
)
from portal.keeping.selectors.erasures import erasure_get, erasure_job, erasure_list

__all__ = [
    "BinRow",
    "bin_days",
    "bin_get",
    "bin_list",
    "bin_rows",
    "erasure_get",
    "erasure_job",
    "erasure_list",
    "purge_before",
    "roi_in_bin",
    "rois_in_bin",
]
