"""TPU822: float16 asked for in a configuration file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tools.code.configs import FILES, Setting, settings
from tools.code.edits import Edit, Fix
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.project import Project, Trait
from tools.rules.base import Invalid, Match, TextRule, Valid

_WORDS = {"fp16": "bf16", "float16": "bfloat16", "half": "bfloat16", "16-mixed": "bf16-mixed", "16-true": "bf16-true",
          "torch.float16": "torch.bfloat16"}  # fmt: skip
_KEYS = ("precision", "dtype")


class SetConfigPrecision(TextRule):
    """``mixed_precision: fp16``, ``precision: 16-mixed`` or ``torch_dtype: float16`` in a configuration file.

    TPUs compute in bfloat16; fp16 needs loss scaling, which the TPU backend has no kernels for. The unsafe fix writes the
    bfloat16 spelling of the same setting, which changes the numbers on CUDA as well (and needs an Ampere GPU or newer).
    Switches (``fp16: true``) and bare numbers (``precision: 16``) are reported only: what to write instead depends on the
    program. It is advice too where the program itself takes bfloat16 off CUDA for it, as the fix of TPU305 does.
    """

    ID = "TPU822"
    NAME = "set-config-precision"
    FAMILY = "C"
    GRADE = Grade.UNSAFE
    MESSAGE = "a configuration file asks for float16; a TPU computes in bfloat16"
    TRIGGERS = ("fp16", "float16", "half", "precision")
    COVERS = ("C13",)
    FILES = FILES
    VALID = (
        Valid("save_precision: fp16\nmixed_precision: bf16\nfp16: false\nprecision: 32\nsize: 16\n", "config.yaml"),
        Valid('{"bf16": true, "torch_dtype": "bfloat16", "batch": 16}\n', "config.json"),
    )
    INVALID = (
        Invalid(
            "mixed_precision: fp16 # was no\ntorch_dtype: 'float16'\n",
            "mixed_precision: bf16 # was no\ntorch_dtype: 'bfloat16'\n",
            count=2,
            unsafe=True,
            path="accelerate.yaml",
        ),
        Invalid('{"precision": "16-mixed"}', '{"precision": "bf16-mixed"}', unsafe=True, path="a.json"),
        Invalid("trainer:\n  precision: 16\n  fp16: true\n", None, count=2, path="config.yaml"),
        Invalid('[train]\nfp16 = true\n', None, path="config.toml"),
        Invalid('{"fp16": {"enabled": true}}\n', None, path="ds_config.json"),
    )  # fmt: skip

    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields settings that name float16."""
        for setting in settings(source):
            match = self._match(setting) or self._section(source, setting)
            if match:
                yield match

    def judge(self, match: Match, source: SourceFile, project: Project) -> Match:
        """See ``TextRule.judge``."""
        del source
        if match.fix is None or not project.has(Trait.HALF_ON_CUDA):
            return match
        note = "the program takes bfloat16 for it on devices other than CUDA; see that nothing else reads it"
        return replace(match, fix=None, grade=Grade.ADVICE, note=note)

    def _match(self, setting: Setting) -> Match | None:
        key, value = setting.normal_key, setting.value.lower()
        if any(word in key for word in _KEYS) and not key.startswith("save"):
            if value in _WORDS:
                fix = Fix((Edit(setting.start, setting.end, _WORDS[value]),))
                note = "this changes the numbers on CUDA too, and needs a GPU that knows bfloat16"
                return Match(setting.start, setting.end, fix=fix, note=note)
            if value == "16":
                note = "write the program's word for bfloat16, `bf16-mixed` in Lightning"
                return Match(setting.start, setting.end, grade=Grade.ADVICE, note=note)
        if key == "fp16" and value in ("true", "yes", "on", "1"):
            note = "switch fp16 off and the program's bf16 setting on for TPU runs"
            return Match(setting.start, setting.end, grade=Grade.ADVICE, note=note)
        return None

    def _section(self, source: SourceFile, setting: Setting) -> Match | None:
        """``"fp16": {"enabled": true}``, as DeepSpeed has it."""
        head = source.text[max(0, setting.start - 60) : setting.start]
        if setting.key != "enabled" or setting.value.lower() != "true" or "fp16" not in head:
            return None
        note = "switch the fp16 section off and bf16 on for TPU runs"
        return Match(setting.start, setting.end, grade=Grade.ADVICE, note=note)
