import csv
import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from corpus.importing import StimulusRow, read_stimuli
from corpus.models import Instrument
from corpus.tokens import word_tokens
from tests.conftest import Cast
from tests.corpus.treebanks import CAT, bands, changed, conllu
from tests.shared_cases import SHARED

BANDS = {"easy": (4, 6), "medium": (7, 9), "hard": (10, 12)}


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    path = tmp_path / "small.conllu"
    path.write_bytes(bands() + conllu(changed(CAT, 7, form="!", lemma="!")))
    return path


def compose(*arguments: object) -> str:
    out = io.StringIO()
    call_command("compose", *map(str, arguments), stdout=out)
    return out.getvalue()


def check(rows: list[StimulusRow], *, shuffled: tuple[int, int, int] = (0, 3, 4)) -> None:
    """18 tasks as the study has them: bands, shares, words one to one, no shuffled task in its own order."""
    assert [row.complexity for row in rows] == ["easy"] * 4 + ["medium"] * 6 + ["hard"] * 8
    for row in rows:
        least, most = BANDS[row.complexity]
        assert least <= len(word_tokens(row.original)) <= most
        assert len(word_tokens(row.text)) == len(word_tokens(row.original))
        assert row.source
    assert tuple(sum(row.shuffled for row in rows if row.complexity == name) for name in BANDS) == shuffled


def test_tasks_as_csv_need_no_database(treebank: Path, tmp_path: Path) -> None:
    out, again, left_out = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "left.csv"
    common = ("--language", "ru", "--treebank-name", "Own", "--licence", "CC0", "--seed", 3)
    printed = compose(treebank, *common, "--out", out, "--left-out", left_out)
    compose(treebank, *common, "--out", again)
    assert out.read_bytes() == again.read_bytes()
    check(read_stimuli(out.read_bytes()))
    assert read_stimuli(out.read_bytes())[0].source.startswith("Own; s") and "tasks: 18" in printed
    (left,) = csv.DictReader(left_out.read_text(encoding="utf-8").splitlines())
    assert left["text"].endswith("!") and "not_statement" in left["reasons"] and "a question" in left["explanation"]


def test_the_counts_as_json(treebank: Path) -> None:
    summary = json.loads(compose(treebank, "--language", "ru", "--json", "--counts", "2,2,2", "--shuffled", "1,1,1"))
    assert summary["tasks"] == 6 and summary["candidates"] == {"easy": 15, "medium": 15, "hard": 15}
    assert summary["left_out"]["not_statement"] == 1 and summary["parameters"]["seed"] == 1


def test_several_files_and_a_table_for_a_reader(treebank: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.conllu"
    other.write_bytes(conllu(CAT))
    compose(treebank, other, "--language", "ru", "--counts", "16,0,0", "--markdown", tmp_path / "t.md")
    lines = (tmp_path / "t.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 18 and lines[0].endswith("| verdict |") and any("other s1" in line for line in lines)


@pytest.mark.django_db
def test_it_makes_an_instrument(cast: Cast, treebank: Path) -> None:
    compose(treebank, "--language", "ru", "--study", "ours", "--slug", "made", "--licence", "CC0")
    compose(treebank, "--language", "ru", "--study", "ours", "--slug", "made", "--seed", 2)
    first, second = Instrument.objects.order_by("version")
    assert (first.version, second.version, first.title, first.lower_case) == (1, 2, "small", True)
    assert first.stimuli.count() == 18 and first.refusal_below == 3
    assert first.stimuli.first().source.startswith("small; s")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--language", "ru", "--counts", "4,6"], "counts must be three"),
        (["--language", "ru", "--min-zipf", "9"], "min_zipf"),
        (["--language", "ru", "--counts", "99,6,8"], "easy: 15 of 99"),
        (["--language", "de"], "are not in Latin letters"),
        (["--language", "ru", "--study", "none", "--slug", "x"], "no study 'none'"),
        (["--language", "ru", "--study", "ours"], "needs --slug"),
        (["--language", "fi", "--study", "ours", "--slug", "x"], "needs --instruction"),
        (["--language", "ru", "--study", "ours", "--slug", "a b"], "Nothing was made"),
        (["--language", "ru", "--sensitive", "/nowhere/list"], "Cannot read /nowhere/list"),
        (["--language", "ru", "--out", "/nowhere/out.csv"], "Cannot write /nowhere/out.csv"),
    ],
)
def test_it_says_what_is_wrong_and_makes_nothing(
    cast: Cast, treebank: Path, arguments: list[str], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        compose(treebank, *arguments)
    assert not Instrument.objects.exists()


def test_a_broken_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.conllu"
    path.write_bytes(bands() + b"1\tx\n")
    with pytest.raises(CommandError, match=r"broken.conllu: line \d+: 2 columns instead of ten.*Nothing was made"):
        compose(path, "--language", "ru", "--out", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(CommandError, match=r"Cannot read .*none\.conllu"):
        compose(tmp_path / "none.conllu", "--language", "ru")


@pytest.mark.parametrize(("language", "name"), [("ru", "ru_taiga"), ("de", "de_gsd"), ("fi", "fi_tdt")])
def test_eighteen_tasks_of_a_real_treebank(language: str, name: str, tmp_path: Path) -> None:
    path = SHARED / "data" / "ud" / f"{name}-ud-dev.conllu"
    if not path.exists():
        pytest.skip("../shared/data is not beside the repository: real treebanks are not tried")
    made = []
    for number in range(2):
        out = tmp_path / f"{number}.csv"
        compose(path, "--language", language, "--seed", 1, "--out", out, "--licence", "CC BY-SA 4.0")
        made.append(out.read_bytes())
    assert made[0] == made[1]
    check(read_stimuli(made[0]))
    compose(path, "--language", language, "--seed", 1, "--shuffled", "0,0,0", "--out", out)
    in_order = {row.original: word_tokens(row.text) for row in read_stimuli(out.read_bytes())}
    for row in read_stimuli(made[0]):
        assert (word_tokens(row.text) == in_order[row.original]) is not row.shuffled
