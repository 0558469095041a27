"""Planning and opening a campaign of 20,016 answers, three raters each, over HTTP; what a rater waits meanwhile."""

import json
import re
import threading
import time
from urllib.parse import urlencode

from benchmarks.raters import CONFIGURE
from benchmarks.server import Browser, server

SITTINGS, PER_ANSWER, TIMES = 1_112, 3, 3
RESEARCHER = """
import json
from annotation.models import Campaign
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from studies.models import Membership, User
study = Campaign.objects.get().study
user = User.objects.create_user("opener")
Membership.objects.create(user=user, study=study, role="researcher", is_active=True)
session = SessionStore()
session[SESSION_KEY] = str(user.pk)
session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.create()
print(json.dumps([session.session_key, study.slug]))
"""


def measure() -> str:
    with server() as found:
        found.manage("luria_setup")
        configure = CONFIGURE.format(sittings=SITTINGS, k=PER_ANSWER)
        sessions = json.loads(found.manage("shell", "-v0", "-c", configure))[0]
        session, slug = json.loads(found.manage("shell", "-v0", "-c", RESEARCHER))
        found.web_start()
        browser = Browser(found, cookies={"luria_session": session})
        rater = Browser(found, cookies={"luria_session": sessions[0]})
        path = f"/studies/{slug}/campaigns/new/"
        browser.get(path), rater.get("/rate/")  # a process answers its first request slowly
        seconds: dict[str, list[float]] = {"count": [], "each by itself": [], "texts once": []}
        waited: list[float] = []
        for number in range(TIMES):
            for name, identical in (("each by itself", "separately"), ("texts once", "once")):
                data = {"title": f"{name} {number}", "raters_per_answer": PER_ANSWER, "seed": number}
                data |= {"identical": identical, "repeat_percent": 5, "repeat_distance": 50}
                begun = time.monotonic()
                page = browser.get(f"{path}?{urlencode(data)}")
                seconds["count"].append(time.monotonic() - begun)
                data |= {
                    name: re.search(rf'name="{name}" value="([^"]+)"', page)[1]  # type: ignore[index]
                    for name in ("seen", "csrfmiddlewaretoken")
                }
                over = threading.Event()
                looking = threading.Thread(target=_look, args=(rater, over, waited))
                looking.start()
                begun = time.monotonic()
                browser.post(path, urlencode(data))
                seconds[name].append(time.monotonic() - begun)
                over.set()
                looking.join()
        parts = [f"{name} {sorted(values)[len(values) // 2]:.1f} s" for name, values in seconds.items()]
        slowest = f"a rater's first page meanwhile: slowest of {len(waited)} {max(waited):.2f} s"
        return f"medians: {', '.join(parts)}; {slowest}; errors {browser.errors + rater.errors}"


def _look(rater: Browser, over: threading.Event, waited: list[float]) -> None:
    while not over.is_set():
        begun = time.monotonic()
        rater.get("/rate/")
        waited.append(time.monotonic() - begun)
        over.wait(0.1)
