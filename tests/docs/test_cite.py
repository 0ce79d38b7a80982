"""Who cites procsnake finds the same in CITATION.cff and on the page, in a form that tools read."""

from __future__ import annotations

import json
import re

import jsonschema
import yaml

from tests.docs.commands import REPOSITORY

SCHEMA = json.loads((REPOSITORY / "tests" / "data" / "cff-1.2.0-schema.json").read_bytes())
"""Of the Citation File Format 1.2.0 (Druskat et al., CC BY 4.0), as it was published."""
CITATION = yaml.safe_load((REPOSITORY / "CITATION.cff").read_bytes())
PAGE = (REPOSITORY / "docs" / "cite.md").read_text(encoding="utf-8")


def test_the_file_is_valid_by_the_published_schema():
    jsonschema.validate(CITATION, SCHEMA)


def test_the_entry_for_bibtex_says_the_same():
    fields = dict(re.findall(r"^  (\w+) += \{+(.*?)\}+,?$", PAGE, re.MULTILINE | re.DOTALL))
    assert " ".join(fields["title"].split()) == CITATION["title"]
    assert fields["version"] == CITATION["version"]
    assert fields["license"] == CITATION["license"]
    assert [fields["author"]] == [author["name"] for author in CITATION["authors"]]
