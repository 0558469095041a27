"""What the composer knows of each language: dictionaries, frequencies, word lists. Loaded when first asked."""

import logging
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import pymorphy3
import simplemma
import wordfreq

FOLDER = Path(__file__).resolve().parent / "data"
CACHE = 60_000  # word forms remembered; a larger file costs time, not memory


@dataclass(frozen=True)
class Language:
    code: str
    lower_case: bool  # originals and answers are shown in small letters, as in the study
    min_zipf: float  # a rarer word leaves its sentence out; 3 is one in a million words
    dates: frozenset[str] = frozenset()
    quantities: frozenset[str] = frozenset()  # nouns that count
    not_numerals: frozenset[str] = frozenset()  # quantifiers that a treebank may call numerals
    speech_verbs: frozenset[str] = frozenset()
    second_person: frozenset[str] = frozenset()
    leaning_starts: frozenset[str] = frozenset()  # first words (lemma or form) that point to the sentence before
    leaning: frozenset[str] = frozenset()  # demonstratives; whole only where a clause says what they point to
    colloquial: frozenset[str] = frozenset()
    predicatives: frozenset[str] = frozenset()  # predicates that are no verbs, and have no subject
    impersonal: frozenset[str] = frozenset()  # verbs that need no subject
    absolute: frozenset[str] = frozenset()  # transitive verbs that are whole without an object
    compound_parts: int = 0  # letters that a part of a compound has at the least; 0: no compounds
    links: tuple[str, ...] = ("",)  # what may stand between the parts


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LANGUAGES = {
    "ru": Language(
        code="ru",
        lower_case=True,
        min_zipf=2.6,
        dates=_words(
            "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь понедельник вторник среда"
            " четверг пятница суббота воскресенье век столетие тысячелетие десятилетие"
        )
        - {"среда"},
        quantities=_words("тысяча миллион миллиард триллион сотня десяток дюжина процент полтора"),
        not_numerals=_words("оба много мало немного немало несколько сколько столько"),
        speech_verbs=_words(
            "сказать говорить ответить отвечать спросить спрашивать воскликнуть восклицать крикнуть прошептать шептать"
            " произнести заметить добавить подумать думать объяснить пояснить заявить сообщить отметить рассказать"
            " написать писать закричать проговорить пробормотать буркнуть промолвить"
        ),
        second_person=_words("ты вы твой ваш тебя вами"),
        leaning_starts=_words(
            "также тоже зато итак поэтому причём причем однако например следовательно значит вот так там тут здесь"
            " тогда потом затем такой это то тот этот да нет же ведь ну как просто только даже ещё еще оттуда"
            " туда отсюда"
            " впрочем кстати вообще конечно наконец иначе отчего оттого потому вначале напротив наоборот тем таков"
            " последний другой остальной именно особенно данный"
        ),
        leaning=_words("это то тот этот такой таковой оно там туда оттуда тогда здесь тут сюда затем"),
        colloquial=_words(
            "ну ага угу типа короче прикольный прикольно классный круто супер кайф реально ваще чё че щас норм"
            " блогер пост лайк инста инстаграм вк хештег подписчик подписываться подписаться сторис"
            " лайкать репост вебинар промокод контент блог аккаунт директ"
            " быстренько ляпнуть балдеть фотка видос мамочка девчонка девчата друзьяшки"
        ),
        predicatives=_words("нет можно нужно надо нельзя необходимо возможно невозможно следует жаль пора"),
        impersonal=_words(
            "хотеться казаться следовать стоить приходиться прийтись удаться удаваться нравиться понравиться пахнуть"
            " хватать хватить оказаться случиться остаться оставаться стать становиться нездоровиться темнеть светать"
            " моросить доводиться довестись требоваться потребоваться"
        ),
        absolute=_words(
            "читать писать рисовать петь есть пить понимать понять слушать видеть знать ждать учить готовить играть"
            " помнить начинать начать кончить закончить продолжать забыть узнать смотреть думать решать решить молчать"
            " убирать"
        ),
    ),
    "de": Language(
        code="de",
        lower_case=False,
        min_zipf=2.5,
        dates=_words(
            "januar jänner februar märz april mai juni juli august september oktober november dezember montag dienstag"
            " mittwoch donnerstag freitag samstag sonnabend sonntag jahrhundert jahrzehnt jahrtausend"
        ),
        quantities=_words("tausend million milliarde dutzend hundert prozent hälfte"),
        not_numerals=_words("beide ein mehr viel wenig einige"),
        speech_verbs=_words("sagen fragen antworten rufen erklären meinen erzählen schreien flüstern schreiben"),
        second_person=_words("du ihr euer dein"),
        leaning_starts=_words(
            "das dies dieser diese dieses jener dort hier dabei damit dann so auch deshalb daher dadurch also"
            " allerdings jedoch zudem außerdem trotzdem dazu davon daran darauf darin dafür dagegen danach"
            " daraufhin deswegen"
            " ebenso ferner beispielsweise da denn nun ja nein dennoch hierbei hierzu weiterhin sonst schließlich"
            " einzig letzterer ersterer derzeit seither seitdem"
        ),
        leaning=_words("das dies dieser diese dieses jener letzterer ersterer solch solcher derselbe dort hier"),
        colloquial=_words("halt mal naja toll super cool geil lecker echt"),
        compound_parts=4,
        links=("", "s", "es", "n", "en", "er", "e"),
    ),
    "fi": Language(
        code="fi",
        lower_case=True,
        min_zipf=2.3,
        dates=_words(
            "tammikuu helmikuu maaliskuu huhtikuu toukokuu kesäkuu heinäkuu elokuu syyskuu lokakuu marraskuu joulukuu"
            " maanantai tiistai keskiviikko torstai perjantai lauantai sunnuntai vuosisata vuosikymmen vuosituhat"
        ),
        quantities=_words("tuhat miljoona miljardi kymmen tusina prosentti sata kymmenen"),
        not_numerals=_words("moni usea muutama molemmat pari"),
        speech_verbs=_words("sanoa kysyä vastata huutaa kertoa kuiskata todeta"),
        second_person=_words("sinä te sä"),
        leaning_starts=_words(
            "se tämä nämä ne tuo siellä täällä tuolla silloin niin myös kuitenkin siis lisäksi näin siksi sitten siten"
            " siitä tästä joten toisaalta esimerkiksi kyllä ei no joo tällöin samoin eli vaan sen tänne sinne sellainen"
            " tällainen muuten tosin sitä tätä siinä tässä"
        ),
        leaning=_words("se tämä tuo sellainen tällainen siellä täällä tuolla silloin"),
        colloquial=_words("mä sä toi joo ihan kiva mukava tosi nyt niinku kans"),
        compound_parts=4,
        links=("", "n", "s"),
    ),
}


def language_of(code: str) -> Language:
    """The language's own rules, or bare ones: UD's annotation only, and whatever frequencies there are."""
    return LANGUAGES.get(code) or Language(code=code, lower_case=False, min_zipf=3.0)


def language_gaps(code: str) -> list[str]:
    """What is not checked in this language, by code of the reason; empty for ru, de, fi."""
    if code in LANGUAGES:
        return []
    gaps = ["lemma_doubtful", "unknown_word", "archaic", "sensitive", "obscene", "colloquial", "date", "no_subject"]
    return gaps if code in _with_frequencies() else ["rare", *gaps]


def folded(word: str) -> str:
    """Small letters, ё as е: how words are compared."""
    return word.lower().replace("ё", "е")


@cache
def _with_frequencies() -> frozenset[str]:
    return frozenset(wordfreq.available_languages())


@lru_cache(CACHE)
def zipf(word: str, code: str) -> float | None:
    """The Zipf frequency (log10 of occurrences in a billion words); None for a language without a list."""
    if code not in _with_frequencies():  # it would take the nearest language instead
        return None
    return wordfreq.zipf_frequency(word, code)


@lru_cache(CACHE)
def commonness(word: str, code: str) -> float | None:
    """The Zipf frequency of a lemma; None for a language without a list.

    Russian: of all its forms together (by pymorphy3's paradigm), since an infinitive is rarer than its verb. German
    and Finnish: of a compound that is rare as a whole, that of its rarest part, if it has parts.
    """
    language = language_of(code)
    whole = _lexeme_zipf(word) if code == "ru" else zipf(word, code)
    if whole is None or not language.compound_parts or whole >= language.min_zipf:
        return whole
    return max(whole, _parts_zipf(word, language))


def _lexeme_zipf(lemma: str) -> float:
    found = _russian().parse(lemma)
    likeliest = next((parse for parse in found if folded(parse.normal_form) == folded(lemma)), found[0])
    forms = {form.word for form in likeliest.lexeme} | {lemma}
    total = sum(wordfreq.word_frequency(form, "ru") for form in forms)
    return math.log10(total * 1e9) if total else 0.0


def _parts_zipf(word: str, language: Language) -> float:
    """The best cut in two known words, as its rarer part; 0 where there is none."""
    best = 0.0
    shortest = language.compound_parts
    for cut in range(shortest, len(word) - shortest + 1):
        tail = zipf(word[cut:], language.code) or 0.0
        for link in language.links:
            head = word[:cut].removesuffix(link) if link else word[:cut]
            if (link and not word[:cut].endswith(link)) or len(head) < shortest:
                continue
            best = max(best, min(tail, zipf(head, language.code) or 0.0))
    return best


class WordList:
    """Lemmas and beginnings (`polit*`) from the lines of a text; what follows # is not read."""

    def __init__(self, lines: Iterable[str]) -> None:
        entries = [folded(line.split("#")[0].strip()) for line in lines]
        self.words = frozenset(entry for entry in entries if entry and not entry.endswith("*"))
        stems = sorted({re.escape(entry[:-1]) for entry in entries if len(entry) > 1 and entry.endswith("*")})
        self.stems = re.compile("|".join(stems)) if stems else None

    def has(self, *words: str) -> bool:
        return any(
            word in self.words or (self.stems is not None and self.stems.match(word) is not None)
            for word in map(folded, words)
        )


def word_list_text(kind: str, code: str) -> str:
    """The delivered list (`sensitive`, `obscene`, `archaic`) of a language; empty where there is none."""
    path = FOLDER / f"{kind}.{code}.txt"
    return path.read_text(encoding="utf-8") if code in LANGUAGES and path.exists() else ""


@cache
def word_list(kind: str, code: str) -> WordList:
    return WordList(word_list_text(kind, code).splitlines())


@dataclass(frozen=True, slots=True)
class Parse:
    lemma: str
    pos: str
    marks: frozenset[str]
    score: float


@cache
def _russian() -> pymorphy3.MorphAnalyzer:
    logging.getLogger("pymorphy3").setLevel(logging.WARNING)  # it tells each time where its files lie
    return pymorphy3.MorphAnalyzer(lang="ru")


@lru_cache(CACHE)
def parses(form: str) -> tuple[Parse, ...]:
    """A Russian form's morphological readings by pymorphy3, the likeliest first."""
    return tuple(
        Parse(folded(parse.normal_form), str(parse.tag.POS or ""), frozenset(parse.tag.grammemes), parse.score)
        for parse in _russian().parse(form.lower())
    )


@lru_cache(CACHE)
def is_known(form: str, code: str) -> bool:
    """Whether the dictionary has the form. In German and Finnish also if it is a compound of common words."""
    if code == "ru":
        return all(_russian().word_is_known(part) for part in form.lower().split("-") if part)
    if code not in LANGUAGES:
        return True
    return (
        simplemma.is_known(form, lang=code)
        or simplemma.is_known(form.lower(), lang=code)
        or (commonness(form.lower(), code) or 0.0) >= 2.0
    )


_RU_POS = {
    "VERB": {"VERB", "INFN", "PRTF", "PRTS", "GRND"},
    "NOUN": {"NOUN"},
    "ADJ": {"ADJF", "ADJS", "PRTF", "PRTS", "COMP"},
}
_NOMINATIVE = frozenset({"nomn", "ADJS"})
OPEN_CLASSES = frozenset({"NOUN", "VERB", "ADJ", "ADV"})


def other_lemma(form: str, lemma: str, upos: str, code: str) -> str | None:
    """The dictionary's lemma where the treebank's is plainly another one; None where they can agree.

    Closed classes are left to the treebank, whose conventions differ (его as он or его, besser as gut or besser).
    """
    if upos not in OPEN_CLASSES:
        return None
    if code == "ru":
        found = parses(form)
        if upos == "ADV":
            return None if any(folded(lemma) in (p.lemma, folded(form)) for p in found) else found[0].lemma
        of_class = [parse for parse in found if parse.pos in _RU_POS[upos]] or list(found)
        right = {parse.lemma for parse in of_class}
        # Treebanks write создаваться as создавать, and count деньги, лучший, должен as lemmas of their own.
        if folded(lemma) in right or folded(lemma) + "ся" in right:
            return None
        if upos != "VERB" and any(p.lemma in right and p.marks & _NOMINATIVE for p in parses(lemma)):
            return None
        return of_class[0].lemma
    if code not in LANGUAGES or not simplemma.is_known(form, lang=code) or upos == "ADV":
        return None
    known = simplemma.lemmatize(form, lang=code)
    if code == "de" and upos == "NOUN" and known == form and len(lemma) < len(form):
        return known if not form.endswith(("n", "s", "er")) else None  # Akte is no form of Akt
    if folded(known) == folded(lemma) or simplemma.is_known(lemma, lang=code):
        # The treebank's lemma is a word, too. Only one that was left as it stood, in a verb, is plainly wrong.
        left = upos == "VERB" and folded(form) == folded(lemma) and not folded(lemma).endswith(_INFINITIVES[code])
        return known if left else None
    alike = len(_common_start(folded(known), folded(lemma)))
    return known if alike < min(len(known), len(lemma)) - 3 else None


_INFINITIVES = {"de": ("n",), "fi": ("a", "ä")}


def _common_start(one: str, other: str) -> str:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return one[:length]


def marked(form: str, lemma: str, marks: frozenset[str], code: str) -> bool:
    """Whether every reading of a Russian form with this lemma bears one of pymorphy3's marks (Arch, Infr …)."""
    if code != "ru":
        return False
    readings = [parse for parse in parses(form) if parse.lemma == folded(lemma)]
    return bool(readings) and all(parse.marks & marks for parse in readings)


ARCHAIC = frozenset({"Arch", "Litr"})
COLLOQUIAL = frozenset({"Infr", "Slng", "Erro", "Dist"})
NAMES = frozenset({"Name", "Surn", "Patr", "Geox", "Orgn", "Trad", "Init"})


def is_transitive(form: str, lemma: str) -> bool:
    """Whether the likeliest verb reading of a Russian form with this lemma takes an object."""
    of_lemma = [parse for parse in parses(form) if parse.lemma == folded(lemma) and parse.pos in _RU_POS["VERB"]]
    return bool(of_lemma) and "tran" in of_lemma[0].marks


def is_name(form: str, code: str) -> bool:
    """Whether a Russian form's likeliest reading is a name; other languages have UPOS and capitals only."""
    return code == "ru" and bool(parses(form)[0].marks & NAMES)
