"""Names that Kubernetes or Slurm would refuse are refused here, with one that they take."""

from __future__ import annotations

import re

import pytest

from envs.common.errors import ConfigError
from train.engines import names

# The rules as kubernetes.io/docs/concepts/overview/working-with-objects/names states them.
RFC_1035_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
RFC_1123_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
BAD = [
    "",
    "-",
    "My_Run",
    "a b",
    "a\nb",
    "a\n",
    "ä",
    "run-",
    "-run",
    "1-run",
    "..",
    "a" * 300,
    "x/y",
    "$(reboot)",
    "'",
    '"',
]


def offered(error: pytest.ExceptionInfo[ConfigError]) -> str:
    """The name that the message tells to type instead."""
    assert "\n" not in str(error.value)
    return str(error.value).rpartition(" ")[2]


@pytest.mark.parametrize("name", BAD)
def test_a_label_that_kubernetes_refuses_is_refused_with_one_that_it_takes(name):
    with pytest.raises(ConfigError, match="small letters") as error:
        names.label("--name", name, 47)
    assert re.fullmatch(RFC_1035_LABEL, offered(error))
    assert len(offered(error)) <= 47


@pytest.mark.parametrize("name", [name for name in BAD if name != "1-run"])
def test_a_claim_that_kubernetes_refuses_is_refused_with_one_that_it_takes(name):
    with pytest.raises(ConfigError, match="small letters") as error:
        names.claim(name)
    assert re.fullmatch(RFC_1123_SUBDOMAIN, offered(error))
    assert len(offered(error)) <= 253


@pytest.mark.parametrize("name", ["a", "a-1", "battlesnake-ppo-1123-173759", "a" * 47])
def test_names_that_kubernetes_takes_are_taken(name):
    assert names.label("--name", name, 47) == name
    assert names.claim(name) == name
    with pytest.raises(ConfigError):
        names.label("--name", name + "a" * 47, 47)


@pytest.mark.parametrize(
    "name", ["", "a b", "a\nb", "a\n", "#SBATCH", "a'b", "$x", "a;b", "%j", "-x", "~/x", "a" * 65]
)
def test_a_name_that_would_break_a_line_of_a_batch_script_is_refused(name):
    with pytest.raises(ConfigError) as error:
        names.slurm_name("--name", name)
    assert names.slurm_name("--name", offered(error)) == offered(error)
    if name != "a" * 65:
        with pytest.raises(ConfigError):
            names.plain_path("--runs", name)


@pytest.mark.parametrize(
    "name",
    [
        "procsnake",
        "r/p:1",
        "localhost:5000/a/b_c:v1.2",
        "1234.dkr.ecr.us-east-1.amazonaws.com/x@sha256:" + "a" * 64,
    ],
)
def test_images_are_taken(name):
    assert names.image(name) == name


@pytest.mark.parametrize(
    "name", ["", "a b", "a:1\n", "a:", "-a", "a;b", "a@sha256:1", "https://a/b"]
)
def test_what_is_no_image_is_refused(name):
    with pytest.raises(ConfigError, match="is not the name of an image"):
        names.image(name)
