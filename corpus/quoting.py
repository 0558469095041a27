"""Finding a person's words in what others wrote about them, to take them out. Pure."""

import re
from collections.abc import Iterable
from typing import Any

from corpus.tokens import word_tokens

MARK = "[…]"
WORDS = 3
"""Shorter texts are nobody's own: «не знаю» in a note is no quotation."""
ID_CHARACTERS = 6
"""Shorter ids stand in texts by chance: «w1», «2024»."""


class Quoted:
    """Takes the given texts out of others, whatever the case and the white space between the words; and whole ids."""

    def __init__(self, texts: Iterable[str], ids: Iterable[str] = ()) -> None:
        own = {text.strip() for text in texts if len(word_tokens(text)) >= WORDS}
        # The longest first: a text may contain another.
        patterns = [
            r"\s+".join(map(re.escape, text.split())) for text in sorted(own, key=lambda text: (-len(text), text))
        ]
        names = {name.strip() for name in ids if len(name.strip()) >= ID_CHARACTERS}
        patterns += [rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(names, key=lambda name: (-len(name), name))]
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE) if patterns else None

    def out_of(self, text: str) -> str:
        return self._pattern.sub(MARK, text) if self._pattern else text

    def out_of_json(self, document: Any) -> Any:
        """The document with the texts taken out of every string in it; names of fields are left."""
        if isinstance(document, str):
            return self.out_of(document)
        if isinstance(document, list):
            return [self.out_of_json(part) for part in document]
        if isinstance(document, dict):
            return {name: self.out_of_json(part) for name, part in document.items()}
        return document
