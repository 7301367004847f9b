"""What a scan passes over holds no finding: words before parsing, and definitions left out of long files."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tools.code.module import Interest, Module
from tools.code.sieve import Reader, Sieve, word
from tools.code.source import SourceFile
from tools.code.strings import code_of
from tools.engine import examine, usable
from tools.project import TextProject
from tools.rules import all_rules
from tools.rules.base import Match, PythonRule, Rule, Valid

RULES = [rule for rule in all_rules() if isinstance(rule, PythonRule)]
WORDS = sorted({trigger.strip("*") for rule in RULES for trigger in rule.TRIGGERS})


def _cases() -> list[str]:
    cases = [case if isinstance(case, Valid) else Valid(case) for rule in RULES for case in rule.VALID]
    texts = [
        case.text for case in (*cases, *(case for rule in RULES for case in rule.INVALID)) if case.path == "train.py"
    ]
    return sorted({text.rstrip("\n") + "\n" for text in texts if "__future__" not in text})


_QUIET = [
    "# see {word} there\n",
    'TEXT = """\ndef {word}:\n    {word}\n"""\n',
    "VALUE = [\n    1,\n    2,\n]\n",
    'def quiet(a, b=1):\n    """Says {word}.\n\n    {word}\n    """\n    return a + b\n',
    "@decorated(1)\nclass Quiet(Base):\n    a = 1\n\n    def m(self):\n        import torch\n        return 1\n",
    'async def calm(dev, x):\n    # {word}\n    for i in x:\n        y = "a # {word}"\n',
    "def importer():\n    from torch import (\n        nn,\n        optim as o,\n    )\n    return nn\n",
    "if __name__ == '__main__':\n    main()\n",
]
_HOLDERS = [
    ("def run(device):\n", "    "),
    ("def run(model, loader):\n", "\t"),
    ("class Holder(torch.nn.Module):\n    def method(self, x):\n", "        "),
    ("class Holder(Base):\n", "  "),
    ("if condition:\n", "    "),
]


def _held(pair: tuple[tuple[str, str], str]) -> str:
    (head, margin), body = pair
    return head + textwrap.indent(body, margin)


quiet = st.builds(lambda text, word: text.format(word=word), st.sampled_from(_QUIET), st.sampled_from(WORDS))
case = st.sampled_from(_cases())
nested = st.tuples(st.sampled_from(_HOLDERS), st.tuples(case | quiet, case).map("".join)).map(_held)
programs = st.lists(case | quiet | nested, min_size=1, max_size=5).map("".join)


def _told(pairs: list[tuple[Rule, Match]]) -> set[tuple[str, Match]]:
    return {(rule.ID, match) for rule, match in pairs}


def _plainly(path: str, data: bytes, project: TextProject) -> set[tuple[str, Match]]:
    """Every rule whose words and pattern are in the text, over the whole of it, every line of interest."""
    source = SourceFile(path, data)
    module = Module(source, project, Interest(range(1, len(source.starts) + 1)))
    found = []
    for rule in RULES:
        if all(any(each.strip("*") in source.text for each in group.split("|")) for group in rule.REQUIRES):
            if any(each.strip("*") in source.text for each in rule.TRIGGERS):
                if re.search(rule.PATTERN, source.text, re.MULTILINE):
                    found += [(rule, match) for match in usable(rule.check(module), module)]
    return _told(found)


@pytest.fixture(autouse=True)
def _short_files_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.code.module._LONG", 0)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs)
def test_scan_finds_what_whole_files_hold(text: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError:
        return
    data = text.encode()
    project = TextProject(Path(), texts={"train.py": data})
    scanned = examine("train.py", data, project, RULES, whole=False)
    assert not scanned.skipped
    assert _told(scanned.matches) == _plainly("train.py", data, project)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.ID)
def test_scan_finds_what_the_cases_of_a_rule_hold(rule: PythonRule) -> None:
    for text, path in [(case.text, case.path) for case in rule.INVALID if case.path.endswith(".py")]:
        data = (text.rstrip("\n") + "\n\n\ndef quiet(a):\n    return a\n").encode()
        project = TextProject(Path(), texts={path: data})
        short = examine(path, data, project, [rule], whole=False)
        assert _told(short.matches) == _told(examine(path, data, project, [rule]).matches) != set()


@pytest.mark.parametrize(
    ("written", "text", "places"),
    [
        ("optim", "optimizer optim _optim", [10]),
        ("Tensor(", "FloatTensor( Tensor(x)", [13]),
        ("*Tensor(", "FloatTensor( Tensor(x)", [5, 13]),
        (".cuda(", "x.cuda() y.cudart()", [1]),
        ('"tpu', '"tpu:0" "tpus"', [0]),
        ("cuda", "use_cuda cuda", [4, 9]),
    ],
)
def test_words_are_whole_unless_starred(written: str, text: str, places: list[int]) -> None:
    found, place = [], word(written).find(text, 0)
    while place >= 0:
        found.append(place)
        place = word(written).find(text, place + 1)
    assert found == places


def test_words_in_comments_and_long_strings_do_not_count() -> None:
    text = '"""Says\n.half(\n"""\nx = "#"  # .half(\ny = """\n"""; x.half()\nz = \'\'\'"""\n\'\'\'; x.half()  # "\n'
    reader = Reader(SourceFile("a.py", text.encode()))
    rule = next(rule for rule in RULES if rule.ID == "TPU307")
    assert reader.interest([rule]).lines == [6, 8]


def test_one_of_the_alternatives_that_a_rule_requires_is_enough() -> None:
    class Either(PythonRule):
        """A rule for tests."""

        ID, NAME, FAMILY, MESSAGE, TRIGGERS = "TPU000", "either", "A", "either", ("loud",)
        WHOLE_WORDS, REQUIRES = True, ("torch", "left(|.right")

        def check(self, module: Module) -> Iterator[Match]:
            yield from ()

    sieve = Sieve([Either()])
    for end, awake in (("left(1)", True), ("x.right", True), ("left", False), ("aleft(1)", False), ("", False)):
        text = f"torch = loud\n{end}\n"
        assert bool(sieve.look(text.encode()).rules) == awake or end == "aleft(1)"
        assert bool(Reader(SourceFile("a.py", text.encode())).awake([Either()])) == awake


@pytest.mark.filterwarnings("ignore:invalid escape")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(['"""', "'''", '"', "'", "#", "\\", "\n", "a", " "]), max_size=30).map("".join))
@example('"\\\n"""#')
def test_code_is_what_the_tokenizer_leaves(text: str) -> None:
    try:
        ast.parse(text)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return
    source = SourceFile("a.py", text.encode())
    left = list(text)
    for kind, written, (line, column), _, _ in tokens:
        if kind == tokenize.COMMENT or (kind == tokenize.STRING and "\n" in written and written.endswith(QUOTES)):
            start = source.starts[line - 1] + column
            inside = 0 if kind == tokenize.COMMENT else 1
            left[start + inside : start + len(written) - inside] = " " * (len(written) - 2 * inside)
    assert code_of(text) == "".join(left)


QUOTES = ('"""', "'''")
