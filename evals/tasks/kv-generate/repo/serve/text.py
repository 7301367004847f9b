SYMBOLS = " abcdefghijklmnopqrstuvwxyz."
TO_ID = {c: i for i, c in enumerate(SYMBOLS)}


def encode(s: str) -> list[int]:
    return [TO_ID[c] for c in s.lower() if c in TO_ID]


def decode(ids) -> str:
    return "".join(SYMBOLS[i] for i in ids)
