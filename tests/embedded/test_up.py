"""The launcher with real processes: signals go where a terminal, a shell or a careless person sends them."""

import os
import signal
import socket

import psutil
import pytest

from embedded import application, paths
from embedded.processes import wait_until
from tests.embedded.conftest import SECONDS, get, names

pytestmark = pytest.mark.enable_socket


def test_kill_loses_nothing_and_ctrl_c_leaves_nothing(copy):
    first = copy.up()
    address = first.address()
    assert get(address) == "0"
    assert get(address, post=True) == "1"

    second = copy.up()
    assert second.wait() == 0
    assert f"already running: {address}" in second.output()
    assert "/login/" not in second.output()

    first.process.kill()
    first.wait()
    again = copy.up()  # at once: the first one's PostgreSQL may still be shutting down
    assert again.address() == address
    assert get(address) == "1"

    again.interrupt()
    again.wait_for("Stopping")
    again.interrupt()
    assert again.wait() == 0
    assert "Luria has stopped." in again.output()
    assert "Traceback" not in again.output()
    assert copy.processes() == []


def test_luria_itself_survives_a_kill(real_copy):
    first = real_copy.up()
    address = first.address()
    survey = first.wait_for(r"Participants' link +(\S+)")[1]
    login = first.wait_for(r"Researcher's login +(\S+)")[1]
    assert survey.startswith(address) and login.startswith(address)
    page = get(survey)
    assert get(login)

    first.process.kill()
    first.wait()
    again = real_copy.up()
    assert again.address() == address
    assert again.wait_for(r"Participants' link +(\S+)")[1] == survey
    assert title(get(survey)) == title(page) != ""

    again.interrupt()
    assert again.wait() == 0
    assert real_copy.processes() == []


def title(page: str) -> str:
    return page.partition("<title>")[2].partition("</title>")[0].strip()


def test_command_runs_beside_and_without_a_launcher(copy):
    alone = copy.manage("demo")
    assert (alone.returncode, alone.stdout.splitlines()[-1]) == (0, "demo filled"), alone.stderr
    assert copy.processes() == []
    unknown = copy.manage("nonsense")
    assert unknown.returncode == 1 and "unknown command" in unknown.stderr
    assert str(copy.repo / "data") in unknown.stderr, "it says on whose data it worked"
    assert "login/once" not in unknown.stderr and "demo filled" not in unknown.stderr, "earlier commands' words"

    launch = copy.up()
    address = launch.address()
    assert get(address) == "1"
    beside = copy.manage("demo")
    assert (beside.returncode, beside.stdout) == (0, "demo filled\n"), beside.stderr
    assert get(address) == "2"

    unknown = copy.manage("nonsense")
    assert unknown.returncode == 1 and "unknown command" in unknown.stderr


def test_kill_leaves_no_process(copy):
    launch = copy.up()
    launch.address()
    assert {"postgres", "valkey-server"} <= names(copy.processes())
    launch.process.kill()
    launch.wait()
    copy.wait_for_none()


def test_launcher_ends_with_its_make(copy):
    shell = ("sh", "-c", '"$@"; exit', "make")
    launch = copy.up(wrapper=shell, MAKELEVEL="1")
    launch.address()
    launch.process.kill()
    launch.wait()
    copy.wait_for_none()
    assert "Luria has stopped." in launch.output()


def test_data_and_servers_are_private(copy):
    launch = copy.up()
    launch.address()
    data = copy.repo / "data"
    assert data.stat().st_mode & 0o077 == 0
    assert (data / "secret_key").stat().st_mode & 0o077 == 0
    assert (data / "credential_key").stat().st_mode & 0o077 == 0
    for name in ("postgres", "valkey"):
        child = copy.child(name)
        assert child.uids().real != 0
        assert child.uids().real == data.stat().st_uid
        assert child.net_connections("inet") == []


def test_dead_workers_are_replaced_and_dead_postgres_ends_all(copy):
    launch = copy.up()
    launch.address()
    first = {name: copy.child(name) for name in ("worker", "ml")}
    assert wait_until(lambda: first["ml"].nice() == 10, SECONDS) and first["worker"].nice() == 0
    for name, process in first.items():
        process.kill()
        launch.wait_for(f"{name} has ended unexpectedly")
        launch.wait_for(rf"Log: .*{name}\.log")
        assert wait_until(lambda name=name, process=process: _is_another(copy, name, process), SECONDS)
    assert wait_until(lambda: copy.child("ml").nice() == 10, SECONDS)

    copy.child("postgres").send_signal(signal.SIGQUIT)
    assert launch.wait() == 1
    assert "PostgreSQL has ended unexpectedly" in launch.output()
    assert "postgres.log" in launch.output()
    assert copy.processes() == []


def _is_another(copy, name, process):
    try:
        return copy.child(name).pid != process.pid
    except (AssertionError, KeyError, psutil.Error):
        return False


def test_failing_setup_is_shown_and_stops_all(copy):
    (copy.repo / "manage.py").write_text("raise SystemExit('no such table: stimuli')")
    launch = copy.up()
    assert launch.wait() == 1
    assert "migrate" in launch.output() and "no such table: stimuli" in launch.output()
    assert copy.processes() == []


def test_taken_port_is_refused_when_asked_for(copy):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        launch = copy.up(PORT=str(port))
        assert launch.wait() == 1
        assert f"Cannot listen on 127.0.0.1:{port}" in launch.output()
    assert copy.processes() == []


def test_taken_port_gives_the_next(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.delenv("PORT", raising=False)
        monkeypatch.setattr(application, "FIRST_PORT", taken.getsockname()[1])
        assert application.port_choose("127.0.0.1") > application.FIRST_PORT
        assert f"port {application.FIRST_PORT} is taken" in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look for another user's account")
def test_root_hands_the_application_to_the_service_account_if_it_can_read_it(copy, monkeypatch):
    place = paths.place_find(copy.repo)
    assert place.account.is_other
    monkeypatch.setattr(application.sys, "prefix", str(copy.repo))
    monkeypatch.setattr(application.sys, "base_prefix", "/usr")
    assert application.application_account(place) == place.account
    copy.repo.chmod(0o700)
    assert application.application_account(place) is None
    place.sockets.rmdir()
