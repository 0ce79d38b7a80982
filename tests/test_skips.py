"""A skip that nobody expects makes CI fail, whatever skips it; without CI's variable it is a
skip.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.skips import EXPECTED, REFUSE

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[1]

SKIPPING = {
    "in the test": "def test_it():\n    pytest.skip('no such program')",
    "in a fixture": (
        "@pytest.fixture\ndef it():\n    pytest.skip('no such program')\n\ndef test_it(it):\n   "
        " pass"
    ),
    "by a mark": "@pytest.mark.skipif(True, reason='no such program')\ndef test_it():\n    pass",
    "the module": "pytest.skip('no such program', allow_module_level=True)",
    "an import": "def test_it():\n    pytest.importorskip('nowhere', reason='no such program')",
}


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest with our plugin in a folder of its own, refusing skips or not; the outcome."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(text, *arguments, file="test_it.py", refuse=True):
        monkeypatch.setenv(REFUSE, "1" if refuse else "")
        path = pytester.path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"import pytest\n\n{text}\n")
        return pytester.runpytest_inprocess("-p", "tests.skips", "-rA", *arguments, file)

    return run


@pytest.mark.parametrize("how", SKIPPING)
def test_a_skip_fails_and_is_named(run, how):
    done = run(SKIPPING[how])
    assert done.ret != 0
    done.stdout.fnmatch_lines(["*no such program*", "*EXPECTED in tests/skips.py*"])
    done.stdout.re_match_lines([r"(FAILED|ERROR) test_it\.py"])


def test_two_workers_tell_it_too(run):
    done = run(SKIPPING["in the test"], "-p", "xdist", "--numprocesses=2")
    assert done.ret != 0
    done.stdout.fnmatch_lines(["*no such program*"])


def test_a_test_that_changes_the_environment_is_no_way_out(run):
    text = (
        f"def test_it(monkeypatch):\n    monkeypatch.delenv({REFUSE!r})\n    pytest.skip('no such"
        " program')"
    )
    assert run(text).ret != 0


def test_without_the_variable_a_skip_is_a_skip(run):
    done = run(SKIPPING["in the test"], refuse=False)
    assert done.ret == 0
    done.assert_outcomes(skipped=1)


def test_what_is_expected_and_what_is_known_to_fail_is_let_pass(run):
    reason = EXPECTED["tests/train/test_mxnet_dqn.py"][0]
    known = "@pytest.mark.xfail(reason='known')\ndef test_it_too():\n    assert False\n"
    done = run(
        f"def test_it():\n    pytest.skip({reason!r})\n\n{known}",
        file="tests/train/test_mxnet_dqn.py",
    )
    assert done.ret == 0
    done.assert_outcomes(skipped=1, xfailed=1)
    assert (
        run(f"def test_it():\n    pytest.skip({reason!r})", file="tests/docs/test_others.py").ret
        != 0
    )


def test_ci_refuses_skips():
    assert f"export {REFUSE}=1\n" in (ROOT / ".ci" / "run").read_text()


def test_the_list_has_files_that_are_there():
    assert [file for file in EXPECTED if not (ROOT / file).is_file()] == []
