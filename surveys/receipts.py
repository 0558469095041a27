"""The receipt code: what lets a participant withdraw later, without an account and without their name. Pure.

28 characters carry 140 bits. Guessing is hopeless (at a million tries per second the age of the universe is not enough
for one hit among a million participants), so nobody counts wrong tries, and no address need be stored to do it.
"""

import hashlib

from django.utils.crypto import salted_hmac

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O, U."""
GROUPS, PER_GROUP = 7, 4
LENGTH = GROUPS * PER_GROUP

# What people read or type instead: letters for digits, and Cyrillic letters that look the same.
_ALIKE = str.maketrans("OILUАВЕЗКМНОРСТУХ", "011VABE3KMH0PCTYX")


def receipt_code(*, secret: str) -> str:
    """The code that belongs to a participant's secret address, in groups: `7KQ2-…`.

    Derived (HMAC with SECRET_KEY), so that the last page shows the same code each time while the database holds no more
    than its digest. Who has the address has the code; the code does not lead back to the address.
    """
    number = int.from_bytes(salted_hmac("surveys.receipt", secret, algorithm="sha256").digest())
    letters = [ALPHABET[number >> (5 * place) & 31] for place in range(LENGTH)]
    return "-".join("".join(letters[start : start + PER_GROUP]) for start in range(0, LENGTH, PER_GROUP))


def receipt_read(typed: str) -> str:
    """The code as typed by a person, without what separates and with look-alikes put right; empty: it can be none."""
    letters = "".join(letter for letter in typed.upper() if letter.isalnum()).translate(_ALIKE)
    return letters if len(letters) == LENGTH and set(letters) <= set(ALPHABET) else ""


def receipt_digest(code: str) -> str:
    """SHA-256, hex, of the code however it is written; empty for what can be no code."""
    letters = receipt_read(code)
    return hashlib.sha256(letters.encode()).hexdigest() if letters else ""
