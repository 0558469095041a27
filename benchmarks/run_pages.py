"""The pages of 2,800 runs and 50,400 calls with full bodies, over HTTP: 28 models, a hundred runs each.

A second experiment asks the same models five times under another version of the prompt. Nobody has rated.
"""

import http.client
import json
import os
import time

import psutil

from benchmarks.server import HOST, Browser, Server, server

MODELS, RUNS, RUNS_AGAIN = 28, 100, 5
TIMES = 5
MAKE = """
import json
from django.db import connection
from django.utils import timezone
from corpus.models import Instrument, Sitting
from llmruns.models import Experiment, Price, Prompt, Run
from llmruns.services import model_config_create, prompt_ensure

instrument = Instrument.objects.first()
study = instrument.study
first = prompt_ensure(study=study)
second = Prompt.objects.create(study=study, slug=first.slug, version=2, text=first.text + " ")
order = list(instrument.stimuli.filter(is_practice=False).order_by("position").values_list("pk", flat=True))
configs = [model_config_create(study=study, label=f"model {{n:02}}", base_url="http://127.0.0.1:9/v1",
                               model=f"model-{{n}}", actor=None) for n in range({models})]
Instrument.objects.filter(pk=instrument.pk).update(state="frozen")
now = timezone.now()
experiments = []
for prompt, runs, before in ((first, {runs}, 0), (second, {again}, {runs})):
    experiment = Experiment.objects.create(study=study, instrument=instrument, prompt=prompt, title="benchmark",
                                           runs_planned=runs, state="finished", ended_at=now)
    sittings = Sitting.objects.bulk_create(
        Sitting(respondent_id=config.respondent_id, instrument=instrument, ordinal=before + n, order=order,
                source_label=f"{{config.label}} · run {{n}}", started_at=now)
        for config in configs for n in range(1, runs + 1))
    wanted = ((config, n) for config in configs for n in range(1, runs + 1))
    Run.objects.bulk_create(Run(experiment=experiment, config=config, ordinal=n, sitting=sitting, state="finished")
                            for (config, n), sitting in zip(wanted, sittings))
    experiments.append(experiment.pk)
request = {{"model": "model", "messages": [{{"role": "user", "content": first.text}}], "temperature": 1.0}}
response = {{"id": "x", "object": "chat.completion", "model": "model", "created": 1, "choices": [{{"index": 0,
    "finish_reason": "stop", "message": {{"role": "assistant", "content": '{{"results": "кошка сидит на столе"}}'}}}}],
    "usage": {{"prompt_tokens": 300, "completion_tokens": 12, "total_tokens": 312}}}}
with connection.cursor() as cursor:
    cursor.execute('''
        INSERT INTO llmruns_runstimulus (run_id, stimulus_id, state, attempts, failures, due_at, problem)
        SELECT r.id, s.value::bigint, 'done', 1, 0, now(), ''
        FROM llmruns_run r JOIN corpus_sitting t ON t.id = r.sitting_id, jsonb_array_elements_text(t."order") s''')
    cursor.execute('''
        INSERT INTO corpus_answer (blind_id, sitting_id, stimulus_id, outcome, text, revision, created_at, changed_at)
        SELECT gen_random_uuid(), r.sitting_id, i.stimulus_id, 'given',
          'кошка сидит на столе и играет ' || mod(i.id, 50), 1, now(), now()
        FROM llmruns_runstimulus i JOIN llmruns_run r ON r.id = i.run_id''')
    cursor.execute('''
        INSERT INTO llmruns_call (config_id, purpose, run_id, stimulus_id, attempt, state, kind, detail, asked, request,
          used, response, raw_reply, raw_body, escaped, model_reported, finish_reason, http_status, input_tokens,
          output_tokens, cost, currency, worker, sent_at, ended_at)
        SELECT r.config_id, 'answer', r.id, i.stimulus_id, 1, 'ok', '', '', '{{"temperature": 1.0}}', %s, '{{}}', %s,
          '{{"results": "кошка сидит на столе и играет ' || mod(i.id, 50) || '"}}', '', false, 'model', 'stop', 200,
          300, 12, 0.0003, 'USD', 'x:1:1', now() - interval '1 second', now()
        FROM llmruns_runstimulus i JOIN llmruns_run r ON r.id = i.run_id''',
        [json.dumps(request), json.dumps(response)])
    cursor.execute("UPDATE corpus_sitting SET state = 'finished', finished_at = now() WHERE state = 'open'")
    cursor.execute("ANALYZE")
"""
SIGN_IN = """
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from studies.models import Membership, User
user = User.objects.create_user("looker")
Membership.objects.create(user=user, study=study, role="researcher", is_active=True)
session = SessionStore()
session[SESSION_KEY] = str(user.pk)
session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.create()
print(json.dumps([session.session_key, study.slug, experiments, instrument.pk, Run.objects.first().pk,
                  [first.pk, second.pk]]))
"""


def measure() -> str:
    with server() as found:
        found.manage("luria_setup")
        made = MAKE.format(models=MODELS, runs=RUNS, again=RUNS_AGAIN) + SIGN_IN
        session, slug, experiments, instrument, run, prompts = json.loads(found.manage("shell", "-v0", "-c", made))
        found.web_start()
        browser = Browser(found, cookies={"luria_session": session})
        at = f"/studies/{slug}"
        first = experiments[0]
        pages = {
            "experiment": f"{at}/experiments/{first}/",
            "its runs, page 20": f"{at}/experiments/{first}/?page=20",
            "experiments": f"{at}/experiments/",
            "run": f"{at}/experiments/{first}/runs/{run}/",
            "calls": f"{at}/experiments/{first}/calls/",
            "calls, page 1000": f"{at}/experiments/{first}/calls/?page=1000",
            "calls with a text": f"{at}/experiments/{first}/calls/?text=49",
            "calls of the study": f"{at}/calls/",
            "models": f"{at}/models/",
            "study": f"{at}/",
            "prompts compared": f"{at}/prompts/compare/?instrument={instrument}&first={prompts[0]}&second={prompts[1]}",
            "results": f"{at}/results/",
        }
        lines = [_page(browser, name, path) for name, path in pages.items()]
        lines.append(_file(found, session, f"{at}/calls.jsonl"))
    return f"load {os.getloadavg()[0]:.1f}\n  " + "\n  ".join([*lines, f"errors {browser.errors}"])


def _page(browser: Browser, name: str, path: str) -> str:
    seconds, size = [], 0
    for _ in range(TIMES + 1):
        begun = time.monotonic()
        status, _, text = browser.send("GET", path)
        seconds.append(time.monotonic() - begun)
        size = len(text)
    note = "" if status == 200 else f" (HTTP {status})"
    return (
        f"{name}: median {sorted(seconds[1:])[TIMES // 2]:.2f} s, first {seconds[0]:.2f} s, {size / 1e3:.0f} kB{note}"
    )


def _file(found: Server, session: str, path: str) -> str:
    """All calls as JSONL, read as they come: seconds, and how far the web server's memory rose."""
    workers = psutil.Process(found.web.pid).children()
    before = [worker.memory_info().rss for worker in workers]
    highest = list(before)
    connection = http.client.HTTPConnection(HOST, found.port, timeout=300)
    begun = time.monotonic()
    connection.request("GET", path, headers={"Cookie": f"luria_session={session}"})
    response = connection.getresponse()
    first, lines, size = 0.0, 0, 0
    while piece := response.read(1_000_000):
        first = first or time.monotonic() - begun
        lines += piece.count(b"\n")
        size += len(piece)
        highest = [max(old, worker.memory_info().rss) for old, worker in zip(highest, workers, strict=True)]
    rise = max(new - old for new, old in zip(highest, before, strict=True))
    return (
        f"calls.jsonl: {lines} lines, {size / 1e6:.0f} MB in {time.monotonic() - begun:.1f} s, the first after"
        f" {first:.2f} s; memory rose by {rise / 2**20:.0f} MB"
    )
