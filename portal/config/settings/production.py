"""A server: everything secret or local comes from the environment; TLS is terminated in front."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from portal.core import environment

from .base import *  # noqa: F403
from .base import LOG_FORMATS, LOGGING, STORAGES_PRODUCTION

DEBUG = False
SECRET_KEY = environment.text("TESSERA_SECRET_KEY")
if len(SECRET_KEY) < 50 or len(set(SECRET_KEY)) < 5:
    raise ImproperlyConfigured(
        "TESSERA_SECRET_KEY must be at least 50 characters, at least 5 of them different."
    )
ALLOWED_HOSTS = environment.names("TESSERA_ALLOWED_HOSTS")
if not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS:
    raise ImproperlyConfigured("TESSERA_ALLOWED_HOSTS must name the hosts served, without '*'.")
CSRF_TRUSTED_ORIGINS = environment.names("TESSERA_CSRF_TRUSTED_ORIGINS")
STORAGES = STORAGES_PRODUCTION

_TLS = environment.flag("TESSERA_TLS", default=True)
_ADDRESS = f"{'https' if _TLS else 'http'}://{ALLOWED_HOSTS[0].lstrip('.')}"
TESSERA_URL = environment.text("TESSERA_URL", _ADDRESS).rstrip("/")
SECURE_SSL_REDIRECT = _TLS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = 31_536_000 if _TLS else 0  # one year, as browsers' preload lists ask
SECURE_HSTS_INCLUDE_SUBDOMAINS = _TLS
SECURE_HSTS_PRELOAD = _TLS
SESSION_COOKIE_SECURE = _TLS
if _TLS:
    SESSION_COOKIE_NAME = "__Host-sessionid"  # no other host of the domain can set it
CSRF_COOKIE_SECURE = _TLS

LOGGING["handlers"]["stderr"]["formatter"] = environment.one_of(
    "TESSERA_LOG_FORMAT", LOG_FORMATS, default="json"
)
LOGGING["loggers"]["portal.request"] = {"level": "INFO"}
