"""What can be wrong with a file as a whole: then nothing of it is stored, and the person reads where and why."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A code of `surveys.import_words.FAULTS`, the line of the file (1 is the first) and the detail."""

    code: str
    line: int | None = None
    detail: str = ""


class FaultError(Exception):
    def __init__(self, code: str, line: int | None = None, detail: str = "") -> None:
        super().__init__(code, line, detail)
        self.fault = Fault(code, line, detail)
