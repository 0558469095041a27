"""The order in which a sitting presents its stimuli. Pure."""

import random
from collections.abc import Sequence


def order_within_bands(stimuli: Sequence[tuple[int, str]], seed: str) -> list[int]:
    """Ids in a random order in which every place keeps its band.

    `stimuli`: (id, complexity) in the instrument's order. A place that holds an easy stimulus still holds an easy one,
    so the test grows as hard as fast as it did. The same seed gives the same order on every machine.
    """
    rng = random.Random(seed)  # noqa: S311  # an order is not a secret, and must come out the same again
    bands: dict[str, list[int]] = {}
    for pk, band in stimuli:
        bands.setdefault(band, []).append(pk)
    for members in bands.values():
        rng.shuffle(members)
    return [bands[band].pop() for _, band in stimuli]
