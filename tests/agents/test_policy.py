from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from scipy.stats import chisquare

from agents import bundle
from agents.agent import Decision
from agents.bundle import BundleError
from agents.policy import Policy, _session
from envs.battlesnake.observations import EgocentricPlanes
from envs.battlesnake.observing.starter_pack import StarterPackObservation
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import RIGHT
from envs.common.errors import ConfigError, UnknownNameError
from tests.agents.boards import board, played_boards
from tests.agents.bundles import make_bundle

OBSERVATIONS = [
    EgocentricPlanes(rotate=True),
    EgocentricPlanes(view="board"),
    EgocentricPlanes(radius=5),
]
CLOCKWISE = {0: 3, 3: 1, 1: 2, 2: 0}


@pytest.fixture(scope="module")
def played():
    return played_boards(40)


@pytest.mark.parametrize("network", ["snake-cnn", "mlp"])
@pytest.mark.parametrize("observation", OBSERVATIONS, ids=["rotated", "board", "window"])
def test_torch_and_onnx_agree(tmp_path, played, observation, network):
    path = make_bundle(tmp_path / "b", observation, network)
    by_onnx = Policy.load(path)
    by_torch = Policy.load(path, backend="torch")
    states = 0
    clear = 0
    same_choice = 0
    for state, boards, slots in played:
        seen = observation.observe(state, boards, slots)
        (a, values_a), (b, values_b) = by_onnx.logits(seen), by_torch.logits(seen)
        assert np.abs(a - b).max() <= 1e-4
        assert np.abs(values_a - values_b).max() <= 1e-4
        assert a.dtype == b.dtype == values_a.dtype == np.float32
        gap = np.diff(np.sort(b, axis=1)[:, -2:], axis=1)[:, 0] > 2e-4
        states = states + len(a)
        clear = clear + gap.sum()
        same_choice += (a.argmax(axis=1) == b.argmax(axis=1))[gap].sum()
    assert states >= 1000
    assert clear > 0.9 * states
    assert same_choice == clear


def test_takes_the_likeliest_move_that_is_not_certain_death(bundle_path, played):
    policy = Policy.load(bundle_path)
    rotated = EgocentricPlanes(rotate=True)
    overruled = 0
    for state, boards, slots in played[:3]:
        moves = policy.act_batch(state, boards, slots)
        logits, _ = policy.logits(rotated.observe(state, boards, slots))
        for row, (b, i) in enumerate(zip(boards, slots)):
            alone = state.select(np.array([b]))
            decision = policy.act(alone, i)
            by_action = [_move_of(rotated, alone, i, action) for action in range(3)]
            safe = safe_moves(alone, np.zeros(1, int), np.array([i]))[0]
            allowed = [a for a in range(3) if safe[by_action[a]]]
            best = max(allowed, key=lambda a: logits[row, a])
            assert decision.move == moves[row] == by_action[best]
            overruled += best != logits[row].argmax()
            odds = {by_action[a]: np.exp(np.float64(logits[row, a])) for a in allowed}
            expected = [odds.get(move, 0.0) / sum(odds.values()) for move in range(4)]
            assert decision.probabilities == pytest.approx(expected, abs=1e-6)
    assert overruled >= 5


def _move_of(observation, state, slot, action):
    return int(
        observation.to_moves(state, np.zeros(1, int), np.array([slot]), np.array([action]))[0]
    )


def test_a_board_turned_by_a_quarter_turns_the_move_with_it(bundle_path):
    policy = Policy.load(bundle_path)
    bodies = [[(3, 3), (2, 3), (1, 3)], [(5, 5), (5, 6), (5, 7), (6, 7)]]
    food = [(8, 2), (1, 9)]
    size = 11
    for _ in range(4):
        turned_bodies = [[(y, size - 1 - x) for x, y in body] for body in bodies]
        turned_food = [(y, size - 1 - x) for x, y in food]
        here = policy.act(board(*bodies, food=food, size=(size, size)), 0)
        there = policy.act(board(*turned_bodies, food=turned_food, size=(size, size)), 0)
        assert there.move == CLOCKWISE[here.move]
        assert [there.probabilities[CLOCKWISE[m]] for m in range(4)] == pytest.approx(
            list(here.probabilities), abs=1e-5
        )
        assert there.value == pytest.approx(here.value, abs=1e-5)
        bodies = turned_bodies
        food = turned_food


@pytest.mark.parametrize("observation", OBSERVATIONS, ids=["rotated", "board", "window"])
def test_symmetries_choose_the_same_move_on_a_mirrored_or_turned_board(tmp_path, observation):
    plain = Policy.load(make_bundle(tmp_path / "b", observation))
    symmetric = Policy.load(tmp_path / "b", symmetries=True)
    bodies = [[(3, 3), (2, 3), (1, 3)], [(5, 5), (5, 6), (5, 7), (6, 7)]]
    food = [(8, 2), (1, 9)]
    size = 11

    def mirrored(x, y):
        return size - 1 - x, y

    def turned(x, y):
        return y, size - 1 - x

    for there, moves in ((turned, CLOCKWISE), (mirrored, {0: 0, 1: 1, 2: 3, 3: 2})):
        original = board(*bodies, food=food, size=(size, size))
        bodies = [[there(*point) for point in body] for body in bodies]
        food = [there(*point) for point in food]
        image = board(*bodies, food=food, size=(size, size))
        here = symmetric.act(original, 0)
        then = symmetric.act(image, 0)
        assert [then.probabilities[moves[move]] for move in range(4)] == pytest.approx(
            list(here.probabilities), abs=1e-5
        )
        assert then.value == pytest.approx(here.value, abs=1e-5)
    assert plain.act(image, 0).value != pytest.approx(plain.act(original, 0).value, abs=1e-3)


def test_sampling_follows_the_probabilities(bundle_path):
    one = board([(3, 3), (2, 3), (1, 3)], [(8, 8), (8, 9), (8, 10)], size=(11, 11), food=[(6, 3)])
    many = one.select(np.zeros(4000, np.int64))
    many.seed(1)
    rows = np.arange(4000)
    slots = np.zeros(4000, np.int64)
    sampling = Policy.load(bundle_path, sample=True, seed=1)
    probabilities = sampling.act(one, 0).probabilities.astype(np.float64)
    moves = sampling.act_batch(many, rows, slots)
    possible = probabilities > 0
    counts = np.bincount(moves, minlength=4)
    assert counts[~possible].sum() == 0
    assert (
        chisquare(
            counts[possible], probabilities[possible] / probabilities[possible].sum() * 4000
        ).pvalue
        > 1e-3
    )
    assert (moves == sampling.act_batch(many, rows, slots)).all()
    assert (
        moves != Policy.load(bundle_path, sample=True, seed=2).act_batch(many, rows, slots)
    ).any()


def test_takes_the_only_way_out(bundle_path):
    assert (
        Policy.load(bundle_path).act(board([(0, 0), (0, 1), (0, 2)], size=(11, 11)), 0).move
        == RIGHT
    )


def test_explains_itself(bundle_path):
    policy = Policy.load(bundle_path)
    state = board([(0, 0), (0, 1), (0, 2)], size=(11, 11))
    told = policy.explain(state, 0)
    assert told["move"] == "right"
    assert told["probabilities"] == {"up": 0.0, "down": 0.0, "left": 0.0, "right": 1.0}
    assert told["value"] == policy.act(state, 0).value


def test_a_state_is_worth_the_best_q_value_of_a_move_that_is_not_certain_death(tmp_path, played):
    observation = EgocentricPlanes(rotate=True)
    policy = Policy.load(make_bundle(tmp_path / "b", observation, "q-network"))
    deadly = 0
    for state, boards, slots in played[:5]:
        q_values, highest = policy.logits(observation.observe(state, boards, slots))
        mask = observation.action_mask(state, boards, slots)
        expected = np.array([row[may].max() for row, may in zip(q_values, mask, strict=True)])
        _, values = policy.move_probabilities(state, boards, slots)
        assert np.array_equal(values, expected)
        deadly += (values != highest).sum()
    assert deadly > 10


def test_no_snakes_no_moves(bundle_path):
    state = board([(0, 0), (0, 1), (0, 2)], size=(11, 11))
    nobody = np.empty(0, np.int64)
    assert Policy.load(bundle_path).act_batch(state, nobody, nobody).shape == (0,)


def test_a_board_of_another_size_is_refused(bundle_path):
    with pytest.raises(
        BundleError, match=r"reads observations uint8 \(21, 21, 12\).*boards of another size"
    ):
        Policy.load(bundle_path).act(board([(0, 0), (0, 1), (0, 2)], size=(7, 7)), 0)


def test_bad_options_are_refused(bundle_path):
    with pytest.raises(UnknownNameError, match=r"unknown backend 'onxx'. Did you mean 'onnx'"):
        Policy.load(bundle_path, backend="onxx")
    with pytest.raises(ConfigError, match="threads is 0"):
        Policy.load(bundle_path, threads=0)


def test_symmetries_are_refused_for_pictures_that_cannot_be_turned(tmp_path):
    path = make_bundle(tmp_path / "b", EgocentricPlanes(view="board"))
    card = json.loads((path / "card.json").read_text())
    (path / "card.json").write_text(
        json.dumps(card | {"observation": StarterPackObservation("flat-num").contract()})
    )
    Policy.load(path)
    with pytest.raises(
        ConfigError,
        match="observations of type 'flat-num' have no other views; leave symmetries out",
    ):
        Policy.load(path, symmetries=True)


@pytest.mark.parametrize(
    ("contract", "name", "value"),
    [
        (EgocentricPlanes(rotate=True).contract(), "reach", []),
        (EgocentricPlanes(rotate=True).contract(), "rotate", [1]),
        (EgocentricPlanes(rotate=True).contract(), "cyclic", {}),
        (EgocentricPlanes(rotate=True).contract(), "radius", 10.0),
        (StarterPackObservation("flat-num").contract(), "own_first", 1 << 70),
    ],
)
def test_options_of_another_type_on_a_card_are_refused(
    bundle_path, tmp_path, contract, name, value
):
    path = shutil.copytree(bundle_path, tmp_path / "b")
    card = json.loads((path / "card.json").read_text())
    (path / "card.json").write_text(json.dumps(card | {"observation": {**contract, name: value}}))
    with pytest.raises(ConfigError, match=rf"^{name} is .*; it must be"):
        Policy.load(path)


def test_is_called_as_its_run_is(bundle_path, tmp_path):
    assert Policy.load(bundle_path).name == "snake"
    run = shutil.copytree(bundle_path, tmp_path / "first-run" / "bundle").parent
    assert Policy.load(run / "bundle").name == "first-run"


def test_serving_imports_neither_torch_nor_ray(bundle_path):
    program = (
        "import sys, agents; from envs.battlesnake.plain import setup_board, state_from_board\n"
        f"decision = agents.make({str(bundle_path)!r}).act(state_from_board(setup_board()), 0)\n"
        "loaded = {'torch', 'ray', 'onnx', 'safetensors'} & set(sys.modules)\n"
        "assert not loaded, loaded; print(decision.move)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in "0123"


def test_a_plain_decision_knows_only_its_move():
    assert Decision(2) == Decision(2, None, None, {})


def test_a_strangers_names_do_not_reach_the_terminal_by_onnxruntimes_log(tmp_path, capfd):
    """The message of its exception is ours to print; its log goes to standard error by itself."""
    node = helper.make_node("Reshape", ["o", "shape"], ["logits"], name="\x1b[31mevil")
    shape = numpy_helper.from_array(np.array([7, 7]), "shape")
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sides)]
        for name, sides in (("o", ["b", 3]), ("logits", None))
    )
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, outputs, [shape]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    model.ir_version = 8
    whole = bundle.load(make_bundle(tmp_path / "b", OBSERVATIONS[0], "mlp"))
    session = _session(replace(whole, onnx=model.SerializeToString()), 1)
    with pytest.raises(Exception, match="evil"):
        session.run(None, {"o": np.zeros((2, 3), np.float32)})
    assert "evil" not in "".join(capfd.readouterr())
