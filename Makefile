# What to do with Luria. Needs Python 3.11 to 3.13 and nothing else; the logic is in embedded/.
#   PYTHON=…  which Python          PORT=… HOST=…  where to listen (8000, 127.0.0.1)
#   LURIA_DATA=…  where the data lie              ARGS=…  passed on to pytest, manage.py or a benchmark
#   ML=1     with what the transformer classifiers need (PyTorch; large); once installed it stays

ARGS ?=
set = $(if $(ML),ml,up)
find_python = python=$$(sh embedded/find-python) || exit 1; exec "$$python" -m embedded.install

.PHONY: help up ml demo manage test lint format bench messages openapi constraints clean
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z]*\): ## /  make \1	/p' Makefile

up: ## install, start everything, print the address; Ctrl-C stops
	@$(find_python) $(set) -- embedded up

ml: ## install what the transformer classifiers need (PyTorch: up to several GB); make up ML=1 does both
	@$(find_python) ml

demo: ## fill a separate study with simulated people, raters and models
	@$(find_python) $(set) -- embedded manage demo $(ARGS)

manage: ## any management command in the embedded environment: make manage ARGS="createsuperuser"
	@$(find_python) $(set) -- embedded manage $(ARGS)

test: ## all tests, in parallel and random order: make test ARGS="-k tokens"
	@$(find_python) dev -- embedded.check test $(ARGS)

lint: ## every static check
	@$(find_python) dev -- embedded.check lint

format: ## put code and templates into the form that lint asks for
	@$(find_python) dev -- embedded.check format

bench: ## benchmarks: make bench ARGS="participants"
	@$(find_python) dev -- benchmarks $(ARGS)

messages: ## collect and compile the translations (needs gettext)
	@$(find_python) dev -- embedded.check messages

openapi: ## write docs/openapi.yaml
	@$(find_python) dev -- embedded.check openapi

constraints: ## renew constraints.txt to the newest versions that fit together
	@$(find_python) dev -- embedded.constraints

clean: ## remove .venv and caches; the data folder stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis staticfiles test-results
	find . -path ./data -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
