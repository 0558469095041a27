"""All settings, read from the environment once. docs/settings.md describes every variable."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import django_stubs_ext
import environ
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from config.logs import logging_config

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

EMBEDDED = env.bool("LURIA_EMBEDDED", default=False)
SECRET_KEY = env.str("SECRET_KEY")
if len(SECRET_KEY) < 32:
    raise ImproperlyConfigured("SECRET_KEY must have at least 32 characters.")
PUBLIC_URL = env.str("PUBLIC_URL").rstrip("/")
if urlsplit(PUBLIC_URL).scheme not in ("http", "https") or not urlsplit(PUBLIC_URL).hostname:
    raise ImproperlyConfigured("PUBLIC_URL must be a full address such as https://luria.example.org.")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[urlsplit(PUBLIC_URL).hostname])
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
DEBUG = False

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "studies",
    "corpus",
    "scoring",
    "surveys",
    "annotation",
    "llmruns",
    "reports",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.middleware.content_security_policy",
    "config.middleware.other_charsets_refused",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "config.middleware.wrong_method_explained",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        "django.template.loaders.filesystem.Loader",
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
            "builtins": ["django.templatetags.i18n", "django.templatetags.static"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = {"default": env.db("DATABASE_URL")}
DATABASES["default"]["ENGINE"] = "config.postgresql"
DATABASES["default"]["ATOMIC_REQUESTS"] = False
# Only `planned_cursor` prepares statements, and at once; Django's own cursors never do.
DATABASES["default"].setdefault("OPTIONS", {})["prepare_threshold"] = 0
DATABASE_POOL_SIZE = env.int("DATABASE_POOL_SIZE", default=0)
if DATABASE_POOL_SIZE:
    DATABASES["default"]["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": DATABASE_POOL_SIZE,
        "timeout": 20,
    }
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 300
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "studies.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

LANGUAGE_CODE = "en"
LANGUAGES = [("ru", _("Russian")), ("en", _("English"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["config.formats"]
LANGUAGE_COOKIE_NAME = "luria_language"
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
USE_TZ = True

# What people upload, while it is being looked at. Every web process and worker must see the same folder.
DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / "data" / "files")))

# Trained classifiers and base models. Every worker must see the same folder.
CLASSIFIERS_DIR = Path(env.str("CLASSIFIERS_DIR", default=str(DATA_DIR / "classifiers")))
# Where base models are fetched from by name; empty: from nowhere.
HF_ENDPOINT = env.str("HF_ENDPOINT", default="").rstrip("/")
if HF_ENDPOINT and (urlsplit(HF_ENDPOINT).scheme not in ("http", "https") or not urlsplit(HF_ENDPOINT).hostname):
    raise ImproperlyConfigured("HF_ENDPOINT must be a full address such as https://huggingface.co.")
ML_THREADS = env.int("ML_THREADS", default=0)  # of one training or application; 0: as many as there are cores
ML_HALF_PRECISION = env.bool("ML_HALF_PRECISION", default=False)  # classifiers judge in half the precision

STATIC_URL = "/static/"
STATIC_ROOT = env.str("STATIC_ROOT", default=None)  # set where collectstatic has filled it
STATICFILES_DIRS = [BASE_DIR / "static"]
# Without collectstatic (embedded mode, tests) the files are served from where they lie.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

SECURE = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_NAME = "luria_session"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = SECURE
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SECURE_HSTS_SECONDS = 31_536_000 if SECURE else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if env.bool("TRUST_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# Half a million characters: a 100,000-character answer must reach the form, which refuses it in words.
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

CELERY_BROKER_URL = env.str("BROKER_URL")
# Several installations, or several tests, can share one broker's server.
CELERY_BROKER_TRANSPORT_OPTIONS = {"global_keyprefix": env.str("BROKER_PREFIX", default="")}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {"llmruns.tasks.*": {"queue": "llm"}, "scoring.tasks.*": {"queue": "ml"}}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"

TREEBANK_MAX_MB = env.int("TREEBANK_MAX_MB", default=200)

ALLOW_PRIVATE_ENDPOINTS = env.bool("ALLOW_PRIVATE_ENDPOINTS", default=EMBEDDED)

# Encrypt the providers' keys that researchers store. The first encrypts, all decrypt; none: nothing can be stored.
CREDENTIAL_KEYS = env.list("LURIA_CREDENTIAL_KEYS", default=[])
for key in CREDENTIAL_KEYS:
    if not re.fullmatch(r"[A-Za-z0-9_-]{43}=", key):
        raise ImproperlyConfigured(
            "LURIA_CREDENTIAL_KEYS must hold Fernet keys (32 random bytes in url-safe base64), separated by commas."
        )
GIGACHAT_AUTH_URL = env.str("GIGACHAT_AUTH_URL", default="https://ngw.devices.sberbank.ru:9443/api/v2/oauth")
# The Russian Trusted Root CA, as a PEM file; trusted for GigaChat alone.
GIGACHAT_CA_FILE = env.str("GIGACHAT_CA_FILE", default="")
if GIGACHAT_CA_FILE and not Path(GIGACHAT_CA_FILE).is_file():
    raise ImproperlyConfigured("GIGACHAT_CA_FILE names no file.")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["studies.api_defaults.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["studies.api_defaults.BoundedJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "studies.api_defaults.StudyCursor",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "studies.api.api_exception",
    "URL_FORMAT_OVERRIDE": None,  # `format` is no parameter: there is only JSON
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.UserRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"user": env.str("API_RATE", default="600/min")},
    "DEFAULT_SCHEMA_CLASS": "studies.api.ApiSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Luria",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "DESCRIPTION": "One psycholinguistic test for people and for language models. docs/api.md says how to begin.",
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums"],
    "ENUM_NAME_OVERRIDES": {
        "JudgingState": "llmruns.models.Judging.State",
        "RespondentKind": "corpus.models.Respondent.Kind",
        "SittingState": "corpus.models.Sitting.State",
        "Standing": "corpus.models.Sitting.Standing",
        "CriterionKind": "scoring.models.Criterion.Kind",
        "JudgeKind": "scoring.models.Judge.Kind",
        "RoundPurpose": "scoring.models.Round.Purpose",
        "SurveyState": "surveys.models.Survey.State",
        "CampaignState": "annotation.models.Campaign.State",
        "ExperimentState": "llmruns.models.Experiment.State",
        "RunState": "llmruns.models.Run.State",
        "CallPurpose": "llmruns.models.Call.Purpose",
        "CallState": "llmruns.models.Call.State",
    },
}
# The API's throttle counts in the cache, which every web process shares through the broker's server.
CACHES = {
    "default": (
        {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": env.str("CACHE_URL")}
        if env.str("CACHE_URL", default="")
        else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    )
}

LOGGING = logging_config(level=env.str("LOG_LEVEL", default="INFO"), json=not EMBEDDED)
