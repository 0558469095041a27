"""How each model of the results was asked, how well it kept the format, and what it cost: beside its scores."""

from dataclasses import dataclass
from typing import Any

from llmruns.accounts import Account, instrument_accounts
from llmruns.asked import ParameterUse, extra_parameters, parameters_of_instrument
from llmruns.models import ModelConfig
from reports.selectors import Results, Row


@dataclass(frozen=True, slots=True)
class ModelFacts:
    row: Row
    config: ModelConfig
    parameters: list[ParameterUse]  # empty: there is no call
    extra: list[tuple[str, Any]]
    account: Account


def model_facts(results: Results) -> list[ModelFacts]:
    """One for each row of a model, in their order. Three queries."""
    if not results.models:
        return []
    accounts, parameters = instrument_accounts(results.instrument), parameters_of_instrument(results.instrument)
    keys = {row.key: config_and_experiment(row.key) for row in results.models}
    configs = ModelConfig.objects.in_bulk({config for config, _experiment in keys.values()})
    return [
        ModelFacts(
            row=row,
            config=configs[keys[row.key][0]],
            parameters=parameters.get(keys[row.key], []),
            extra=extra_parameters(configs[keys[row.key][0]]),
            account=accounts.get(keys[row.key], Account()),
        )
        for row in results.models
    ]


def config_and_experiment(key: str) -> tuple[int, int]:
    _model, config, experiment = key.split("-")
    return int(config), int(experiment)
