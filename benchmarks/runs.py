"""A worker that asks a model 900 times: 50 runs of 18 stimuli, a server that thinks for half a second, 32 at once.

Real Celery worker, PostgreSQL that forces every commit to disk, requests and replies stored in full.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import psycopg

from benchmarks.server import Server, server

RUNS, STIMULI, LATENCY, THREADS = 50, 18, 0.5, 32
IDEAL = RUNS * STIMULI * LATENCY / THREADS
LIMIT = 180.0  # seconds, after which it is given up

CONFIGURE = """
from corpus.models import Instrument
from llmruns.services import model_config_create
instrument = Instrument.objects.first()
model_config_create(study=instrument.study, label="benchmark", base_url={url!r}, model="test-model", actor=None)
"""
LAUNCH = """
from corpus.models import Instrument
from llmruns.models import ModelConfig
from llmruns.services import experiment_launch, prompt_ensure
instrument = Instrument.objects.first()
experiment = experiment_launch(study=instrument.study, instrument=instrument, actor=None, runs={runs},
    prompt=prompt_ensure(study=instrument.study), configs=[ModelConfig.objects.get(label="benchmark")])
print(experiment.pk)
"""
# Of one experiment: whether it is finished, its calls, the seconds from the first request to the last record.
SPAN = """
select e.state = 'finished', count(*), extract(epoch from max(c.ended_at) - min(c.sent_at))
from llmruns_call c join llmruns_run r on r.id = c.run_id join llmruns_experiment e on e.id = r.experiment_id
where e.id = %s group by e.state
"""


@contextmanager
def model() -> Iterator[str]:
    """The address of a model that takes LATENCY seconds for each reply."""
    command = [sys.executable, "-m", "tests.chat_server", "--latency", str(LATENCY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def worker(found: Server) -> Iterator[psutil.Process]:
    command = [sys.executable, "-m", "celery", "-A", "config", "worker", "-P", "threads", "-c", str(THREADS)]
    command += ["-Q", "llm", "--without-gossip", "--without-mingle", "--loglevel", "WARNING"]
    env = found.env | {"DATABASE_POOL_SIZE": "8"}
    with subprocess.Popen(command, cwd=found.place.repo, env=env, stdout=subprocess.DEVNULL) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.kill()


def launch(found: Server, process: psutil.Process, runs: int) -> tuple[int, float, int]:
    """Launch so many runs and wait for their end: calls, seconds, peak of the worker's memory in bytes."""
    experiment = int(found.manage("shell", "-v0", "-c", LAUNCH.format(runs=runs)))
    end, peak = time.monotonic() + LIMIT, 0
    with psycopg.connect(found.env["DATABASE_URL"], autocommit=True) as connection:
        while time.monotonic() < end:
            peak = max(peak, process.memory_info().rss)
            row = connection.execute(SPAN, [experiment]).fetchone()
            if row is not None and row[0]:
                return int(row[1]), float(row[2]), peak
            time.sleep(0.1)
    raise TimeoutError(f"not finished in {LIMIT:.0f} s")


def measure() -> str:
    with server() as found, model() as url:
        found.manage("luria_setup")
        found.manage("shell", "-v0", "-c", CONFIGURE.format(url=url))
        with worker(found) as process:
            launch(found, process, 2)  # the worker has loaded its code and opened its connections
            before = sum(process.cpu_times()[:2])
            calls, span, peak = launch(found, process, RUNS)
            cpu = sum(process.cpu_times()[:2]) - before
    return (
        f"{calls} calls of {RUNS * STIMULI}, {THREADS} at once: span {span:.1f} s, {span / IDEAL:.2f} x the ideal"
        f" {IDEAL:.1f} s; worker CPU {1000 * cpu / calls:.1f} ms per call; peak memory {peak / 2**20:.0f} MB"
    )
