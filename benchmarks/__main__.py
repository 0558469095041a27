"""`make bench ARGS="participants"`: one benchmark, or all of them. docs/benchmarks.md says how to read the figures."""

import importlib
import sys

NAMES = [
    "participants",
    "raters",
    "runs",
    "run_pages",
    "agreement",
    "agreement_page",
    "opening",
    "compose",
    "scoring",
    "results",
]
TOOLS = ["pictures", "paper_figures"]  # no measurement; only by name


def main() -> None:
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")] or NAMES
    for name in chosen:
        if name not in NAMES + TOOLS:
            sys.exit(f"There is no benchmark {name!r}; there are: {', '.join(NAMES + TOOLS)}.")
    for name in chosen:
        print(f"{name}: {importlib.import_module(f'benchmarks.{name}').measure()}", flush=True)


if __name__ == "__main__":
    main()
