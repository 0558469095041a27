"""What can be wrong with a file as a whole: then nothing of it is stored, and the person reads where and why."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A code that `corpus.table_words` or the importer has words for, the line of the file from 1, the detail."""

    code: str
    line: int | None = None
    detail: str = ""


class FaultError(Exception):
    def __init__(self, code: str, line: int | None = None, detail: str = "") -> None:
        super().__init__(code, line, detail)
        self.fault = Fault(code, line, detail)
