"""What strangers' files may do to their reader: nothing but a `ValueError`."""

from __future__ import annotations

import json
import zlib

import pytest
import yaml

from envs.common.strangers.bounded import inflate, parse_json, parse_yaml, read_bytes


def test_a_file_is_read_up_to_its_bound(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    assert read_bytes(path, 100) == bytes(100)
    with pytest.raises(ValueError, match="it has 100 bytes, more than 99"):
        read_bytes(path, 99)
    with pytest.raises(ValueError, match="regular file"):
        read_bytes("/dev/zero", 99)


def test_a_small_text_that_inflates_to_a_hundred_megabytes_does_not():
    bomb = zlib.compress(bytes(100 << 20), level=1)
    with pytest.raises(ValueError, match="inflates to more than 4096"):
        inflate(bomb, 4096)
    packed = zlib.compress(b"board")
    assert inflate(packed, 5) == b"board"
    with pytest.raises(ValueError, match="cut off"):
        inflate(packed[:-5], 5)
    with pytest.raises(ValueError, match="Error"):
        inflate(b"no zlib", 5)


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5000, "{", b"\xff"])
def test_whatever_is_wrong_with_json_is_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)
    assert parse_json('{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("text", ["1000:50", "-1:30", "1:30.5", "0:200", "12:30:45"])
def test_numbers_to_the_base_of_60_are_texts(text):
    assert parse_yaml(f"levels: {text}") == {"levels": text}
    assert parse_yaml(yaml.safe_dump([text, 60050, 1e-05, 0.5])) == [text, 60050, 1e-05, 0.5]
    assert parse_yaml(f"{{{text}: [{text}, 7, -1.5, 0x10]}}") == {text: [text, 7, -1.5, 16]}


def bomb(levels=9, width=9):
    lines = ["a0: &a0 [x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * width)}]" for k in range(1, levels)]
    return "\n".join(lines)


def merging(levels, width=9):
    """Mappings that PyYAML merges into width ** levels pairs while it reads them, which then are
    one pair.
    """
    lines = ["a0: &a0 {k: 1}"]
    lines += [
        f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * width)}]}}" for k in range(1, levels)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (bomb(), "50000 values"),
        ("&a [*a]", "50000 values"),
        (merging(levels=12), "merge keys copy more than 50000 values"),
        (
            "a: &a {"
            + ", ".join(f"{n}: 0" for n in range(2000))
            + "}\nb: {<<: ["
            + "*a, " * 60
            + "]}",
            "merge keys copy",
        ),
        ("&a {<<: *a}", "deep"),
        ("[" * 5000, "deep"),
        ("a: 2001-99-99", "month"),
        ("a: !!timestamp x", "NoneType"),
        ("a: " + "1" * 5000, "digits"),
        ("a: !!python/object/apply:os.system [true]", "constructor"),
        ("? [1]\n: 2", "unhashable"),
        ("a: [", "flow node"),
        ("#" * (300 << 10), "characters"),
    ],
)
def test_whatever_is_wrong_with_yaml_is_a_value_error(text, what):
    with pytest.raises(ValueError, match=what):
        parse_yaml(text)


def test_yaml_that_repeats_itself_within_reason_is_read():
    assert parse_yaml("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 4}]}") == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
        "c": {"x": 1, "y": 2, "z": 4},
    }
    shared = [1, 2]
    assert parse_yaml(yaml.safe_dump({"a": shared, "b": shared})) == {"a": [1, 2], "b": [1, 2]}
    assert parse_yaml(json.dumps(bomb(2))) == bomb(2)
