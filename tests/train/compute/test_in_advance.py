from __future__ import annotations

import threading

import pytest

from train.compute.in_advance import in_advance


def test_the_next_thing_is_made_while_one_is_used():
    is_made = {number: threading.Event() for number in range(3)}

    def make(number):
        is_made[number].set()
        return 2 * number

    results = in_advance(make, range(3))
    assert next(results) == 0
    assert is_made[1].wait(timeout=60)
    assert not is_made[2].is_set()
    assert list(results) == [2, 4]
    assert list(in_advance(make, [])) == []


def test_what_cannot_be_made_is_raised_where_it_is_needed():
    made = in_advance(lambda number: 1 // number, [1, 0])
    assert next(made) == 1
    with pytest.raises(ZeroDivisionError):
        next(made)


def test_a_user_who_leaves_early_leaves_no_thread_behind():
    makers = set()

    def make(number):
        makers.add(threading.current_thread())
        return number

    made = in_advance(make, range(9))
    next(made)
    made.close()
    (maker,) = makers
    assert maker is not threading.current_thread()
    assert not maker.is_alive()
