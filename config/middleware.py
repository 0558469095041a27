from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.utils.translation import gettext as _

POLICY = "; ".join(
    [
        "default-src 'self'",
        "img-src 'self' data:",  # Bootstrap's own icons are data: addresses in its stylesheet
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)

GetResponse = Callable[[HttpRequest], HttpResponse]


def content_security_policy(get_response: GetResponse) -> GetResponse:
    """Every page may load from this site only, so that imported or typed text can call nobody."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response

    return middleware


def other_charsets_refused(get_response: GetResponse) -> GetResponse:
    """A form in another charset than UTF-8 is refused (see config.wsgi): read as UTF-8 its text would be damaged.

    The API reads JSON, which is UTF-8 whatever the header says.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.META.get("luria.charset_refused") and request.method == "POST" and request.path[:5] != "/api/":
            raise BadRequest("a charset other than UTF-8")
        return get_response(request)

    return middleware


def wrong_method_explained(get_response: GetResponse) -> GetResponse:
    """Django's answer to a wrong method is a blank page.

    People meet it after a session ended: they press a button, are asked to log in, and the login leads to the
    button's address, which takes posts only.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not isinstance(response, HttpResponseNotAllowed) or request.path.startswith("/api/"):
            return response
        text = _(
            "This address only takes what a button sends. If you have just logged in: what you pressed before was not "
            "carried out. Go back to its page and press the button again."
        )
        page = render(request, "_message.html", {"title": _("Nothing was done"), "text": text}, status=405)
        page.headers["Allow"] = response.headers["Allow"]
        return page

    return middleware
