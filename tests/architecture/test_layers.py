import io

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import models

LAYERS = ["studies", "corpus", "scoring", {"surveys", "llmruns", "annotation"}, "reports"]
OURS = {"studies", "corpus", "scoring", "surveys", "llmruns", "annotation", "reports"}


def height(app: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if app == layer or (app in layer and isinstance(layer, set)))


def foreign_keys() -> list[tuple[type[models.Model], models.ForeignKey]]:
    return [
        (model, field)
        for model in apps.get_models(include_auto_created=False)
        if model._meta.app_label in OURS
        for field in model._meta.get_fields()
        if isinstance(field, models.ForeignKey)
    ]


def test_foreign_keys_point_down_the_layers() -> None:
    assert foreign_keys()
    for model, field in foreign_keys():
        here, there = model._meta.app_label, field.related_model._meta.app_label
        assert here == there or (there in OURS and height(there) < height(here)), f"{model.__name__}.{field.name}"


def test_foreign_keys_protect() -> None:
    for model, field in foreign_keys():
        assert field.remote_field.on_delete is models.PROTECT, f"{model.__name__}.{field.name}"


def test_constraints_are_named_for_their_table_and_rule() -> None:
    for model in apps.get_models():
        if model._meta.app_label in OURS:
            for constraint in model._meta.constraints:
                assert constraint.name.split("_")[0] in model.__name__.lower(), constraint.name


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    out = io.StringIO()
    try:
        call_command("makemigrations", check=True, dry_run=True, stdout=out)
    except SystemExit:
        pytest.fail(out.getvalue())
