"""The results of 20,000 answers and 200,000 judgements over HTTP; the file of 1,000,000 judgements beside a bare COPY.

CPU seconds stand beside the clock: on a shared machine they are the figure that can be compared.
"""

import json
import time
from dataclasses import dataclass

import psutil

from benchmarks.server import Browser, Server, server
from embedded import postgres

PEOPLE, MODELS, RUNS, STIMULI = 1_000, 22, 5, 18
TIMES = 5
BUILD = """
import json, random
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.utils import timezone
from annotation.services import rater_ensure
from corpus.builtin import builtin_instrument_create
from corpus.models import Answer, Respondent, Sitting
from corpus.services import instrument_freeze
from corpus.simulation import variants
from llmruns.models import Experiment, ModelConfig, Prompt, Run
from scoring.models import Round
from scoring.services import paper_rubric
from studies.models import Role, User
from studies.services import membership_set, study_create
rng, now = random.Random(1), timezone.now()
user = User.objects.create_user("looker")
study = study_create(slug="bench", title="Benchmark", actor=user)
membership_set(user=user, study=study, role=Role.RESEARCHER, actor=user)
instrument = builtin_instrument_create(study=study, actor=user)
stimuli = list(instrument.stimuli.order_by("position"))
instrument_freeze(instrument=instrument, actor=None)
kinds = [list(variants(one.text, one.original).values()) for one in stimuli]
def sit(respondents, ordinals, label):
    made = Sitting.objects.bulk_create(
        Sitting(respondent=one, instrument=instrument, ordinal=ordinal, source_label=label, state="finished",
                order=[s.pk for s in stimuli], started_at=now, finished_at=now)
        for one in respondents for ordinal in ordinals)
    # A third of the texts is nobody else's.
    Answer.objects.bulk_create(
        (Answer(sitting=one, stimulus=s, outcome="given",
                text=rng.choice(texts) + (f" {{rng.random()}}" if rng.random() < 1 / 3 else ""))
         for one in made for s, texts in zip(stimuli, kinds)), batch_size=5000)
    return made
sit(Respondent.objects.bulk_create(Respondent(study=study, kind="human") for _ in range({people})), [1], "benchmark")
prompt = Prompt.objects.create(study=study, slug="paper", text="{{words}}")
experiment = Experiment.objects.create(
    study=study, instrument=instrument, prompt=prompt, title="All", runs_planned={runs})
for number in range({models}):
    respondent = Respondent.objects.create(study=study, kind="model")
    config = ModelConfig.objects.create(respondent=respondent, study=study, label=f"Model {{number}}",
                                        base_url="http://127.0.0.1:9", model=f"m-{{number}}")
    for sitting in sit([respondent], range(1, {runs} + 1), config.label):
        Run.objects.create(
            experiment=experiment, config=config, sitting=sitting, ordinal=sitting.ordinal, state="finished")
rubric = paper_rubric()
raters = []
for number in range(3):
    one = User.objects.create_user(f"rater{{number}}")
    membership_set(user=one, study=study, role=Role.RATER, actor=user)
    raters.append(rater_ensure(user=one, study=study, actor=user))
def judge(purpose):
    made = Round.objects.create(study=study, rubric=rubric, purpose=purpose)
    with connection.cursor() as cursor:
        for rater in raters:
            for criterion in rubric.criteria.filter(kind="judged"):
                cursor.execute(
                    "INSERT INTO scoring_judgement (round_id, answer_id, criterion_id, judge_id, value, not_attempt, "
                    "reason, made_at) SELECT %s, a.id, %s, %s, (random() < 0.7)::int, false, '', now() "
                    "FROM corpus_answer a JOIN corpus_sitting s ON s.id = a.sitting_id WHERE s.instrument_id = %s",
                    [made.pk, criterion.pk, rater.judge_id, instrument.pk])
judge("rating")
for _ in range({repeats}):
    judge("repeat")
with connection.cursor() as cursor:
    cursor.execute("ANALYZE")
session = SessionStore()
session[SESSION_KEY] = str(user.pk)
session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.create()
print(json.dumps([session.session_key, study.slug]))
"""
# What a worker does within half a minute of an import.
COUNT = """
import json, resource, time
from scoring.counting import rules_look
def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
cpu, begun = spent(), time.monotonic()
rules_look(None)
print(json.dumps([time.monotonic() - begun, spent() - cpu]))
"""
PAGES = {
    "results page": "results/",
    "its figures": "results/figures.json",
    "errors page": "results/errors/",
    "answers behind a number": "results/answers/?group=people",
}


@dataclass
class Measured:
    seconds: float
    cpu: float  # of the web server
    database: float  # CPU of PostgreSQL
    size: int


def build(found: Server, *, repeats: int) -> tuple[str, str]:
    code = BUILD.format(people=PEOPLE, models=MODELS, runs=RUNS, repeats=repeats)
    session, slug = json.loads(found.manage("shell", "-v0", "-c", code))
    return session, slug


def asked(found: Server, browser: Browser, path: str) -> Measured:
    cpu, database, begun = sum(found.web_seconds()), found.postgres_seconds(), time.monotonic()
    body = browser.get(path)
    return Measured(
        time.monotonic() - begun,
        sum(found.web_seconds()) - cpu,
        found.postgres_seconds() - database,
        len(body or b""),
    )


def memory(found: Server) -> float:
    """MB of all web workers."""
    return sum(worker.memory_info().rss for worker in psutil.Process(found.web.pid).children()) / 1e6


def pages() -> list[str]:
    with server() as found:
        session, slug = build(found, repeats=0)
        found.web_start()
        browser = Browser(found, cookies={"luria_session": session})
        first = asked(found, browser, f"/studies/{slug}/results/")
        database = found.postgres_seconds()
        clock, cpu = json.loads(found.manage("shell", "-v0", "-c", COUNT))
        database = found.postgres_seconds() - database
        lines = [
            f"results page before anything is counted {first.seconds:.2f} s ({first.cpu:.2f} s of CPU, "
            f"{first.database:.2f} s of PostgreSQL's); the worker's count of the rest {clock:.2f} s "
            f"({cpu:.2f}, {database:.2f} s)"
        ]
        for name, path in PAGES.items():
            all_of_them = [asked(found, browser, f"/studies/{slug}/{path}") for _ in range(TIMES + 1)]
            first, rest = all_of_them[0], sorted(all_of_them[1:], key=lambda one: one.seconds)
            middle = rest[TIMES // 2]
            lines.append(
                f"{name}: median {middle.seconds:.2f} s ({middle.cpu:.2f} s of CPU, {middle.database:.2f} s of "
                f"PostgreSQL's), first {first.seconds:.2f} s"
            )
        lines.append(f"errors {browser.errors}")
    return lines


def files() -> list[str]:
    with server() as found:
        session, slug = build(found, repeats=5)
        found.web_start()
        browser = Browser(found, cookies={"luria_session": session})
        found.manage("shell", "-v0", "-c", COUNT)
        before = memory(found)
        done = [asked(found, browser, f"/studies/{slug}/exports/judgements.csv") for _ in range(3)]
        after = memory(found)
        middle = sorted(done, key=lambda one: one.seconds)[1]
        with postgres.connect(found.place, name="luria") as connection:
            number = connection.execute("SELECT count(*) FROM scoring_judgement").fetchone()[0]
            bare = []
            for _ in range(3):
                begun = time.monotonic()
                with connection.cursor().copy("COPY (SELECT * FROM scoring_judgement) TO STDOUT WITH CSV") as copy:
                    size = sum(map(len, copy))
                bare.append(time.monotonic() - begun)
        copied = sorted(bare)[1]
    return [
        f"judgements.csv of {number} judgements, {middle.size / 1e6:.0f} MB: {middle.seconds:.1f} s "
        f"({middle.cpu:.1f} s of CPU, {middle.database:.1f} s of PostgreSQL's), "
        f"{middle.seconds / copied:.1f} × a bare COPY "
        f"({size / 1e6:.0f} MB in {copied:.1f} s); memory {before:.0f} MB before, {after:.0f} MB after; "
        f"errors {browser.errors}"
    ]


def measure() -> str:
    return "\n  ".join(["", *pages(), *files()])
