"""Torch and its kin are known in one place, and come only when they are asked for."""

import ast
import subprocess
import sys
from pathlib import Path

from django.apps import apps

from embedded.check import HARMLESS
from tests.conftest import ROOT

HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "sklearn"}
HERE = ROOT / "scoring" / "classifiers"


def imported(path: Path) -> set[str]:
    """Top names of the modules that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_only_the_classifiers_import_torch() -> None:
    ours = [Path(app.path) for app in apps.get_app_configs() if Path(app.path).parent == ROOT]
    files = [path for folder in [ROOT / "config", *ours] for path in folder.rglob("*.py")]
    heavy = {path for path in files if imported(path) & HEAVY}
    assert heavy and all(path.is_relative_to(HERE) for path in heavy), heavy


def test_nothing_imports_those_modules_but_one_another() -> None:
    """They are loaded by name in `recipes` and `bases`, when somebody trains or applies."""
    lazy = {path.stem for path in HERE.glob("*.py") if imported(path) & HEAVY}
    while True:
        more = {
            path.stem
            for path in HERE.glob("*.py")
            if any(f"scoring.classifiers.{name} import" in path.read_text("utf-8") for name in lazy)
        } | lazy
        if more == lazy:
            break
        lazy = more
    assert {"transformer", "finetuning", "weights", "hub", "baseline"} <= lazy
    assert not lazy & {"recipes", "bases", "training", "applying", "evaluating", "services", "files", "data"}


def test_the_web_server_and_an_idle_worker_load_none_of_it() -> None:
    code = (
        "import sys, config.wsgi, config.urls, config.celery, scoring.tasks, django.urls;"
        "django.urls.get_resolver().url_patterns;"
        "print(sorted({'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=HARMLESS | {"PATH": "/usr/bin", "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
    )
    assert found.stdout.strip() == "[]", found.stderr[-2000:]
