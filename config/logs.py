"""Logging: structlog over the standard library, with secrets blanked before anything is written."""

import logging
import re
from collections.abc import MutableMapping
from typing import Any

import structlog

# Keys of model providers, bearer headers, and the secrets in Luria's own links.
SECRET = re.compile(
    r"(?i)\b(sk-[\w-]{8,}|(?:bearer|basic|api-key)\s+[\w.~+/=-]{8,})|(?<=/join/)[\w-]{20,}|(?<=/p/)[\w-]{20,}"
)


# They log addresses, headers and whole requests where they are asked to.
LIBRARIES = ("httpx", "httpcore", "httpx2", "httpcore2", "openai", "anthropic", "gigachat")

# People's ids on a platform stand in the address of a survey.
IDS = re.compile(r"(/s/[\w-]+/\?)[^'\"\s>]+")


def refusals_in_brief(record: logging.LogRecord) -> bool:
    """A refusal (403, 404) is no error of ours: one line, and no traceback."""
    if getattr(record, "status_code", 500) < 500:
        record.exc_info, record.exc_text = None, None
    return True


def blank_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        text = value if isinstance(value, str) else repr(value)  # a request's repr holds its address
        if SECRET.search(text) or IDS.search(text):
            event[key] = IDS.sub(r"\1[ids]", SECRET.sub("[secret]", text))
    return event


def logging_config(*, level: str, json: bool) -> dict[str, Any]:
    """The LOGGING setting: one stream handler; JSON lines on a server, readable lines in embedded mode."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    renderer: Any = structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=False)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structlog": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [*shared, structlog.stdlib.ExtraAdder()],
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    blank_secrets,
                    renderer,
                ],
            }
        },
        "filters": {"brief": {"()": lambda: refusals_in_brief}},
        "handlers": {"stream": {"class": "logging.StreamHandler", "formatter": "structlog"}},
        "root": {"handlers": ["stream"], "level": level},
        # httpx logs every request line with its full address, which may carry a key as a parameter.
        "loggers": {name: {"level": "WARNING"} for name in LIBRARIES} | {"django.request": {"filters": ["brief"]}},
    }
