"""Eighteen pages that show the words of `words.json` and ask for one text each."""

import json
from pathlib import Path

from otree.api import BaseConstants, BaseGroup, BasePlayer, BaseSubsession, Page, models

WORDS: list[str] = json.loads(Path("words.json").read_text())


class C(BaseConstants):
    NAME_IN_URL = "sentences"
    PLAYERS_PER_GROUP = None
    NUM_ROUNDS = 1


class Subsession(BaseSubsession):
    pass


class Group(BaseGroup):
    pass


class Player(BasePlayer):
    for _number in range(1, len(WORDS) + 1):  # one field for each page, as if they were written out
        locals()[f"text_{_number}"] = models.LongStringField(label="Составьте из этих слов правильное предложение")
    del _number


def page(number: int, words: str) -> type:
    return type(
        f"Task{number}",
        (Page,),
        {
            "__module__": __name__,
            "form_model": "player",
            "form_fields": [f"text_{number}"],
            "template_name": "sentences/Task.html",
            "vars_for_template": staticmethod(lambda player: {"number": number, "words": words}),
        },
    )


page_sequence = [page(number, words) for number, words in enumerate(WORDS, start=1)]
