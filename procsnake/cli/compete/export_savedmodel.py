"""The command `procsnake export savedmodel`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from procsnake.cli.command_line import add_json, at_least, print_json, progress_on_stderr

SAVEDMODEL_HELP = """\
OUT/1 is the model (TensorFlow Serving: --model_base_path=OUT), OUT/parity.json compares it with
the bundle, and OUT/card.json describes its inputs and actions. Signature serving_default:
observations [batch, …] → logits [batch, actions] and values [batch].

examples:
  procsnake export savedmodel runs/battlesnake-ppo-… --out served
"""


def add_savedmodel(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "policy", metavar="RUN", help="run folder, policy bundle, or a champion's name"
    )
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="folder to write; an older export is replaced"
    )
    parser.add_argument(
        "--states",
        type=at_least(1),
        default=1000,
        help="observations on which to compare (default: %(default)s)",
    )
    add_json(parser)


def run_savedmodel(options: argparse.Namespace) -> int:
    """Run `procsnake export savedmodel`. Returns the exit code."""
    from agents import bundle as bundles
    from agents.export.savedmodel import VERSION, export_savedmodel

    with progress_on_stderr(options):
        parity = export_savedmodel(bundles.load(options.policy), options.out, states=options.states)
    model = Path(options.out) / VERSION
    if options.json:
        print_json({"model": model, **asdict(parity), "holds": parity.holds})
        return 0
    print(f"written: {model}")
    print(
        f"same action on {parity.same_action} of {parity.clear} clear states of {parity.states};",
        end=" ",
    )
    print(f"largest difference {parity.largest_difference:.2g}")
    return 0
