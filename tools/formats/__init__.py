"""A scan's result as text for people, as JSON for programs, as SARIF for code scanning."""

from __future__ import annotations

import json
from typing import Literal

from tools.findings import ScanResult
from tools.formats.sarif import sarif
from tools.formats.text import text

Kind = Literal["text", "json", "sarif"]


def render(result: ScanResult, kind: Kind) -> str:
    """The result in one of the formats, without a final line ending.

    Args:
        result: what a scan returned.
        kind: ``text`` has one finding a line; ``json`` follows ``scan_schema``; ``sarif`` is version 2.1.0.

    Raises:
        ValueError: if there is no such format.
    """
    if kind == "text":
        return text(result)
    if kind == "json":
        return result.model_dump_json(indent=2)
    if kind == "sarif":
        return json.dumps(sarif(result), indent=2, ensure_ascii=False)
    raise ValueError(f"there is no format {kind!r}; choose text, json or sarif")


def scan_schema() -> str:
    """The JSON schema of the ``json`` format, as published in ``docs/schema``."""
    schema = ScanResult.model_json_schema(mode="serialization")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2) + "\n"
