"""`Policy`: a trained network as an agent. Evaluation, the terminal and the server all use the same
object.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from agents import bundle as bundles
from agents.agent import Agent, Decision
from agents.bundle import Bundle
from agents.card import BundleError, Card
from agents.sampling import choose, uniforms
from envs.api import Views
from envs.battlesnake.observations import is_observation_type, observation_from_contract
from envs.battlesnake.observing.symmetry import views_of_snakes
from envs.battlesnake.state import MOVE_NAMES, State
from envs.common.errors import ConfigError, MissingDependencyError, UnknownNameError, pip_install

Forward = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
_MASKED = np.finfo(np.float32).min
_ASKED = 2
_MAX_MEMORY = 1 << 16
_MOST_PER_BYTE = 4
"""Bytes of the network per byte of its weights file: champions keep theirs in float16."""


def plays_battlesnake(card: Card) -> bool:
    """Return whether a policy plays Battlesnake, perhaps in a user's own world with one of
    Battlesnake's observation types.
    """
    return card.environment["name"] == "battlesnake" or is_observation_type(
        card.observation.get("type")
    )


class Policy(Agent):
    """An agent that plays by the network of a bundle.

    Actions that are certain death are masked. Of the others the policy takes the likeliest, or that
    of the highest Q value, which is then the board's value. With `sample=True` it samples one by
    its probability; the draw is a function of (`seed`, game, turn, slot). With `symmetries=True`
    the network evaluates all equivalent views of a board (mirrored, and also turned if the
    observation doesn't follow the heading), and the policy averages their logits and values.
    `backend="onnx"` runs on onnxruntime with `threads` threads and imports neither torch nor ray.
    `backend="torch"` builds the network from `agents.networks`.

    Raises `BundleError` for a policy of another world, for a network file that can't be run and,
    when playing, for a board of a size that it doesn't know; `ConfigError` for `symmetries` of
    observations that have none."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        backend: str = "onnx",
        sample: bool = False,
        symmetries: bool = False,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        if backend not in _BACKENDS:
            raise UnknownNameError("backend", backend, _BACKENDS)
        if not isinstance(threads, int) or threads < 1:
            raise ConfigError(f"threads is {threads!r}; it must be a whole number of at least 1")
        self.bundle = bundle
        self.card = bundle.card
        self.name = _display_name(bundle)
        self.sample = sample
        self.seed = seed
        if not plays_battlesnake(self.card):
            raise BundleError(
                f"{bundle.path} was trained in the world {self.card.environment['name']!r}, so it"
                " plays no Battlesnake.",
                next_commands={"watch it there": ("watch", bundle.path)},
            )
        self._observation = observation_from_contract(self.card.observation)
        if self.card.action["num_actions"] != self._observation.num_actions:
            raise BundleError(
                f"{bundle.path}: its card declares {self.card.action['num_actions']} actions,"
                f" but its observation type has {self._observation.num_actions}. Export the"
                " bundle again"
            )
        self._views = None
        if symmetries:
            self._views = self._equivalent_views()
        self._forward = _BACKENDS[backend](bundle, threads)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        backend: str = "onnx",
        *,
        sample: bool = False,
        symmetries: bool = False,
        seed: int = 0,
        threads: int = 1,
    ) -> Policy:
        """Make the policy of the bundle at `path` (a folder or zip). The options are those of the
        class.
        """
        bundle = bundles.load(path)
        return cls(
            bundle,
            backend=backend,
            sample=sample,
            symmetries=symmetries,
            seed=seed,
            threads=threads,
        )

    def logits(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return unmasked logits float32 (n, A) and values float32 (n,) for observations (n, …) as
        the card describes them.
        """
        expected = tuple(self.card.observation_shape)
        dtype = np.dtype(self.card.observation_dtype)
        if observations.shape[1:] != expected or observations.dtype != dtype:
            raise BundleError(
                f"policy {self.name!r} reads observations {dtype} {expected}, but got"
                f" {observations.dtype} {observations.shape[1:]}: it was trained for boards of"
                " another size or another observation type"
            )
        logits, values = self._forward(observations)
        _check_finite(self.bundle, logits, values)
        return logits, values

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        if len(boards) == 0:
            return np.empty(0, np.int8)
        actions = self._actions(state, boards, slots)[0]
        return self._observation.to_moves(state, boards, slots, actions)

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        boards = np.zeros(1, np.int64)
        slots = np.array([you])
        actions, probabilities, values = self._actions(state, boards, slots)
        move = self._observation.to_moves(state, boards, slots, actions)[0]
        return Decision(
            int(move), self._by_move(state, boards, slots, probabilities)[0], float(values[0])
        )

    def move_probabilities(
        self, state: State, boards: np.ndarray, slots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability of each move, float32 (n, 4), which is 0 for certain death, and
        values float32 (n,).
        """
        _, probabilities, values = self._actions(state, boards, slots)
        return self._by_move(state, boards, slots, probabilities), values

    def _by_move(
        self, state: State, boards: np.ndarray, slots: np.ndarray, probabilities: np.ndarray
    ) -> np.ndarray:
        every = np.arange(self._observation.num_actions)
        whose, who = (np.repeat(places, len(every)) for places in (boards, slots))
        moves = self._observation.to_moves(state, whose, who, np.tile(every, len(boards))).reshape(
            probabilities.shape
        )
        by_move = np.zeros((len(boards), 4), np.float32)
        np.put_along_axis(by_move, moves.astype(np.int64), probabilities, axis=1)
        return by_move

    def explain(self, state: State, you: int) -> dict[str, Any]:
        """Return why the policy moves as it does on board 0, JSON-able: the move, each move's
        probability, the value.
        """
        decision = self.act(state, you)
        assert decision.probabilities is not None
        return {
            "agent": self.name,
            "move": MOVE_NAMES[decision.move],
            "probabilities": dict(zip(MOVE_NAMES, decision.probabilities.tolist(), strict=True)),
            "value": decision.value,
        }

    def _actions(
        self, state: State, boards: np.ndarray, slots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(actions (n,), masked probabilities float32 (n, A), values (n,))."""
        logits, values = self._in_the_world(self._observation.observe(state, boards, slots))
        mask = self._observation.action_mask(state, boards, slots)
        allowed = np.where(mask, logits, _MASKED)
        if self.card.network["name"] == "q-network":
            # The network's own value is its highest Q value, that of a deadly move, too.
            values = allowed.max(axis=1)
        probabilities = _softmax(allowed)
        if self.sample:
            return (
                choose(probabilities, uniforms(state, boards, slots, seed=self.seed)),
                probabilities,
                values,
            )
        return allowed.argmax(axis=1), probabilities, values

    def _equivalent_views(self) -> Views:
        shape = self.card.observation_shape
        if len(shape) == 3:
            views = views_of_snakes(self._observation, shape[1], shape[0])
        else:
            views = None
        if views is None:
            kind = self.card.observation["type"]
            raise ConfigError(
                f"symmetries: observations of type {kind!r} have no other views; leave"
                " symmetries out"
            )
        return views

    def _in_the_world(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What `logits` returns; with `symmetries` the means over all views, of actions as they are
        in the world.
        """
        if self._views is None:
            return self.logits(observations)
        pictures, actions = self._views
        logits, values = self.logits(
            np.concatenate([picture(observations) for picture in pictures])
        )
        by_view = logits.reshape(len(pictures), len(observations), -1)
        in_the_view = actions.argsort(axis=1)[:, None, :]
        in_the_world = np.take_along_axis(
            by_view, np.broadcast_to(in_the_view, by_view.shape), axis=2
        )
        return in_the_world.mean(axis=0), values.reshape(len(pictures), -1).mean(axis=0)


def _display_name(bundle: Bundle) -> str:
    """The bundle's own name, or its run's if it is in RUN/bundle."""
    path = bundle.path.absolute()
    if path.name == "bundle":
        return path.parent.name
    return path.name.removesuffix(".zip")


def _softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def onnx_forward(bundle: Bundle, threads: int) -> Forward:
    """Load the network of a bundle into onnxruntime with `threads` threads.

    Raises `BundleError` if the network can't be run, or if it has a memory and so needs more than
    one board."""
    session = _session(bundle, threads)
    if len(session.get_inputs()) > 1:
        raise _needs_memory(bundle)
    _ask_once(bundle, session, {})

    def forward(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits, values = session.run(
            ["logits", "values"], {"observations": np.ascontiguousarray(observations)}
        )
        return logits, values

    return forward


def _needs_memory(bundle: Bundle) -> BundleError:
    return BundleError(
        f"{bundle.path}: the policy has a memory (LSTM), but here each observation is evaluated"
        " on its own, as in a server that answers requests. Train snakes with ppo.lstm_units=0.",
        next_commands={"measure one for Procgen": ("levels", bundle.path)},
    )


def onnx_steps(bundle: Bundle, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Load the network of a bundle for playing many steps: (observations (R, …), begins bool (R,))
    → logits float32 (R, A).

    For a policy with a memory the function remembers the state of each of the R rows from call to
    call, and forgets it in rows whose episode `begins` with the observation. Raises `BundleError`
    if the network can't be run."""
    session = _session(bundle, threads)
    if len(session.get_inputs()) == 1:
        return lambda observations, begins: session.run(
            ["logits"], {"observations": np.ascontiguousarray(observations)}
        )[0]
    size = session.get_inputs()[1].shape[-1]
    if not isinstance(size, int) or not 0 < size <= _MAX_MEMORY:
        raise BundleError(
            f"{bundle.path}: policy.onnx remembers {size!r} numbers; 1 to {_MAX_MEMORY} can be"
            " played"
        )
    state = np.zeros((0, size), np.float32)
    _ask_once(bundle, session, {bundles.STATE: np.zeros((_ASKED, size), np.float32)})

    def step(observations: np.ndarray, begins: np.ndarray) -> np.ndarray:
        nonlocal state
        if len(state) != len(observations):
            state = np.zeros((len(observations), size), np.float32)
        state[begins] = 0.0
        inputs = {"observations": np.ascontiguousarray(observations), bundles.STATE: state}
        logits, state = session.run(["logits", bundles.NEXT_STATE], inputs)
        return logits

    return step


def _ask_once(bundle: Bundle, session: Any, memory: dict[str, np.ndarray]) -> None:
    """Find out if the network answers as its card says, and with numbers, on black pictures and on
    noise.
    """
    card = bundle.card
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (_ASKED, *card.observation_shape), np.uint8)
    observations = noise.astype(card.observation_dtype)
    observations[0] = 0
    try:
        logits, values = session.run(["logits", "values"], {"observations": observations, **memory})
    except Exception as error:
        raise BundleError(
            f"{bundle.path}: policy.onnx can't be run as its card says: {error}"
        ) from error
    if np.shape(logits) != (_ASKED, card.action["num_actions"]) or logits.dtype.kind != "f":
        raise BundleError(
            f"{bundle.path}: policy.onnx answers {logits.dtype} {np.shape(logits)} for {_ASKED}"
            f" observations; its card declares {card.action['num_actions']} actions. Export the"
            " bundle again"
        )
    if np.shape(values) != (_ASKED,) or values.dtype.kind != "f":
        raise BundleError(
            f"{bundle.path}: policy.onnx answers values {values.dtype} {np.shape(values)} for"
            f" {_ASKED} observations; each has one value. Export the bundle again"
        )
    _check_finite(bundle, logits, values)


def _check_finite(bundle: Bundle, logits: np.ndarray, values: np.ndarray) -> None:
    """A search takes the values for results of games, so they have to be numbers as well."""
    if not (np.isfinite(logits).all() and np.isfinite(values).all()):
        raise BundleError(
            f"{bundle.path}: the network returns values that aren't finite (NaN or infinite):"
            " its training diverged, or its weights are damaged. Export an earlier checkpoint,"
            " or train with a lower learning rate"
        )


def _session(bundle: Bundle, threads: int) -> Any:
    """onnxruntime's session. Raises `BundleError` if the network can't be run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that spin while they wait take the core from whoever else plays on this machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Only fatal errors: its log prints a stranger's names as they are, and its exceptions say the
    # same.
    options.log_severity_level = 4
    # Its own format may name other files, too; only ONNX's was looked through.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    try:
        return onnxruntime.InferenceSession(
            bundle.onnx, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise BundleError(f"{bundle.path}: onnxruntime can't run policy.onnx: {error}") from error


def _torch_forward(bundle: Bundle, threads: int) -> Forward:
    """torch's thread count belongs to the whole process, so `threads` is left to the caller."""
    try:
        import torch
        from safetensors import SafetensorError
        from safetensors.torch import load
    except ImportError as error:
        raise MissingDependencyError(
            "torch", feature='backend="torch"', install=pip_install("procsnake[train]")
        ) from error
    network = _network_of(bundle)
    if hasattr(network, "one_step"):
        raise _needs_memory(bundle)
    try:
        network.load_state_dict(load(bundle.weights))
    except (RuntimeError, SafetensorError) as error:
        raise BundleError(
            f"{bundle.path}: weights.safetensors doesn't fit network"
            f" {bundle.card.network['name']!r}: {error}"
        ) from error
    network.eval()

    def forward(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with torch.inference_mode():
            logits, values = network(torch.from_numpy(np.ascontiguousarray(observations)))
        return logits.float().numpy(), values.float().numpy()

    return forward


def _network_of(bundle: Bundle) -> Any:
    """The network that the card speaks of, if the weights are of its size: first without memory for
    them.
    """
    import torch

    from agents import networks

    card = bundle.card
    described = (card.network["name"], tuple(card.observation_shape), card.action["num_actions"])
    options = card.network.get("options", {})
    with torch.device("meta"):
        size = sum(
            tensor.nbytes for tensor in networks.build(*described, **options).state_dict().values()
        )
    if size > _MOST_PER_BYTE * len(bundle.weights):
        raise BundleError(
            f"{bundle.path}: network {card.network['name']!r} with the card's options has {size}"
            f" bytes of weights, and weights.safetensors has {len(bundle.weights)}. Export the"
            " bundle again"
        )
    return networks.build(*described, **options)


_BACKENDS: dict[str, Callable[[Bundle, int], Forward]] = {
    "onnx": onnx_forward,
    "torch": _torch_forward,
}
