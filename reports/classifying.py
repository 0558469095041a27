"""Who is one person in several surveys: what the layer of classifiers cannot know, and a split must."""

from collections import defaultdict

from studies.models import Study
from surveys.models import Participant


def same_person(study: Study) -> list[set[int]]:
    """Sets of a study's respondents that share an external id, on whatever platform. One query.

    Two people whose seat numbers happen to be equal are put together, too: that costs nothing but a freer choice.
    """
    by_id: dict[str, set[int]] = defaultdict(set)
    rows = Participant.objects.filter(respondent__study=study).exclude(external_id="")
    for external_id, respondent in rows.values_list("external_id", "respondent"):
        by_id[external_id].add(respondent)
    return [respondents for respondents in by_id.values() if len(respondents) > 1]
