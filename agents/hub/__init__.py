"""Policy bundles on the Hugging Face Hub: `hf://user/name`. huggingface_hub is imported only to
access the Hub.
"""

from agents.hub.address import SCHEME, Address, HubError

__all__ = ["SCHEME", "Address", "HubError"]
