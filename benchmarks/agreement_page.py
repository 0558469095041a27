"""The pages of 20,000 answers, three raters, three criteria, over HTTP; beside them the bare queries.

Each rater has judged a hundred gold answers and a thousand repeats beside.
"""

import json
import time

from benchmarks.raters import CONFIGURE
from benchmarks.server import Browser, server
from embedded import postgres

SITTINGS, STIMULI, PER_ANSWER = 1_112, 18, 3
JUDGE = """
import json
from django.db import connection
from annotation.models import Campaign, Item, Place, Rater, Seat
from scoring.models import Round
from studies.models import User, Membership
campaign = Campaign.objects.get()
for purpose in ("gold", "repeat"):
    made = Round.objects.create(study=campaign.study, rubric=campaign.round.rubric, purpose=purpose)
    setattr(campaign, f"{purpose}_round", made)
campaign.save()
own = list(campaign.items.filter(purpose="rating", same_as=None).order_by("pk").values_list("pk", flat=True))
Place.objects.filter(item__in=own[:100]).delete()
expected = {criterion.code: 1 for criterion in campaign.criteria.all()}
Item.objects.filter(pk__in=own[:100]).update(purpose="gold", expected=expected)
Item.objects.filter(pk__in=own[100:1100]).update(is_repeated=True)
raters = list(Rater.objects.filter(study=campaign.study).order_by("pk")[:3])
with connection.cursor() as cursor:
    for number, rater in enumerate(raters, start=1):
        cursor.execute(
            "UPDATE annotation_place SET state = 'done', rater_id = %s, held_at = now(), ordinal = item_id, "
            "done_at = now() + item_id * interval '1 second', seconds = 2 + random() * 10, "
            "version = 1 WHERE campaign_id = %s AND number = %s AND purpose = 'rating'",
            [rater.pk, campaign.pk, number])
        Seat.objects.get_or_create(campaign=campaign, rater=rater)
        for criterion in campaign.criteria.all():
            for round_id, those in ((campaign.round_id, "purpose = 'rating'"),
                                    (campaign.gold_round_id, "purpose = 'gold'"),
                                    (campaign.repeat_round_id, "is_repeated")):
                cursor.execute(
                    "INSERT INTO scoring_judgement (round_id, answer_id, criterion_id, judge_id, value, not_attempt, "
                    "reason, made_at) SELECT %s, answer_id, %s, %s, (random() < 0.7)::int, false, '', now() "
                    "FROM annotation_item WHERE campaign_id = %s AND same_as_id IS NULL AND " + those,
                    [round_id, criterion.pk, rater.judge_id, campaign.pk])
    cursor.execute("ANALYZE")
user = User.objects.create_user("looker")
Membership.objects.create(user=user, study=campaign.study, role="researcher", is_active=True)
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
session = SessionStore()
session[SESSION_KEY] = str(user.pk)
session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.create()
print(json.dumps([session.session_key, campaign.study.slug, campaign.pk]))
"""
TIMES = 5
PAGES = {
    "agreement page": "agreement/",
    "campaign page": "",
    "agreement.csv": "agreement.csv",
    "quality page": "quality/",
    "quality.csv": "quality.csv",
}


def measure() -> str:
    with server() as found:
        found.manage("luria_setup")
        found.manage("shell", "-v0", "-c", CONFIGURE.format(sittings=SITTINGS, k=PER_ANSWER))
        session, slug, campaign = json.loads(found.manage("shell", "-v0", "-c", JUDGE))
        found.web_start()
        browser = Browser(found, cookies={"luria_session": session})
        lines = []
        for name, path in PAGES.items():
            seconds = []
            for _ in range(TIMES + 1):
                begun = time.monotonic()
                browser.get(f"/studies/{slug}/campaigns/{campaign}/{path}")
                seconds.append(time.monotonic() - begun)
            lines.append(f"{name}: median {sorted(seconds[1:])[TIMES // 2]:.2f} s, first {seconds[0]:.2f} s")
        with postgres.connect(found.place, name="luria") as connection:
            begun = time.monotonic()
            with connection.cursor().copy("COPY (SELECT * FROM scoring_judgement) TO STDOUT") as copy:
                size = sum(map(len, copy))
            bare = time.monotonic() - begun
        lines.append(f"bare COPY of the judgements ({size / 1e6:.0f} MB): {bare:.2f} s; errors {browser.errors}")
    return "\n  ".join(["", *lines])
