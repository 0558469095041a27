"""PostgreSQL and Valkey together: for the launcher, for commands beside it, and throwaway ones for tests."""

import base64
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from embedded import postgres, valkey
from embedded.paths import REPO, Place, hand_over, make_folder, service_account
from embedded.processes import Pause, Program, log_rotate, processes_in

TEMPORARY_PREFIX = "luria-test-"


@dataclass
class Services:
    place: Place
    durable: bool = True
    postgres: Program | None = field(default=None, init=False)
    valkey: Program | None = field(default=None, init=False)

    def start(self, pause: Pause = time.sleep) -> None:
        """Both, or none: a failure stops what already runs."""
        for log in self.place.logs.glob("*.log"):
            log_rotate(log)
        try:
            postgres.leftover_await(self.place, pause)
            valkey.leftover_await(self.place, pause)
            self.valkey = valkey.program_make(self.place, durable=self.durable)
            self.valkey.start()
            postgres.folder_prepare(self.place, durable=self.durable)
            self.postgres = postgres.program_make(self.place, durable=self.durable)
            self.postgres.start()
            postgres.ready_await(self.place, self.postgres, pause)
            postgres.database_ensure(self.place)
            valkey.ready_await(self.place, self.valkey, pause)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for program in (self.valkey, self.postgres):
            if program is not None:
                program.stop()

    @property
    def env(self) -> dict[str, str]:
        return service_environment(self.place)


def service_environment(place: Place) -> dict[str, str]:
    return {
        "DATABASE_URL": postgres.database_url(place),
        "BROKER_URL": valkey.broker_url(place),
        "DATA_DIR": str(place.files),
        "SECRET_KEY": secret_key(place),
        "LURIA_CREDENTIAL_KEYS": credential_key(place),
        "LURIA_EMBEDDED": "1",
    }


def secret_key(place: Place) -> str:
    return _secret(place, "secret_key", secrets.token_urlsafe(50))


def credential_key(place: Place) -> str:
    """Encrypts the providers' keys that are stored in the database. A Fernet key: 32 bytes in url-safe base64."""
    return _secret(place, "credential_key", base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())


def _secret(place: Place, name: str, fresh: str) -> str:
    """Made once per data folder, readable by its owner alone."""
    path = place.data / name
    if not path.exists():
        half = place.data / f"{name}.{os.getpid()}"
        half.touch(mode=0o600)
        half.write_text(fresh)
        hand_over(half)
        half.replace(path)
    return path.read_text().strip()


@contextmanager
def temporary(*, durable: bool = False) -> Iterator[Services]:
    """Fresh services in a folder of their own, gone afterwards; they die with this process even on kill -9.

    For tests nothing is forced to disk. Benchmarks say `durable=True`, and get the settings of `make up`.
    """
    _leftovers_remove()
    root = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir="/tmp"))
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        account = service_account()
        place = Place(REPO, root, root / "s", account)
        for folder in (root, place.sockets, place.logs, place.files):
            make_folder(folder, account)
        services = Services(place, durable=durable)
        services.start()
        try:
            yield services
        finally:
            services.stop()
            shutil.rmtree(root, ignore_errors=True)


def _leftovers_remove() -> None:
    """Folders whose maker was killed: their lock is free and nothing works in them."""
    for folder in Path("/tmp").glob(f"{TEMPORARY_PREFIX}*"):  # noqa: S108
        try:
            if time.time() - folder.stat().st_mtime < 60:  # perhaps not locked yet
                continue
            with (folder / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not processes_in(folder / "postgres"):
                    shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # in use, another user's, or gone meanwhile
            continue
