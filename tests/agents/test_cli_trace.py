"""`torchtpu-agent trace`: tables for a person, one JSON document, a Chrome trace."""

from __future__ import annotations

import json

from tools.trace import SCHEMA_VERSION


def test_the_command_prints_tables_and_json(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text("import torch\ntorch.ones(3).mul(2)\n")
    arguments = ["--device", "cpu", "--no-sandbox", "--chrome", "t.json", "--", "python", "prog.py"]
    shown = cli("trace", *arguments)
    assert shown.code == 0, shown.err
    assert "aten::mul" in shown.out
    assert "prog.py:2" in shown.out
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    answer = json.loads(cli("trace", "--json", *arguments).out)
    assert answer["schema_version"] == SCHEMA_VERSION
    assert cli("trace").code == 2
    assert cli("trace", "--chrome", "none/t.json", "--", "python", "prog.py").code == 2
