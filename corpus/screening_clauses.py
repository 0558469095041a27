"""What speaks against a sentence because of how it is built. Each check yields (code, word concerned)."""

from corpus.languages import folded, is_transitive
from corpus.sentences import (
    Found,
    Screen,
    children,
    given_lemma,
    has_subject,
    is_finite,
    is_predicate,
    is_sign,
    root_of,
    words_of,
)
from corpus.treebank import Sentence, Word

BROKEN = frozenset({"orphan", "dislocated", "reparandum", "list", "goeswith", "dep"})
MANY = 3
"""Conjuncts of one head: a list of four things can be put in any order, so its words say little about grammar."""


def predicate(sentence: Sentence, screen: Screen) -> Found:
    root = root_of(sentence)
    if not is_predicate(sentence, root):
        yield "no_predicate", root.form
    elif not has_subject(sentence, root):
        yield from _no_subject(sentence, root, screen)


def object_missing(sentence: Sentence, screen: Screen) -> Found:
    """A Russian transitive verb whose object only the context names: я оставляю на ночь."""
    root = root_of(sentence)
    if screen.language.code != "ru" or root.upos != "VERB" or root.feats.get("Voice", "Act") != "Act":
        return
    if folded(root.lemma or "") in screen.language.absolute or not is_transitive(root.form, root.lemma or ""):
        return
    family = [root, *(word for word in children(sentence, root.number) if word.deprel == "conj")]
    objects = ("obj", "ccomp", "xcomp", "csubj", "iobj", "obl:arg", "parataxis")
    if not any(child.deprel in objects for word in family for child in children(sentence, word.number)):
        yield "no_object", root.form


def _no_subject(sentence: Sentence, root: Word, screen: Screen) -> Found:
    """A predicate whose subject is in the sentence before. Impersonal ones, and Finnish first persons, are whole."""
    code = screen.language.code
    verbs = [root, *(word for word in children(sentence, root.number) if word.deprel[:3] in ("aux", "cop"))]
    finite = next((word for word in verbs if word.feats.get("VerbForm") == "Fin"), None)
    if code == "de":
        yield "no_subject", root.form
    if code != "ru" or finite is None or folded(root.lemma or "") in screen.language.predicatives:
        return
    feats = finite.feats
    if feats.get("Person") == "1":
        yield "no_subject", root.form
    elif feats.get("Number") == "Plur":
        # Indefinite subjects (его применяют) are whole; who went or was born is known from before.
        if not any(word.deprel in ("obj", "ccomp", "csubj") for word in children(sentence, root.number)):
            yield "no_subject", root.form
    elif feats.get("Gender") in ("Masc", "Fem") or feats.get("Person") == "3":
        if feats.get("Person") == "3" and _is_impersonal(sentence, root, screen):
            return
        yield "no_subject", root.form
    elif feats.get("Gender") == "Neut" and not _is_impersonal(sentence, root, screen):
        yield "no_subject", root.form


def _is_impersonal(sentence: Sentence, root: Word, screen: Screen) -> bool:
    if folded(root.lemma or "") in screen.language.impersonal or root.upos in ("ADV", "ADJ"):
        return True
    return any(word.deprel in ("csubj", "xcomp") for word in children(sentence, root.number)) and any(
        word.feats.get("Case") == "Dat" for word in children(sentence, root.number)
    )


def wholeness(sentence: Sentence, screen: Screen) -> Found:
    spelt = words_of(sentence)
    for word in sentence.words:
        if word.deprel.split(":")[0] in BROKEN:
            yield "elliptic", word.form
    if not spelt:
        yield "elliptic", ""
        return
    for word in sentence.words:
        if _is_loose(sentence, word):
            yield "loose", word.form
        if len([one for one in children(sentence, word.number) if one.deprel == "conj"]) >= MANY:
            yield "enumeration", word.form
        if word.deprel == "fixed":
            head = sentence.words[word.head - 1]
            for one in (head, word):
                if folded(given_lemma(one, screen.language)) != folded(one.form):
                    yield "set_phrase", f"{head.form} {word.form}"
                    break
    if spelt[-1].upos in ("ADP", "CCONJ", "SCONJ"):
        yield "elliptic", spelt[-1].form
    first, root = spelt[0], root_of(sentence)
    if screen.language.code == "de" and first.feats.get("VerbForm") == "Fin":
        yield "elliptic", first.form  # a statement that begins with its verb: something before it is left out
    if first.upos == "CCONJ" or any(word.deprel == "mark" for word in children(sentence, root.number)):
        yield "begins_dependent", first.form
    if sentence.genre in ("poetry", "verse"):
        yield "verse", ""


def _is_loose(sentence: Sentence, word: Word) -> bool:
    """A clause that nothing but a comma joins to the other."""
    if word.deprel not in ("parataxis", "conj", "ccomp") or not word.head or not is_finite(sentence, word):
        return False
    if word.deprel == "parataxis":
        return True
    if word.deprel == "conj":
        siblings = [one for one in children(sentence, word.head) if one.deprel == "conj"]
        linked = any(child.deprel == "cc" for one in siblings for child in children(sentence, one.number))
        return is_finite(sentence, sentence.words[word.head - 1]) and not linked
    inner = children(sentence, word.number)
    inner += [one for child in inner for one in children(sentence, child.number)]
    asking = ("Int", "Rel", "Int,Rel")
    return not any(one.deprel == "mark" or one.feats.get("PronType") in asking for one in [word, *inner])


def context(sentence: Sentence, screen: Screen) -> Found:
    spelt = words_of(sentence)
    if not spelt:
        return
    starts, first = screen.language.leaning_starts, spelt[0]
    if folded(first.form) in starts or folded(given_lemma(first, screen.language)) in starts:
        yield "context", first.form
    for word in spelt:
        lemma = folded(word.lemma or "")
        points = lemma in screen.language.leaning and word.upos in ("DET", "PRON", "ADV")
        if screen.language.code == "de" and lemma == "der" and word.upos == "PRON":
            points = word.feats.get("PronType") == "Dem"
        if points and not _is_completed(sentence, word):
            yield "context", word.form


def _is_completed(sentence: Sentence, word: Word) -> bool:
    """Whether what a demonstrative points to is said by a clause of the sentence itself: the one who, there where."""
    heads = {word.number, word.head} if word.deprel == "det" else {word.number}
    return any(one.head in heads and one.deprel.startswith(("acl", "advcl", "ccomp")) for one in sentence.words)


def order(sentence: Sentence, screen: Screen) -> Found:
    """Crossing dependencies, and in Russian an attribute behind its noun or a genitive before it: verse, mostly."""
    arcs = [(min(w.number, w.head), max(w.number, w.head)) for w in sentence.words if w.head and not is_sign(w)]
    for left, right in arcs:
        if any(left < other_left < right < other_right for other_left, other_right in arcs):
            yield "word_order", ""
            break
    if screen.language.code != "ru":
        return
    root = root_of(sentence)
    spelt = words_of(sentence)
    place = spelt.index(root) if root in spelt else 0
    if root.upos == "VERB" and len(spelt) > 2:
        neighbour = spelt[place - 1] if place else spelt[1]
        late = place == len(spelt) - 1 and neighbour.upos == "NOUN" and neighbour.head == root.number
        early = not place and neighbour.upos == "PRON" and neighbour.deprel == "nsubj"
        if (late and not neighbour.deprel.startswith("nsubj")) or early:
            yield "word_order", root.form
    for word in sentence.words:
        behind = 0 < word.head < word.number
        bare = not [child for child in children(sentence, word.number) if child.deprel not in ("punct",)]
        if behind and bare and word.deprel in ("amod", "det") and word.upos in ("ADJ", "DET", "VERB"):
            if sentence.words[word.head - 1].upos == "NOUN":
                yield "word_order", word.form
        elif not behind and word.deprel == "nmod" and word.feats.get("Case") == "Gen" and word.upos == "NOUN":
            yield "word_order", word.form


def grammar(sentence: Sentence, screen: Screen) -> Found:
    """Faults that the annotation itself shows: attributes in another case than their noun, clauses without a comma."""
    if screen.language.code != "ru":
        return
    for word in sentence.words:
        if not word.head:
            continue
        head = sentence.words[word.head - 1]
        cases = word.feats.get("Case"), head.feats.get("Case")
        agrees = word.upos in ("ADJ", "DET") and word.deprel in ("amod", "det") and head.upos == "NOUN"
        counted = "NumType" in word.feats or any(one.upos == "NUM" for one in children(sentence, head.number))
        if agrees and all(cases) and cases[0] != cases[1] and not counted:
            yield "agreement", f"{word.form} {head.form}"
        clause = word.deprel in ("acl:relcl", "ccomp", "advcl") and is_finite(sentence, word)
        between = sentence.words[min(word.number, word.head) : max(word.number, word.head) - 1]
        if clause and not any(one.form in (",", ":", "—", "–", "-") for one in between):
            yield "comma", word.form
