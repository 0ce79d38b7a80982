"""The command `procsnake push`, and the addresses of the Hub in other commands' options."""

from __future__ import annotations

import argparse

from envs.common.shell_command import shell_command
from procsnake.cli.command_line import add_json, print_json, progress_on_stderr

HELP = """\
Writes one commit with the bundle's four files. The README becomes a model card, whose metadata
hold the ratings and win rates with their intervals. The token is HF_TOKEN, or the one that `hf
auth login` saved.

examples:
  procsnake push runs/battlesnake-ppo-… hf://user/my-snake
  procsnake push RUN hf://user/my-snake --private --message "trained for a night"
  procsnake push champion-duel hf://user/my-snake --revision trial --license apache-2.0
  procsnake match hf://user/my-snake flood --watch     # the newest commit
  procsnake serve hf://user/my-snake@COMMIT                    # a fixed commit, which is cached
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "bundle", metavar="BUNDLE", help="run folder, policy bundle, or a champion's name"
    )
    parser.add_argument(
        "target",
        metavar="hf://USER/NAME",
        help="repository on the Hub, which is created if needed",
    )
    parser.add_argument(
        "--private",
        action="store_true",
        help="create a private repository; a public one is refused",
    )
    parser.add_argument(
        "--revision",
        default="main",
        metavar="BRANCH",
        help="branch to commit to (default: %(default)s)",
    )
    parser.add_argument("--message", help="the commit's message (default: the bundle's name)")
    license = (
        "license in the model card, by its name on the Hub, such as apache-2.0 (default: none)"
    )
    parser.add_argument("--license", metavar="ID", help=license)
    add_json(parser)
    # There need be nothing yet where a push goes.
    parser.set_defaults(as_written=("target", "message"))


def run(options: argparse.Namespace) -> int:
    """Run `procsnake push`. Returns the exit code."""
    from agents.hub.push import push

    with progress_on_stderr(options):
        pushed = push(
            options.bundle,
            options.target,
            private=options.private,
            branch=options.revision,
            message=options.message,
            license=options.license,
        )
        print(f"pushed: {pushed.url}")
        print(f"permanent address: {pushed.address}")
        print(f"play it: {shell_command('match', pushed.address, 'flood', '--watch')}")
    if options.json:
        print_json({"url": pushed.url, "address": pushed.address})
    return 0
