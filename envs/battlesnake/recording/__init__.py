"""Games on disk: JSON lines in the form of the official command line's `--output`, so that its
tools and ours can read them.

Line 1 is the webhook's `game` object. Then comes one move request per turn, with the board as it
stood before the moves. The last line is `{"winnerId", "winnerName", "isDraw"}`; a file without it
was cut off. Our requests may have one more key, `procsnake`, which other tools ignore. It holds

* `decisions`: what each snake decided on this board, by id: `move` ("up" …) and any of
  `probabilities`, `value`, `note`, …
* `eliminated`: the snakes that died on the way to this board, each with `id`, `health`, `body`,
  `eliminatedCause`, `eliminatedBy` and `eliminatedOnTurn`. The webhook's own board lists only the
  living ones.

`Recording.read` also takes the other forms in which people keep games: see
`envs.battlesnake.recording.parsing`."""

from envs.battlesnake.plain.board import UNKNOWN_CAUSE
from envs.battlesnake.recording.as_test import asked_snake, to_test
from envs.battlesnake.recording.causes import likely_cause
from envs.battlesnake.recording.files import Recording, RecordingError, recording_files
from envs.battlesnake.recording.recorder import EXTRAS, Recorder, unfinished
from envs.battlesnake.recording.replayed import Deviation, contradiction, deviations

__all__ = [
    "EXTRAS",
    "UNKNOWN_CAUSE",
    "Deviation",
    "Recorder",
    "Recording",
    "RecordingError",
    "asked_snake",
    "contradiction",
    "deviations",
    "likely_cause",
    "recording_files",
    "to_test",
    "unfinished",
]
