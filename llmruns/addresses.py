"""Which addresses a model may be asked at."""

import ipaddress
import socket
from urllib.parse import urlsplit

import httpx2


class AddressRefusedError(Exception):
    """`reason` is one of: form, scheme, credentials, query, private."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def base_url_check(base_url: str, *, allow_private: bool) -> None:
    """Raises AddressRefusedError unless it is a plain http(s) address. Looks the host up where private ones are closed.

    A host that cannot be looked up passes here: the call to it fails on its own.
    """
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise AddressRefusedError("form") from error
    if parts.scheme not in ("http", "https"):
        raise AddressRefusedError("scheme")
    if not host or any(character.isspace() or not character.isprintable() for character in base_url):
        raise AddressRefusedError("form")
    try:
        host.encode("idna")  # as the look-up of the host does: labels that are empty or longer than 63 characters
        httpx2.URL(base_url)
    except (UnicodeError, httpx2.InvalidURL) as error:
        raise AddressRefusedError("form") from error
    if "@" in parts.netloc:
        raise AddressRefusedError("credentials")
    if "?" in base_url or "#" in base_url:
        raise AddressRefusedError("query")
    if not allow_private and host_is_private(host):
        raise AddressRefusedError("private")


def host_is_private(host: str) -> bool:
    """True where any address of the host lies outside the public internet. One DNS look-up; False if it fails."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return any(_is_private(str(address[4][0])) for address in found)


def _is_private(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return not ip.is_global or ip.is_multicast
