from .custom_preprocessor import MyPreprocessorClass

CUSTOM_PREPROCESSORS = {"MyPreprocessor": MyPreprocessorClass}
