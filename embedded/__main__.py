"""`python -m embedded up` and `python -m embedded manage COMMAND …`."""

import sys

from embedded.paths import RefusedError
from embedded.up import manage, up


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["up"]:
                return up()
            case ["manage", _, *_]:
                return manage(arguments[1:])
    except RefusedError as error:
        print(error, file=sys.stderr)
        return 1
    print("usage: python -m embedded up | manage COMMAND ...", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
