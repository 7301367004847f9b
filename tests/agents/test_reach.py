"""What a script reaches by imports, and what it does not."""

from __future__ import annotations

from agents.reach import Reach
from tests.agents.test_entries import write


def test_absolute_relative_and_package_imports(tmp_path):
    write(
        tmp_path,
        {
            "train.py": "from pkg.net import Net\nimport util as u\n",
            "util.py": "",
            "other.py": "",
            "pkg/__init__.py": "from . import extra\n",
            "pkg/net.py": "from .deep.layer import L\nfrom ..pkg import late\n",
            "pkg/deep/__init__.py": "",
            "pkg/deep/layer.py": "",
            "pkg/extra.py": "",
            "pkg/late.py": "",
            "pkg/unused.py": "",
        },
    )
    assert Reach(tmp_path).files(["train.py"]) == {
        "train.py", "util.py", "pkg/__init__.py", "pkg/net.py", "pkg/deep/__init__.py", "pkg/deep/layer.py",
        "pkg/extra.py", "pkg/late.py",
    }  # fmt: skip


def test_files_and_modules_named_in_strings_are_followed(tmp_path):
    write(
        tmp_path,
        {"train.py": "exec(open('conf.py').read())\nimport_module('models.gpt')\n", "conf.py": "",
         "models/__init__.py": "", "models/gpt.py": ""},
    )  # fmt: skip
    assert Reach(tmp_path).files(["train.py"]) >= {"conf.py", "models/gpt.py"}


def test_a_script_in_a_folder_sees_its_neighbours_the_root_and_src(tmp_path):
    write(
        tmp_path,
        {"bin/train.py": "import near\nimport top\nimport lib\n", "bin/near.py": "", "top.py": "", "src/lib.py": ""},
    )
    assert Reach(tmp_path).files(["bin/train.py"]) == {"bin/train.py", "bin/near.py", "top.py", "src/lib.py"}


def test_circles_broken_files_and_links_out_of_the_tree(tmp_path):
    outside = tmp_path / "outside.py"
    outside.write_text("")
    root = write(
        tmp_path / "root", {"a.py": "import b\nimport away\n", "b.py": "import a\nimport bad\n", "bad.py": "def (:"}
    )
    (root / "away.py").symlink_to(outside)
    assert Reach(root).files(["a.py", "absent.py"]) == {"a.py", "b.py", "bad.py"}


def test_modules_are_named_by_their_first_part(tmp_path):
    write(tmp_path, {"a.py": "import torch.nn as nn\nfrom numpy.random import rand\nfrom . import x\n"})
    assert Reach(tmp_path).modules(["a.py"]) == {"torch", "numpy"}


def test_settings_are_reached_by_the_name_that_code_or_a_command_gives_them(tmp_path):
    (tmp_path / "conf/model").mkdir(parents=True)
    for name in ("config.yaml", "other.yaml", "cli.json", "conf/model/big.yaml"):
        (tmp_path / name).write_text("")
    (tmp_path / "train.py").write_text("path = ROOT / 'config.yaml'\n")
    (tmp_path / "hydra_train.py").write_text("@hydra.main(config_path='../conf')\ndef main(options): ...\n")
    reach = Reach(tmp_path)
    assert reach.settings(["train.py"]) == {"config.yaml"}
    assert reach.settings([], ["--config=cli.json"]) == {"cli.json"}
    assert reach.settings(["hydra_train.py"]) == {"conf/model/big.yaml"}
