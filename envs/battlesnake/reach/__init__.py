"""What a snake can reach: flood fills, cell by cell and as bitboards."""

from envs.battlesnake.reach.cell_by_cell import (
    FAR,
    Reach,
    ReachArrays,
    fill,
    health_on,
    new_reach_arrays,
    note_arrivals,
    note_bodies,
    note_latest,
    reach,
)

__all__ = [
    "FAR",
    "Reach",
    "ReachArrays",
    "fill",
    "health_on",
    "new_reach_arrays",
    "note_arrivals",
    "note_bodies",
    "note_latest",
    "reach",
]
