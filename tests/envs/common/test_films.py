from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from envs.common.errors import ConfigError, UnknownNameError
from envs.common.films import write_film


def pictures():
    for brightness in (0, 120, 240):
        yield np.full((32, 64, 3), brightness, np.uint8)


@pytest.mark.parametrize("name", ["a.gif", "a.WEBP"])
def test_a_film_has_every_picture_at_its_pace(tmp_path, name):
    with Image.open(write_film(tmp_path / "new" / name, pictures(), fps=10)) as film:
        assert (film.n_frames, film.size, film.info["loop"]) == (3, (64, 32), 0)
        film.seek(2)
        assert abs(film.convert("RGB").getpixel((5, 5))[0] - 240) < 5
        assert film.info["duration"] == 100


def test_mp4_is_one_of_the_formats(tmp_path):
    assert b"ftyp" in write_film(tmp_path / "a.mp4", pictures(), fps=10).read_bytes()[:16]
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_other_names_and_places_are_refused(tmp_path):
    with pytest.raises(UnknownNameError, match="film format"):
        write_film(tmp_path / "a.avi", pictures(), fps=10)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="can't be written"):
        write_film(tmp_path / "file" / "a.gif", pictures(), fps=10)


def test_a_film_that_fails_leaves_nothing(tmp_path):
    def broken():
        yield from pictures()
        raise ValueError("the camera fell")

    with pytest.raises(ValueError, match="camera"):
        write_film(tmp_path / "a.gif", broken(), fps=10)
    assert list(tmp_path.iterdir()) == []
