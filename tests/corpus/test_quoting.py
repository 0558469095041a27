from corpus.quoting import MARK, Quoted

TEXT = "Кошка сидит на столе."


def test_ids_are_taken_out_whole_and_only_where_they_are_long() -> None:
    quoted = Quoted([], ["5f2c9d00aa", "w1", "PERSON7", " "])
    assert quoted.out_of("worker 5F2C9D00AA, person7; w1") == f"worker {MARK}, {MARK}; w1"
    assert quoted.out_of("x5f2c9d00aa 5f2c9d00aab PERSON77") == "x5f2c9d00aa 5f2c9d00aab PERSON77"


def test_a_text_is_taken_out_whatever_case_and_spaces() -> None:
    quoted = Quoted([TEXT, "кошка сидит на столе"])
    assert quoted.out_of("«КОШКА  сидит\nна столе.» — так нельзя") == f"«{MARK}» — так нельзя"


def test_the_longest_goes_first() -> None:
    assert Quoted(["кошка сидит на", "кошка сидит на столе"]).out_of("кошка сидит на столе") == MARK


def test_what_anybody_says_is_no_quotation() -> None:
    quoted = Quoted(["не знаю", "", "   ", "…"])
    assert quoted.out_of("ответ «не знаю» не считать …") == "ответ «не знаю» не считать …"


def test_signs_of_a_pattern_are_letters_here() -> None:
    assert Quoted(["a.* (b) [c d"]).out_of("xx a.* (b) [c d xx") == f"xx {MARK} xx"
    assert Quoted(["a.* b c"]).out_of("axx b c") == "axx b c"


def test_documents_keep_their_form() -> None:
    document = {"reason": TEXT, "n": 3, "rows": [TEXT, None, {"кошка сидит на столе.": True}]}
    taken = Quoted([TEXT]).out_of_json(document)
    assert taken == {"reason": MARK, "n": 3, "rows": [MARK, None, {"кошка сидит на столе.": True}]}
