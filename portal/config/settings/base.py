"""Settings of every environment; development, production and test add theirs."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

from portal.config.settings.limits import JOB_LIMITS_S
from portal.core import environment
from portal.core.http.guide import guide_headers

gc.disable()  # imported modules are no garbage; CoreConfig.ready enables it
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
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "corsheaders",
    "csp",
    "django_filters",
    "django_htmx",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "rest_framework",
    "portal.core",
    "portal.labs",
    "portal.audit",
    "portal.jobs",
    "portal.archive",
    "portal.annotations",
    "portal.embeddings",
    "portal.search",
    "portal.explore",
    "portal.quantification",
    "portal.model_training",
    "portal.mosaics",
    "portal.review",
    "portal.reader_studies",
    "portal.webhooks",
    "portal.interop",
    "portal.inbox",
    "portal.backups",
    "portal.erasure",
    "portal.operations",
]
MIDDLEWARE = [
    "portal.core.observe.middleware.RequestMiddleware",  # outermost: its id is in every line
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.core.middleware.PrivacyHeadersMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "portal.core.middleware.BodyLimitMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "portal.labs.middleware.SessionLifeMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "portal.operations.audit_middleware.AuditMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.labs.middleware.SecondFactorMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.core.middleware.PortalErrorMiddleware",
]
ROOT_URLCONF = "portal.config.urls"
ASGI_APPLICATION = "portal.config.asgi.application"
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
                "portal.reader_studies.context.navigation",
                "portal.inbox.context.navigation",
            ],
        },
    },
]

# --- Records ---------------------------------------------------------------------------------
DATABASES = {"default": environment.database(f"sqlite:///{VAR / 'tessera.sqlite3'}")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TESSERA_STORAGE = environment.storage_root(VAR / "storage")
TESSERA_S3 = environment.object_storage()  # object storage for originals, instead of that folder

# --- People ----------------------------------------------------------------------------------
AUTH_USER_MODEL = "labs.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("email", "full_name")},
    },
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {
            "min_length": int(environment.number("TESSERA_PASSWORD_MIN", default=10, minimum=8))
        },
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
TESSERA_URL = environment.text("TESSERA_URL", "http://127.0.0.1:8000").rstrip("/")
ACCOUNT_ADAPTER = "portal.labs.adapters.accounts.LabAccountAdapter"
ACCOUNT_FORMS = {
    "login": "portal.labs.forms.sign_in.SignInForm",
    "change_password": "portal.labs.forms.sign_in.ChangePasswordForm",
    "set_password": "portal.labs.forms.sign_in.SetPasswordForm",
    "reset_password": "portal.labs.forms.sign_in.ResetForm",
    "reset_password_from_key": "portal.labs.forms.sign_in.ResetKeyForm",
    "reauthenticate": "portal.labs.forms.sign_in.ConfirmPasswordForm",
}
ACCOUNT_RATE_LIMITS = {"login": None}  # counted by portal.labs.services.attempts instead
TESSERA_TRUSTED_PROXIES = int(environment.number("TESSERA_TRUSTED_PROXIES", default=0, minimum=0))
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = None
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # no mail to strangers who were named in the reset form
ACCOUNT_PASSWORD_RESET_TOKEN_GENERATOR = "django.contrib.auth.tokens.PasswordResetTokenGenerator"  # noqa: S105
vars().update(environment.mail("dummymail://"))  # EMAIL_... and the sender
MFA_ADAPTER = "portal.labs.adapters.factors.LabFactorAdapter"
MFA_FORMS = {
    "add_webauthn": "portal.labs.forms.sign_in.PasskeyAddForm",
    "authenticate": "portal.labs.forms.sign_in.FactorForm",
    "authenticate_webauthn": "portal.labs.forms.sign_in.PasskeyFactorForm",
    "login_webauthn": "portal.labs.forms.sign_in.PasskeySignInForm",
    "reauthenticate": "portal.labs.forms.sign_in.ConfirmForm",
    "reauthenticate_webauthn": "portal.labs.forms.sign_in.PasskeyConfirmForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_ALLOW_UNVERIFIED_EMAIL = True  # nobody signs up here: accounts come by invitation
MFA_TOTP_ISSUER = "Tessera"
MFA_TOTP_TOLERANCE = 1  # a code of the half minute before or after: clocks of phones differ
TESSERA_REQUIRE_SECOND_FACTOR = environment.one_of(
    "TESSERA_REQUIRE_SECOND_FACTOR", ("off", "managers", "all"), default="off"
)
TESSERA_OIDC = environment.oidc()
SOCIALACCOUNT_ADAPTER = "portal.labs.adapters.oidc.LabOidcAdapter"
SOCIALACCOUNT_LOGIN_ON_GET = True  # a link: a form may not lead to another host (form-action)
SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": TESSERA_OIDC}}
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
SESSION_ENGINE = "portal.labs.session_store"
SESSION_COOKIE_AGE = int(  # in all, however often it is used
    environment.number("TESSERA_SESSION_LIFE_H", default=168, minimum=0.01) * 3600
)
TESSERA_SESSION_IDLE_S = environment.number("TESSERA_SESSION_IDLE_MIN", default=480, minimum=1) * 60
SESSION_COOKIE_HTTPONLY = True
# Messages name cases; a session is a row of the database.
MESSAGE_STORAGE = "django.contrib.messages.storage.cookie.CookieStorage"
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "portal.core.views.csrf_failure"

# --- REST ------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.labs.authentication.ApiTokenAuthentication",
        "portal.labs.authentication.SessionAuthentication",
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
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {  # groups, closed at first: all operations at once take seconds
        "docExpansion": "none",
        "filter": True,
        "tagsSorter": "alpha",
        "deepLinking": True,
        "defaultModelsExpandDepth": -1,
        "defaultModelExpandDepth": 2,
        "displayRequestDuration": True,
    },
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": ["portal.operations.examples.examples_add"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_NAME_OVERRIDES": {
        "JobStateEnum": "portal.jobs.models.JobState",
        "OpenJobStateEnum": "portal.jobs.serializers.OPEN_CHOICES",
        "WebhookStateEnum": "portal.webhooks.models.WebhookState",
        "DeliveryStateEnum": "portal.webhooks.models.DeliveryState",
        "WebhookTypeEnum": "portal.webhooks.serializers.TYPE_CHOICES",
        "ErasureStateEnum": "portal.erasure.models.ErasureState",
        "ReviewStateEnum": "portal.annotations.models.ReviewState",
        "ShareStateEnum": ("offered", "accepted", "over", "ended"),
        "ImportStageEnum": "portal.annotations.models.ImportStage",
        "UploadStateEnum": "portal.archive.models.UploadState",
        "PixelRuleEnum": "portal.archive.models.PixelRule",
        "VocabularyFieldEnum": "portal.archive.models.VocabularyField",
        "PixelKindEnum": ("date", "time", "number", "name", "other", "face", "outside_body"),
        "ItemKindEnum": ("slide", "video"),
        "ItemStateEnum": "portal.archive.models.ItemState",
        "FrameStatusEnum": "portal.mosaics.models.FrameStatus",
        "QuerySourceEnum": "portal.search.models.QuerySource",
        "ModalityEnum": "portal.archive.models.Modality",
        "LearningMethodEnum": "portal.model_training.models.LearningMethod",
        "CanvasKindEnum": "portal.archive.models.CanvasKind",
        "PropertyTypeKindEnum": "portal.annotations.properties.KINDS",
    },
}

# --- Jobs: Celery carries, the database decides (portal/jobs) ----------------------------------
TESSERA_BROKER_FOLDER = Path(environment.text("TESSERA_BROKER_FOLDER", str(VAR / "broker")))
CELERY_BROKER_URL = environment.broker_url("filesystem://")
CELERY_BROKER_TRANSPORT_OPTIONS = environment.transport_options(
    CELERY_BROKER_URL, folder=TESSERA_BROKER_FOLDER
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_IMPORTS = ["portal.jobs.worker.heartbeat", "portal.jobs.worker.workarounds"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ACKS_LATE = False  # the reaper sends again what no worker has claimed
CELERY_WORKER_PREFETCH_MULTIPLIER = 1  # a busy worker keeps no message from an idle one
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_MAX_MEMORY_PER_CHILD = int(  # KiB: a child beyond it is replaced
    environment.number("TESSERA_WORKER_MEMORY_GIB", default=3, minimum=1) * 2**20
)
CELERY_ACCEPT_CONTENT = ["json"]
TESSERA_JOB_LEASE_S = environment.number("TESSERA_JOB_LEASE_S", default=30, minimum=0.5)
TESSERA_JOB_REAP_EVERY_S = environment.number("TESSERA_JOB_REAP_EVERY_S", default=5, minimum=0.1)
TESSERA_JOB_LIMIT_S = 6 * 3600.0  # kinds not named below
TESSERA_JOB_LIMITS_S = JOB_LIMITS_S | environment.limits()
TESSERA_JOB_RESEND_AFTER_S = environment.number(
    "TESSERA_JOB_RESEND_AFTER_S", default=15, minimum=0.1
)

# allauth counts its limits here, on the broker's Redis if any; sign-in is counted in the database.
CACHES = {"default": environment.cache(CELERY_BROKER_URL, folder=VAR / "cache")}

# --- Encoders (portal/embeddings, docs/guide/operations/encoders.md) ---------------------------
TESSERA_ENCODERS = {  # by kind: a name of ml.roi, or a file that `python -m ml encoder make` wrote
    "histology": environment.text("TESSERA_ENCODER_HISTOLOGY", "default"),
    "endoscopy": environment.text("TESSERA_ENCODER_ENDOSCOPY", "endoscopy"),
}
TESSERA_EMBED_BATCH_SIZE = int(  # 0: as many as pay off on the worker's device
    environment.number("TESSERA_EMBED_BATCH_SIZE", default=0, minimum=0)
)
TESSERA_ENCODER_APPROVAL = environment.flag("TESSERA_ENCODER_APPROVAL", default=False)
TESSERA_INDEX_ENGINE = environment.one_of(  # what new indexes are made in
    "TESSERA_INDEX_ENGINE", ("files", "milvus"), default="files"
)
TESSERA_MILVUS = environment.index_server()
TESSERA_SEARCH_EXPAND = int(environment.number("TESSERA_SEARCH_EXPAND", default=3, minimum=0))
TESSERA_SEARCH_DIFFUSE = environment.flag("TESSERA_SEARCH_DIFFUSE", default=True)

# --- Webhooks (portal/webhooks) -------------------------------------------------------------------
TESSERA_WEBHOOK_NETWORKS = environment.networks("TESSERA_WEBHOOK_NETWORKS")

# --- Metrics (portal/operations/metrics.py, docs/guide/operations/watching.md) ----------------
TESSERA_METRICS_TOKEN = environment.text("TESSERA_METRICS_TOKEN", "")

# --- Uploads -----------------------------------------------------------------------------------
TESSERA_UPLOAD_MAX_BYTES = int(
    environment.number("TESSERA_UPLOAD_MAX_BYTES", default=100 * 2**30, minimum=1)
)
TESSERA_LAB_QUOTA_BYTES = int(environment.number("TESSERA_LAB_QUOTA_BYTES", default=0, minimum=0))
TESSERA_STORAGE_FLOOR_BYTES = int(
    environment.number("TESSERA_STORAGE_FLOOR_BYTES", default=0, minimum=0)
)
TESSERA_RESERVE_BYTES = int(
    environment.number("TESSERA_RESERVE_BYTES", default=256 * 2**20, minimum=0)
)
TESSERA_PHI_IN_PIXELS = environment.one_of(  # of labs without rules of their own
    "TESSERA_PHI_IN_PIXELS", ("hold", "warn", "off"), default="hold"
)
TESSERA_ORPHAN_DAYS = environment.number("TESSERA_ORPHAN_DAYS", default=30, minimum=0)
DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20  # fields of a form; JSON has a limit of its own
FILE_UPLOAD_HANDLERS = ["portal.core.http.bodies.NoFilesHandler"]  # views that take files: others

TESSERA_TRASH_DAYS = environment.number("TESSERA_TRASH_DAYS", default=30, minimum=0)

# --- Pages ---------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATIC_ROOT = Path(environment.text("TESSERA_STATIC_ROOT", str(VAR / "static")))
STATICFILES_DIRS = [ROOT / "static" / "dist"]
GUIDE = ROOT / "build" / "guide"  # help/ in it is docs/guide as a site (`make docs`)
WHITENOISE_ROOT = GUIDE if GUIDE.is_dir() else None
WHITENOISE_INDEX_FILE = True
WHITENOISE_ADD_HEADERS_FUNCTION = guide_headers
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
# Pages of other hosts read IIIF and DICOMweb with a token, never with this site's cookies.
CORS_URLS_REGEX = (
    r"^/api/v1/(iiif/|dicomweb/|canvases/[^/]+/(manifest|annotations)/$|cases/[^/]+/manifest/$)"
)
CORS_ALLOW_ALL_ORIGINS = True
CORS_ALLOW_CREDENTIALS = False
CORS_ALLOW_METHODS = ["GET", "HEAD", "OPTIONS"]
CORS_ALLOW_HEADERS = ["Accept", "Authorization", "If-None-Match"]
CORS_EXPOSE_HEADERS = ["ETag", "Link"]
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:", "blob:"],
        "media-src": ["'self'", "blob:"],
        "style-src": ["'self'"],
        "style-src-attr": ["'unsafe-inline'"],  # the colours of labels; no <style>, no other sheet
        "script-src": ["'self'"],
        "connect-src": ["'self'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
        "base-uri": ["'self'"],
        "object-src": ["'none'"],
    },
}

LOG_FORMATS = ("line", "json")
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "portal.core.observe.logs.LineFormatter"},
        "json": {"()": "portal.core.observe.logs.JsonFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": environment.one_of("TESSERA_LOG_FORMAT", LOG_FORMATS, default="line"),
        }
    },
    "root": {
        "handlers": ["stderr"],
        "level": environment.text("TESSERA_LOG_LEVEL", "INFO").upper(),
    },
    # Celery logs each message and task; the job rows hold that already.
    "loggers": {name: {"level": "WARNING"} for name in ("celery", "pyvips", "PIL")}
    | {"kombu": {"level": "ERROR"}, "faiss": {"level": "WARNING"}}
    # A line for each request only where it is collected; on a terminal what went wrong.
    | {"portal.request": {"level": "WARNING"}}
    # It says what it starts and stops, and warns of each request that is not HTTP.
    | {"uvicorn": {"level": "ERROR"}, "uvicorn.error": {"level": "ERROR"}},
}
STORAGES_PRODUCTION = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
