"""What a call costs, and the most that it can cost. Decimal throughout; what is not known is None with a reason.

Amounts of different currencies are never added: whoever sums, sums by currency.
"""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import Any, Literal

from django.db.models import F, Q

from llmruns.models import Call, ModelConfig, Price

MILLION = Decimal(1_000_000)
SMALLEST = Decimal("0.00000001")  # the column's last place
LARGEST = Decimal("99999999.99999999")  # the column's largest amount

Reason = Literal[
    "",
    "no_price",  # no price was known on the day
    "no_tokens",  # the provider does not say how many tokens it counted
    "absurd",  # more than the column holds: the provider's count or the price is wrong
    "lost",  # no reply came, or none that says what it cost: possibly billed, at most its reservation
    "not_billed",  # the provider refused it, or nothing was sent; providers as a rule bill no such call
    "in_flight",
    "no_output_limit",  # of a bound: the request does not limit the output
    "tools",  # of a bound: the request asks for what is billed apart from tokens
    "currency",  # of a bound: the price is in another currency than the cap
]

# As the protocols call it. Read from the request itself, since extra parameters may stand above the configuration's.
OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
CHOICES = ("n", "best_of")  # each of them is generated, and billed
BILLED_APART = {"tools", "functions", "plugins", "web_search_options", "search_parameters"}


@dataclass(frozen=True, slots=True)
class Amount:
    """`value` is None where `reason` says why. A value of 0 may have a reason too: `not_billed`."""

    value: Decimal | None
    currency: str
    reason: Reason = ""


def price_at(config: ModelConfig, day: date) -> Price | None:
    """The price of the configuration's model on a day: the newest not after it, the study's own first. One query."""
    known = Price.objects.filter(
        Q(study=config.study_id) | Q(study=None), provider=config.provider, model=config.model, valid_from__lte=day
    )
    return known.order_by(F("study").asc(nulls_last=True), "-valid_from").first()


def price_day(moment: datetime) -> date:
    """The day on which a call was sent, in UTC: all workers agree on it."""
    return moment.astimezone(UTC).date()


def tokens_cost(
    price: Price | None, *, input_tokens: int | None, output_tokens: int | None, cached_tokens: int | None = None
) -> Amount:
    """A reply's cost from its tokens. Cached ones are among the input; where nobody says how many, there are none."""
    if price is None:
        return Amount(None, "", "no_price")
    if input_tokens is None or output_tokens is None:
        return Amount(None, price.currency, "no_tokens")
    cached = min(cached_tokens or 0, input_tokens)
    cached_million = price.input_million if price.cached_input_million is None else price.cached_input_million
    total = (
        (input_tokens - cached) * price.input_million + cached * cached_million + output_tokens * price.output_million
    ) / MILLION
    if total > LARGEST:
        return Amount(None, price.currency, "absurd")
    return Amount(total.quantize(SMALLEST, ROUND_HALF_EVEN), price.currency)


def bound(body: dict[str, Any], price: Price | None, *, currency: str = "") -> Amount:
    """The most that this request can cost: a token of the input is at least a byte of it, and the output is limited.

    The whole request is counted, its punctuation too, which stands for what a chat template puts around a message.
    `currency`: the one that it must be in, if any. Rounded up.
    """
    if price is None:
        return Amount(None, "", "no_price")
    if currency and price.currency != currency:
        return Amount(None, price.currency, "currency")
    if BILLED_APART & body.keys():
        return Amount(None, price.currency, "tools")
    limits = [body[name] for name in OUTPUT_LIMITS if _is_count(body.get(name))]
    if not limits:
        return Amount(None, price.currency, "no_output_limit")
    choices = max(1, *(body[name] if _is_count(body.get(name)) else 1 for name in CHOICES))
    size = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    dearest = max(price.input_million, price.cached_input_million or Decimal(0))
    total = (size * dearest + max(limits) * choices * price.output_million) / MILLION
    if total > LARGEST:
        return Amount(None, price.currency, "absurd")
    return Amount(total.quantize(SMALLEST, ROUND_CEILING), price.currency)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def call_cost(call: Call) -> Amount:
    """What is known of a recorded call's cost, with the reason where it is not. No query if the price is loaded."""
    if call.cost is not None:
        refused = call.state == Call.State.FAILED and call.cost == 0
        return Amount(call.cost, call.currency, "not_billed" if refused else "")
    if call.state == Call.State.IN_FLIGHT:
        return Amount(None, call.currency, "in_flight")
    if call.state == Call.State.FAILED and not failure_may_be_billed(call.kind, call.http_status, sent=call.sent):
        return Amount(None, call.currency, "not_billed")
    if call.state in (Call.State.LOST, Call.State.FAILED):
        return Amount(None, call.currency, "lost")
    return tokens_cost(
        call.price,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cached_tokens=call.cached_tokens,
    )


# Kinds of a failure after which the model may have worked all the same: no error of the provider's came back.
UNCERTAIN = {"timeout", "connection", "not_a_model", "too_large", "unexpected", "server_error"}


def failure_may_be_billed(kind: str, http_status: int | None, *, sent: bool) -> bool:
    """False where nothing went out, or where the provider answered with an error."""
    return sent and kind in UNCERTAIN and not (http_status is not None and http_status >= 300)
