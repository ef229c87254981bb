#!/bin/sh
# Write the locks of the production images: every package with the hashes of its files.
# `make lock`; TORCH_WHEELS is a folder or page that has torch's wheel for processors alone.
set -eu
cd "$(dirname "$0")/.."
lock() { # NAME EXTRA MORE...
  name=$1 extra=$2
  shift 2
  uv pip compile pyproject.toml --quiet --extra "$extra" --extra milvus --extra postgres --extra s3 --extra worker \
    --constraint constraints.txt \
    --generate-hashes --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
    --no-annotate --no-header --no-emit-index-url --no-emit-find-links "$@" --output-file "requirements/$name.txt"
}
lock cpu cpu --find-links "${TORCH_WHEELS:?set TORCH_WHEELS}" --override requirements/cpu.in
lock gpu gpu
echo zensical | uv pip compile - --quiet --constraint constraints.txt --generate-hashes --python-version 3.11 \
  --python-platform x86_64-manylinux_2_28 --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
  --output-file requirements/docs.txt
