"""Makes harbour.txt: sentences about a harbour, put together from parts with a fixed seed."""

import random
from pathlib import Path

WHO = "the harbour master|an old pilot|the baker's daughter|a crew of six|the lighthouse keeper|a man with a red scarf|the night watch|two fishermen|the girl from the ferry|nobody on the quay".split("|")
DOES = "counts|paints|forgets|repairs|carries|watches|sells|draws|ties up|listens to".split("|")
WHAT = "the blue boat|seven crates of lemons|a torn sail|the winter nets|the bell of the church|a map without names|the last train|three grey gulls|the tide|a letter from the north".split("|")
WHEN = "before the fog lifts|after the market closes|when the wind turns west|every second Thursday|in the long light of June|while the kettle sings|until the lamps go out|long before anybody wakes|as if there were no hurry".split("|")
SAYS = "Leave it where it is|The water is higher than last year|You cannot row against that|Somebody has been here|It will hold until spring|Ask me again tomorrow|We were younger then|There is room for one more".split("|")
LINK = "Then|Still|By noon|Later|And so|In the evening|For once|Meanwhile".split("|")


def sentence(rng: random.Random) -> str:
    kind = rng.random()
    core = f"{rng.choice(WHO)} {rng.choice(DOES)} {rng.choice(WHAT)}"
    if kind < 0.45:
        return f"{core[0].upper()}{core[1:]} {rng.choice(WHEN)}."
    if kind < 0.75:
        return f"{rng.choice(LINK)} {core}."
    who = rng.choice(WHO)
    return f'"{rng.choice(SAYS)}," says {who}, and {rng.choice(DOES)} {rng.choice(WHAT)}.'


def text(num_characters: int = 50_000, seed: int = 3) -> str:
    rng = random.Random(seed)
    paragraphs, length = [], 0
    while length < num_characters:
        paragraphs.append(" ".join(sentence(rng) for _ in range(rng.randint(3, 7))))
        length += len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("harbour.txt").write_text(text(), encoding="utf-8")
