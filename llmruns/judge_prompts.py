"""What model judges are asked: prompts in versions, and the message that comes of one for an answer.

An answer is hostile text. It and the given words go in as JSON strings in which `<` and `>` are escaped too, so that
nothing in them can end the string, close a mark of the prompt, or be a control token of a model (`<|im_end|>`).
Both are put in at once: what an answer looks like is never replaced again.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from django.db.models import Count, QuerySet

from llmruns.models import Prompt
from llmruns.prompts import ANSWER, WORDS, PromptRefusedError, prompt_create
from scoring.models import Criterion, Rubric
from studies.models import Study, User

TEXTS = Path(__file__).parent / "judge_texts"
LANGUAGES = {"ru": "русский"}  # as the Russian text names them; others by their code
_PLACES = re.compile(r"\{(?:words|answer)\}")


def judged_criteria(rubric: Rubric) -> list[Criterion]:
    """What a model judge is asked: the criteria that are counted by rule are not among them. One query."""
    return list(rubric.criteria.filter(kind=Criterion.Kind.JUDGED).order_by("position"))


def as_data(text: str) -> str:
    """A JSON string in which no sign is left that could end it or open a mark."""
    return json.dumps(text, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")


def judge_message(text: str, *, words: str, answer: str) -> str:
    """The message to the judge. `text` is a prompt's, `answer` the answer's display text."""
    values = {WORDS: as_data(words), ANSWER: as_data(answer)}
    return _PLACES.sub(lambda found: values[found[0]], text)


@lru_cache
def _file(name: str) -> str:
    return (TEXTS / name).read_text(encoding="utf-8").rstrip("\n")


def judge_text(rubric: Rubric, language: str) -> str:
    """What Luria brings for a rubric and the language of an instrument: written for the rubric where there is such a
    text, else made of the rubric's questions and scales. One query at most."""
    if language == "ru" and (TEXTS / f"{rubric.slug}.ru.txt").is_file() and rubric.version == 1:
        return _file(f"{rubric.slug}.ru.txt")
    return generic_text(judged_criteria(rubric), language)


def generic_text(criteria: Sequence[Criterion], language: str) -> str:
    """In Russian for Russian instruments, else in English."""
    is_russian = language == "ru"
    scale = "шкала" if is_russian else "scale"
    questions = "\n".join(
        f"{one.code} — {one.question_ru if is_russian else one.question_en} "
        f"({scale}: {', '.join(f'{value:g}' for value in one.scale)})"
        for one in criteria
    )
    filled = {
        "{language}": LANGUAGES.get(language, language),
        "{questions}": questions,
        "{codes}": ", ".join(f'"{one.code}"' for one in criteria),
    }
    return re.sub(
        r"\{(?:language|questions|codes)\}",
        lambda found: filled[found[0]],
        _file("generic.ru.txt" if is_russian else "generic.en.txt"),
    )


def judge_slug(rubric: Rubric, language: str) -> str:
    """The name under which a study keeps its prompts for a rubric and a language."""
    return f"judge-{rubric.slug}-{language}"[:60].lower()


def judge_prompt_ensure(*, study: Study, rubric: Rubric, language: str, actor: User | None) -> Prompt:
    """The study's newest prompt of this rubric and language; what Luria brings where there is none.

    Raises prompts.PromptRefusedError where the study uses the name for another kind of prompt.
    """
    slug = judge_slug(rubric, language)
    named = judge_prompts_of(study).filter(slug=slug)
    known = named.first()
    if known is not None:
        return known
    text = judge_text(rubric, language)
    try:
        return prompt_create(study=study, slug=slug, text=text, actor=actor, purpose=Prompt.Purpose.JUDGE)
    except PromptRefusedError as error:
        if error.reason == "same" and (known := named.first()):  # somebody was faster
            return known
        raise


def judge_prompts_of(study: Study) -> QuerySet[Prompt]:
    """Newest versions first, with `n_judges`. One query."""
    prompts = Prompt.objects.filter(study=study, purpose=Prompt.Purpose.JUDGE)
    return prompts.annotate(n_judges=Count("judges")).order_by("slug", "-version")


def codes_missing(text: str, criteria: Sequence[Criterion]) -> list[str]:
    """Criteria that the prompt does not name in quotation marks, as the keys of the reply must be."""
    return [one.code for one in criteria if f'"{one.code}"' not in text]
