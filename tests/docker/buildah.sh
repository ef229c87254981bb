#!/usr/bin/env bash
# Build an image for real, without Docker and without a registry of images: bases by
# debootstrap, layers by buildah in chroot isolation. Needs root, buildah, debootstrap, Node.js.
#   tests/docker/buildah.sh FOLDER     # 15 GB free; prints the root of a container of the image, which stays
# TESSERA_BUILD_MOUNTS: "SOURCE:TARGET ..." to show read-only to every step, such as a pip.conf.
# ACCELERATOR=gpu: the image with torch and FAISS for CUDA (45 GB free), beside the one for processors.
# TORCH_WHEELS: a page or folder (among the mounts) with torch's wheel for processors.
# TESSERA_BUILT=1: the image that is there, without building it again.
# DEBIAN_MIRROR: where debootstrap and apt-get look.
set -euo pipefail
folder=$(realpath -m "${1:?a folder to build in}")
here=$(realpath "$(dirname "$0")/../..")
suite=bookworm
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
accelerator=${ACCELERATOR:-cpu}
name=tessera
[ "$accelerator" = cpu ] || name=tessera-$accelerator
mkdir -p "$folder"
image() { nice -n 10 buildah --root "$folder/images" --runroot "$folder/run" --storage-driver vfs "$@"; }

if [ ! -e "$folder/base.done" ]; then # the part of python:3.11-slim-bookworm that the image uses
  nice -n 10 debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv \
    "$suite" "$folder/base" "$mirror" >"$folder/debootstrap.log"
  rm -rf "$folder"/base/var/cache/apt/archives/*.deb "$folder"/base/var/lib/apt/lists/*
  touch "$folder/base.done"
fi

from() { # NAME: an image of the base, and of what is copied onto it: SOURCE TARGET ...
  local name=$1 work
  shift
  work=$(image from scratch)
  image copy -q "$work" "$folder/base" / >&2
  while [ $# -gt 0 ]; do
    image copy -q "$work" "$1" "$2" >&2
    shift 2
  done
  image config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --cmd /bin/bash "$work" >&2
  image commit -q --rm "$work" "localhost/$name" >&2
}

have() { image images -q "localhost/$1" >/dev/null 2>&1; }
have tessera-python-base || from tessera-python-base
if ! have tessera-node-base; then # this machine's Node.js
  root=$(realpath "$(dirname "$(realpath "$(command -v npm)")")/../../../..")
  rm -rf "$folder/libraries" && mkdir -p "$folder/libraries"
  for library in $(ldd "$(command -v node)" | awk '/libstdc|libgcc/ {print $3}'); do
    cp -L "$library" "$folder/libraries/"
  done
  from tessera-node-base "$(realpath "$(command -v node)")" /usr/local/bin/node \
    "$root/lib/node_modules/npm" /usr/local/lib/node_modules/npm "$folder/libraries" /usr/local/lib
  work=$(image from localhost/tessera-node-base)
  image run --isolation chroot "$work" -- sh -c \
    'ln -sf ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && ldconfig' >&2
  image commit -q --rm "$work" localhost/tessera-node-base >&2
fi

mounts=()
for mount in ${TESSERA_BUILD_MOUNTS:-}; do mounts+=(--volume "$mount:ro"); done
if [ "${TESSERA_BUILT:-}" != 1 ]; then
  image rm "$name-tried" >/dev/null 2>&1 || true
  image build --isolation chroot --network host --format docker --layers=false \
    "${mounts[@]}" --file "$here/docker/Dockerfile" --tag "localhost/$name" \
    --build-arg ACCELERATOR="$accelerator" \
    --build-arg NODE_IMAGE=localhost/tessera-node-base \
    --build-arg PYTHON_IMAGE=localhost/tessera-python-base \
    --build-arg TORCH_WHEELS="${TORCH_WHEELS:-}" "$here" >&2
  image rmi --prune >&2
fi

image inspect --type image "localhost/$name" >"$folder/config.json"
root=$(image mount "$name-tried" 2>/dev/null) || root=$(image mount "$(image from --name "$name-tried" "localhost/$name")")
echo "$root"
