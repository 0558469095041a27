"""The virtual environment: made once, made anew when it is half-made, and by a Python that can."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded import install
from embedded.paths import REPO


@pytest.fixture
def repo(tmp_path, monkeypatch):
    """A repository with requirements, in which pip is only noted."""
    venv = tmp_path / ".venv"
    for name, value in {
        "REPO": tmp_path,
        "VENV": venv,
        "PYTHON": venv / "bin" / "python",
        "HALF_MADE": venv / "luria-installing",
    }.items():
        monkeypatch.setattr(install, name, value)
    for name in (*install.SETS["dev"], "constraints.txt"):
        (tmp_path / name).write_text("Django\n")
    calls = []

    def make(command, complaint):
        (venv / "bin").mkdir(parents=True)
        (venv / "bin" / "python").symlink_to(sys.executable)
        calls.append("venv")

    monkeypatch.setattr(install, "run", make)
    monkeypatch.setattr(install, "pip_install", lambda name: calls.append(name))
    return tmp_path, calls


def test_second_start_installs_nothing(repo):
    _, calls = repo
    install.ensure("up")
    install.ensure("up")
    assert calls == ["venv", "up"]


def test_tests_set_holds_the_servers_set(repo):
    _, calls = repo
    install.ensure("dev")
    install.ensure("up")
    assert calls == ["venv", "dev"]


@pytest.mark.parametrize("file", ["requirements.txt", "constraints.txt"])
def test_new_requirements_are_installed(repo, file):
    folder, calls = repo
    install.ensure("up")
    (folder / file).write_text("Django\ncelery\n")
    install.ensure("up")
    assert calls == ["venv", "up", "up"]


def test_killed_install_is_made_anew(repo, monkeypatch):
    folder, calls = repo

    def killed(name):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(install, "pip_install", killed)
        with pytest.raises(KeyboardInterrupt):
            install.ensure("up")
    (folder / ".venv" / "half-a-package").mkdir()
    install.ensure("up")
    assert calls == ["venv", "venv", "up"]
    assert not (folder / ".venv" / "half-a-package").exists()


def test_venv_of_a_python_that_is_gone_is_made_anew(repo):
    folder, calls = repo
    install.ensure("up")
    (folder / ".venv" / "bin" / "python").unlink()
    (folder / ".venv" / "bin" / "python").symlink_to("/nonexistent/python")
    install.ensure("up")
    assert calls == ["venv", "up", "venv", "up"]


def test_with_pytorch_holds_the_servers_set_and_stays(repo):
    folder, calls = repo
    install.ensure(install.wanted("up"))
    install.ensure("ml")
    install.ensure(install.wanted("up"))
    assert calls == ["venv", "up", "ml"]
    (folder / "constraints.txt").write_text("Django==5.2.1\n")
    install.ensure(install.wanted("up"))
    assert calls == ["venv", "up", "ml", "ml"]


def test_pytorch_is_in_the_set_for_tests_and_not_in_the_servers():
    assert "requirements-ml.txt" in install.SETS["dev"] and "requirements-ml.txt" not in install.SETS["up"]
    assert "torch" in (REPO / "requirements-ml.txt").read_text().split()
    assert "torch" not in (REPO / "requirements.txt").read_text().split()


def find_python(folder: Path, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["/bin/sh", REPO / "embedded" / "find-python"],
        env={"PATH": str(folder), **environment},
        capture_output=True,
        text=True,
    )


def fake(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_wrapper_that_does_not_work_is_passed_over(tmp_path):
    fake(tmp_path, "python3", "exit 127")
    fake(tmp_path, "python3.12", "exit 0")
    assert find_python(tmp_path).stdout == "python3.12\n"


def test_old_python_is_refused_with_its_version(tmp_path):
    fake(tmp_path, "python3", '[ "$1" = --version ] && echo "Python 3.9.2" && exit 0; exit 3')
    for environment in ({}, {"PYTHON": "python3"}):
        result = find_python(tmp_path, **environment)
        assert result.returncode == 1 and result.stdout == ""
        assert "3.11, 3.12 or 3.13" in result.stderr and "Python 3.9.2" in result.stderr


def test_missing_venv_module_says_what_to_install(tmp_path):
    fake(tmp_path, "python3", 'case "$2" in *ensurepip*) exit 1;; *print*) echo 3.11;; esac')
    result = find_python(tmp_path)
    assert result.returncode == 1
    assert "apt install python3.11-venv" in result.stderr


def test_make_offers_what_it_lists():
    listed = subprocess.run(["make", "help"], cwd=REPO, capture_output=True, text=True, check=True).stdout
    for target in ("up", "test", "lint", "bench", "demo"):
        assert f"make {target}\t" in listed
        dry = subprocess.run(
            ["make", "--dry-run", target],
            cwd=REPO,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"]},
        )
        assert dry.returncode == 0
