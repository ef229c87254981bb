#!/bin/sh
# The roles of the image. Any other word is run as a management command.
set -eu

role="${1:-web}"
[ $# -gt 0 ] && shift

case "$role" in
  web)
    exec gunicorn portal.config.wsgi:application --bind 0.0.0.0:8000 \
      --worker-class gthread --workers "${TESSERA_WEB_WORKERS:-2}" \
      --threads "${TESSERA_WEB_THREADS:-8}" --keep-alive 30 --reuse-port --access-logfile - "$@"
    ;;
  worker)
    exec celery -A portal.config.celery worker -Q default \
      -c "${TESSERA_WORKER_CONCURRENCY:-2}" -l INFO --without-gossip --without-mingle "$@"
    ;;
  gpu-worker)
    exec celery -A portal.config.celery worker -Q gpu \
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
