"""Reading compiled programs: shapes with tiles, tables of frames, and the operations of products."""

from __future__ import annotations

import pytest

from torchtpu.hlo.flops import instruction_flops, vector_operations
from torchtpu.hlo.parse import parse
from torchtpu.hlo.shapes import parse_shapes
from torchtpu.profiling.attribution import Attribution
from torchtpu.profiling.cost import cost
from torchtpu.profiling.memory import Memory
from torchtpu.targets import find

PROGRAM = """HloModule m, is_scheduled=true

FileNames
1 "train.py"

FunctionNames
1 "lower"
2 "operator7.forward"

FileLocations
1 {file_name_id=1 function_name_id=1 line=1}
2 {file_name_id=1 function_name_id=2 line=5}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

%inner (p.0: bf16[64,128], p.1: bf16[128,256]) -> f32[64,256] {
  %p.0 = bf16[64,128]{1,0:T(8,128)(2,1)} parameter(0)
  %p.1 = bf16[128,256]{1,0:T(8,128)(2,1)} parameter(1)
  %product = f32[64,256]{1,0:T(8,128)} convolution(%p.0, %p.1), dim_labels=bf_io->bf, metadata={stack_frame_id=2}
  ROOT %root = f32[64,256]{1,0:T(8,128)} exponential(%product)
}

ENTRY %main (a: bf16[64,128], b: bf16[128,256]) -> f32[64,256] {
  %a = bf16[64,128]{1,0:T(8,128)(2,1)} parameter(0)
  %b = bf16[128,256]{1,0:T(8,128)(2,1)} parameter(1)
  %copy-start = (bf16[64,128]{1,0:T(8,128)(2,1)S(1)}, bf16[64,128]{1,0}, u32[]{:S(2)}) copy-start(%a)
  %copy-done = bf16[64,128]{1,0:T(8,128)(2,1)S(1)} copy-done(%copy-start)
  %fusion = f32[64,256]{1,0:T(8,128)} fusion(%copy-done, %b), kind=kOutput, calls=%inner, backend_config=KNOWN
  %copy.1 = f32[64,256]{0,1:T(8,128)} copy(%fusion), backend_config=NONE
  ROOT %copy.2 = f32[64,256]{1,0:T(8,128)} copy(%copy.1)
}
"""
PROGRAM = PROGRAM.replace("KNOWN", '{"window_config":{"estimated_cycles":"1500"}}')
PROGRAM = PROGRAM.replace("NONE", '{"window_config":{"estimated_cycles":"9223372036854775807"}}')


def test_shapes_with_tiles_and_spaces() -> None:
    (plain,) = parse_shapes("bf16[8,12,1024,64]{3,2,1,0:T(8,128)(2,1)S(1)}")
    assert (plain.dims, plain.space) == ((8, 12, 1024, 64), 1)
    # A last dimension of 64 fills half a tile of 128 lanes.
    assert plain.padded_bytes == 2 * plain.bytes == 2 * 2 * 8 * 12 * 1024 * 64
    first, second = parse_shapes("(f32[10,3]{0,1:T(8,128)}, pred[])")
    assert first.padded_bytes == 8 * 128 * 4
    assert second.bytes == 1


def test_frames_and_cycles() -> None:
    module = parse(PROGRAM)
    assert module.entry == "main"
    by_name = module.by_name
    assert by_name["fusion"].cycles == 1500
    assert by_name["copy.1"].cycles is None, "the largest number says that there is no estimate"
    assert module.functions[by_name["product"].frame or 0] == "operator7.forward"
    assert by_name["fusion"].operands == ("copy-done", "b")


def test_operations_of_a_fusion() -> None:
    module = parse(PROGRAM)
    fusion = module.by_name["fusion"]
    assert instruction_flops(fusion, module) == 2 * 64 * 128 * 256
    assert vector_operations(fusion, module) > 64 * 256


@pytest.mark.parametrize(
    ("operands", "attributes", "out", "expected"),
    [
        # A 3x3 convolution padded by one: the corners meet 4 elements, the edges 6, the inside 9.
        ("f32[1,4,4,2] f32[3,3,2,5]", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", "f32[1,4,4,5]",
         2 * 100 * 2 * 5),
        ("f32[1,5,5,2] f32[3,3,2,5]", "window={size=3x3 stride=2x2}, dim_labels=b01f_01io->b01f", "f32[1,2,2,5]",
         2 * 4 * 9 * 2 * 5),
        # The gradient of a stride of two: the image is spread out, and half the products meet holes.
        ("f32[1,2,2,5] f32[3,3,5,2]", "window={size=3x3 pad=2_2x2_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f",
         "f32[1,5,5,2]", 2 * 36 * 5 * 2),
        ("f32[1,4,4,6] f32[1,1,2,6]", "window={size=1x1}, dim_labels=b01f_01io->b01f, feature_group_count=3",
         "f32[1,4,4,6]", 2 * 16 * 2 * 6),
    ],
)  # fmt: skip
def test_operations_of_convolutions(operands: str, attributes: str, out: str, expected: float) -> None:
    left, right = operands.split()
    text = (
        f"ENTRY %main () -> {out} {{\n  %l = {left} parameter(0)\n  %r = {right} parameter(1)\n"
        f"  ROOT %c = {out} convolution(%l, %r), {attributes}\n}}\n"
    )
    module = parse(text)
    assert instruction_flops(module.by_name["c"], module) == expected


def test_an_instruction_without_a_name_belongs_to_what_it_works_for() -> None:
    attribution = Attribution(parse(PROGRAM))
    by_name = attribution.module.by_name
    assert attribution.said(by_name["fusion"]) is None
    for name in ("fusion", "copy.1", "copy.2", "copy-start"):
        assert attribution.operator(by_name[name]) == 7, name


def test_cost_is_between_roofline_and_window_model() -> None:
    module, chip = parse(PROGRAM), find("v5e").generation
    found = cost(module.by_name["fusion"], module, chip)
    assert found.cycles == 1500
    assert 0 < found.low <= found.seconds <= found.high
    # The operand in the core's own memory moves no bytes of HBM.
    assert found.bytes == 128 * 256 * 2 + 64 * 256 * 4
    beside = cost(module.by_name["copy-start"], module, chip)
    assert (beside.seconds, beside.bytes) == (0.0, 64 * 128 * 2)


def test_buffers_live_until_their_last_use() -> None:
    memory = Memory(parse(PROGRAM))
    assert memory.arguments == 64 * 128 * 2 + 128 * 256 * 2
    held = {buffer.instruction: (buffer.first, buffer.last) for buffer in memory.held}
    assert held == {"fusion": (4, 5), "copy.1": (5, 6), "copy.2": (6, 7)}
    # The copy has its 64 as the last dimension, which takes 128 lanes.
    assert max(memory.timeline()) == memory.arguments + 64 * 256 * 4 + 256 * 128 * 4
