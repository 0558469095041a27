"""Answers leave the judgings that hold them: they count no more, or their author has withdrawn them."""

from collections.abc import Collection
from functools import partial

from django.db import transaction
from django.utils import timezone

from llmruns.models import JudgingItem
from llmruns.queue import judgements_enqueue

# What a claim reads with its item.
ITEM = (
    "answer__stimulus",
    "answer__sitting__instrument",
    "answer__sitting__respondent",
    "judging__model_judge__config__credential",
    "judging__model_judge__prompt",
)


def item_leave(item: JudgingItem, why: str, *, gone: Collection[int] = ()) -> bool:
    """Take the item out, within the caller's transaction, which holds its lock. False: another holds what shares its
    text at this moment, and nothing has changed.

    Where others gave the same text, the first of them that is not `gone` becomes the one that is asked. It keeps what
    was already judged: the judgements are copies with rows of their own.
    """
    sharing = list(
        JudgingItem.objects.select_for_update(skip_locked=not gone)
        .filter(same_as=item)
        .exclude(state=JudgingItem.State.REMOVED)
        .order_by("pk")
    )
    if not gone and len(sharing) < item.sharing.exclude(state=JudgingItem.State.REMOVED).count():
        return False
    heirs = [one for one in sharing if one.pk not in gone]
    if heirs:
        heir = heirs[0]
        heir.same_as, heir.state, heir.problem, heir.due_at = None, item.state, item.problem, timezone.now()
        heir.save(update_fields=["same_as", "state", "problem", "due_at"])
        item.sharing.exclude(pk=heir.pk).update(same_as=heir)
        if heir.state == JudgingItem.State.TODO:
            transaction.on_commit(partial(judgements_enqueue, [(heir.judging_id, heir.answer_id)]))
    item.state, item.problem = JudgingItem.State.REMOVED, why
    item.save(update_fields=["state", "problem"])
    return True
