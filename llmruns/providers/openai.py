"""OpenAI itself. It has given up `max_tokens`: models that reason refuse it, all others take both names.

Which sampling parameters a model refuses is not known here but in the catalogue (`accepts`).
"""

from llmruns.providers.openai_compatible import OpenAICompatible


class OpenAI(OpenAICompatible):
    SENT_AS = {**OpenAICompatible.SENT_AS, "max_output_tokens": "max_completion_tokens"}


PROVIDER = OpenAI()
