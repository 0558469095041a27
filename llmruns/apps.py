from django.apps import AppConfig


class LlmrunsConfig(AppConfig):
    name = "llmruns"
