"""What a classifier is called wherever a judge is named."""

from django.db.models import Case, CharField, Exists, OuterRef, QuerySet, Value, When
from django.db.models.functions import Cast, Concat

from scoring.models import Classifier


def with_names(classifiers: QuerySet[Classifier]) -> QuerySet[Classifier]:
    """With `name`: the title, and the number where another classifier of the study has the same title.

    The same in every language, as files name judges too.
    """
    same = Classifier.objects.filter(study=OuterRef("study"), title=OuterRef("title")).exclude(pk=OuterRef("pk"))
    numbered = Concat("title", Value(" (#"), Cast("pk", CharField()), Value(")"), output_field=CharField())
    return classifiers.annotate(name=Case(When(Exists(same), then=numbered), default="title", output_field=CharField()))


def name_of(classifier: Classifier) -> str:
    """Of one that was read with its name."""
    name: str = classifier.name  # type: ignore[attr-defined]
    return name
