"""What a program tries, to see whether it fails without CUDA, still fails there; other tries are fixed as ever."""

from __future__ import annotations

import pytest

from tests.tools.rows import found, migrated


@pytest.mark.parametrize(
    "text",
    [
        (
            "def has():\n    try:\n        torch.cuda.synchronize()\n        return True\n"
            "    except Exception:\n        return False\n"
        ),
        (
            "try:\n    torch.cuda.set_device(0)\n    scale = 100.0\n"
            "except (RuntimeError, AssertionError):\n    scale = 1.0\n"
        ),
        ("def has():\n    try: torch.cuda.current_device()\n    except: return False\n    return True\n"),
        (
            "def has():\n    try:\n        torch.zeros(1).cuda()\n        return True\n"
            "    except Exception:\n        return False\n"
        ),
        (
            'def has():\n    try:\n        torch.zeros(1, device="cuda")\n'
            "    except RuntimeError:\n        return False\n    return True\n"
        ),
        (
            "import contextlib\n\nplace = 'cpu'\nwith contextlib.suppress(Exception):\n    torch.zeros(1).cuda()\n"
            "    place = 'gpu'\n"
        ),
        'try:\n    name = torch.cuda.get_device_name(0)\nexcept Exception:\n    name = "none"\n',
        ("try:\n    torch.cuda.get_device_properties(0)\nexcept Exception:\n    n = 0\nelse:\n    n = 1\n"),
        ('try:\n    torch.cuda.synchronize(0)\nexcept Exception:\n    pass\nelse:\n    print("waited")\n'),
    ],
)
def test_a_question_is_left_as_it_is(text):
    text = f"import torch\n\n{text}"
    assert migrated(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The value is used, and is the same on the CPU.
        (
            ('try:\n    x = torch.zeros(1, device="cuda")\nexcept RuntimeError:\n    x = torch.zeros(1)\n'),
            "device=DEVICE_TYPE",
        ),
        # Nothing hangs on it.
        ("try:\n    torch.cuda.synchronize()\nexcept Exception:\n    pass\n", "torch.accelerator.synchronize()"),
        # The program ends there.
        (
            ("try:\n    torch.cuda.set_device(0)\n    run()\nexcept Exception as e:\n    print(e)\n    raise\n"),
            "if torch.cuda.is_available()",
        ),
        # Errors of another kind.
        (
            "try:\n    torch.cuda.set_device(0)\n    run()\nexcept KeyError:\n    run()\n",
            "if torch.cuda.is_available()",
        ),
        # The program itself, not a question.
        (
            ("try:\n    torch.cuda.set_device(0)\n    a()\n    b()\n    c()\nexcept Exception as e:\n    print(e)\n"),
            "if torch.cuda.is_available()",
        ),
    ],
)
def test_what_is_no_question_is_fixed(text, expected):
    assert expected in migrated(f"import torch\n\n{text}")


def test_a_question_about_the_device_keeps_the_tree_from_being_clean():
    assert "TPU215" in found(
        'import torch\n\ntry:\n    torch.cuda.init()\n    d = "cuda"\nexcept Exception:\n    d = "cpu"\n'
    )
