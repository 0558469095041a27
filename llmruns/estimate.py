"""What an experiment will cost, before it is launched: from earlier calls where there are any, and at the very most."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Avg, Count, Q
from django.utils import timezone

from llmruns.calls import question_body
from llmruns.models import Call, ModelConfig, Price
from llmruns.pricing import MILLION, Amount, bound, price_at, price_day

SAMPLE = "9" * 400  # characters that stand for a stimulus where none is given


@dataclass(frozen=True)
class Estimate:
    config: ModelConfig
    price: Price | None
    expected: Decimal | None  # None: no earlier call says how many tokens, or there is no price
    from_calls: int  # earlier replies that it rests on
    most: Amount  # of all attempts of all stimuli and runs
    cap_reason: str  # why it cannot be capped in this currency; "" if it can


def cap_obstacle(config: ModelConfig, currency: str, prompt: str, price: Price | None = None) -> str:
    """Why the configuration's calls cannot be bounded in this currency: a reason of pricing, "" if they can."""
    price = price or price_at(config, price_day(timezone.now()))
    return bound(question_body(config, prompt.replace("{words}", SAMPLE)), price, currency=currency).reason


def estimates_of(
    configs: Sequence[ModelConfig],
    *,
    prompt: str,
    stimuli: Sequence[str],
    runs: int,
    max_attempts: int,
    currency: str,
    purpose: str = Call.Purpose.ANSWER,
) -> list[Estimate]:
    """One for each configuration. Two queries for each. `purpose`: of the earlier calls that say how many tokens."""
    return [
        _estimate(config, prompt, stimuli, runs=runs, max_attempts=max_attempts, currency=currency, purpose=purpose)
        for config in configs
    ]


def _estimate(
    config: ModelConfig,
    prompt: str,
    stimuli: Sequence[str],
    *,
    runs: int,
    max_attempts: int,
    currency: str,
    purpose: str,
) -> Estimate:
    price = price_at(config, price_day(timezone.now()))
    bounds = [bound(question_body(config, prompt.replace("{words}", text)), price) for text in stimuli]
    unknown = next((one for one in bounds if one.value is None), None)
    most = unknown or Amount(
        sum((one.value for one in bounds if one.value is not None), Decimal(0)) * runs * max_attempts,
        price.currency if price else "",
    )
    earlier = Call.objects.filter(
        config=config,
        purpose=purpose,
        state__in=[Call.State.OK, Call.State.BAD_REPLY],
        input_tokens__isnull=False,
        output_tokens__isnull=False,
    ).aggregate(
        number=Count("pk"), first=Count("pk", filter=Q(attempt=1)), into=Avg("input_tokens"), out=Avg("output_tokens")
    )
    expected = None
    if price is not None and earlier["first"]:
        each = (
            Decimal(str(earlier["into"])) * price.input_million + Decimal(str(earlier["out"])) * price.output_million
        ) / MILLION
        attempts = Decimal(earlier["number"]) / Decimal(earlier["first"])
        expected = each * attempts * len(stimuli) * runs
    return Estimate(
        config=config,
        price=price,
        expected=expected,
        from_calls=earlier["number"],
        most=most,
        cap_reason=cap_obstacle(config, currency, prompt, price),
    )


def totals(amounts: Sequence[tuple[str, Decimal]]) -> list[tuple[str, Decimal]]:
    """Sums by currency, since amounts of different currencies are never added."""
    found: dict[str, Decimal] = {}
    for currency, value in amounts:
        found[currency] = found.get(currency, Decimal(0)) + value
    return sorted(found.items())
