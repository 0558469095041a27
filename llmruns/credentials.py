"""Stored keys: written once, never shown; a configuration names one of them or an environment variable."""

from django.db import IntegrityError, transaction
from django.utils import timezone

from llmruns.keys import KeyMissingError, key_is_sendable, key_read
from llmruns.models import Credential, ModelConfig
from llmruns.vault import VaultClosedError, VaultKeyLostError, reseal, seal, unseal
from studies.models import Study, User
from studies.services import audit_record


class CredentialUnusableError(KeyMissingError):
    """`reason` is one of: retired, closed (no key in the environment), lost (another key than it was stored with)."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name)
        self.reason = reason


class CredentialRefusedError(Exception):
    """`reason` is one of: taken (the name), unsendable (no header can hold this key)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def key_of(config: ModelConfig) -> str:
    """The key, or "" where the configuration names none. Raises KeyMissingError, KeyNameRefusedError.

    No query where config.credential has been read with it.
    """
    if config.credential is None:
        return key_read(config.key_variable)
    credential = config.credential
    if credential.retired_at is not None:
        raise CredentialUnusableError(credential.name, "retired")
    try:
        return unseal(bytes(credential.ciphertext))
    except VaultClosedError as error:
        raise CredentialUnusableError(credential.name, "closed") from error
    except VaultKeyLostError as error:
        raise CredentialUnusableError(credential.name, "lost") from error


def credential_create(*, study: Study, provider: str, name: str, key: str, actor: User | None) -> Credential:
    """Raises VaultClosedError, CredentialRefusedError. Neither the key nor any part of it is in the audit entry."""
    key = key.strip()
    if not key_is_sendable(key):
        raise CredentialRefusedError("unsendable")
    ciphertext = seal(key)
    try:
        with transaction.atomic():
            credential = Credential.objects.create(
                study=study, provider=provider, name=name, ciphertext=ciphertext, created_by=actor
            )
            audit_record(
                actor=actor,
                study=study,
                action="credential_create",
                target=credential,
                detail={"name": name, "provider": provider},
            )
    except IntegrityError as error:
        if "credential_unique_name" in str(error):
            raise CredentialRefusedError("taken") from error
        raise
    return credential


@transaction.atomic
def credential_retire(*, credential: Credential, actor: User | None) -> bool:
    """Forget the key. Configurations that name it cannot ask any more. False where it was forgotten before."""
    locked = Credential.objects.select_for_update().get(pk=credential.pk)
    if locked.retired_at is not None:
        return False
    locked.retired_at, locked.ciphertext = timezone.now(), b""
    locked.save(update_fields=["retired_at", "ciphertext"])
    audit_record(
        actor=actor,
        study=locked.study,
        action="credential_retire",
        target=locked,
        detail={"name": locked.name},
    )
    return True


def credentials_reencrypt() -> tuple[int, int]:
    """All stored keys under the first of LURIA_CREDENTIAL_KEYS. Returns how many, and how many nobody can read."""
    done = lost = 0
    for pk in Credential.objects.filter(retired_at=None).order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            credential = Credential.objects.select_for_update().get(pk=pk)
            if credential.retired_at is not None:
                continue
            try:
                credential.ciphertext = reseal(bytes(credential.ciphertext))
            except VaultKeyLostError:
                lost += 1
                continue
            credential.save(update_fields=["ciphertext"])
            done += 1
    return done, lost
