from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from studies.models import ApiToken
from tests.conftest import Cast


@pytest.mark.django_db(transaction=True)
def test_tokens_asked_for_at_once_leave_one_that_works(cast: Cast) -> None:
    clients = [cast.client(cast.alice) for _ in range(4)]
    barrier = Barrier(len(clients), timeout=30)

    def renew(number: int) -> int:
        clients[number].raise_request_exception = False
        barrier.wait()
        try:
            return clients[number].post("/account/token/").status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(len(clients)) as pool:
        assert list(pool.map(renew, range(len(clients)))) == [200] * len(clients)
    assert ApiToken.objects.filter(revoked_at__isnull=True).count() == 1
