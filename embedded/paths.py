"""Where things lie and whom they belong to. Standard library only."""

import contextlib
import hashlib
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
SOCKET_PATH_LIMIT = 100  # sockaddr_un holds 108 bytes on Linux, 104 on macOS


class RefusedError(Exception):
    """Luria cannot start, and the message tells the reader what to do."""


def say(text: str, end: str = "\n") -> None:
    """Print for the person at the terminal, who may have gone: then the work goes on in silence."""
    with contextlib.suppress(OSError, ValueError):
        print(text, end=end, flush=True)


@dataclass(frozen=True)
class Account:
    """The user that PostgreSQL and Valkey run as."""

    name: str
    uid: int
    gid: int

    @property
    def is_other(self) -> bool:
        return self.uid != os.geteuid()


@dataclass(frozen=True)
class Place:
    """The folders of one Luria: data for good, sockets for the time it runs."""

    repo: Path
    data: Path
    sockets: Path
    account: Account

    @property
    def postgres(self) -> Path:
        return self.data / "postgres"

    @property
    def valkey(self) -> Path:
        return self.data / "valkey"

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    @property
    def files(self) -> Path:
        return self.data / "files"


def account_of(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # a container may run under a number without a name
        return Account(str(uid), uid, os.getegid())
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def service_account() -> Account:
    """Ourselves; for root, who may not run PostgreSQL, an unprivileged user."""
    if os.geteuid() != 0:
        return account_of(os.geteuid())
    for name in ("postgres", "nobody"):
        try:
            return account_of(pwd.getpwnam(name).pw_uid)
        except KeyError:
            continue
    raise RefusedError(
        "PostgreSQL refuses to run as root, and there is no user postgres or nobody. Start as another user."
    )


def may_enter(path: Path, account: Account) -> bool:
    """Whether the account can walk down to `path` (mode bits; ACLs are not looked at)."""
    resolved = path.resolve()
    return all(_may_search(folder, account) for folder in (*resolved.parents, resolved) if folder.is_dir())


def _may_search(folder: Path, account: Account) -> bool:
    status = folder.stat()
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:8]


def data_folder(repo: Path = REPO) -> Path:
    """`LURIA_DATA`, else `data` in the repository, else (root, closed repository) a folder in /var/lib."""
    chosen = os.environ.get("LURIA_DATA")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if os.geteuid() == 0 and not may_enter(repo, service_account()):
        return Path("/var/lib/luria") / f"{repo.name}-{digest(repo)}"
    return repo / "data"


def place_find(repo: Path = REPO) -> Place:
    """The folders of this repository's Luria; data and socket folder are made where they are missing."""
    data = data_folder(repo)
    if "LURIA_DATA" in os.environ and data.is_dir() and any(data.iterdir()) and not (data / "lock").exists():
        # The folder's owner and mode are about to change: not of somebody's home by mistake.
        raise RefusedError(f"LURIA_DATA={data} is neither empty nor a data folder of Luria.")
    account = _data_account(data)
    make_folder(data, account)
    (data / "lock").touch(mode=0o600)
    hand_over(data / "lock")
    for name in ("logs", "files"):
        make_folder(data / name, account)
    if account.is_other and not may_enter(data, account):
        raise RefusedError(
            f"The user {account.name}, whom PostgreSQL runs as, cannot enter the data folder {data}. "
            "Set LURIA_DATA to a folder that it can enter."
        )
    return Place(repo, data, socket_folder(data, account), account)


def _data_account(data: Path) -> Account:
    """The owner of an existing data folder; root's own folders go to the service account."""
    if not data.exists():
        return service_account()
    owner = data.stat().st_uid
    if owner == 0 or owner == os.geteuid():
        return service_account()
    if os.geteuid() == 0:
        return account_of(owner)
    name, we = account_of(owner).name, account_of(os.geteuid()).name
    raise RefusedError(
        f"The data folder {data} belongs to {name}, and you are {we}. "
        f"Start as {name} or as root, or set LURIA_DATA to another folder."
    )


def make_folder(folder: Path, account: Account) -> None:
    """A folder that only the account (and root) may open."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        if os.geteuid() == 0:
            os.chown(folder, account.uid, account.gid)
    except OSError as error:
        raise RefusedError(
            f"The folder {folder} cannot be made: {error.strerror}. Set LURIA_DATA to another one."
        ) from error


def hand_over(file: Path) -> None:
    """What root writes into somebody's data folder belongs to that somebody, who may start without root next time."""
    if os.geteuid() == 0:
        owner = file.parent.stat()
        os.chown(file, owner.st_uid, owner.st_gid, follow_symlinks=False)


def socket_folder(data: Path, account: Account) -> Path:
    """A short private folder: the repository's own path may be longer than a socket's may be."""
    folder = _runtime_folder() / f"luria-{account.uid}-{digest(data.resolve())}"
    if len(os.fsencode(folder / ".s.PGSQL.5432")) > SOCKET_PATH_LIMIT:
        folder = Path("/tmp") / folder.name  # noqa: S108 (checked below: ours alone, or refused)
    try:
        folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            # Between the two calls the folder is root's, and /tmp is sticky: nobody can swap it.
            os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    except FileExistsError:
        pass
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != account.uid or stat.S_IMODE(status.st_mode) & 0o077:
        raise RefusedError(f"{folder} is not a private folder of {account.name}. Somebody else made it: remove it.")
    return folder


def _runtime_folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.geteuid() != 0:
        folder = Path(runtime)
        if folder.is_dir() and folder.stat().st_uid == os.geteuid():
            return folder
    return Path("/tmp")  # noqa: S108 (socket_folder checks what it makes there)
