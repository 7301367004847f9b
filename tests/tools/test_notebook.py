"""Notebooks: what rules see of them, and that untouched JSON survives byte for byte."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.code.notebook import Notebook
from tools.code.source import Unreadable, parse
from tools.engine import examine, fix
from tools.project import TextProject
from tools.rules import selected


def notebook(*cells: object, **top: object) -> dict[str, object]:
    code = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    return {"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **top}


def opened(*cells: object, **top: object) -> Notebook:
    return Notebook("a.ipynb", json.dumps(notebook(*cells, **top)).encode())


def fixed(data: bytes) -> bytes:
    rules = selected(["TPU104"])
    return fix("a.ipynb", data, TextProject(Path(), texts={"a.ipynb": data}), rules).data


sources = st.text(st.characters(codec="utf-8", exclude_characters="\x1e"), max_size=30)


@given(
    st.lists(st.one_of(sources, sources.map(lambda s: s.splitlines(keepends=True))), max_size=4),
    st.sampled_from([None, 1, 2, "\t"]),
    st.booleans(),
    st.sampled_from(["", "\n", "\r\n"]),
)
def test_unchanged_text_gives_unchanged_bytes(cells: list[object], indent: int | None, plain: bool, end: str) -> None:
    data = (json.dumps(notebook(*cells), indent=indent, ensure_ascii=plain) + end).encode()
    book = Notebook("a.ipynb", data)
    assert book.with_text(book.editable) == data
    assert len(book.text) == len(book.editable)


@given(st.lists(sources, min_size=1, max_size=4), st.data(), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_only_the_edited_cell_changes(cells: list[str], data: st.DataObject, indent: int | None, lists: bool) -> None:
    written = [cell.splitlines(keepends=True) if lists else cell for cell in cells]
    document = notebook(*written)
    book = Notebook("a.ipynb", json.dumps(document, indent=indent).encode())
    index = data.draw(st.integers(0, len(cells) - 1))
    new = [*cells]
    new[index] = cells[index] + "\nadded = 'é'\n"
    result = json.loads(book.with_text("\n#\x1e\n".join(new)))
    assert ["".join(cell["source"]) for cell in result["cells"]] == new
    for cell in (*result["cells"], *document["cells"]):  # type: ignore[misc]
        del cell["source"]
    assert result == document


ODD = r"""{
  "metadata": {"kernelspec": {"language": "python"}},
  "cells": [
    {"source": ["caf\u00e9 = '\/'\n",   "x = net.cuda()\n",
      "y = 1"], "cell_type": "code", "outputs": [{"data": {"source": "net.cuda()"}}]},
    {"cell_type": "markdown", "source": "use `.cuda()`"},
    {"source": "z = 2", "cell_type": "code"}
  ],
  "nbformat": 4
}"""


def test_lines_that_stay_keep_their_own_spelling() -> None:
    data = ("\ufeff" + ODD).encode()
    result = fixed(data).decode()
    start, end = ODD.index('["caf'), ODD.index(', "cell_type": "code", "outputs"')
    assert result.startswith("\ufeff" + ODD[: start + 1]) and result.endswith(ODD[end:])
    changed = result[1 + start : len(result) - len(ODD[end:])]
    assert r'"caf\u00e9 = ' in changed and r"'\/'" in changed
    assert '"x = net.to(DEVICE_TYPE)\\n"' in changed and changed.endswith('"y = 1"]')


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\nx = 1",
        "!pip install a \\\n  b \\\n  c\nx = 1",
        "if colab:\n    !pip install a\nelse:\n    %cd b\nx = 1",
        "files = !ls *.py\nx = 1",
        "t = %timeit -o f()\nx = 1",
        "torch.cuda?\n?torch\nlen??\nx = 1",
        "%%time\nx = 1",
        "\n\n%%capture out\nx = 1",
        "x = ('%d'\n     % 3)",
        "x = 7 \\\n  % 3",
    ],
)
def test_python_beside_magics_is_seen(cell: str) -> None:
    book = opened(cell)
    tree = parse(book)
    assert any(isinstance(n, ast.Name) and n.id == "x" for n in ast.walk(tree))
    assert len(book.text) == len(cell)


@pytest.mark.parametrize("cell", ["%%bash\necho \"cuda'\nx = 1", "%%html\n<b>it's</b>", "%%writefile a.py\nx.cuda("])
def test_cells_in_other_languages_are_left_out(cell: str) -> None:
    book = opened(cell, "x = 1")
    assert [type(n) for n in parse(book).body] == [ast.Assign]


def test_names_carry_over_from_cell_to_cell() -> None:
    data = json.dumps(notebook("import torch as t", "x = t.ones(1).cuda()")).encode()
    seen = examine("a.ipynb", data, TextProject(Path()), selected(["TPU104"]))
    assert len(seen.matches) == 1
    assert "t.accelerator.is_available()" in fixed(data).decode()


def test_fixing_again_changes_nothing() -> None:
    once = fixed(ODD.encode())
    assert fixed(once) == once


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a notebook"),
        (b"[]", "not a notebook"),
        (b'{"worksheets": []}', "not a notebook"),
        (b'{"cells": [{"cell_type": "code"}]}', "not a notebook"),
        (b'{"cells": [{"cell_type": "code", "source": "a", "source": "b"}]}', "not a notebook"),
        (b'{"cells": ' + b"[" * 100_000, "not a notebook"),
        (b"\xff", "not utf-8"),
        (json.dumps(notebook("x", metadata={"kernelspec": {"language": "R"}})).encode(), "a notebook in R"),
        (json.dumps(notebook("x\n#\x1e\ny")).encode(), "U\\+001E"),
    ],
    ids=range(9),
)
def test_what_is_no_python_notebook_is_told(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        Notebook("a.ipynb", data)


def test_lone_surrogates_are_told() -> None:
    data = json.dumps(notebook("x = '\ud800'.cuda()")).encode()
    seen = examine("a.ipynb", data, TextProject(Path()), selected(["TPU104"]))
    assert [s.reason for s in seen.skipped] and not seen.matches


def test_cells_that_are_not_parsed_are_told_with_the_reason() -> None:
    data = json.dumps(notebook("x = (.cuda()")).encode()
    seen = examine("a.ipynb", data, TextProject(Path()), selected(["TPU104"]))
    assert "syntax error" in seen.skipped[0].reason


def test_lines_of_the_file() -> None:
    book = Notebook("a.ipynb", ODD.encode())
    for line in ("net.cuda", "y = 1", "z = 2"):
        number = book.file_line(book.text.index(line))
        assert line in ODD.splitlines()[number - 1]
    assert book.cell(book.text.index("z = 2")) == (2, 1)
