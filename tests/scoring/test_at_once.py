from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from scoring.models import Judge, Rule
from scoring.services import paper_rubric, rules_apply
from studies.models import Study
from tests.conftest import Cast


@pytest.mark.django_db(transaction=True)
def test_the_first_results_of_two_studies_at_once_share_one_rule(cast: Cast) -> None:
    studies, rubric = list(Study.objects.order_by("pk")), paper_rubric()
    barrier = Barrier(2, timeout=30)

    def apply(study: Study) -> int:
        barrier.wait()
        try:
            return rules_apply(study=study, rubric=rubric)
        finally:
            connection.close()

    for _ in range(5):
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(apply, studies)) == [0, 0]
        assert Rule.objects.count() == Judge.objects.count() == 2
        Rule.objects.all().delete()
        Judge.objects.all().delete()
