"""Throwaway services, and the rules of folders and locks, without a launcher."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from embedded import paths, postgres, services, state
from embedded.child import __file__ as child
from embedded.paths import REPO, Place, RefusedError, service_account
from embedded.processes import log_rotate, wait_until
from tests.embedded.conftest import SECONDS, names, plain_environment, processes_under

pytestmark = pytest.mark.enable_socket


def place_at(folder: Path) -> Place:
    return Place(REPO, folder, folder / "s", paths.account_of(os.geteuid()))


@pytest.fixture
def runtime_folder(monkeypatch):
    """A folder for sockets with a path as short as in life; pytest's own is too long in parallel runs."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(paths, "_runtime_folder", lambda: Path(folder))
        yield Path(folder)


def test_temporary_services_speak_and_go():
    with services.temporary() as temporary:
        root = temporary.place.data
        with psycopg.connect(temporary.env["DATABASE_URL"]) as connection:
            query = "SELECT current_user, getdatabaseencoding(), lower('ЁЛКА'), current_setting('fsync')"
            assert connection.execute(query).fetchone() == ("luria", "UTF8", "ёлка", "off")
        socket_path = temporary.env["BROKER_URL"].removeprefix("redis+socket://").split("?")[0]
        with redis.Redis(unix_socket_path=socket_path) as broker:
            assert broker.ping()

        # A server that works in the folder and is not ours must not look like success.
        with pytest.raises(RefusedError, match="Another PostgreSQL"):
            postgres.leftover_await(temporary.place, seconds=0.1)
    assert not root.exists()
    assert processes_under(root) == []


def test_durable_services_keep_what_is_written():
    with (
        services.temporary(durable=True) as temporary,
        psycopg.connect(temporary.env["DATABASE_URL"]) as connection,
    ):
        assert connection.execute("SELECT current_setting('fsync')").fetchone() == ("on",)


def test_temporary_services_die_with_their_parent():
    script = (
        "from embedded.services import temporary; import sys\n"
        "with temporary() as s: print(s.place.data, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=REPO,
        env=plain_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        folder = Path(parent.stdout.readline().strip())
        assert names(processes_under(folder)) == {"postgres", "valkey-server"}
        parent.kill()
    assert wait_until(lambda: not processes_under(folder), SECONDS)

    # The next one clears away what the killed one left.
    os.utime(folder, (0, 0))
    services._leftovers_remove()
    assert not folder.exists()


def test_half_made_cluster_is_made_anew():
    with services.temporary() as temporary:
        place = temporary.place
        temporary.stop()
        place.postgres.rename(place.data / "postgres.half")
        temporary.start()
        assert (place.postgres / "PG_VERSION").read_text() == "18\n"
        assert not (place.data / "postgres.half").exists()


def test_stale_pid_file_of_a_killed_server_does_not_block():
    with services.temporary() as temporary:
        temporary.postgres.process.send_signal(signal.SIGKILL)
        temporary.postgres.process.wait()
        temporary.valkey.stop()
        assert (temporary.place.postgres / "postmaster.pid").exists()
        temporary.start()
        with psycopg.connect(temporary.env["DATABASE_URL"]) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_cluster_of_another_version_is_refused(tmp_path):
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(RefusedError, match="made by PostgreSQL 17; this is 18"):
        postgres.folder_prepare(place_at(tmp_path))


@pytest.mark.parametrize("kind", ["link", "open", "file"])
def test_socket_folder_that_is_not_ours_alone_is_refused(tmp_path, runtime_folder, kind):
    account = paths.account_of(os.geteuid())
    folder = paths.socket_folder(tmp_path / "data", account)
    assert folder.parent == runtime_folder and paths.socket_folder(tmp_path / "data", account) == folder
    folder.rmdir()
    if kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif kind == "open":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        folder.touch(mode=0o600)
    with pytest.raises(RefusedError, match="not a private folder"):
        paths.socket_folder(tmp_path / "data", account)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's folder")
def test_socket_folder_of_somebody_else_is_refused(tmp_path, runtime_folder):
    account = service_account()
    folder = paths.socket_folder(tmp_path / "data", account)
    os.chown(folder, account.uid + 1, account.gid)
    with pytest.raises(RefusedError, match="not a private folder"):
        paths.socket_folder(tmp_path / "data", account)


def test_long_path_still_gives_a_short_socket(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "_runtime_folder", lambda: tmp_path / ("long" * 30))
    folder = paths.socket_folder(tmp_path, paths.account_of(os.geteuid()))
    assert len(os.fsencode(folder / ".s.PGSQL.5432")) <= paths.SOCKET_PATH_LIMIT
    folder.rmdir()


def test_foreign_folder_is_not_taken_for_data(tmp_path, monkeypatch):
    (tmp_path / "thesis.tex").touch()
    before = tmp_path.stat()
    monkeypatch.setenv("LURIA_DATA", str(tmp_path))
    with pytest.raises(RefusedError, match="neither empty nor a data folder"):
        paths.place_find()
    assert (tmp_path.stat().st_mode, tmp_path.stat().st_uid) == (before.st_mode, before.st_uid)


def test_lock_is_held_once_and_free_after_closing(tmp_path):
    place = place_at(tmp_path)
    lock = state.lock_take(place)
    assert lock is not None and state.lock_take(place) is None
    lock.close()
    again = state.lock_take(place)
    assert again is not None
    again.close()


def test_secret_key_is_made_once(tmp_path):
    place = place_at(tmp_path)
    key = services.secret_key(place)
    assert len(key) > 50 and services.secret_key(place) == key
    assert (tmp_path / "secret_key").stat().st_mode & 0o077 == 0


def test_leftovers_of_a_killed_run_are_ended_and_strangers_are_not(tmp_path):
    place = place_at(tmp_path)
    with (
        subprocess.Popen(["sleep", "1000"]) as ours,
        subprocess.Popen(["sleep", "1000"]) as stranger,
    ):
        children = {
            "web": (ours.pid, psutil.Process(ours.pid).create_time()),
            "worker": (
                stranger.pid,
                psutil.Process(stranger.pid).create_time() - 500,
            ),  # the id was used again
        }
        state.running_write(place, state.Running(pid=1, children=children))
        state.leftovers_end(place, lambda seconds: None)
        assert ours.wait(SECONDS) == -signal.SIGTERM
        assert stranger.poll() is None
        stranger.kill()


def test_orphan_is_not_started():
    command = [
        sys.executable,
        "-I",
        "-S",
        child,
        "--parent",
        "1",
        "--death-signal",
        "9",
        "--",
        "echo",
        "started",
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1 and result.stdout == ""
    assert "the parent process is gone" in result.stderr


def test_log_is_bounded(tmp_path):
    log = tmp_path / "web.log"
    log.write_text("a" * 50 + "b" * 50)
    log_rotate(log, 60)
    assert log.read_text() == ""
    assert (tmp_path / "web.1.log").read_text() == "a" * 10 + "b" * 50
    log.write_text("c" * 50)
    log_rotate(log, 60)
    assert log.read_text() == "c" * 50
