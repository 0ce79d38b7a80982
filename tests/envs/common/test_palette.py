"""Text and lines can be told from what they stand on (WCAG 2.1, 1.4.3 and 1.4.11)."""

from __future__ import annotations

import pytest

from envs.common.palette import ROLES, SERIES, style_sheet

READABLE = 4.5
VISIBLE = 2.5
TEXT = ("ink", "muted", "accent", "good", "slip", "warn", "bad")
SCREENS = {"light": 0, "dark": 1}


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(colour: str, other: str) -> float:
    low, high = sorted((luminance(colour), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("screen", SCREENS)
def test_text_is_readable_on_every_ground(screen):
    k = SCREENS[screen]
    for ground in ("paper", "surface", "raised"):
        faint = {
            role: contrast(ROLES[role][k], ROLES[ground][k])
            for role in TEXT
            if contrast(ROLES[role][k], ROLES[ground][k]) < READABLE
        }
        assert faint == {}, ground


@pytest.mark.parametrize("screen", SCREENS)
def test_lines_of_charts_are_visible(screen):
    ground = ROLES["surface"][SCREENS[screen]]
    assert {c: contrast(c, ground) for c in SERIES if contrast(c, ground) < VISIBLE} == {}


def test_the_style_sheet_has_every_role_for_light_and_dark():
    light, dark = style_sheet().split("@media (prefers-color-scheme: dark)")
    for role, (by_day, by_night) in ROLES.items():
        assert f"--{role}: {by_day};" in light
        assert f"--{role}: {by_night};" in dark
