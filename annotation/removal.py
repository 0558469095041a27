"""Answers leave the campaigns that hold them: their author has withdrawn them."""

from collections.abc import Collection

from django.db import transaction
from django.utils import timezone

from annotation.models import Campaign, Item, Place


@transaction.atomic
def answers_remove(*, answer_ids: Collection[int]) -> int:
    """Blank the copies that raters see and hand them out no more. Returns how many items there were.

    What is judged stays judged: a value without a text, which counts nowhere because the sitting does not. The
    campaigns are locked first, as an adjudicator does, so that nobody decides an answer while it goes; the places in
    the order of their ids, as every writer of several does. The study is locked by the caller: no campaign that would
    copy the texts opens meanwhile.
    """
    items = Item.objects.filter(answer__in=answer_ids)
    list(
        Campaign.objects.select_for_update(no_key=True)
        .filter(pk__in=items.values("campaign"))
        .order_by("pk")
        .values_list("pk")
    )
    asked = Place.objects.filter(item__in=items.values("pk"), state__in=[Place.State.FREE, Place.State.HELD])
    locked = list(asked.select_for_update().order_by("pk").values_list("pk", flat=True))
    Place.objects.filter(pk__in=locked).update(state=Place.State.VOID)
    return items.update(display_text="", removed_at=timezone.now())
