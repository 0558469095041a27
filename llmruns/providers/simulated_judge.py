"""What the simulated model says when it is asked to judge: what a perfect judge would say, and sometimes not."""

import json
import random
import re
from collections.abc import Sequence

from corpus.display import display_text
from corpus.importing import StimulusRow
from corpus.simulation import Truth, truth_of, variants

_DATA = re.compile(r'<words>\n(".*")\n</words>\n<sentence>\n(".*")\n</sentence>')


def simulated_judgement(
    prompt: str, stimuli: Sequence[StimulusRow], *, skill: float, rng: random.Random
) -> dict[str, float] | None:
    """Values on the paper's criteria and the children's one; None where the prompt is no judge's of Luria.

    `skill`: how often a value is the perfect judge's.
    """
    found = _DATA.search(prompt)
    if found is None:
        return None
    words, answer = (json.loads(part) for part in found.groups())
    stimulus = next((row for row in stimuli if row.text == words), None)
    truth = Truth(0, 0, 0)
    if stimulus is not None:
        texts = variants(stimulus.text, stimulus.original)
        truth = truth_of(answer, {kind: display_text(text, lower_case=True) for kind, text in texts.items()})
    said = [value if rng.random() < skill else 1 - value for value in (truth.grammatical, truth.logical, truth.order)]
    grade = {(1, 1, 1): 1.0, (1, 1, 0): 0.5, (0, 0, 0): 0.0}.get((said[0], said[1], said[2]), 0.25)
    return {"grammatical": said[0], "logical": said[1], "order": said[2], "sentence": grade}
