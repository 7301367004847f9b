"""A fix names torch only where torch is bound when its text is evaluated; else the place is reported."""

from __future__ import annotations

import pytest

from tests.tools.rows import found, migrated

CHOICE = '"cuda" if {}.cuda.is_available() else "cpu"'
CHOSEN = '{0}.accelerator.current_accelerator().type if {0}.accelerator.is_available() else "cpu"'


@pytest.mark.parametrize(
    "text",
    [
        # Imported for type checkers alone, and lazily under another name.
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n\n\ndef f():\n    import torch as T\n"
        "    return T.zeros(1, device={})\n",
        # Imported in the function alone.
        "def f():\n    import torch as T\n    return T.zeros(1, device={})\n",
        "import sys\n\n\ndef f():\n    import torch as T\n    return lambda: T.zeros(1, device={})\n",
    ],
)
def test_the_name_is_one_that_is_bound_there(text):
    expected = text.format(CHOSEN.format("T"))
    assert migrated(text.format(CHOICE.format("T"))) == expected


@pytest.mark.parametrize(
    "text",
    [
        # Nothing until somebody asks for it: the default is evaluated before.
        "torch = None\n\n\ndef lazy():\n    global torch\n    import torch\n    return torch\n\n\n"
        'def g(x, device="cuda"):\n    return x.to(device)\n',
        # The class body runs before the import.
        'class K:\n    device = "cuda"\n\n\nimport torch\n\nprint(torch, K)\n',
        # The import may be missing.
        'try:\n    import torch\nexcept ImportError:\n    torch = None\n\n\nclass K:\n    device = "cuda"',
        'import sys\n\nif len(sys.argv) > 1:\n    import torch\n\nDEVICE = "cuda"\nprint(torch)\n',
        # Imported later in the function itself.
        'def main():\n    device = "cuda"\n    import torch\n\n    return torch.zeros(1, device=device)\n',
        # Imported by methods; the default is evaluated in the class body.
        'class A:\n    def f(self, device="cuda"):\n        import torch\n\n        return torch.ones(device)',
        # The constant would come after the definition that needs it.
        'def f(x, device="cuda"):\n    return x.to(device)\n\n\nimport torch as _t\n\nprint(_t)\n',
        # Imported where the program starts, while the function may be called from elsewhere.
        'def f(x):\n    return x.to("cuda")\n\n\nif __name__ == "__main__":\n    import torch\n\n    f(torch.ones(1))',
    ],
)
def test_what_would_not_be_bound_is_reported(text):
    assert migrated(text) == text
    assert "TPU103" in found(text)


def test_an_import_in_a_class_holds_for_its_body():
    text = "class K:\n    import torch\n\n    DEVICE = {}\n"
    assert migrated(text.format(CHOICE.format("torch"))) == text.format(CHOSEN.format("torch"))


def test_an_optional_import_is_good_enough_in_a_function():
    text = "try:\n    import torch\nexcept ImportError:\n    torch = None\n\n\ndef f():\n    return torch.device({})\n"
    assert migrated(text.format(CHOICE.format("torch"))) == text.format(CHOSEN.format("torch"))


def test_an_alias_assigned_elsewhere_is_not_written():
    text = (
        "import torch\n\n\ndef make(n):\n    return torch.cuda.FloatTensor(n)\n\n\n"
        'if __name__ == "__main__":\n    dtype = torch.FloatTensor\n    print(make(2), dtype)\n'
    )
    assert "torch.FloatTensor(n).to(DEVICE_TYPE)" in migrated(text)
