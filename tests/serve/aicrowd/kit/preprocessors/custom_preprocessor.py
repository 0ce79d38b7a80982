from ray.rllib.models.preprocessors import Preprocessor


class MyPreprocessorClass(Preprocessor):
    def _init_shape(self, obs_space, options):
        return obs_space.shape

    def transform(self, observation):
        return observation
