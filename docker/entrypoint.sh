#!/bin/sh
# The roles of the image. Any other word is run as a management command.
set -eu

role="${1:-web}"
nice="${TESSERA_WORKER_NICE:-15}" # as WORKER_NICE in portal/operations/processes.py
[ $# -gt 0 ] && shift

case "$role" in
  web)
    exec python manage.py serve --web-only --host 0.0.0.0 --port 8000 "$@"
    ;;
  worker)
    exec nice -n "$nice" celery -A portal.config.celery worker -Q "${TESSERA_QUEUES:-default}" \
      -c "${TESSERA_WORKER_CONCURRENCY:-2}" -l INFO --without-gossip --without-mingle "$@"
    ;;
  gpu-worker)
    exec nice -n "$nice" celery -A portal.config.celery worker -Q gpu \
      -c "${TESSERA_WORKER_CONCURRENCY:-1}" -l INFO --without-gossip --without-mingle "$@"
    ;;
  beat)
    exec python manage.py reaper
    ;;
  migrate)
    exec python manage.py migrate --no-input
    ;;
  *)
    exec python manage.py "$role" "$@"
    ;;
esac
