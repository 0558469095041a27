import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.splitting import cut, people_hash, people_of, split


def test_the_papers_split() -> None:
    """108 people: 75 train and 33 test."""
    sides = split(people_of(range(108)), seed=1)
    assert (len(sides.train), len(sides.test)) == (75, 33)
    assert sides.train | sides.test == set(range(108))


def test_seeded_and_whatever_the_order() -> None:
    people = people_of(range(50))
    assert split(people, seed=3) == split(people[::-1], seed=3)
    assert split(people, seed=3) != split(people, seed=4)


@pytest.mark.parametrize(("n", "train"), [(10, 7), (3, 2), (2, 1), (1, 0), (0, 0), (30, 21)])
def test_floor(n: int, train: int) -> None:
    assert len(split(people_of(range(n)), seed=1).train) == train


@given(
    n=st.integers(0, 40),
    same=st.lists(st.sets(st.integers(0, 45), max_size=5), max_size=12),
    seed=st.integers(0, 1000),
)
def test_one_person_is_on_one_side(n: int, same: list[set[int]], seed: int) -> None:
    people = people_of(range(n), same)
    sides = split(people, seed=seed)
    assert sorted(pk for one in people for pk in one) == list(range(n))
    assert len(sides.train) <= 0.7 * n
    assert not sides.train & sides.test and sides.train | sides.test == set(range(n))
    for one in same:
        known = {pk for pk in one if pk < n}
        assert known <= sides.train or known <= sides.test


def test_chains_are_one_person() -> None:
    assert people_of([1, 2, 3, 4], [{1, 2}, {2, 3}, {9, 4}]) == [(1, 2, 3), (4,)]


def test_hash_knows_who_is_one_person() -> None:
    assert people_hash([(1, 2), (3,)]) == people_hash([(3,), (2, 1)])
    assert people_hash([(1, 2), (3,)]) != people_hash([(1,), (2,), (3,)])


def test_a_fraction_is_a_share() -> None:
    with pytest.raises(ValueError, match="not between"):
        split([(1,)], seed=1, fraction=1.0)


def test_the_cut_holds_somebody_and_never_all() -> None:
    groups = [str(index // 3) for index in range(30)]
    held = cut(groups, seed=1, fraction=0.15)
    assert len(held) == 2 and held < set(groups)
    assert cut(["a", "b"], seed=1, fraction=0.9) in ({"a"}, {"b"})
    assert cut(["a", "a"], seed=1, fraction=0.5) == cut(groups, seed=1, fraction=0) == frozenset()
