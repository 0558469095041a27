from typing import Any

from django.db import migrations
from django.db.models import Count, Q

CHILDREN_BEGIN = "Вы видите слова в начальной форме, данные по порядку"  # of the only other rules that there were


def fill(apps: Any, schema_editor: Any) -> None:
    """What earlier campaigns were: every judged criterion asked, each answer judged by itself, no checks."""
    Guideline = apps.get_model("annotation", "Guideline")
    Guideline.objects.filter(text__startswith=CHILDREN_BEGIN).update(rubric_slug="children")
    Campaign = apps.get_model("annotation", "Campaign")
    Criterion = apps.get_model("scoring", "Criterion")
    Seat = apps.get_model("annotation", "Seat")
    for campaign in Campaign.objects.select_related("round"):
        campaign.criteria.set(Criterion.objects.filter(rubric=campaign.round.rubric_id, kind="judged"))
        campaign.n_items = campaign.items.filter(removed_at__isnull=True).count()
        campaign.n_places = campaign.places.exclude(state="void").count()
        campaign.save(update_fields=["n_items", "n_places"])
        counts = (
            campaign.places.filter(rater__isnull=False)
            .order_by()
            .values("rater")
            .annotate(done=Count("pk", filter=Q(done_at__isnull=False)), held=Count("pk", filter=Q(state="held")))
        )
        Seat.objects.bulk_create(
            Seat(campaign=campaign, rater_id=row["rater"], done=row["done"], held=row["held"], revision=1)
            for row in counts
        )


class Migration(migrations.Migration):
    dependencies = [("annotation", "0003_campaigns_deepened")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
