"""Workers that ask a model 900 times: 50 runs of 18 stimuli, a server that thinks for half a second, 32 at once.

Real Celery workers, PostgreSQL that forces every commit to disk, requests and replies stored in full. Then the same
with a model that refuses every tenth request, under a limit and a cap, and with two workers; beside each of the first
two, the same prompts to the same server from Inspect, lm-eval and the vendor's SDK alone.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import psycopg

from benchmarks.harnesses import Harness, NoHarnessError, harnesses, model, seen
from benchmarks.server import Server, server
from embedded.processes import processes_in

RUNS, STIMULI, LATENCY, THREADS = int(os.environ.get("RUNS", "50")), 18, 0.5, 32
REQUESTS = RUNS * STIMULI
IDEAL = REQUESTS * LATENCY / THREADS
REFUSED = 10  # every so manieth request
LIMIT = 300.0  # seconds, after which it is given up

CONFIGURE = """
import json
from decimal import Decimal
from datetime import date
from corpus.models import Instrument
from llmruns.models import Price
from llmruns.services import model_config_create, prompt_ensure
instrument = Instrument.objects.first()
for label, url in {urls!r}.items():
    model_config_create(study=instrument.study, label=label, base_url=url, model="test-model", max_output_tokens=256,
        actor=None)
Price.objects.create(study=instrument.study, provider="openai_compatible", model="test-model", currency="USD",
    input_million=Decimal(1), output_million=Decimal(2), valid_from=date(2026, 1, 1))
prompt = prompt_ensure(study=instrument.study)
words = instrument.stimuli.filter(is_practice=False).order_by("position").values_list("text", flat=True)
print(json.dumps([prompt.text.replace("{{words}}", text) for text in words]))
"""
LIMITED = """
from corpus.models import Instrument
from llmruns.limits import limit_set
limit_set(study=Instrument.objects.first().study, provider="openai_compatible", base_url="", parallel={parallel},
    per_minute=None, actor=None)
"""
LAUNCH = """
from decimal import Decimal
from corpus.models import Instrument
from llmruns.models import ModelConfig
from llmruns.services import experiment_launch, prompt_ensure
instrument = Instrument.objects.first()
experiment = experiment_launch(study=instrument.study, instrument=instrument, actor=None, runs={runs},
    prompt=prompt_ensure(study=instrument.study), configs=[ModelConfig.objects.get(label={label!r})],
    **({{"cap": Decimal(1000), "currency": "USD"}} if {capped} else {{}}))
print(experiment.pk)
"""
# Of one experiment: whether it is finished, its replies, the seconds from the first request to the last record.
SPAN = """
select e.state = 'finished', count(*) filter (where c.state = 'ok'),
  extract(epoch from max(c.ended_at) - min(c.sent_at))
from llmruns_call c join llmruns_run r on r.id = c.run_id join llmruns_experiment e on e.id = r.experiment_id
where e.id = %s group by e.state
"""


@contextmanager
def workers(found: Server, number: int) -> Iterator[list[psutil.Process]]:
    """So many processes that share THREADS between them."""
    env = found.env | {"DATABASE_POOL_SIZE": "8"}
    with ExitStack() as running:
        processes = []
        for name in range(number):
            command = [sys.executable, "-m", "celery", "-A", "config", "worker", "-P", "threads"]
            command += ["-c", str(THREADS // number), "-n", f"bench{name}@local", "-Q", "llm"]
            command += ["--without-gossip", "--without-mingle", "--loglevel", "WARNING"]
            process = running.enter_context(
                subprocess.Popen(
                    command, cwd=found.place.repo, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
            running.callback(process.kill)
            processes.append(psutil.Process(process.pid))
        yield processes


def launch(
    found: Server, processes: list[psutil.Process], runs: int, *, label: str = "quick", capped: bool = False
) -> tuple[int, float, int]:
    """Launch so many runs and wait for their end: replies, seconds, peak of the workers' memory in bytes."""
    code = LAUNCH.format(runs=runs, label=label, capped=capped)
    experiment = int(found.manage("shell", "-v0", "-c", code))
    end, peak = time.monotonic() + LIMIT, 0
    with psycopg.connect(found.env["DATABASE_URL"], autocommit=True) as connection:
        while time.monotonic() < end:
            peak = max(peak, sum(process.memory_info().rss for process in processes))
            row = connection.execute(SPAN, [experiment]).fetchone()
            if row is not None and row[0]:
                return int(row[1]), float(row[2]), peak
            time.sleep(0.1)
    raise TimeoutError(f"not finished in {LIMIT:.0f} s")


def _luria(found: Server, *, label: str = "quick", capped: bool = False, number: int = 1) -> str:
    with workers(found, number) as processes:
        launch(found, processes, max(2, THREADS // STIMULI))  # code is loaded, connections are open
        parts = {
            "worker": lambda: sum(sum(process.cpu_times()[:2]) for process in processes),
            "PostgreSQL": lambda: _seconds(found, "postgres"),
            "Valkey": lambda: _seconds(found, "valkey"),
        }
        before = {name: part() for name, part in parts.items()}
        calls, span, peak = launch(found, processes, RUNS, label=label, capped=capped)
        cpu = {name: 1000 * (part() - before[name]) / calls for name, part in parts.items()}
    said = ", ".join(f"{name} {ms:.1f}" for name, ms in cpu.items())
    return (
        f"{calls} of {REQUESTS}, span {span:.1f} s, {span / IDEAL:.2f} x the ideal; CPU ms per reply: {said};"
        f" peak memory {peak / 2**20:.0f} MB"
    )


def _seconds(found: Server, what: str) -> float:
    while True:
        try:
            if what == "postgres":
                return found.postgres_seconds()
            return sum(sum(process.cpu_times()[:4]) for process in processes_in(found.place.valkey))
        except psutil.NoSuchProcess:  # a process of PostgreSQL ended while it was looked at
            continue


def _beside(harness: Harness, address: str, prompts: list[str]) -> str:
    """Its start, once, is taken off the CPU; it is not in the span, which the server sees."""
    try:
        start = harness.start(address, prompts[:1])
        seen(address)
        cpu, peak, replies = harness.run(address, prompts * RUNS, THREADS)
    except NoHarnessError as error:
        return f"not measured: {error}"
    span = seen(address)["seconds"]
    return (
        f"{replies} of {REQUESTS}, span {span:.1f} s, {span / IDEAL:.2f} x the ideal; CPU ms per reply"
        f" {1000 * (cpu - start) / replies:.1f}, {cpu:.1f} s in all with {start:.1f} s of its start; peak memory"
        f" {peak / 2**20:.0f} MB"
    )


def measure() -> str:
    lines = [f"{REQUESTS} requests, {THREADS} at once, the ideal {IDEAL:.1f} s"]

    def say(name: str, figures: str) -> None:
        lines.append(f"{name} (load {os.getloadavg()[0]:.1f}): {figures}")
        print(lines[-1], file=sys.stderr, flush=True)  # it takes minutes

    with server() as found, model(latency=LATENCY) as quick, model(latency=LATENCY, refuse=REFUSED) as busy:
        found.manage("luria_setup")
        urls = {"quick": quick, "busy": busy}
        prompts = json.loads(found.manage("shell", "-v0", "-c", CONFIGURE.format(urls=urls)))
        others, missing = harnesses(found.place.data / "harnesses")
        for label, address in urls.items():
            how = "" if label == "quick" else f", every {REFUSED}th request refused with Retry-After: 1"
            say(f"Luria{how}", _luria(found, label=label))
            for harness in others:
                say(f"{harness.name}{how}", _beside(harness, address, prompts))
        say("Luria, two workers of 16 threads", _luria(found, number=2))
        say("Luria, under a cap", _luria(found, capped=True))
        found.manage("shell", "-v0", "-c", LIMITED.format(parallel=THREADS))
        say("Luria, under a cap and a limit of 32 at once", _luria(found, capped=True))
        say("the same, two workers of 16 threads", _luria(found, capped=True, number=2))
    return "\n  ".join([*lines, *missing])
