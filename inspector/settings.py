"""The settings: every one by environment, every one with a default that works on one machine.

docs/settings.md lists the variables; tests/test_docs.py holds that list against this file.
"""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from inspector.starting import (
    Environment,
    RefusedStartError,
    check_secret,
    check_shared_settings,
    check_single_sign_on,
    needing_state,
    read_or_make_secret,
    spell_object_store,
)

env = Environment()

BASE_DIR = Path(__file__).resolve().parent.parent
STATE_DIR = Path(env.str("INSPECTOR_STATE_DIR", str(BASE_DIR / ".state")))

DEBUG = env.bool("DEBUG", False)
_given_secret: str = env.str("SECRET_KEY", "")
if _given_secret:
    check_secret("SECRET_KEY", _given_secret)
with needing_state(STATE_DIR):
    SECRET_KEY = _given_secret or read_or_make_secret(STATE_DIR / "secret_key")
# What the keys held in escrow are sealed with. Without the setting it is in a file, made when the first key is added.
KEYRING_KEY: str = env.str("INSPECTOR_KEYRING_KEY", "")
KEYRING_KEY_FILE = STATE_DIR / "keyring_key"
# Earlier ones: what they sealed opens still, until `manage.py rewrap_keyring` has sealed it anew.
KEYRING_OLD_KEYS: list[str] = env.list("INSPECTOR_KEYRING_OLD_KEYS", [])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", [])
IS_BEHIND_HTTPS = env.bool("BEHIND_HTTPS", False)
# So many proxies, one behind the other, are trusted to write down in X-Forwarded-For whom they speak for.
TRUSTED_PROXIES = env.int("TRUSTED_PROXIES", 0)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "inspector",  # its commands
    "inspector.trail",
    "inspector.accounts.AccountsConfig",
    "inspector.retention",
    "inspector.intake",
    "inspector.keyring",
    "inspector.threads",
    "inspector.search",
    "inspector.audit.AuditConfig",
    "inspector.ledger",
    "inspector.exports",
    "inspector.api",
    "inspector.pages",
]

# Django's admin for superusers of the installation, to read and without a word of any log: `inspector.pages.operators`.
OPERATOR_ADMIN = env.bool("OPERATOR_ADMIN", False)
if OPERATOR_ADMIN:
    INSTALLED_APPS.append("django.contrib.admin.apps.SimpleAdminConfig")

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "inspector.logs.RequestIdMiddleware",
    "inspector.bounds.EffortMiddleware",
    "inspector.trail.acting.ActingMiddleware",
    "inspector.trail.row_security.RowSecurityMiddleware",
    "inspector.pages.answers.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "inspector.accounts.sessions.IdlenessMiddleware",
    "inspector.api.probes.HostMiddleware",
    "inspector.bounds.BodyBoundsMiddleware",
    "inspector.pages.answers.UnreadableMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "axes.middleware.AxesMiddleware",
]

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "inspector.urls"
WSGI_APPLICATION = "inspector.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]


def _read_database_url() -> str:
    """The address of the database: the environment's, else that of the embedded server that is running now."""
    written = STATE_DIR / "database_url"
    with needing_state(STATE_DIR):
        return env.str("DATABASE_URL", "") or (written.read_text().strip() if written.is_file() else "")


def _spell_database(variable: str, url: str) -> dict[str, Any]:
    """The address of a database as Django spells it; `variable` is where it is from."""
    try:
        parts: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # What psycopg says quotes the address, and with it the password.
        raise RefusedStartError(f"{variable} is no address of a PostgreSQL database.") from None
    # A server that does not answer is away: whoever asks is told so, and does not wait for minutes.
    parts.setdefault("connect_timeout", "5")
    return {
        "NAME": parts.pop("dbname", "inspector"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "OPTIONS": parts,
    }


DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "CONN_MAX_AGE": env.int("DATABASE_CONNECTION_SECONDS", 600),
        "CONN_HEALTH_CHECKS": True,
        **_spell_database("DATABASE_URL", _read_database_url()),
    }
}
# A streaming replica, which reads of lists and searches may be asked of.
_replica_url = env.str("REPLICA_URL", "")
if _replica_url:
    DATABASES["replica"] = {**DATABASES["default"], **_spell_database("REPLICA_URL", _replica_url)}
    DATABASE_ROUTERS = ["inspector.database.ReplicaRouter"]
# A statement of a web request that runs longer is ended: inspector/server.py sets this for what answers requests.
_statement_seconds = env.int("DATABASE_STATEMENT_SECONDS", 0)
if _statement_seconds and not env.str("DATABASE_DIRECT_URL", ""):
    for _database in DATABASES.values():
        _given_options = _database["OPTIONS"].get("options", "")
        _database["OPTIONS"]["options"] = f"{_given_options} -c statement_timeout={_statement_seconds}s".strip()
# Where DATABASE_URL leads to a pooler that shares sessions between transactions: the way around it.
_direct_url = env.str("DATABASE_DIRECT_URL", "")
if _direct_url:
    for _database in DATABASES.values():
        _database["DISABLE_SERVER_SIDE_CURSORS"] = True
    # Only for as long as it is needed: what is pooled is to stay so.
    DATABASES["direct"] = {
        **DATABASES["default"],
        "CONN_MAX_AGE": 0,
        **_spell_database("DATABASE_DIRECT_URL", _direct_url),
    }
# The role that owns the tables, where it is another than the application's: only `manage.py migrate` works as it.
_owner_url = env.str("DATABASE_OWNER_URL", "")
DATABASE_OWNER = _spell_database("DATABASE_OWNER_URL", _owner_url) if _owner_url else None

AUTH_USER_MODEL = "accounts.User"
# The first refuses who tried too often, the second checks passwords, the third says whose a session is.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "inspector.accounts.sessions.SessionBackend",
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {
        "NAME": "django.contrib.auth.password_validation.CommonPasswordValidator",
        # Of 12 characters and more: Django's own list has 187 of these (docs/signing-in.md).
        "OPTIONS": {"password_list_path": BASE_DIR / "inspector" / "accounts" / "common_passwords.txt.gz"},
    },
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "inspector.accounts.sessions.DifferentCharactersValidator"},
    {"NAME": "inspector.accounts.sessions.NearWordsValidator"},
]
LOGIN_URL = "pages:sign-in"
LOGIN_REDIRECT_URL = "pages:home"
LOGOUT_REDIRECT_URL = "pages:sign-in"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 1  # hours
AXES_LOCKOUT_TEMPLATE = "429.html"
AXES_CLIENT_IP_CALLABLE = "inspector.trail.acting.find_client_address"
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "code"]
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]

# Of django-allauth the product has second factors and single sign-on: no sign-up, and nothing that sends mail.
ACCOUNT_ADAPTER = "inspector.accounts.sessions.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
MFA_ADAPTER = "inspector.accounts.second_factors.FactorAdapter"
# Recovery codes are made and shown by pages of our own, and asked for by the forms below.
MFA_SUPPORTED_TYPES = ["totp", "webauthn"]
MFA_TOTP_ISSUER = "Inspector"
# In every workspace, whatever its owners chose.
REQUIRE_SECOND_FACTOR: bool = env.bool("REQUIRE_SECOND_FACTOR", False)
MFA_FORMS = {
    "authenticate": "inspector.accounts.second_factors.CodeForm",
    "reauthenticate": "inspector.accounts.second_factors.ProofForm",
    "activate_totp": "inspector.accounts.second_factors.AppForm",
}
# Single sign-on by OpenID Connect, where a provider is set.
OIDC_SERVER_URL: str = env.str("OIDC_SERVER_URL", "")
OIDC_NAME: str = env.str("OIDC_NAME", "single sign-on")
OIDC_CLIENT_ID: str = env.str("OIDC_CLIENT_ID", "")
OIDC_CLIENT_SECRET: str = env.str("OIDC_CLIENT_SECRET", "")
OIDC_SCOPES: list[str] = env.list("OIDC_SCOPES", ["openid", "profile", "email"])
OIDC_SECOND_FACTOR: list[str] = env.list("OIDC_SECOND_FACTOR", [])
OIDC_GROUPS_CLAIM: str = env.str("OIDC_GROUPS_CLAIM", "groups")
OIDC_ROLES: dict[str, dict[str, list[str]]] = env.json("OIDC_ROLES", {})
SOCIALACCOUNT_ADAPTER = "inspector.accounts.single_sign_on.ProviderAdapter"
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if OIDC_SERVER_URL:
    check_single_sign_on(OIDC_SERVER_URL, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_ROLES)
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "SCOPE": OIDC_SCOPES,
        "APPS": [
            {
                "provider_id": "sso",
                "name": OIDC_NAME,
                "client_id": OIDC_CLIENT_ID,
                "secret": OIDC_CLIENT_SECRET,
                "settings": {"server_url": OIDC_SERVER_URL},
            }
        ],
    }

# A session ends when nobody uses it for so long, and so long after its sign-in.
SESSION_IDLE_MINUTES = env.int("SESSION_IDLE_MINUTES", 720)
SESSION_HOURS = env.int("SESSION_HOURS", 336)
SESSION_ENGINE = "inspector.accounts.sessions"
# What a page says once goes with the session: no third cookie is needed.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_BEHIND_HTTPS
if IS_BEHIND_HTTPS:
    # A browser takes a cookie of such a name from this host alone: no neighbour under the same domain can set it.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if IS_BEHIND_HTTPS else None
SECURE_SSL_REDIRECT = IS_BEHIND_HTTPS
# A supervisor asks the process itself, without the proxy; a program that sends its key in clear is refused and not led
# on (inspector/api/authentication.py), or nobody would notice.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$", r"^(api/)?v1/"]
SECURE_HSTS_SECONDS = 31_536_000 if IS_BEHIND_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = IS_BEHIND_HTTPS
SECURE_HSTS_PRELOAD = IS_BEHIND_HTTPS
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": ["'none'"],
    "object-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    "img-src": ["'self'", "data:"],
    "font-src": ["'self'"],
    "connect-src": ["'self'"],
    "form-action": ["'self'"],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
    "manifest-src": ["'self'"],
}
if OIDC_SERVER_URL:
    # The form that asks for single sign-on is led on to the provider.
    SECURE_CSP["form-action"].append("{0.scheme}://{0.netloc}".format(urlsplit(OIDC_SERVER_URL)))

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
# No page of another origin needs our files.
WHITENOISE_ALLOW_ALL_ORIGINS = False
STATICFILES_DIRS = [BASE_DIR / "static"]
# Without a manifest the files are served straight from their folders: a clone needs no build step.
HAS_STATIC_MANIFEST = env.bool("STATIC_MANIFEST", False)
STATIC_ROOT = Path(env.str("STATIC_ROOT", str(STATE_DIR / "static"))) if HAS_STATIC_MANIFEST else None
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if HAS_STATIC_MANIFEST
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = not HAS_STATIC_MANIFEST
# Where files of exports and uploads are kept (inspector/intake/object_store.py); empty for rows of the database.
_spelt, OBJECT_STORE_TAKES_NEW, OBJECT_STORE_INHERITED = spell_object_store(
    env.str("OBJECT_STORE", ""), env.str("OBJECT_STORE_KEY_ID", ""), env.str("OBJECT_STORE_SECRET", "")
)
STORAGES |= _spelt

# Uploads wait in PostgreSQL or in the object store, never on the web server's disk beyond the request.
FILE_UPLOAD_TEMP_DIR = env.str("UPLOAD_TEMP_DIR", "") or None
FILE_UPLOAD_MAX_MEMORY_SIZE = 1_048_576
DATA_UPLOAD_MAX_MEMORY_SIZE = 10_485_760

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["inspector.api.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["inspector.api.authentication.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["inspector.api.authentication.KeyThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "inspector.api.problems.answer_exception",
    "UNAUTHENTICATED_USER": None,
    # ASCII only: a lone surrogate that a log held has an escape in JSON, and no bytes in UTF-8.
    "UNICODE_JSON": False,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Agent conversation inspector",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "DEFAULT_GENERATOR_CLASS": "inspector.api.decoding.DescriptionGenerator",
    # Words to choose from stand where they are chosen, and not as components with made-up names.
    "POSTPROCESSING_HOOKS": [],
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
}

# The job row in PostgreSQL is the truth, and Celery only wakes workers: no result is kept, and losing one is harmless.
# Without a broker PostgreSQL wakes them itself (`inspector.worker`).
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", "")
check_shared_settings(
    database_host=DATABASES.get("direct", DATABASES["default"])["HOST"],
    given={
        "SECRET_KEY": _given_secret,
        "INSPECTOR_KEYRING_KEY": KEYRING_KEY,
        "CELERY_BROKER_URL": CELERY_BROKER_URL,
    },
)
# One try of a second: whoever wakes a worker waits no longer, for the next sweep finds the work.
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 1, "socket_connect_timeout": 1, "max_retries": 0}
CELERY_BROKER_CONNECTION_TIMEOUT = 1
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Celery would end a worker's session after each task, and PostgreSQL learns its tables anew in each session: tens of
# milliseconds a task. `inspector.worker` ends those that are broken or old.
CELERY_DB_REUSE_MAX = sys.maxsize
# A conversation of any size is resolved in one go, which shows its life by its lease; this ends what hangs.
WORKER_TIME_LIMIT_SECONDS = CELERY_TASK_TIME_LIMIT = env.int("WORKER_TIME_LIMIT_SECONDS", 3600)
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
# A sweep that nobody took up in time is no longer needed: the next one does the same.
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "inspector.sweep", "schedule": 2.0, "options": {"expires": 10}},
    "tidy": {"task": "inspector.tidy", "schedule": 60.0, "options": {"expires": 60}},
}
# A worker waits for its broker as long as it takes.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None

LOG_FORMAT = env.str("LOG_FORMAT", "line")
if LOG_FORMAT not in ("line", "json"):
    raise RefusedStartError("LOG_FORMAT is neither line nor json.")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": f"inspector.logs.{'Json' if LOG_FORMAT == 'json' else 'Line'}Formatter"}},
    "filters": {"away": {"()": "inspector.logs.AwayFilter"}, "refusals": {"()": "inspector.logs.RefusalFilter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["refusals"]}},
    "root": {"handlers": ["console"], "level": env.log_level("LOG_LEVEL", "INFO")},
    "loggers": {
        "axes": {"level": "WARNING"},
        "celery": {"level": "WARNING"},
        "celery.beat": {"filters": ["away"]},
    },
}

# How long a lease on a job lasts without being renewed. A worker that dies loses it at once, by its database session.
JOB_LEASE_SECONDS = env.int("JOB_LEASE_SECONDS", 120)

# How long the file of an export is kept.
EXPORT_DAYS = env.int("EXPORT_DAYS", 7)

# Limits, shown by GET /api/v1/limits and named in every refusal.
LIMITS = {
    "record_bytes": env.int("LIMIT_RECORD_BYTES", 16 * 1024 * 1024),
    "delivery_bytes": env.int("LIMIT_DELIVERY_BYTES", 2 * 1024 * 1024 * 1024),
    "delivery_records": env.int("LIMIT_DELIVERY_RECORDS", 10_000_000),
    "export_bytes": env.int("LIMIT_EXPORT_BYTES", 2 * 1024 * 1024 * 1024),
    "waiting_bytes": env.int("LIMIT_WAITING_BYTES", 8 * 1024 * 1024 * 1024),
    "backlog_seconds": env.int("LIMIT_BACKLOG_SECONDS", 600),
    "decode_bytes": env.int("LIMIT_DECODE_BYTES", 64 * 1024),
    "requests_per_minute": env.int("LIMIT_REQUESTS_PER_MINUTE", 6_000),
    "sign_ins_per_minute": env.int("LIMIT_SIGN_INS_PER_MINUTE", 30),
    "channels": env.int("LIMIT_CHANNELS", 1_000),
    "workspaces": env.int("LIMIT_WORKSPACES", 100),
}

# How many pages a person may ask for, of all web processes together.
PAGES_PER_MINUTE = env.int("LIMIT_PAGES_PER_MINUTE", 1_200)

# How often an open page asks for what is new, where it does not listen to the event stream; whether there is one, as
# another process serves it (inspector/asgi.py) under the same address; and how many listeners that process takes.
LIVE_POLL_SECONDS = env.float("LIVE_POLL_SECONDS", 5)
EVENT_STREAM = env.bool("EVENT_STREAM", False)
EVENT_LISTENERS = env.int("EVENT_LISTENERS", 500)

# Whether alerts may go to addresses of private and loopback networks, and without TLS.
ALERT_PRIVATE_ADDRESSES = env.bool("ALERT_PRIVATE_ADDRESSES", False)

# Who may read /metrics: whoever brings this; while it is empty, only who asks from this machine itself.
METRICS_TOKEN = env.str("METRICS_TOKEN", "")
# Who takes the traces of the product's own steps; none are made while it is empty.
TRACES_ENDPOINT = env.str("TRACES_ENDPOINT", "")
