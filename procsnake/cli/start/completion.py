"""The command `procsnake completion`."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")

HELP = """\
Completes commands, options, and the names of experiments, players, runs, maps and worlds. Add
your shell's line to its startup file, and open a new terminal.

examples:
  procsnake completion bash                    # print the script
  eval "$(procsnake completion bash)"          # in ~/.bashrc
  eval "$(procsnake completion zsh)"           # in ~/.zshrc, below: autoload -U compinit; compinit
  source (procsnake completion fish | psub)    # in ~/.config/fish/config.fish
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("shell", choices=SHELLS, help="your shell")


def run(options: argparse.Namespace) -> int:
    """Run `procsnake completion`. Returns the exit code."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["procsnake"], shell=options.shell))
    return 0
