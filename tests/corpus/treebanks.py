"""Small treebanks of the project's own, written down shortly."""

import io

from corpus.treebank import Sentence, sentences

# form lemma UPOS feats head deprel; SpaceAfter follows from the punctuation.
CAT = """
Кошка кошка NOUN Case=Nom|Gender=Fem|Number=Sing 3 nsubj
тихо тихо ADV _ 3 advmod
сидит сидеть VERB Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin|Voice=Act 0 root
на на ADP _ 6 case
большом большой ADJ Case=Loc|Number=Sing 6 amod
столе стол NOUN Case=Loc|Gender=Masc|Number=Sing 3 obl
. . PUNCT _ 3 punct
"""
COMPOUND = """
Дети ребенок NOUN Case=Nom|Number=Plur 7 nsubj
, , PUNCT _ 4 punct
которые который PRON Case=Nom|Number=Plur|PronType=Rel 4 nsubj
играли играть VERB Mood=Ind|Number=Plur|Tense=Past|VerbForm=Fin|Voice=Act 1 acl:relcl
во в ADP _ 6 case
дворе двор NOUN Case=Loc|Number=Sing 4 obl
увидели увидеть VERB Mood=Ind|Number=Plur|Tense=Past|VerbForm=Fin|Voice=Act 0 root
большую большой ADJ Case=Acc|Number=Sing 9 amod
собаку собака NOUN Case=Acc|Number=Sing 7 obj
. . PUNCT _ 7 punct
"""
NOUNS = [
    "дом",
    "стол",
    "сад",
    "лес",
    "город",
    "человек",
    "магазин",
    "учитель",
    "ученик",
    "художник",
    "мастер",
    "водитель",
    "повар",
    "турист",
    "доктор",
]


def rows(text: str) -> list[list[str]]:
    return [line.split(" ") for line in text.strip().splitlines()]


def changed(text: str, number: int, **fields: str) -> str:
    """The sentence with fields of one word (from 1) changed: form, lemma, upos, feats, head, deprel."""
    names = ["form", "lemma", "upos", "feats", "head", "deprel"]
    words = rows(text)
    for name, value in fields.items():
        words[number - 1][names.index(name)] = value
    return "\n".join(" ".join(word) for word in words)


def conllu(*texts: str, comments: bool = True, genre: str = "") -> bytes:
    """Sentences in CoNLL-U."""
    blocks = []
    for place, text in enumerate(texts, start=1):
        words = rows(text)
        lines, plain = [], ""
        for number, (form, lemma, upos, feats, head, deprel) in enumerate(words, start=1):
            glued = number < len(words) and words[number][0] in ",.!?…»"
            plain += form + ("" if glued else " ")
            misc = "SpaceAfter=No" if glued else "_"
            lines.append("\t".join([str(number), form, lemma, upos, "_", feats, head, deprel, "_", misc]))
        head_lines = [f"# sent_id = s{place}", f"# text = {plain.strip()}"] if comments else []
        head_lines += [f"# genre = {genre}"] if genre else []
        blocks.append("\n".join([*head_lines, *lines]) + "\n\n")
    return "".join(blocks).encode()


def read(data: bytes, language: str = "ru") -> list[Sentence]:
    return list(sentences(io.BytesIO(data), language))


def one(text: str, language: str = "ru", genre: str = "") -> Sentence:
    return read(conllu(text, genre=genre), language)[0]


def bands() -> bytes:
    """A treebank with 15 easy candidates, 15 medium (compound) and 15 hard ones."""
    easy, medium, hard = [], [], []
    for noun in NOUNS:
        easy.append(
            f"{noun.capitalize()} {noun} NOUN Case=Nom|Number=Sing 2 nsubj\n"
            "стоит стоять VERB Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin|Voice=Act 0 root\n"
            "около около ADP _ 4 case\nреки река NOUN Case=Gen|Number=Sing 2 obl\n. . PUNCT _ 2 punct"
        )
        medium.append(
            "Мама мама NOUN Case=Nom|Number=Sing 2 nsubj\n"
            "знает знать VERB Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin|Voice=Act 0 root\n"
            ", , PUNCT _ 6 punct\nчто что SCONJ _ 6 mark\n"
            f"{noun} {noun} NOUN Case=Nom|Number=Sing 6 nsubj\n"
            "стоит стоять VERB Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin|Voice=Act 2 ccomp\n"
            "около около ADP _ 8 case\nреки река NOUN Case=Gen|Number=Sing 6 obl\n. . PUNCT _ 2 punct"
        )
        hard.append(
            "Мама мама NOUN Case=Nom|Number=Sing 3 nsubj\nхорошо хорошо ADV _ 3 advmod\n"
            "знает знать VERB Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin|Voice=Act 0 root\n"
            ", , PUNCT _ 8 punct\nчто что SCONJ _ 8 mark\n"
            f"{noun} {noun} NOUN Case=Nom|Number=Sing 8 nsubj\nтихо тихо ADV _ 8 advmod\n"
            "стоит стоять VERB Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin|Voice=Act 3 ccomp\n"
            "около около ADP _ 11 case\nширокой широкий ADJ Case=Gen|Number=Sing 11 amod\n"
            "реки река NOUN Case=Gen|Number=Sing 8 obl\n. . PUNCT _ 3 punct"
        )
    return conllu(*easy, *medium, *hard)
