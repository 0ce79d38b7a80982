"""Derives royale's walls of a game on Arena from the game's id, by the generator ChaCha8.

Facts: Arena seeds ChaCha8 with the first eight bytes of the game's UUID, little-endian, and draws a
number from 0 to 3 per shrink. How Rust's library derives a key from the seed (`seed_from_u64`) and
draws a number from a range depends on its version, so each known way is compared with the game.
Sources: RFC 8439 for the block; the documented algorithms of the crates rand_core and rand. Not
tested on a live game."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise

from envs.battlesnake.recording import Recording
from envs.battlesnake.recording.replayed import walls

Words = Iterator[int]
_MASK = 0xFFFFFFFF
_MASK_64 = 0xFFFFFFFFFFFFFFFF
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_COLUMNS_THEN_DIAGONALS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip
_PCG_FACTOR = 6364136223846793005
_PCG_STEP = 11634580027462260723
_MOST_DRAWS = 64


def chacha_block(
    key: bytes, counter: int, nonce: bytes = bytes(12), *, rounds: int = 8
) -> list[int]:
    """Return the 16 words of 32 bits of a ChaCha block (RFC 8439, section 2.3).

    `key` has 32 bytes and `nonce` 12. The RFC's `rounds` are 20.
    """
    start = [*_CONSTANTS, *_words(key), counter & _MASK, *_words(nonce)]
    state = list(start)
    for _ in range(rounds // 2):
        for quarter in _COLUMNS_THEN_DIAGONALS:
            _quarter_round(state, *quarter)
    return [(now + then) & _MASK for now, then in zip(state, start, strict=True)]


def _quarter_round(state: list[int], a: int, b: int, c: int, d: int) -> None:
    for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[x] = (state[x] + state[y]) & _MASK
        state[z] = _rotated(state[z] ^ state[x], by)


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _MASK


def _words(content: bytes) -> list[int]:
    return [
        int.from_bytes(content[place : place + 4], "little") for place in range(0, len(content), 4)
    ]


def key_of(seed: int) -> bytes:
    """Return the key of 32 bytes that rand_core's `seed_from_u64` makes of a number: eight outputs
    of PCG32.
    """
    key = b""
    for _ in range(8):
        seed = (seed * _PCG_FACTOR + _PCG_STEP) & _MASK_64
        word = (((seed >> 18) ^ seed) >> 27) & _MASK
        key += _rotated(word, (32 - (seed >> 59)) % 32).to_bytes(4, "little")
    return key


def words_of(seed: int) -> Words:
    """Yield the endless 32-bit words of ChaCha8 for a seed."""
    key = key_of(seed)
    counter = 0
    while True:
        yield from chacha_block(key, counter)
        counter += 1


def _doubled(words: Words) -> Words:
    return (low | next(words) << 32 for low in words)


def _top_bits(words: Words, bits: int) -> Iterator[int]:
    """A range of four from the two highest bits, as rand does it from version 0.9 on."""
    return (word >> (bits - 2) for word in words)


def _top_bits_or_again(words: Words, bits: int) -> Iterator[int]:
    """A range of four as rand drew it up to version 0.8: from the two highest bits of a word, and
    from the next word if the third highest bit is set.
    """
    return (word >> (bits - 2) for word in words if not word >> (bits - 3) & 1)


DRAWS: dict[str, Callable[[Words], Iterator[int]]] = {
    "rand 0.9, 32 bits": lambda words: _top_bits(words, 32),
    "rand 0.9, 64 bits": lambda words: _top_bits(_doubled(words), 64),
    "rand 0.8, 32 bits": lambda words: _top_bits_or_again(words, 32),
    "rand 0.8, 64 bits": lambda words: _top_bits_or_again(_doubled(words), 64),
}
"""The known ways to draw a number from 0 to 3, by name."""


def drawn_sides(game_id: str, count: int, way: str) -> list[int]:
    """Return the first `count` sides that move in: 0 left, 1 right, 2 bottom, 3 top.

    Raises `ValueError` if the id is not a UUID.
    """
    seed = int.from_bytes(uuid.UUID(game_id).bytes[:8], "little")
    return list(islice(DRAWS[way](words_of(seed)), min(count, _MOST_DRAWS)))


def sides_that_moved(recording: Recording) -> list[int]:
    """Return the sides that moved in during a game, in order: 0 left, 1 right, 2 bottom, 3 top.

    The list ends where two sides move at once, or where no rectangle is left.
    """
    sides: list[int] = []
    for before, after in pairwise(walls(board) for board in recording.boards()):
        if before is None or after is None:
            break
        growth = [now - then for now, then in zip(after, before, strict=True)]
        if sum(map(abs, growth)) > 1 or min(growth) < 0:
            break
        if any(growth):
            sides.append(growth.index(1))
    return sides


def ways_that_fit(game_id: str, sides: Sequence[int]) -> list[str]:
    """Return the names of the drawing methods that give exactly these sides for this game's id.

    The list is empty without sides, or if the id isn't a UUID.
    """
    if not sides:
        return []
    try:
        return [way for way in DRAWS if drawn_sides(game_id, len(sides), way) == list(sides)]
    except ValueError:
        return []
