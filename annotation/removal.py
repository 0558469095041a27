"""Answers leave the campaigns that hold them: their author has withdrawn them."""

from collections.abc import Callable, Collection

from django.db import transaction
from django.db.models import F, Model
from django.utils import timezone

from annotation.deciding import decisions_blind
from annotation.models import Campaign, Guideline, Item, Place, Purpose, Reference, Seat, Skip
from annotation.versions import removal_change, version_add
from studies.models import Study


@transaction.atomic
def answers_remove(*, answer_ids: Collection[int]) -> int:
    """Blank the copies that raters see and hand them out no more. Returns how many items there were.

    What is judged stays judged: a value without a text, which counts nowhere because the sitting does not. Where others
    gave the same text and share its judgements, one of theirs takes over its places. The campaigns are locked first, as
    an adjudicator does, so that nobody decides an answer while it goes; then the seats, as by whoever judges, and the
    places in the order of their ids. The study is locked by the caller: no campaign that would copy the texts opens
    meanwhile.
    """
    items = Item.objects.filter(answer__in=answer_ids)
    campaigns = Campaign.objects.select_for_update(no_key=True).filter(pk__in=items.values("campaign")).order_by("pk")
    for campaign in list(campaigns):
        _campaign_leave(campaign, list(items.filter(campaign=campaign, removed_at__isnull=True).order_by("pk")))
    Reference.objects.filter(answer__in=answer_ids).update(explanation="", is_active=False)
    return items.count()


def _campaign_leave(campaign: Campaign, items: list[Item]) -> None:
    # Whoever judges at this moment holds a seat and then a place: so the seats come first here too.
    list(Seat.objects.select_for_update(no_key=True).filter(campaign=campaign).order_by("pk").values_list("pk"))
    for item in items:
        if item.same_as_id is None:
            _places_hand_over(item, gone={one.pk for one in items})
    pks = [item.pk for item in items]
    places = Place.objects.filter(item__in=pks)
    asked = places.filter(state__in=[Place.State.FREE, Place.State.HELD])
    locked = list(asked.select_for_update().order_by("pk").values_list("pk", flat=True))
    Place.objects.filter(pk__in=locked).update(state=Place.State.VOID)
    places.exclude(comment="").update(comment="")
    Skip.objects.filter(item__in=pks).exclude(reason="").update(reason="")
    Item.objects.filter(pk__in=pks).update(display_text="", explanation="", removed_at=timezone.now())
    judged = Item.objects.filter(
        campaign=campaign, purpose=Purpose.RATING, same_as__isnull=True, removed_at__isnull=True
    )
    rated = Place.objects.filter(campaign=campaign, purpose=Purpose.RATING).exclude(state=Place.State.VOID)
    campaign.n_items, campaign.n_places = judged.count(), rated.count()
    campaign.save(update_fields=["n_items", "n_places"])
    Seat.objects.filter(campaign=campaign).update(revision=F("revision") + 1)
    if rated_ids := Item.objects.filter(pk__in=pks, purpose=Purpose.RATING).values_list("answer__blind_id", flat=True):
        version_add(campaign=campaign, change=removal_change(rated_ids), actor=None)
        decisions_blind(campaign)


def _places_hand_over(item: Item, *, gone: Collection[int]) -> None:
    """Another item with the same text, that stays, becomes the one at which all of them are judged."""
    heir = item.sharing.filter(removed_at__isnull=True).exclude(pk__in=gone).order_by("pk").first()
    if heir is None:
        return
    list(Place.objects.filter(item=item).select_for_update().order_by("pk").values_list("pk"))
    Place.objects.filter(item=item).update(item=heir)
    Skip.objects.filter(item=item).update(item=heir)
    item.sharing.exclude(pk=heir.pk).update(same_as=heir)
    Item.objects.filter(pk=heir.pk).update(same_as=None, is_repeated=item.is_repeated)
    Item.objects.filter(pk=item.pk).update(same_as=heir, is_repeated=False)


@transaction.atomic
def remarks_blank(*, study: Study, blank: Callable[[str], str]) -> int:
    """Take quotations of withdrawn answers out of what raters and researchers wrote. Returns how many texts changed."""
    changed = 0
    places = Place.objects.filter(campaign__study=study).exclude(comment="")
    for place in places.only("comment").iterator():
        changed += _replace(Place, place.pk, "comment", place.comment, blank)
    for skip in Skip.objects.filter(campaign__study=study).exclude(reason="").only("reason").iterator():
        changed += _replace(Skip, skip.pk, "reason", skip.reason, blank)
    for item in Item.objects.filter(campaign__study=study).exclude(explanation="").only("explanation").iterator():
        changed += _replace(Item, item.pk, "explanation", item.explanation, blank)
    for reference in Reference.objects.filter(study=study).exclude(explanation=""):
        changed += _replace(Reference, reference.pk, "explanation", reference.explanation, blank)
    for guideline in Guideline.objects.filter(study=study):
        changed += _replace(Guideline, guideline.pk, "text", guideline.text, blank)
        changed += _replace(Guideline, guideline.pk, "note", guideline.note, blank)
    return changed


def _replace(model: type[Model], pk: int, field: str, text: str, blank: Callable[[str], str]) -> bool:
    found = blank(text)
    if found != text:
        model._default_manager.filter(pk=pk).update(**{field: found})
    return found != text
