"""The colours of everything that procsnake draws: the viewer, reports, charts and documentation.

Painters of boards have their snakes' colours in `envs.battlesnake.render.scene`."""

from __future__ import annotations

ROLES: dict[str, tuple[str, str]] = {
    "paper": ("#f5f6f8", "#0e131a"),
    "surface": ("#ffffff", "#161d27"),
    "raised": ("#f0f2f5", "#1f2834"),
    "line": ("#e0e4ea", "#2a3543"),
    "ink": ("#1b212c", "#e9edf3"),
    "muted": ("#5b6575", "#9aa6b8"),
    "accent": ("#0f766a", "#2dd4bf"),
    "on-accent": ("#ffffff", "#06231f"),
    "good": ("#147a3a", "#4ade80"),
    "slip": ("#6b5d00", "#e3d26f"),
    "warn": ("#a35200", "#fbbf24"),
    "bad": ("#c02640", "#fb7185"),
    "square": ("#eff1f4", "#222b37"),
    "halo": ("#ffffff", "#161d27"),
    "hazard": ("#38304e", "#8268d8"),
    "food": ("#ef445c", "#ef445c"),
}
"""By role: the colour on a light and on a dark screen, as "#rrggbb"."""
TEAL = "#128a7a"
"""The colour of the logo, and of a served snake that chose none."""
SERIES = ("#139a88", "#e0602f", "#4477e8", "#a65cd6", "#c69214", "#d63c83", "#6f9e2c", "#7b8494")
"""The colours of a chart's lines, which stay apart on light and dark ground."""


def style_sheet() -> str:
    """Return CSS that defines a variable per role and follows the reader's light or dark screen."""
    light, dark = (declarations(is_dark=is_dark) for is_dark in (False, True))
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )


def declarations(*, is_dark: bool) -> str:
    """Return the CSS variables of a light or a dark screen: "--paper: #f5f6f8; …"."""
    return " ".join(f"--{role}: {colours[is_dark]};" for role, colours in ROLES.items())
