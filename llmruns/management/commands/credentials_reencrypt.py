from typing import Any

from django.core.management.base import BaseCommand, CommandError

from llmruns.credentials import credentials_reencrypt
from llmruns.vault import VaultClosedError


class Command(BaseCommand):
    help = "Encrypt all stored provider keys with the first key of LURIA_CREDENTIAL_KEYS. Safe to repeat."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done, lost = credentials_reencrypt()
        except VaultClosedError as error:
            raise CommandError("LURIA_CREDENTIAL_KEYS is not set.") from error
        self.stdout.write(f"{done} keys are encrypted with the first of LURIA_CREDENTIAL_KEYS.")
        if lost:
            raise CommandError(f"{lost} keys were encrypted with a key that is not among LURIA_CREDENTIAL_KEYS.")
