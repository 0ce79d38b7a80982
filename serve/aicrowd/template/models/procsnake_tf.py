"""procsnake's IMPALA for TensorFlow on Ray 0.8.6: the same function of a picture as the network
that procsnake trains.

`custom_options` are depths (planes of each stage), blocks (residual blocks per stage), pooling
(flatten, average, max), hidden,
stem_stride (of the first convolution), offset and scales (float = (raw - offset) * scale), and
weights, the path in the
repository of an .npz to start from.
"""

from __future__ import annotations

import os

import numpy as np
from ray.rllib.agents.dqn.distributional_q_tf_model import DistributionalQTFModel
from ray.rllib.models import ModelCatalog
from ray.rllib.models.tf.tf_modelv2 import TFModelV2
from ray.rllib.utils.framework import try_import_tf

tf = try_import_tf()

# Workers have other working directories; the value travels with the model.
REPOSITORY = os.getcwd()
ROOT_OF_TWO = 2**0.5
LEAST = -3.0e38
EDGES = [[0, 0], [1, 1], [1, 1], [0, 0]]


def read_options(model_config, options):
    """Return the options, which Ray 0.8.6 hands on as keywords or as custom_model_config, or leaves
    in custom_options."""
    for key in ("custom_options", "custom_model_config"):
        found = model_config.get(key)
        if isinstance(found, dict):
            options = dict(found, **options)
    return options


def read_weights(options):
    """Return the weights by procsnake's names. There are none without the option."""
    if not options.get("weights"):
        return {}
    with np.load(os.path.join(REPOSITORY, options["weights"])) as arrays:
        return {name: arrays[name] for name in arrays.files}


class Layers:
    """Makes layers, which start with the weights of their name, or else with procsnake's orthogonal
    initialisation."""

    def __init__(self, model, weights):
        self.model, self.weights = model, weights

    def conv(self, name, planes, gain=ROOT_OF_TWO, padding="same", strides=1):
        """Make a 3 × 3 convolution. Kernels are (rows, columns, inputs, outputs), torch's (outputs,
        inputs, rows, columns)."""
        kernel = self.weights.get(name + ".weight")
        if kernel is not None:
            kernel = kernel.transpose(2, 3, 1, 0)
        return tf.keras.layers.Conv2D(
            planes, 3, strides, padding, **self._start(name, kernel, gain)
        )

    def dense(self, name, units, gain=ROOT_OF_TWO):
        """Make a dense layer. Its kernels are (inputs, outputs), torch's (outputs, inputs)."""
        kernel = self.weights.get(name + ".weight")
        if kernel is not None:
            kernel = kernel.transpose()
        return tf.keras.layers.Dense(units, **self._start(name, kernel, gain))

    def _start(self, name, kernel, gain):
        if kernel is None:
            kernel_start, bias_start = tf.keras.initializers.Orthogonal(gain), "zeros"
        else:
            kernel_start = tf.keras.initializers.Constant(kernel)
            bias_start = tf.keras.initializers.Constant(self.weights[name + ".bias"])
        return {
            "name": f"{self.model}.{name}",
            "kernel_initializer": kernel_start,
            "bias_initializer": bias_start,
        }


def impala(pictures, options, layers, prefix=""):
    """Return the features [B, hidden] of pictures [B, H, W, C]."""
    scales = options.get("scales") or [1 / 255]
    planes = (tf.cast(pictures, tf.float32) - options.get("offset", 0.0)) * tf.constant(
        scales, tf.float32
    )
    blocks, relu = options.get("blocks", 2), tf.keras.layers.ReLU
    gain = ROOT_OF_TWO / max(1, blocks * len(options["depths"]))
    for i, depth in enumerate(options["depths"]):
        stage = f"{prefix}stages.{i}."
        # Torch pads all sides; with a stride, "same" of an even size would pad only two and be
        # another function.
        stride = options.get("stem_stride", 1) if i == 0 else 1
        planes = layers.conv(stage + "entry", depth, strides=stride, padding="valid")(
            tf.pad(planes, EDGES)
        )
        planes = tf.pad(planes, EDGES, constant_values=LEAST)
        planes = tf.keras.layers.MaxPool2D(pool_size=3, strides=2, padding="valid")(planes)
        for k in range(blocks):
            inner = layers.conv(f"{stage}blocks.{k}.first", depth)(relu()(planes))
            planes = planes + layers.conv(f"{stage}blocks.{k}.second", depth, gain)(relu()(inner))
    features = layers.dense(prefix + "dense", options.get("hidden", 256))(
        pooled(relu()(planes), options)
    )
    return relu()(features)


def pooled(planes, options):
    pooling = options.get("pooling", "flatten")
    if pooling == "average":
        return tf.reduce_mean(planes, [1, 2])
    if pooling == "max":
        return tf.reduce_max(planes, [1, 2])
    # Rows, columns, planes: the order that procsnake flattens in, too.
    return tf.keras.layers.Flatten()(planes)


class ProcsnakeImpala(TFModelV2):
    """The network of PPO, with policy and value."""

    def __init__(self, obs_space, action_space, num_outputs, model_config, name, **options):
        super().__init__(obs_space, action_space, num_outputs, model_config, name)
        options = read_options(model_config, options)
        layers = Layers(name, read_weights(options))
        pictures = tf.keras.layers.Input(shape=obs_space.shape, name="pictures")
        features = impala(pictures, options, layers)
        logits = layers.dense("heads.actor", num_outputs, 0.01)(features)
        values = layers.dense("heads.critic", 1, 1.0)(features)
        self.network = tf.keras.Model(pictures, [logits, values])
        self.register_variables(self.network.variables)

    def forward(self, input_dict, state, seq_lens):
        logits, self._values = self.network(tf.cast(input_dict["obs"], tf.float32))
        return logits, state

    def value_function(self):
        return tf.reshape(self._values, [-1])


class ProcsnakeQ(DistributionalQTFModel):
    """The network of DQN and APEX, with Q values. Advantages and value have one dense layer
    each."""

    def __init__(
        self,
        obs_space,
        action_space,
        num_outputs,
        model_config,
        name,
        q_hiddens=(),
        dueling=False,
        num_atoms=1,
        use_noisy=False,
        v_min=-10.0,
        v_max=10.0,
        sigma0=0.5,
        add_layer_norm=False,
        **options,
    ):
        # Ray's own heads have a hidden layer each: their constructor is left out.
        TFModelV2.__init__(self, obs_space, action_space, num_outputs, model_config, name)
        options = read_options(model_config, options)
        layers = Layers(name, read_weights(options))
        pictures = tf.keras.layers.Input(shape=obs_space.shape, name="pictures")
        features = impala(pictures, options, layers, "body.")
        self.num_atoms, self.num_actions = num_atoms, action_space.n
        self.support = np.linspace(v_min, v_max, num_atoms, dtype=np.float32)
        heads = [layers.dense("advantage", action_space.n * num_atoms, 0.01)]
        if dueling:
            heads.append(layers.dense("value", num_atoms, 0.01))
        self.heads = heads
        self.body = tf.keras.Model(pictures, features)
        built = tf.keras.Model(pictures, [head(features) for head in heads])
        self.register_variables(built.variables)

    def forward(self, input_dict, state, seq_lens):
        return self.body(tf.cast(input_dict["obs"], tf.float32)), state

    def get_q_value_distributions(self, model_out):
        scores = self.heads[0](model_out)
        if self.num_atoms == 1:
            ones = tf.expand_dims(tf.ones_like(scores), -1)
            return scores, ones, ones
        logits = tf.reshape(scores, (-1, self.num_actions, self.num_atoms))
        probabilities = tf.nn.softmax(logits)
        return (
            tf.reduce_sum(self.support * probabilities, -1),
            self.support,
            logits,
            logits,
            probabilities,
        )

    def get_state_value(self, model_out):
        return self.heads[1](model_out)


ModelCatalog.register_custom_model("procsnake_impala_tf", ProcsnakeImpala)
ModelCatalog.register_custom_model("procsnake_q_tf", ProcsnakeQ)
