"""Which commands are found in a repository, and which one is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.entries import discover, from_texts
from agents.reach import Reach
from tools.errors import UserError

TRAINS = "import torch\nloss.backward()\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def commands(root: Path, findings: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
    return [entry.command for entry in discover(root, Reach(root), set(findings))]


def test_a_fenced_command_of_the_readme_comes_first_with_its_line(tmp_path):
    readme = "# X\n\n```sh\n$ pip install torch\n$ python main.py \\\n    --epochs 1  # short\n```\n"
    write(tmp_path, {"README.md": readme, "main.py": TRAINS, "train_old.py": "import torch\n"})
    best = discover(tmp_path, Reach(tmp_path), set())[0]
    assert best.command == "python main.py --epochs 1"
    assert best.origin == "README.md:5"
    assert "trains" in best.why


def test_what_does_not_reach_torch_or_does_not_exist_is_dropped(tmp_path):
    readme = "```\npython gone.py\npython words.py\npython train.py\n```\n"
    write(tmp_path, {"README.md": readme, "words.py": "import json\n", "train.py": "import net\n", "net.py": TRAINS})
    assert commands(tmp_path) == ["python train.py"]


def test_scripts_that_need_arguments_or_placeholders_come_last(tmp_path):
    needs = f"import argparse\n{TRAINS}p.add_argument('--data', required=True)\nif __name__ == '__main__': pass\n"
    readme = "```\npython train.py --data <folder>\n```\n"
    write(
        tmp_path, {"README.md": readme, "train.py": needs, "sub/other.py": TRAINS + "if __name__ == '__main__': pass\n"}
    )
    assert commands(tmp_path)[0] == "python sub/other.py"


def test_training_goes_before_preparing_and_testing(tmp_path):
    main = "if __name__ == '__main__': pass\n"
    write(tmp_path, dict.fromkeys(("prepare_data.py", "test_net.py", "train.py", "bench.py"), TRAINS + main))
    assert commands(tmp_path)[0] == "python train.py"


def test_files_with_findings_draw_the_choice(tmp_path):
    main = "if __name__ == '__main__': pass\n"
    write(tmp_path, {"a.py": TRAINS + main, "b.py": TRAINS + main})
    assert commands(tmp_path, {"b.py"})[0] == "python b.py"


def test_scripts_of_pyproject_are_candidates(tmp_path):
    write(
        tmp_path,
        {"pyproject.toml": "[project.scripts]\ngo = 'pkg.cli:main'\n", "pkg/__init__.py": "", "pkg/cli.py": TRAINS},
    )
    (entry,) = discover(tmp_path, Reach(tmp_path), set())
    assert entry.command == "python -c 'from pkg.cli import main; main()'"
    assert entry.scripts == ["pkg/cli.py"]


def test_a_command_that_chooses_the_cpu_is_not_the_first(tmp_path):
    readme = "```\npython train.py --device=cpu\npython train.py --steps 3\n```\n"
    write(tmp_path, {"README.md": readme, "train.py": TRAINS})
    assert commands(tmp_path)[0] == "python train.py --steps 3"


def test_nothing_is_found_in_a_library(tmp_path):
    write(tmp_path, {"lib/__init__.py": "import torch\n", "README.md": "no commands"})
    assert commands(tmp_path) == []


def test_given_commands_are_taken_as_they_are(tmp_path):
    write(tmp_path, {"train.py": TRAINS, "run.sh": "set -e\npython -u \\\n  train.py --x 1\n"})
    entries = from_texts(["torchrun --nproc-per-node 2 train.py", "bash run.sh"], "--entry", tmp_path)
    assert [entry.scripts for entry in entries] == [["train.py"], ["run.sh", "train.py"]]
    with pytest.raises(UserError, match=r"no absent\.py"):
        from_texts(["python absent.py"], "--entry", tmp_path)
