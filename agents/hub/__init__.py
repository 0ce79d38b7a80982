"""Policy bundles on the Hugging Face Hub: `hf://user/name`. Only what asks the Hub imports
huggingface_hub.
"""

from agents.hub.address import SCHEME, Address, HubError

__all__ = ["SCHEME", "Address", "HubError"]
