"""What is known of models, as data: built-in rows from catalogue.toml, and a study's own, which stand above them."""

import tomllib
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from llmruns.models import CatalogueEntry, ModelConfig, Price
from llmruns.providers import BASE_URLS
from studies.models import Study, User
from studies.services import audit_record

FILE = Path(__file__).parent / "catalogue.toml"
_FIELDS = ("label", "size", "accepts", "in_paper", "retired_on", "source", "note")


class PriceTakenError(Exception):
    """The study has a price of this model from this day on. Prices are added, never changed."""


class EntryTakenError(Exception):
    """The study has an entry of this model."""


@transaction.atomic
def catalogue_load() -> tuple[int, int]:
    """Make the built-in rows what catalogue.toml says. Safe to repeat. Returns how many entries and new prices.

    A price that is already there stays as it is: calls point at it. A study's own rows are not touched.
    """
    document = tomllib.loads(FILE.read_text(encoding="utf-8"))
    added = 0
    for model in document["model"]:
        own = {"accepts": None, "size": "", "source": "", "note": "", "in_paper": False, "retired_on": None}
        values = own | {name: model[name] for name in _FIELDS if name in model}
        CatalogueEntry.objects.update_or_create(
            study=None, provider=model["provider"], model=model["model"], defaults=values
        )
        for price in model.get("price", []):
            _, created = Price.objects.get_or_create(
                study=None,
                provider=model["provider"],
                model=model["model"],
                valid_from=price["valid_from"],
                defaults={
                    "currency": price["currency"],
                    "input_million": Decimal(price["input"]),
                    "cached_input_million": Decimal(price["cached_input"]) if "cached_input" in price else None,
                    "output_million": Decimal(price["output"]),
                    "source": price["source"],
                },
            )
            added += created
    return len(document["model"]), added


def tidy(amount: Decimal) -> Decimal:
    """Without the zeros that the column adds: 2.50, 0.125, 10."""
    whole = amount.to_integral_value()
    return whole if amount == whole else max(amount.normalize(), amount.quantize(Decimal("0.01")), key=_digits)


def _digits(amount: Decimal) -> int:
    return -int(amount.as_tuple().exponent)


def _tidied(price: Price) -> Price:
    """For showing only: never saved."""
    price.input_million, price.output_million = tidy(price.input_million), tidy(price.output_million)
    if price.cached_input_million is not None:
        price.cached_input_million = tidy(price.cached_input_million)
    return price


@dataclass(frozen=True)
class Row:
    entry: CatalogueEntry
    price: Price | None  # of today
    is_own: bool

    @property
    def is_retired(self) -> bool:
        return self.entry.retired_on is not None and self.entry.retired_on <= timezone.localdate()


def catalogue_rows(study: Study) -> list[Row]:
    """The study's catalogue: its own entries in place of built-in ones, with the price of today. Two queries."""
    found: dict[tuple[str, str], CatalogueEntry] = {}
    for entry in CatalogueEntry.objects.filter(Q(study=study) | Q(study=None)).order_by("provider", "pk"):
        key = (entry.provider, entry.model)
        if key not in found or entry.study_id is not None:
            found[key] = entry
    prices = prices_of_today(study)
    return [Row(entry, prices.get(key), entry.study_id is not None) for key, entry in found.items()]


def prices_of_today(study: Study) -> dict[tuple[str, str], Price]:
    """By provider and model. One query."""
    rows = Price.objects.filter(Q(study=study) | Q(study=None), valid_from__lte=timezone.localdate())
    prices: dict[tuple[str, str], Price] = {}
    for price in sorted(rows, key=lambda row: (row.study_id is not None, row.valid_from)):
        prices[price.provider, price.model] = _tidied(price)
    return prices


def entry_find(*, study: Study, provider: str, model: str) -> CatalogueEntry | None:
    """The study's own entry, else the built-in one. One query."""
    rows = CatalogueEntry.objects.filter(Q(study=study) | Q(study=None), provider=provider, model=model)
    return max(rows, key=lambda row: row.study_id is not None, default=None)


def prices_of(*, study: Study, provider: str, model: str) -> list[Price]:
    """All prices of a model, the one that counts now first: own ones above built-in ones, newest first. One query."""
    rows = Price.objects.filter(Q(study=study) | Q(study=None), provider=provider, model=model)
    return [
        _tidied(price)
        for price in sorted(rows, key=lambda row: (row.study_id is not None, row.valid_from), reverse=True)
    ]


def entry_get(*, study: Study, pk: int) -> CatalogueEntry | None:
    """Built-in or the study's own. One query."""
    return CatalogueEntry.objects.filter(Q(study=study) | Q(study=None), pk=pk).first()


def model_initial(entry: CatalogueEntry) -> dict[str, Any]:
    """What a new configuration of this model begins with. A parameter that the model refuses is not asked for."""
    takes = entry.accepts is None or "temperature" in entry.accepts
    return {
        "label": entry.label,
        "provider": entry.provider,
        "model": entry.model,
        "base_url": BASE_URLS.get(entry.provider, ""),
        "temperature": 1.0 if takes else None,
    }


def entry_save(*, study: Study, actor: User | None, provider: str, model: str, **values: Any) -> CatalogueEntry:
    """The study's own entry, made or changed. Configurations keep what they were made with.

    `values`: label, size, accepts (names of ModelConfig.PARAMETERS, or None), retired_on, source, note.
    """
    accepts = values.get("accepts")
    if accepts is not None:
        values["accepts"] = [name for name in ModelConfig.PARAMETERS if name in accepts]
    try:
        with transaction.atomic():
            entry, created = CatalogueEntry.objects.update_or_create(
                study=study, provider=provider, model=model, defaults=values
            )
            audit_record(
                actor=actor,
                study=study,
                action="catalogue_entry_create" if created else "catalogue_entry_edit",
                target=entry,
                detail={"provider": provider, "model": model, "accepts": values.get("accepts")},
            )
    except IntegrityError as error:
        if "catalogueentry_unique_model" in str(error):
            raise EntryTakenError from error
        raise
    return entry


def price_add(
    *,
    study: Study,
    actor: User | None,
    provider: str,
    model: str,
    currency: str,
    input_million: Decimal,
    output_million: Decimal,
    valid_from: date,
    cached_input_million: Decimal | None = None,
    source: str = "",
) -> Price:
    """Raises PriceTakenError."""
    try:
        with transaction.atomic():
            price = Price.objects.create(
                study=study,
                provider=provider,
                model=model,
                currency=currency,
                input_million=input_million,
                cached_input_million=cached_input_million,
                output_million=output_million,
                valid_from=valid_from,
                source=source,
            )
            audit_record(
                actor=actor,
                study=study,
                action="price_add",
                target=price,
                detail={
                    "provider": provider,
                    "model": model,
                    "currency": currency,
                    "input_million": str(input_million),
                    "output_million": str(output_million),
                    "valid_from": valid_from.isoformat(),
                },
            )
    except IntegrityError as error:
        if "price_one_a_day" in str(error):
            raise PriceTakenError from error
        raise
    return price
