"""People who take the eighteen tasks at once: without a pause (answers per second) and with 2 s to think (latency).

One answer is the POST and the page after it, as a browser does it.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlsplit
from uuid import uuid4

from benchmarks.server import Browser, Server, percentile, server

TASKS = 18
ANSWER = quote("кошка сидит на столе и играет с мячом")


def person(found: Server, survey: str, think: float) -> Browser:
    browser = Browser(found)
    browser.get(survey)
    address = urlsplit(browser.post(survey, f"start_key={uuid4()}")).path
    browser.get(address)
    browser.get(f"{address}1/")
    browser.seconds.clear()
    for number in range(1, TASKS + 1):
        if think:
            time.sleep(think)
        browser.get(browser.post(f"{address}{number}/", f"text={ANSWER}+{number}&seen=0&duration=900"))
    return browser


def crowd(found: Server, survey: str, people: int, think: float = 0.0) -> str:
    before = found.web_seconds()
    begun = time.monotonic()
    with ThreadPoolExecutor(people) as pool:
        browsers = list(pool.map(lambda _: person(found, survey, think), range(people)))
    span = time.monotonic() - begun
    share = [round(now - then, 1) for now, then in zip(found.web_seconds(), before, strict=True)]
    seconds = [second for browser in browsers for second in browser.seconds]
    errors = sum(browser.errors for browser in browsers)
    if think:
        times = ", ".join(f"p{int(100 * s)} {percentile(seconds, s):.0f} ms" for s in (0.5, 0.95, 0.99))
        return f"{people} at {think:.0f} s: {times}, errors {errors}"
    return f"{people} at once: {people * TASKS / span:.0f} answers/s, errors {errors}, CPU s per web process {share}"


def measure() -> str:
    with server() as found:
        survey = urlsplit(json.loads(found.manage("luria_setup"))["survey_url"]).path
        found.web_start()
        crowd(found, survey, 4)  # every process has loaded its code
        parts = [crowd(found, survey, people) for people in (20, 50)]
        parts += [crowd(found, survey, people, think=2.0) for people in (20, 50)]
        expected = (4 + 2 * (20 + 50)) * TASKS
        stored = found.manage("shell", "-v0", "-c", "from corpus.models import Answer; print(Answer.objects.count())")
    return "; ".join([*parts, f"stored {stored.strip()} of {expected}"])
