"""Secrets at rest. Stored keys of providers are encrypted under keys of the environment, tokens under SECRET_KEY.

LURIA_CREDENTIAL_KEYS holds one or more Fernet keys, the newest first: everything is encrypted with the first and can be
read with any, so that a key is changed by putting a new one before it, running `credentials_reencrypt`, and taking the
old one away. A token lives half an hour and is asked for again when it cannot be read, so it needs no key of its own.
"""

import base64
import hashlib
import hmac
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class VaultClosedError(Exception):
    """LURIA_CREDENTIAL_KEYS is not set: nothing can be stored, nothing stored can be read."""


class VaultKeyLostError(Exception):
    """The secret was encrypted with a key that is not among LURIA_CREDENTIAL_KEYS."""


def vault_is_open() -> bool:
    return bool(settings.CREDENTIAL_KEYS)


def seal(secret: str) -> bytes:
    """Raises VaultClosedError."""
    return _vault().encrypt(secret.encode())


def unseal(ciphertext: bytes) -> str:
    """Raises VaultClosedError, VaultKeyLostError."""
    try:
        return _vault().decrypt(ciphertext).decode()
    except InvalidToken as error:
        raise VaultKeyLostError from error


def reseal(ciphertext: bytes) -> bytes:
    """The same under the first key. Raises VaultClosedError, VaultKeyLostError."""
    try:
        return _vault().rotate(ciphertext)
    except InvalidToken as error:
        raise VaultKeyLostError from error


def _vault() -> MultiFernet:
    if not settings.CREDENTIAL_KEYS:
        raise VaultClosedError
    return _fernet(tuple(settings.CREDENTIAL_KEYS))


def token_seal(token: str) -> bytes:
    return _token_fernet().encrypt(token.encode())


def token_unseal(ciphertext: bytes) -> str | None:
    """None where it was sealed under another SECRET_KEY."""
    try:
        return _token_fernet().decrypt(ciphertext).decode()
    except InvalidToken:
        return None


def token_digest(*parts: str) -> str:
    """A name for what the token belongs to, from which nobody reads or guesses the parts."""
    return hmac.new(_derived("token name"), "\n".join(parts).encode(), hashlib.sha256).hexdigest()


def _token_fernet() -> MultiFernet:
    return _fernet((base64.urlsafe_b64encode(_derived("token")).decode(),))


def _derived(purpose: str) -> bytes:
    return hmac.new(settings.SECRET_KEY.encode(), f"luria {purpose}".encode(), hashlib.sha256).digest()


@lru_cache(maxsize=8)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
