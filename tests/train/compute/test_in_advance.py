from __future__ import annotations

import threading

import pytest

from train.compute.in_advance import in_advance


def test_one_thing_is_made_while_the_last_one_is_used():
    made = threading.Semaphore(0)
    names = set()

    def double(number):
        names.add(threading.get_ident())
        made.release()
        return 2 * number

    results = []
    for result in in_advance(double, range(4)):
        # The one in use, and the next one if there is any.
        for _ in range(2 if not results else int(len(results) < 3)):
            assert made.acquire(timeout=60)
        results.append(result)
    assert results == [0, 2, 4, 6]
    assert len(names) == 1
    assert threading.get_ident() not in names
    assert list(in_advance(double, [])) == []


def test_what_cannot_be_made_is_raised_where_it_is_needed():
    made = in_advance(lambda number: 1 // number, [1, 0])
    assert next(made) == 1
    with pytest.raises(ZeroDivisionError):
        next(made)


def test_a_user_who_leaves_early_leaves_no_thread_behind():
    made = in_advance(lambda number: number, range(9))
    next(made)
    before = threading.active_count()
    made.close()
    assert threading.active_count() == before - 1
