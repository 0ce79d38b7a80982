"""The images for AWS and clusters: Docker commands to build them, and the source for a build in
AWS.

SageMaker's CreateModel and Lambda refuse the indexes with provenance that current Docker builds by
default, and a Mac builds for ARM. So every command names the platform, and asks for a single
manifest."""

from __future__ import annotations

import io
import shlex
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from envs.common.errors import ConfigError
from train.sagemaker.source import LEFT_OUT, SECRETS

ROOT = Path(__file__).parents[2]
DOCKER_BUILD = (
    "docker",
    "buildx",
    "build",
    "--platform",
    "linux/amd64",
    "--provenance=false",
    "--output",
    "type=docker",
)
CUDA = "TORCH_INDEX=https://download.pytorch.org/whl/cu126"
MLFLOW = "TRACKERS=mlflow sagemaker-mlflow"
TRAINING = "training"
CLUSTER = "cluster"
SERVING = "serving"
LAMBDA = "lambda"
KINDS = (TRAINING, CLUSTER, SERVING, LAMBDA)
BUNDLE = "bundle"
"""The folder of a build's source with the bundle that the image serves."""
_COPIED = (
    "setup.py",
    "pyproject.toml",
    "constraints.txt",
    "README.md",
    "LICENSE",
    "procsnake_packages.py",
    "envs",
    "agents",
    "train",
    "serve",
    "procsnake",
)
"""The files and folders of which images are built."""
_BESIDE = ("notebooks", "Makefile")
"""Files for the stack's notebook instance, which uses the same archive."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image to build."""

    kind: str
    """One of `KINDS`: training on SageMaker; training on Kubernetes and EC2; serving; serving by
    Lambda.
    """
    tag: str
    """The image's name, as Docker's `--tag` takes it."""
    gpu: bool = False
    """Whether torch is the one for NVIDIA's GPUs."""
    mlflow: bool = False
    """Whether it has MLflow with AWS's plugin, for jobs that log to a managed server."""
    bundle: Path | None = None
    """A bundle, or a run that has one, to be part of an image that serves."""

    def __post_init__(self) -> None:
        trains = self.kind in (TRAINING, CLUSTER)
        if self.gpu and not trains:
            raise ConfigError(
                f"--gpu is for images that train; {self.kind} serves on the CPU, so leave it out"
            )
        if self.mlflow and not trains:
            raise ConfigError(
                f"--mlflow is for images that train; {self.kind} logs no curve, so leave it out"
            )
        if self.bundle is None:
            return
        if trains:
            raise ConfigError(
                f"--bundle is for images that serve; {self.kind} gets its experiment from the job"
            )
        in_run = self.bundle / BUNDLE
        if not any((folder / "card.json").is_file() for folder in (self.bundle, in_run)):
            raise ConfigError(f"--bundle {self.bundle} is neither a bundle nor a run that has one")

    def commands(self, root: Path = ROOT) -> list[list[str]]:
        """Return Docker's commands, in their order, to be run in a clone (`root`)."""
        require_clone(root)
        if self.kind in (TRAINING, CLUSTER):
            options: list[str] = []
            if self.kind == CLUSTER:
                options += ["--target", CLUSTER]
            if self.gpu:
                options += ["--build-arg", CUDA]
            if self.mlflow:
                options += ["--build-arg", MLFLOW]
            return [_build("train/sagemaker/image/Dockerfile", self.tag, ".", *options)]
        return self._serving_commands()

    def _serving_commands(self) -> list[list[str]]:
        """A command per layer, each of which builds upon the one before."""
        layers = [("serve/deploy/Dockerfile", ".")]
        if self.bundle is not None:
            layers.append(("serve/deploy/with-bundle.Dockerfile", _context_of(self.bundle)))
        if self.kind == LAMBDA:
            layers.append(("serve/deploy/lambda.Dockerfile", "."))
        tags = [f"procsnake-layer:{number}" for number in range(1, len(layers))]
        commands: list[list[str]] = []
        base: list[str] = []
        for (dockerfile, context), tag in zip(layers, [*tags, self.tag], strict=True):
            commands.append(_build(dockerfile, tag, context, *base))
            base = ["--build-arg", f"BASE={tag}"]
        return commands


def _build(dockerfile: str, tag: str, context: str, *more: str) -> list[str]:
    return [*DOCKER_BUILD, "--file", dockerfile, *more, "--tag", tag, context]


def _context_of(bundle: Path) -> str:
    """The folder that holds `bundle/`, which the Dockerfile copies."""
    if (bundle / BUNDLE / "card.json").is_file():
        return str(bundle.absolute())
    if bundle.name != BUNDLE:
        raise ConfigError(
            f"--bundle {bundle} must be a run, or a folder that is called {BUNDLE}; Docker copies"
            " that name"
        )
    return str(bundle.absolute().parent)


def require_clone(root: Path) -> None:
    """Raise `ConfigError` unless `root` is a clone, because an installed procsnake lacks some of an
    image's files.
    """
    missing = [name for name in _COPIED if not (root / name).exists()]
    if missing:
        raise ConfigError(
            f"images are built in a clone of procsnake, and {root} lacks {missing[0]}; call it"
            " in one"
        )


def source(root: Path = ROOT, bundle: Path | None = None) -> bytes:
    """Return a zip of the images' source files and the notebooks.

    `bundle` is in it as `bundle/`. The same files give the same bytes. Raises `ConfigError` outside
    a clone, and for files that look like secrets."""
    require_clone(root)
    files: dict[str, Path] = {}
    for name in (*_COPIED, *_BESIDE):
        files |= {str(path.relative_to(root)): path for path in _files(root / name)}
    if bundle is not None:
        folder = bundle
        if (bundle / BUNDLE / "card.json").is_file():
            folder = bundle / BUNDLE
        files |= {f"{BUNDLE}/{path.relative_to(folder)}": path for path in _files(folder)}
    if secrets := [name for name in files if name.endswith(SECRETS)]:
        raise ConfigError(f"{secrets[0]} looks like a secret, which must not get into an image")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(
                zipfile.ZipInfo(name),
                files[name].read_bytes(),
                zipfile.ZIP_DEFLATED,
                compresslevel=1,
            )
    return packed.getvalue()


def _files(path: Path) -> Sequence[Path]:
    if path.is_file():
        return [path]
    files = [file for file in path.rglob("*") if file.is_file()]
    return [file for file in files if set(LEFT_OUT).isdisjoint(file.relative_to(path).parts)]


def shown(image: Image) -> list[str]:
    """Return the commands that build and push the image, as lines that can be pasted into a
    shell."""
    lines = [shlex.join(command) for command in image.commands()]
    place, slash, _ = image.tag.partition("/")
    if not slash:
        return lines
    if ".dkr.ecr." in place:
        region = place.split(".")[3]
        login = (
            f"aws ecr get-login-password --region {region} | docker login --username AWS"
            f" --password-stdin {place}"
        )
        lines.append(login)
    return [*lines, shlex.join(["docker", "push", image.tag])]
