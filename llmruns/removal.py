"""Answers that were judged by a model are withdrawn: they are not sent any more, and no call keeps what was sent."""

from collections.abc import Collection

from django.db import transaction
from django.db.models import Q

from llmruns.judge_calls import BLANK, judging_settle
from llmruns.judge_items import item_leave
from llmruns.models import Call, Judging, JudgingItem


@transaction.atomic
def judged_answers_remove(*, answer_ids: Collection[int]) -> int:
    """Take the answers out of every judging and blank the calls about them. Returns how many calls there were.

    What is judged stays judged, a value without a text; tokens, costs and times of the calls stay, since they were
    paid. A call that is on its way ends, and keeps nothing of what comes back. The caller holds the study's lock, under
    which judgings are launched: nobody copies an answer into one meanwhile.
    """
    mine = Q(answer__in=answer_ids)
    items = list(
        JudgingItem.objects.select_for_update(of=("self",))
        .filter(mine | Q(same_as__answer__in=answer_ids))
        .order_by("pk")
    )
    own = [item for item in items if item.answer_id in set(answer_ids)]
    gone = {item.pk for item in own}
    for item in own:
        if item.state != JudgingItem.State.REMOVED:
            item.refresh_from_db(fields=["same_as", "state", "problem"])  # an earlier one may have handed over to it
            item_leave(item, "withdrawn", gone=gone)
    calls = Call.objects.filter(mine)
    count = calls.update(**BLANK)
    judgings = sorted({item.judging_id for item in own})
    Judging.objects.filter(pk__in=judgings).exclude(reason="").update(reason="")  # the provider may have quoted it
    for pk in judgings:
        judging_settle(pk)
    return count
