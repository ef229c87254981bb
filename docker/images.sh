#!/bin/sh
# Refuse base images that are not named by digest: a floating tag is another image on another day.
# Reads the environment; name what the compose file and the Dockerfile need.
set -eu
status=0
for name in NODE_IMAGE PYTHON_IMAGE POSTGRES_IMAGE REDIS_IMAGE PROXY_IMAGE ${OBJECTS_IMAGE:+OBJECTS_IMAGE} ${MILVUS_IMAGE:+MILVUS_IMAGE}; do
  eval "image=\${$name:-}"
  digest=${image##*@sha256:}
  case "$image" in
    *@sha256:*) [ ${#digest} -eq 64 ] && case "$digest" in *[!0-9a-f]*) ;; *) continue ;; esac ;;
  esac
  echo "$name must be an image by digest (name:tag@sha256:...); it is '${image:-not set}'." >&2
  status=1
done
exit $status
