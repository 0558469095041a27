"""Text in a form that PostgreSQL takes: text and jsonb refuse U+0000 and lone surrogates."""


def storable_text(text: str) -> tuple[str, bool]:
    """The text, NUL and lone surrogates written as \\u0000 and \\ud800, and whether anything was."""
    stored = text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\u0000")
    return stored, stored != text


def is_storable(text: str) -> bool:
    return not storable_text(text)[1]
