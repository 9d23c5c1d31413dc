"""Settings of the bundled project: safe defaults for a laptop; environment variables set them anywhere else.

docs/settings.md lists the variables.
"""

import re
from datetime import timedelta
from pathlib import Path

from orchestrator.configuration.environment import (
    data_folder,
    database_settings,
    generated_secret,
    has_examples,
    socket_path,
    socket_url,
)
from orchestrator.configuration.sign_in_settings import (
    ALLAUTH_APPS,
    SECOND_FACTOR_BACKEND,
    SINGLE_SIGN_ON_BACKEND,
    group_map,
    provider_settings,
)
from orchestrator.configuration.variables import read_variables

given = read_variables()

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = data_folder((given.DATA_DIR or BASE_DIR / ".procession").absolute())

DEBUG = given.DEBUG
SECRET_KEY = given.SECRET_KEY or generated_secret(DATA_DIR / "secret_key")
ALLOWED_HOSTS = given.ALLOWED_HOSTS
# Addresses without it are answered too, such as those of probes; all that are written have it.
FORCE_SCRIPT_NAME = given.PATH_PREFIX or None
CSRF_TRUSTED_ORIGINS = given.TRUSTED_ORIGINS

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "django_rq",
    "orchestrator",
    "monitoring",
    *given.APPS,
]
if has_examples(DATA_DIR, asked=given.DEMO):
    INSTALLED_APPS += [
        "examples.order_listing",
        "examples.support_inquiry",
        "examples.video_analysis",
    ]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "orchestrator.middleware.ContentSecurityPolicyMiddleware",
    "orchestrator.middleware.CompressedFilesMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "orchestrator.middleware.NulMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "orchestrator.middleware.SignInRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
    "orchestrator.middleware.InOneThreadMiddleware",
]

ROOT_URLCONF = "orchestrator.urls"
ASGI_APPLICATION = "orchestrator.asgi.application"

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
            ]
        },
    }
]

# orchestrator.asgi sets the variable before it loads the settings.
SERVES_WEB = given.WEB
DATABASES = {"default": database_settings(given.DATABASE_URL, DATA_DIR, web=SERVES_WEB)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

VALKEY_SOCKET = socket_path(DATA_DIR)
EMBEDDED_VALKEY = not given.REDIS_URL
REDIS_URL = given.REDIS_URL or socket_url(VALKEY_SOCKET)

RQ_QUEUES = {
    name: {"URL": REDIS_URL, "SERIALIZER": "rq.serializers.JSONSerializer"}
    for name in [given.DEFAULT_QUEUE, *given.QUEUES]
    if name != "default" or name == given.DEFAULT_QUEUE
}
# orchestrator.urls has the dashboard, for superusers only.
RQ_SHOW_ADMIN_LINK = False

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # redis-py 8 stops reading after 5 s, but a subscription may be quiet for a day.
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None}]},
    }
}

LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "monitoring:definitions"
LOGOUT_REDIRECT_URL = "sign-in"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # refuses sign-ins after too many failures
    "django.contrib.auth.backends.ModelBackend",
]
# The proxies that the web server believes about the origin of a request (`orchestrator.serving.web`).
TRUSTED_PROXIES = [str(network) for network in given.TRUSTED_PROXIES]

# After this number of failures an address or an account has to wait. Attempts meanwhile do not extend the wait:
# otherwise anybody could lock a user out endlessly.
AXES_FAILURE_LIMIT = 10
# Behind a proxy that is not named, all people have one address, and a stranger would lock out everybody.
ADDRESSES_KNOWN = bool(TRUSTED_PROXIES) or not given.HTTPS
AXES_LOCKOUT_PARAMETERS = (
    ["ip_address", "username"] if ADDRESSES_KNOWN else ["username"]
)
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_LOCKOUT_CALLABLE = "orchestrator.sign_in.throttled"
AXES_ENABLE_ACCESS_FAILURE_LOG = True  # the sign-in page tells the owner of the account
AXES_VERBOSE = False
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

# Nothing of django-allauth is loaded unless a variable asks for single sign-on or a second factor.
PROCESSION_SSO_NAME = given.SSO_NAME if given.SSO_ISSUER else ""
PROCESSION_SSO_ONLY = given.SSO_ONLY
PROCESSION_SSO_GROUPS_CLAIM = given.SSO_GROUPS_CLAIM
PROCESSION_SSO_GROUPS = group_map(given.SSO_GROUPS)
PROCESSION_SECOND_FACTOR = given.SECOND_FACTOR
if PROCESSION_SSO_NAME or PROCESSION_SECOND_FACTOR:
    INSTALLED_APPS += ALLAUTH_APPS
    MIDDLEWARE.insert(
        MIDDLEWARE.index("axes.middleware.AxesMiddleware"),
        "allauth.account.middleware.AccountMiddleware",
    )
    ACCOUNT_ADAPTER = "orchestrator.sign_in.adapters.SignInAdapter"
    ACCOUNT_EMAIL_VERIFICATION = "none"
    ACCOUNT_LOGIN_METHODS = {"username"}
    ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
    ACCOUNT_UNIQUE_EMAIL = False  # an address of the provider matches no local account
    MFA_TOTP_ISSUER = "Procession"
    # A wrong code of a second factor is counted as a wrong password is, and kept no more than that.
    AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "code"]
if PROCESSION_SSO_NAME:
    AUTHENTICATION_BACKENDS += [SINGLE_SIGN_ON_BACKEND]
    SOCIALACCOUNT_ADAPTER = "orchestrator.sign_in.adapters.ProviderAdapter"
    SOCIALACCOUNT_PROVIDERS = provider_settings(
        given.SSO_ISSUER,
        given.SSO_CLIENT_ID,
        given.SSO_CLIENT_SECRET,
        PROCESSION_SSO_NAME,
    )
if PROCESSION_SECOND_FACTOR == "required":
    # A session of a person without a second factor is none, whichever way it came about.
    AUTHENTICATION_BACKENDS[1] = SECOND_FACTOR_BACKEND

# Behind HTTPS, PROCESSION_HTTPS=1 makes browsers insist on it.
HTTPS = given.HTTPS
SECURE_SSL_REDIRECT = HTTPS
# Probes come from inside, by HTTP, and count a redirect as a good answer.
SECURE_REDIRECT_EXEMPT = [
    rf"^{re.escape(given.PATH_PREFIX + '/')[1:]}(livez|readyz|metrics)$"
]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
# A browser's own list holds for the whole domain, and for years: only its owner can ask for that.
SECURE_HSTS_PRELOAD = HTTPS and given.HSTS_PRELOAD
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
# Browsers hold a __Host- cookie to this host and to the path /, so a site under a prefix cannot have one.
HARDENED = "__Secure-" if given.PATH_PREFIX else "__Host-"
COOKIES = HARDENED if HTTPS else "procession_"
SESSION_COOKIE_SECURE = HTTPS
SESSION_COOKIE_NAME = f"{COOKIES}session"
CSRF_COOKIE_SECURE = HTTPS
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_NAME = f"{COOKIES}csrf"
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = LANGUAGE_COOKIE_PATH = given.PATH_PREFIX or "/"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Plain HTTP is right on the loopback address alone: no other host can listen in, and no certificate exists for it.
ON_LOOPBACK = set(ALLOWED_HOSTS) <= {"127.0.0.1", "localhost", "[::1]"}
SILENCED_SYSTEM_CHECKS = ["security.W021"]  # asks for SECURE_HSTS_PRELOAD
if ON_LOOPBACK and not HTTPS:
    SILENCED_SYSTEM_CHECKS += [
        f"security.W0{number}" for number in ("04", "08", "12", "16")
    ]

DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576  # bytes

EMAIL_HOST, EMAIL_PORT, *signed_in, EMAIL_USE_TLS, EMAIL_USE_SSL = given.mail_server
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = signed_in
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = SERVER_EMAIL = given.MAIL_FROM

LANGUAGE_CODE = given.LANGUAGE
LANGUAGES = [("en", "English"), ("ja", "日本語")]
TIME_ZONE = given.TIME_ZONE
USE_TZ = True

STATIC_URL = f"{given.PATH_PREFIX}/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
# The finders serve files from their folders, so that a new clone needs no collectstatic.
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_ALLOW_ALL_ORIGINS = False

PROCESSION = given.engine
PROCESSION_METRICS_TOKEN = given.METRICS_TOKEN
PROCESSION_SITE_URL = given.SITE_URL
PROCESSION_NOTICES = given.notices
WEBHOOK_SOURCES = given.WEBHOOK_SECRET
WEBHOOK_NETWORKS = given.WEBHOOK_NETWORKS
WEBHOOK_RATES = given.WEBHOOK_RATE
ORDER_LISTING = {
    "EXCHANGE_URL": given.ORDER_LISTING_EXCHANGE_URL,
    "TIMEOUT": 5,  # seconds
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": given.LOG_LEVEL.upper()},
}
