"""`make constraints`: renew constraints.txt to what pip resolves today, in an environment made for it alone."""

import subprocess
import sys
import tempfile
from pathlib import Path

from embedded.paths import REPO, say

HEADER = "# The tested versions. Renew with: make constraints\n"
# A wider range draws a CUDA build of several GB on some machines, so this one is raised by hand.
PINNED_BY_HAND = ("torch",)


def main() -> int:
    file = REPO / "constraints.txt"
    kept = [line for line in file.read_text().splitlines() if line.split("==")[0] in PINNED_BY_HAND]
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        pins = Path(folder) / "pins.txt"
        pins.write_text("\n".join(kept))
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--constraint", str(pins)]
        subprocess.run([*install, "--requirement", str(REPO / "requirements-dev.txt")], check=True)
        frozen = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
    lines = [line for line in frozen.splitlines() if "==" in line and line.split("==")[0] not in PINNED_BY_HAND]
    file.write_text(HEADER + "\n".join([*lines, *kept]) + "\n")
    say(f"{file.name}: {len(lines) + len(kept)} versions. Now: make test lint")
    return 0


if __name__ == "__main__":
    sys.exit(main())
