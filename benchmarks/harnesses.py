"""What else asks a model the same 900 prompts: the vendor's SDK alone, Inspect and lm-eval.

The last two are no requirement of Luria: each gets a virtual environment of its own from pip, thrown away afterwards
(kept in BENCH_VENVS where that is set, so that a second run need not install them again).
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from embedded.processes import clean_environment

SCRIPTS = Path(__file__).with_name("harness_scripts")
PACKAGES = {"Inspect": "inspect_ai==0.3.285", "lm-eval": "lm_eval[api]==0.4.13"}
LIMIT = 600.0  # seconds, after which it is given up


class NoHarnessError(Exception):
    """It cannot be installed or run here; the text says why."""


@contextmanager
def model(*, latency: float, refuse: int = 0) -> Iterator[str]:
    """The address of a model (benchmarks.model) in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.model", "--latency", str(latency), "--refuse", str(refuse)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def seen(address: str) -> dict[str, Any]:
    """What the model has seen since the last look: requests, and the seconds from the first to the last reply."""
    with urllib.request.urlopen(address.removesuffix("/v1") + "/forget") as reply:  # noqa: S310 - our own server
        found: dict[str, Any] = json.load(reply)
    return found


@dataclass(frozen=True)
class Harness:
    name: str
    python: str
    script: Path
    folder: Path
    starts: list[float] = field(default_factory=list)

    def start(self, address: str, prompts: Sequence[str]) -> float:
        """CPU seconds of a run with next to nothing to ask, measured once. Raises NoHarnessError."""
        if not self.starts:
            self.starts.append(self.run(address, prompts, 1)[0])
        return self.starts[0]

    def run(self, address: str, prompts: Sequence[str], threads: int) -> tuple[float, int, int]:
        """CPU seconds of the process, its peak memory in bytes, how many replies it has. Raises NoHarnessError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        asked = self.folder / "prompts.json"
        asked.write_text(json.dumps(prompts, ensure_ascii=False), encoding="utf-8")
        command = [self.python, str(self.script), address, str(asked), str(threads), str(self.folder / "log")]
        environment = {**clean_environment({}), "HF_HOME": str(self.folder / "hf"), "OPENAI_API_KEY": "none"}
        with subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            watched, cpu, peak, end = psutil.Process(process.pid), 0.0, 0, time.monotonic() + LIMIT
            while process.poll() is None and time.monotonic() < end:
                try:
                    cpu, peak = sum(watched.cpu_times()[:4]), max(peak, watched.memory_info().rss)
                except psutil.NoSuchProcess:
                    break
                time.sleep(0.05)
            process.kill()
            out = process.stdout.read() if process.stdout else ""
        if process.returncode != 0:
            raise NoHarnessError(f"{self.name} ended with {process.returncode}: {out.strip()[-300:]}")
        return cpu, peak, int(out.split()[-1])


def harnesses(folder: Path) -> tuple[list[Harness], list[str]]:
    """Those that can be had here, and why the others cannot."""
    found = [Harness("the SDK alone", sys.executable, SCRIPTS / "sdk.py", folder / "sdk")]
    missing = []
    scripts = {"Inspect": "inspect_run.py", "lm-eval": "lm_eval_run.py"}
    for name, package in PACKAGES.items():
        try:
            found.append(Harness(name, _installed(folder, package), SCRIPTS / scripts[name], folder / name))
        except NoHarnessError as error:
            missing.append(f"{name} is not measured: {error}")
    return found, missing


def _installed(folder: Path, package: str) -> str:
    kept = os.environ.get("BENCH_VENVS", "")
    place = (Path(kept) if kept else folder) / package.partition("==")[0].partition("[")[0]
    python = place / "bin" / "python"
    if not python.exists():
        for command in (
            [sys.executable, "-m", "venv", str(place)],
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package, "openai"],
        ):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                raise NoHarnessError(f"{' '.join(command[:4])}: {done.stdout.strip()[-300:]}")
    return str(python)
