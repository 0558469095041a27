"""`make test`, `lint`, `messages` and `openapi`: what runs, in which order, in which environment."""

import difflib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from embedded.paths import REPO, say

IGNORE = ["--ignore", ".venv", "--ignore", "data"]
COLLECT = ["makemessages", "--locale", "ru", "--no-location", "--no-wrap", *IGNORE]
OPENAPI = REPO / "docs" / "openapi.yaml"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Enough for Django's settings; nothing listens there, and nothing of `lint` needs it to.
HARMLESS = {
    "DATABASE_URL": "postgres://nobody@/nothing?host=%2Fnonexistent",
    "BROKER_URL": "redis+socket:///nonexistent",
    "SECRET_KEY": "checks-read-the-code-and-serve-nobody-so-this-key-guards-nothing",
    "ALLOWED_HOSTS": "localhost",
    "PUBLIC_URL": "http://localhost",
    "LURIA_EMBEDDED": "1",
}


def run(command: list[str], *, folder: Path = REPO, **environment: str) -> tuple[int, str]:
    """Exit code, and standard output and error in one text. What the caller's environment says, wins."""
    result = subprocess.run(
        command,
        cwd=folder,
        env={**HARMLESS, **os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return result.returncode, result.stdout


def manage(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "ignore", "manage.py", *arguments]


def browser() -> str | None:
    """A Chromium: `LURIA_CHROMIUM`, one that is installed, or (root on Debian) the distribution's own."""
    chosen = os.environ.get("LURIA_CHROMIUM")
    if chosen:
        return chosen
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found or os.geteuid() != 0 or not shutil.which("apt-get"):
        return found
    say("No browser found: installing chromium and a font from the distribution")
    for command in (
        ["apt-get", "-qq", "update"],
        ["apt-get", "-qq", "install", "--yes", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
    ):
        code, output = run(command, DEBIAN_FRONTEND="noninteractive")
        if code != 0:
            say(f"  {' '.join(command)} failed:\n{output}")
            return None
    return shutil.which("chromium")


def test(arguments: list[str]) -> int:
    chromium = browser()
    if chromium is None:
        say("No Chromium (set LURIA_CHROMIUM to one): the browser tests are skipped")
    else:
        os.environ["LURIA_CHROMIUM"] = chromium
    workers = min(4, max(2, os.cpu_count() or 2))
    command = [sys.executable, "-m", "pytest", "-n", str(workers), *arguments]
    return subprocess.call(command, cwd=REPO)


def lint() -> int:
    """Every check runs, and all that failed are named at the end."""
    failed = []
    for name, command in lint_commands():
        started = time.monotonic()
        code, output = run(command)
        report(name, "" if code == 0 else output or f"exit code {code}", started)
        failed += [name] if code else []
    for name, check in {"OpenAPI schema": openapi_check, "message catalogues": messages_check}.items():
        started = time.monotonic()
        complaint = check()
        report(name, complaint, started)
        failed += [name] if complaint else []
    say(f"Failed: {', '.join(failed)}" if failed else "All checks passed.")
    return 1 if failed else 0


def report(name: str, complaint: str, started: float) -> None:
    say(f"  {'FAIL' if complaint else 'ok  '}  {name}: {time.monotonic() - started:.1f} s")
    if complaint:
        say(complaint)


def lint_commands() -> list[tuple[str, list[str]]]:
    python, tools = [sys.executable, "-m"], Path(sys.executable).parent
    return [
        ("ruff check", [*python, "ruff", "check", "."]),
        ("ruff format", [*python, "ruff", "format", "--check", "."]),
        ("mypy", [*python, "mypy", "."]),
        ("layers", [str(tools / "lint-imports")]),
        ("settings", manage("check", "--fail-level", "WARNING")),
        ("migrations", manage("makemigrations", "--check", "--dry-run")),
        ("templates", djade("--check")),
    ]


def djade(*options: str) -> list[str]:
    templates = sorted(str(path.relative_to(REPO)) for path in (REPO / "templates").rglob("*.html"))
    return [str(Path(sys.executable).with_name("djade")), *options, "--target-version", "5.2", *templates]


def format_all() -> int:
    ruff = [sys.executable, "-m", "ruff"]
    codes = []
    for command in ([*ruff, "check", "--fix", "."], [*ruff, "format", "."], djade()):
        code, output = run(command)
        say(output.strip())
        codes.append(code)
    return 1 if codes[0] else 0  # djade's code says only that it changed something


def openapi_check() -> str:
    """Empty if the API's schema is valid and docs/openapi.yaml is what the code says."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "openapi.yaml"
        code, output = run(openapi_command(fresh))
        if code != 0:
            return output
        if not OPENAPI.exists() or OPENAPI.read_text() == fresh.read_text():
            return ""
        old, new = OPENAPI.read_text().splitlines(), fresh.read_text().splitlines()
        difference = list(difflib.unified_diff(old, new, lineterm=""))[:40]
        return "\n".join(["docs/openapi.yaml is out of date (make openapi):", *difference])


def openapi_command(file: Path) -> list[str]:
    return manage("spectacular", "--validate", "--fail-on-warn", "--file", str(file))


def openapi_make() -> int:
    code, output = run(openapi_command(OPENAPI))
    say(output.strip() or f"{OPENAPI.relative_to(REPO)} written")
    return code


def messages_check() -> str:
    """Empty if every string of the code is translated, and the compiled catalogue is that of the .po file."""
    if not shutil.which("xgettext"):
        say("        no gettext here: the message catalogues are not checked")
        return ""
    with tempfile.TemporaryDirectory() as folder:
        # Collected in a copy: a check changes nothing.
        copy = Path(folder) / "luria"
        ignored = shutil.ignore_patterns(".*", "data", "vendor", "tests", "docs", "__pycache__")
        shutil.copytree(REPO, copy, ignore=ignored)
        code, output = run(manage(*COLLECT), folder=copy)
        if code != 0:
            return output
        complaints = [catalogue_check(path, copy) for path in sorted(copy.glob("locale/*/LC_MESSAGES/*.po"))]
    return "\n".join(complaint for complaint in complaints if complaint)


def catalogue_check(collected: Path, copy: Path) -> str:
    fresh, name = collected.with_suffix(".fresh"), collected.relative_to(copy)
    committed = REPO / name
    command = ["msgfmt", "--check", "--statistics", "--output-file", str(fresh)]
    code, output = run([*command, str(collected)], LC_ALL="C")
    if code != 0 or "fuzzy" in output or "untranslated" in output:
        return f"{name} with the strings of the code collected (make messages): {output.strip()}"
    run([*command, str(committed)])
    compiled = committed.with_suffix(".mo")
    if not compiled.exists() or compiled.read_bytes() != fresh.read_bytes():
        return f"{name}: the compiled catalogue is out of date (make messages)"
    return ""


def messages_make() -> int:
    """Collect the code's messages into the catalogues and compile them; lint says what is untranslated."""
    if not shutil.which("msgfmt"):
        say("The GNU gettext tools are needed. On Debian or Ubuntu: apt install gettext")
        return 1
    for arguments in (COLLECT, ["compilemessages", "--locale", "ru", *IGNORE]):
        code, output = run(manage(*arguments))
        say(output.strip())
        if code != 0:
            return code
    return 0


def main(arguments: list[str]) -> int:
    match arguments:
        case ["test", *rest]:
            return test(rest)
        case ["lint"]:
            return lint()
        case ["format"]:
            return format_all()
        case ["messages"]:
            return messages_make()
        case ["openapi"]:
            return openapi_make()
    say("usage: python -m embedded.check test [ARGUMENTS] | lint | format | messages | openapi")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
