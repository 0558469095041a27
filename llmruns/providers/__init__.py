"""Vendors of language models, one file each behind `base.Provider`, found by the name that a configuration holds."""

from functools import cache
from importlib import import_module

from llmruns.providers.base import Provider

# The module is loaded when its first call is made: a vendor's SDK costs a second and tens of megabytes.
_MODULES = {
    "openai_compatible": "llmruns.providers.openai_compatible",
    "simulated": "llmruns.providers.simulated",
}


@cache
def provider_get(name: str) -> Provider:
    """Raises KeyError for a name that is not in ModelConfig.Provider."""
    provider: Provider = import_module(_MODULES[name]).PROVIDER
    return provider
