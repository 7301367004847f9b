"""Names of slices, and that each number has a source."""

from __future__ import annotations

import dataclasses

import pytest

from torchtpu.targets import GENERATIONS, SOURCES, Figure, UnknownTarget, describe, find


@pytest.mark.parametrize(
    ("name", "compiler", "chips", "devices"),
    [
        ("v5e", "v5e:1x1", 1, 1),
        ("v6e-8", "v6e:2x4", 8, 8),
        ("v5litepod-16", "v5e:4x4", 16, 16),
        ("v4-8", "v4:2x2x1", 4, 4),
        ("v5p-128", "v5p:4x4x4", 64, 64),
        ("tpu7x-2", "tpu7x:1x1x1", 1, 2),
        ("v7x-8", "tpu7x:2x2x1", 4, 8),
        ("v6e:2x4", "v6e:2x4", 8, 8),
    ],
)
def test_slice_names(name: str, compiler: str, chips: int, devices: int) -> None:
    target = find(name)
    assert (target.compiler_name, target.chips, target.devices) == (compiler, chips, devices)


@pytest.mark.parametrize("name", ["h100", "v6e-3", "v5p-3", "v5e-512", "v6e-0", "", "v6e-"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UnknownTarget):
        find(name)


def test_every_figure_has_a_source() -> None:
    for generation in GENERATIONS.values():
        values = [getattr(generation, field.name) for field in dataclasses.fields(generation)]
        figures = [value for value in values if isinstance(value, Figure)] + list(generation.peak.values())
        assert len(figures) >= 6
        assert all(figure.value > 0 and figure.source in SOURCES for figure in figures)


def test_a_device_of_a_chip_with_two_is_half_of_it() -> None:
    chip = find("tpu7x-2").generation
    assert chip.device_peak() == pytest.approx(2307e12 / 2)
    assert chip.device_hbm_bytes == 96 * 2**30
    assert find("v5p").generation.device_peak() == pytest.approx(459e12)


def test_description_names_sources_by_address() -> None:
    found = describe(find("v6e-8"))
    assert found["hbm_bandwidth"]["source"].startswith("https://")
    assert (found["chips"], found["topology"]) == (8, "2x4")
