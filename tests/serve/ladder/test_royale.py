"""ChaCha by the RFC's and the published test vectors, and walls that are recognised by the id of
their game.
"""

from __future__ import annotations

import struct
from itertools import islice

import pytest

from serve.ladder.royale import (
    DRAWS,
    chacha_block,
    drawn_sides,
    key_of,
    sides_that_moved,
    ways_that_fit,
    words_of,
)
from tests.envs.battlesnake.recording.official import official_games, recorded

GAME_ID = "3b241101-e2bb-4255-8caf-4136c566a962"


def as_bytes(words):
    return struct.pack("<16I", *words)


def test_the_block_of_rfc_8439():
    """Section 2.3.2: 20 rounds."""
    key = bytes(range(32))
    nonce = bytes.fromhex("000000090000004a00000000")
    expected = (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    assert as_bytes(chacha_block(key, 1, nonce, rounds=20)).hex() == expected


def test_eight_rounds_of_a_key_of_zeros():
    """draft-strombergson-chacha-test-vectors, TC1 with 256 bits and 8 rounds."""
    assert (
        as_bytes(chacha_block(bytes(32), 0))
        .hex()
        .startswith("3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e")
    )


def test_the_key_of_seed_zero_is_that_of_rand_core():
    """rand_core's own tests expect 5029875928683246316 of the first eight bytes, little-endian."""
    assert int.from_bytes(key_of(0)[:8], "little") == 5029875928683246316
    assert key_of(0).hex() == "ecf273f981b5cd4587f0467306ad6cadd0d0a3e33317e767f29bea72d78a7dfe"


@pytest.mark.parametrize("way", DRAWS)
def test_the_first_eight_bytes_of_the_id_are_the_seed_the_lowest_first(way):
    assert drawn_sides("01000000-0000-0000-caf4-136c566a9620", 64, way) == list(
        islice(DRAWS[way](words_of(1)), 64)
    )


def test_a_key_has_32_bytes_and_depends_on_every_bit_of_the_seed():
    keys = {key_of(seed) for seed in (0, 1, 1 << 31, 1 << 63, (1 << 64) - 1)}
    assert len(keys) == 5
    assert {len(key) for key in keys} == {32}


@pytest.mark.parametrize("way", DRAWS)
def test_each_side_is_drawn_about_as_often(way):
    drawn = [side for n in range(64) for side in drawn_sides(f"{n:02x}{GAME_ID[2:]}", 64, way)]
    assert set(drawn) == {0, 1, 2, 3}
    for side in range(4):
        assert abs(drawn.count(side) - 1024) < 6 * (4096 * 3 / 16) ** 0.5


@pytest.mark.parametrize("way", DRAWS)
def test_a_game_is_recognised_by_its_draws(way):
    drawn = drawn_sides(GAME_ID, 20, way)
    assert ways_that_fit(GAME_ID, drawn) == [way]
    assert ways_that_fit(GAME_ID, [*drawn[:-1], (drawn[-1] + 1) % 4]) == []


def test_what_cannot_be_recognised_fits_nothing():
    assert ways_that_fit("no uuid", [0, 1]) == []
    assert ways_that_fit(GAME_ID, []) == []


def test_the_sides_of_an_official_game_are_seen_one_by_one():
    """The order was read off the hazards of game 122: the row y = 10 came first, then the column x
    = 10, and so on.
    """
    (game,) = (game for game in official_games("royale", "royale") if game["id"] == 122)
    left, right, bottom, top = range(4)
    assert sides_that_moved(recorded(game)) == [
        top,
        right,
        bottom,
        top,
        bottom,
        bottom,
        left,
        right,
        top,
    ]
