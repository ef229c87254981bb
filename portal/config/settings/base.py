"""Settings that hold everywhere. What differs stands in development, production or test."""

from __future__ import annotations

from pathlib import Path

from portal.config import environment

ROOT = Path(__file__).resolve().parents[3]
VAR = ROOT / "var"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "csp",
    "django_filters",
    "django_htmx",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "rest_framework",
    "portal.core",
    "portal.labs",
    "portal.jobs",
    "portal.archive",
    "portal.annotations",
    "portal.retrieval",
    "portal.mosaics",
    "portal.config",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.core.middleware.PortalErrorMiddleware",
]
ROOT_URLCONF = "portal.config.urls"
WSGI_APPLICATION = "portal.config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.labs.context.navigation",
            ],
        },
    },
]

# --- Records ---------------------------------------------------------------------------------
DATABASES = {"default": environment.database(f"sqlite:///{VAR / 'tessera.sqlite3'}")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TESSERA_STORAGE = environment.storage_root(VAR / "storage")

# --- People ----------------------------------------------------------------------------------
AUTH_USER_MODEL = "labs.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
ACCOUNT_ADAPTER = "portal.labs.accounts.LabAccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = None
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # no mail to strangers who were named in the reset form
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "portal.core.views.csrf_failure"

# --- REST ------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.labs.authentication.ApiTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["portal.labs.authentication.SignedInWithScope"],
    "DEFAULT_PARSER_CLASSES": ["portal.core.api.parsers.BoundedJsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "portal.core.api.paging.Paging",
    "DEFAULT_SCHEMA_CLASS": "portal.core.api.schema.ProblemAutoSchema",
    "EXCEPTION_HANDLER": "portal.core.api.problems.problem_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Tessera",
    "DESCRIPTION": (
        "Cases, slides, videos, regions of interest, similar cases and mosaics over REST. "
        "Sign in with `Authorization: Bearer <token>`; errors are RFC 9457 problem+json."
    ),
    "VERSION": "1.0.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_NAME_OVERRIDES": {
        "JobStateEnum": "portal.jobs.models.JobState",
        "ItemStateEnum": "portal.archive.models.ItemState",
        "FrameStatusEnum": "portal.mosaics.models.FrameStatus",
        "EncoderKindEnum": "portal.retrieval.models.EncoderKind",
        "CanvasKindEnum": "portal.archive.models.CanvasKind",
    },
}

# --- Jobs: Celery carries, the database decides (portal/jobs) ----------------------------------
TESSERA_BROKER_FOLDER = Path(environment.text("TESSERA_BROKER_FOLDER", str(VAR / "broker")))
CELERY_BROKER_URL = environment.broker_url("filesystem://")
CELERY_BROKER_TRANSPORT_OPTIONS = environment.transport_options(
    CELERY_BROKER_URL, folder=TESSERA_BROKER_FOLDER
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_IMPORTS = ("portal.jobs.worker.bell", "portal.jobs.worker.heartbeat")
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ACKS_LATE = False  # the message is only a doorbell; the ledger rings again
CELERY_WORKER_PREFETCH_MULTIPLIER = 1  # a doorbell held back by a busy worker would ring late
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_MAX_MEMORY_PER_CHILD = int(  # KiB: a child beyond it is replaced
    environment.number("TESSERA_WORKER_MEMORY_GIB", default=3, minimum=1) * 2**20
)
CELERY_ACCEPT_CONTENT = ["json"]
TESSERA_JOB_LEASE_S = environment.number("TESSERA_JOB_LEASE_S", default=30, minimum=0.5)
TESSERA_JOB_REAP_EVERY_S = environment.number("TESSERA_JOB_REAP_EVERY_S", default=5, minimum=0.1)
TESSERA_JOB_RING_AFTER_S = environment.number("TESSERA_JOB_RING_AFTER_S", default=15, minimum=0.1)

# Sign-in rate limits are counted here: one count for all processes, on the broker's Redis where
# there is one.
CACHES = {"default": environment.cache(CELERY_BROKER_URL, folder=VAR / "cache")}

# --- Encoders (portal/retrieval, docs/encoders.md) ----------------------------------------------
# By kind: a name of ml.roi, or the path of a file that `python -m ml encoder make` wrote.
TESSERA_ENCODERS = {
    "histology": environment.text("TESSERA_ENCODER_HISTOLOGY", "default"),
    "endoscopy": environment.text("TESSERA_ENCODER_ENDOSCOPY", "endoscopy"),
}
TESSERA_ENCODER_APPROVAL = environment.flag("TESSERA_ENCODER_APPROVAL", default=False)

# --- Uploads -----------------------------------------------------------------------------------
TESSERA_UPLOAD_MAX_BYTES = int(
    environment.number("TESSERA_UPLOAD_MAX_BYTES", default=20 * 2**30, minimum=1)
)
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 2**20  # a GeoJSON of 200,000 vertices is about 8 MB
FILE_UPLOAD_MAX_MEMORY_SIZE = 2**20  # files go to the storage volume by our own handler
FILE_UPLOAD_HANDLERS = ["portal.archive.receiving.AssetUploadHandler"]

# --- Pages ---------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATIC_ROOT = Path(environment.text("TESSERA_STATIC_ROOT", str(VAR / "static")))
STATICFILES_DIRS = [ROOT / "static" / "dist"]
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:", "blob:"],
        "media-src": ["'self'", "blob:"],
        "style-src": ["'self'", "'unsafe-inline'"],
        "script-src": ["'self'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
        "base-uri": ["'self'"],
        "object-src": ["'none'"],
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {
        "handlers": ["stderr"],
        "level": environment.text("TESSERA_LOG_LEVEL", "INFO").upper(),
    },
    # These tell, line by line, what the ledger tells already.
    "loggers": {name: {"level": "WARNING"} for name in ("celery", "pyvips", "PIL")}
    | {"kombu": {"level": "ERROR"}, "faiss": {"level": "WARNING"}},
}
STORAGES_PRODUCTION = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
