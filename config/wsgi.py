import gc
import os
import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.utils.http import parse_header_parameters

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]

REFUSED = "luria.charset_refused"
_CHARSET = re.compile(r';\s*charset\*?=("[^"]*"|[^;]*)', re.IGNORECASE)


def utf8_only(application: Application) -> Application:
    """Text comes as UTF-8, whatever charset a request names.

    Django decodes form and query with any codec of Python's that the request asks for: some of them make lone
    surrogates, some are no text encodings, and on others its request cannot even be made, so that no page could
    answer. The name is taken out here and noted; config.middleware refuses what was sent with it.
    """

    def utf8(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        kind = environ.get("CONTENT_TYPE", "")
        if "charset" in kind.lower() and _charset(kind) not in ("utf-8", "utf8"):
            environ["CONTENT_TYPE"], environ[REFUSED] = _CHARSET.sub("", kind), True
        return application(environ, start_response)

    return utf8


def _charset(kind: str) -> str:
    try:
        return str(parse_header_parameters(kind)[1].get("charset", "utf-8")).lower()
    except (LookupError, ValueError):  # a charset of the parameter itself, which does not exist
        return ""


def loaded(application: Application) -> Application:
    """With every page's code in memory, which the collector of garbage need not look through again and again.

    A page of many answers makes a hundred thousand objects, and each of two hundred collections meanwhile would walk
    over all of Django: a quarter of a second for the results of 20,000 answers.
    """
    import_module(settings.ROOT_URLCONF)
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    return application


application = loaded(utf8_only(get_wsgi_application()))
