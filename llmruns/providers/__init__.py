"""Vendors of language models, one file each behind `base.Provider`, found by the name that a configuration holds."""

from functools import cache
from importlib import import_module

from llmruns.providers.base import Provider

# The module is loaded when its first call is made: a vendor's SDK costs a second and tens of megabytes.
_MODULES = {
    name: f"llmruns.providers.{name}"
    for name in ("openai", "anthropic", "gigachat", "yandex", "openai_compatible", "simulated")
}
# Where each vendor answers; "" where only the researcher can know.
BASE_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gigachat": "https://api.giga.chat/v1",
    "yandex": "https://llm.api.cloud.yandex.net/v1",
    "openai_compatible": "",
}


@cache
def provider_get(name: str) -> Provider:
    """Raises KeyError for a name that is not in ModelConfig.Provider."""
    provider: Provider = import_module(_MODULES[name]).PROVIDER
    return provider
