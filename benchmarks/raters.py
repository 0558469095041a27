"""Raters who judge without a pause (judgements saved per second) and with 2 s to think (latency).

One save is the POST of a judging page and the page of the next answer, as a browser does it. Every campaign holds the
same 306 answers with three raters each.
"""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.server import Browser, Server, percentile, server

SITTINGS, STIMULI, PER_ANSWER = 17, 18, 3
SAVES = SITTINGS * STIMULI * PER_ANSWER  # of one campaign
THINK, THOUGHTFUL = 2.0, 8  # seconds, and saves by each rater who thinks

CONFIGURE = """
import json
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from annotation.services import campaign_open
from corpus.models import Answer, Instrument, Respondent
from corpus.services import answer_record, sitting_finish, sitting_start
from studies.models import Role, User
from studies.services import membership_set

instrument = Instrument.objects.first()
study = instrument.study
for _ in range({sittings}):
    respondent = Respondent.objects.create(study=study, kind=Respondent.Kind.HUMAN)
    sitting = sitting_start(respondent=respondent, instrument=instrument, source_label="benchmark")
    for stimulus in instrument.stimuli.all():
        text = stimulus.original
        answer_record(sitting_id=sitting.pk, stimulus_id=stimulus.pk, outcome=Answer.Outcome.GIVEN, text=text)
    sitting_finish(sitting_id=sitting.pk)
sessions = []
for number in range(30):
    user = User.objects.create_user(f"rater{{number}}")
    membership_set(user=user, study=study, role=Role.RATER, actor=None)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    sessions.append(session.session_key)
campaigns = [
    campaign_open(study=study, title=f"campaign {{number}}", raters_per_answer={k}, seed=number, actor=user).pk
    for number in range(5)
]
print(json.dumps([sessions, campaigns]))
"""
COUNT = """
from annotation.models import Place
from scoring.models import Judgement
print(Place.objects.filter(state="done").count(), Judgement.objects.filter(retracted_at=None).count())
"""


@dataclass
class Worked:
    seconds: list[float]  # of each save and the page after it
    errors: int


def rater(found: Server, session: str, campaign: int, think: float, limit: int) -> Worked:
    browser = Browser(found, cookies={"luria_session": session})
    page = browser.get("/rate/")
    token = "csrfmiddlewaretoken=" + re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[0]
    judged = f"{token}&version=0&c-grammatical=1&c-logical=1&c-order=0"
    address = urlsplit(browser.post(f"/rate/c/{campaign}/next/", token)).path
    browser.get(address)
    seconds: list[float] = []
    while address != "/rate/" and len(seconds) < limit and not browser.errors:
        if think:
            time.sleep(think)
        begun = time.monotonic()
        address = urlsplit(browser.post(address, judged)).path
        browser.get(address)
        seconds.append(time.monotonic() - begun)
    return Worked(seconds, browser.errors)


def crowd(found: Server, sessions: list[str], campaign: int, think: float = 0.0, limit: int = SAVES) -> str:
    begun = time.monotonic()
    with ThreadPoolExecutor(len(sessions)) as pool:
        worked = list(pool.map(lambda session: rater(found, session, campaign, think, limit), sessions))
    span = time.monotonic() - begun
    seconds = [second for one in worked for second in one.seconds]
    errors = sum(one.errors for one in worked)
    if think:
        times = ", ".join(f"p{int(100 * share)} {percentile(seconds, share):.0f} ms" for share in (0.5, 0.95))
        return f"{len(sessions)} at {think:.0f} s: {times} (n {len(seconds)}), errors {errors}"
    return f"{len(sessions)} at once: {len(seconds) / span:.0f} saves/s (n {len(seconds)}), errors {errors}"


def measure() -> str:
    with server() as found:
        found.manage("luria_setup")
        configure = CONFIGURE.format(sittings=SITTINGS, k=PER_ANSWER)
        sessions, campaigns = json.loads(found.manage("shell", "-v0", "-c", configure))
        found.web_start()
        crowd(found, sessions[:4], campaigns[4], limit=20)  # every process has loaded its code
        parts = [
            crowd(found, sessions[:3], campaigns[0]),
            crowd(found, sessions, campaigns[1]),
            crowd(found, sessions[:3], campaigns[2], think=THINK, limit=THOUGHTFUL),
            crowd(found, sessions, campaigns[3], think=THINK, limit=THOUGHTFUL),
        ]
        expected = 4 * 20 + 2 * SAVES + (3 + 30) * THOUGHTFUL
        places, judgements = found.manage("shell", "-v0", "-c", COUNT).split()
    return "; ".join([*parts, f"stored {places} of {expected}, judgements {judgements} of {3 * expected}"])
