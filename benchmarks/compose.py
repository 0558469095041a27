"""Seconds and peak memory of composing from 25, 50 and 100 MB of treebank, by a process of its own each time.

The file is made by repeating a treebank: COMPOSE_TREEBANK, or the Russian one beside the repository; without either one
made-up sentence. Each process starts with cold caches, but repeated words find them warm, so that a real file of this
size, with more words, takes longer; the first megabytes, read once, say how much.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data" / "ud" / "ru_taiga-ud-dev.conllu"
SIZES = (25, 50, 100)  # megabytes
MADE_UP = (
    "# text = Кошка сидит на столе.\n1\tКошка\tкошка\tNOUN\t_\tCase=Nom\t2\tnsubj\t_\t_\n"
    "2\tсидит\tсидеть\tVERB\t_\tVerbForm=Fin|Person=3\t0\troot\t_\t_\n3\tна\tна\tADP\t_\t_\t4\tcase\t_\t_\n"
    "4\tстоле\tстол\tNOUN\t_\tCase=Loc\t2\tobl\t_\tSpaceAfter=No\n5\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
)
CHILD = """
import resource, sys, time
from corpus.composer import Parameters, Scan
from corpus.treebank import sentences
start = time.perf_counter()
scan = Scan(Parameters(language=sys.argv[2]))
with open(sys.argv[1], "rb") as stream:
    for sentence in sentences(stream, sys.argv[2]):
        scan.look(sentence)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(time.perf_counter() - start, time.process_time(), peak, scan.sentences, sum(map(len, scan.candidates())))
"""


def measure() -> str:
    path = Path(os.environ.get("COMPOSE_TREEBANK") or SHARED)
    language = os.environ.get("COMPOSE_LANGUAGE", "ru")
    data = path.read_bytes() if path.exists() else MADE_UP.encode()
    parts = [f"{path.name if path.exists() else 'a made-up sentence'}, repeated"]
    with tempfile.TemporaryDirectory() as folder:
        for size in (len(data) / 1_000_000, *SIZES):  # the treebank once, then repeated
            file = Path(folder) / "large.conllu"
            with file.open("wb") as stream:
                for _ in range(round(size * 1_000_000 / len(data))):
                    stream.write(data)
            megabytes = file.stat().st_size / 1_000_000
            out = subprocess.run(
                [sys.executable, "-c", CHILD, str(file), language], capture_output=True, text=True, check=True, cwd=ROOT
            ).stdout.splitlines()[-1]
            seconds, cpu, peak, count, candidates = map(float, out.split())
            parts.append(
                f"{megabytes:.1f} MB: {seconds:.1f} s ({seconds / megabytes * 100:.0f} s per 100 MB), CPU {cpu:.1f} s, "
                f"peak {peak:.0f} MB, {count:.0f} sentences, {candidates:.0f} candidates"
            )
    return "; ".join(parts)
