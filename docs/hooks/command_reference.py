"""MkDocs calls this: the page `commands.md`, made of the command line's own parsers, so that it
says what `--help` says.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from page_text import add_page, code, literal, table

import procsnake
from envs.common.shell_command import shell_command

PAGE = "commands.md"
INTRODUCTION = """\
# Commands

This page is made of the command line's own parsers, as the site is built: it says what `--help`
says. Commands with several tasks are followed by the commands for these. In the terminal,
`procsnake --help` lists all of them, and each command's `--help` ends in examples. Experiments
and searches have [a page of their own](settings.md).

The exit code of every command is 0 if it did what it was asked, 2 for input that can't be right,
and 130 after Ctrl-C, unless the command says otherwise.
"""
USAGE_COLUMNS = 80
_DEFAULT = re.compile(r"\s*\(default: ((?:[^()]|\([^()]*\))*)\)")
_EXAMPLE = "  "


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    add_page(files, config, PAGE, page())
    return files


def page() -> str:
    """Return the page's Markdown."""
    return "\n\n".join([INTRODUCTION, *(_section(title, parser) for title, parser in commands())])


def commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield what is typed and the parser for it: each command, its other forms, and the commands
    within it.
    """
    return _commands_of(procsnake.cli.main.build_parser(), "procsnake")


def _commands_of(
    parser: argparse.ArgumentParser, typed: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        for name, inner in action.choices.items():
            title = f"{typed} {name}"
            yield title, inner
            yield from _commands_of(inner, title)


def _section(title: str, parser: argparse.ArgumentParser) -> str:
    level = "##" if title.count(" ") == 1 else "###"
    parts = [
        f"{level} {title}",
        literal(parser.description or ""),
        f"```text\n{_usage(parser)}\n```",
    ]
    for group in parser._action_groups:
        rows = [_row(parser, action) for action in group._group_actions if _is_told(action)]
        if rows:
            is_own = group.title not in ("positional arguments", "options")
            parts += [literal(f"{group.title}:".capitalize())] if is_own else []
            parts.append(
                table(
                    (
                        "Argument" if not rows[0][0].startswith("<code>-") else "Option",
                        "Meaning",
                        "Default",
                    ),
                    rows,
                )
            )
    return "\n\n".join([*parts, *_epilog(parser.epilog or "")])


def _is_told(action: argparse.Action) -> bool:
    kinds = (argparse._HelpAction, argparse._SubParsersAction)
    return action.help != argparse.SUPPRESS and not isinstance(action, kinds)


def _usage(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(parser.prog, width=USAGE_COLUMNS)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    return formatter.format_help().strip()


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> tuple[str, str, str]:
    formatter = argparse.HelpFormatter(parser.prog)
    help_text = formatter._expand_help(action) if action.help else ""
    default = _DEFAULT.search(help_text)
    meaning = _DEFAULT.sub("", help_text, count=1)
    if action.choices and action.metavar:
        meaning += f" ({', '.join(map(str, action.choices))})"
    return (
        _name(formatter, action),
        literal(meaning),
        literal(default[1]) if default else _own_default(action),
    )


def _name(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    if not action.option_strings:
        return code(formatter._format_args(action, action.dest))
    arguments = (
        "" if action.nargs == 0 else f" {formatter._format_args(action, action.dest.upper())}"
    )
    return ", ".join(code(f"{name}{arguments}") for name in action.option_strings)


def _own_default(action: argparse.Action) -> str:
    """The default of an option whose help doesn't tell one, if it has any worth telling."""
    is_telling = (
        action.default not in (None, False, True, "", argparse.SUPPRESS) and action.default != []
    )
    return code(str(action.default)) if is_telling else ""


def _epilog(text: str) -> Iterator[str]:
    """Yield the paragraphs behind the options. Lines that are set in are examples, or columns: they
    keep their form.
    """
    text = text.replace(f"{shell_command().strip()} ", "procsnake ")
    block: list[str] = []
    was_set_in = False
    for line in [*text.splitlines(), ""]:
        is_set_in = line.startswith(_EXAMPLE)
        if block and (is_set_in != was_set_in or not line.strip()):
            yield _block(block, was_set_in)
            block = []
        if line.strip():
            block.append(line)
            was_set_in = is_set_in


def _block(lines: list[str], is_set_in: bool) -> str:
    if not is_set_in:
        said = literal(" ".join(lines))
        return said[:1].upper() + said[1:]
    return "\n".join(["```text", *(line.removeprefix(_EXAMPLE) for line in lines), "```"])
