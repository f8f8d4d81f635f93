"""oneDNN's log is read strictly: every part of a known line, and no line is ever dropped."""

import pytest

from ipexperf.proof import onednn
from ipexperf.proof.onednn import Operand

MEMORY = "src:f32::blocked:acdb::f0 wei:f32:a:blocked:Acdb8a::f0 bia:f32:a:blocked:a::f0 dst:f32::blocked:acdb::f0"
BODY = (
    f"cpu,convolution,brg_conv_fwd:avx2,forward_inference,{MEMORY},attr-scratchpad:user attr-post-ops:eltwise_relu,"
    "alg:convolution_direct,mb16_ic3oc4_ih8oh6kh3sh1dh0ph0_iw8ow6kw3sw1dw0pw0,11.4932"
)
EXEC = f"onednn_verbose,v1,primitive,exec,{BODY}"
HEADER = """onednn_verbose,v1,info,oneDNN v3.7.1 (commit 8d263e693366ef8db40acc569cc7d8edf644556d)
onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:2
onednn_verbose,v1,info,cpu,isa:Intel AVX2
onednn_verbose,v1,info,graph,backend,0:dnnl_backend
onednn_verbose,v1,primitive,info,template:operation,engine,primitive,implementation,prop_kind,memory_descriptors
onednn_verbose,v1,graph,info,template:operation,engine,partition_id,partition_kind,op_names,data_formats"""


def test_a_line_tells_every_part_of_what_ran() -> None:
    """Implementation, direction, operands with their layouts, fusions, algorithm, problem and time are all read."""
    (one,) = onednn.read(EXEC).executed
    assert (one.name, one.implementation, one.direction) == ("convolution", "brg_conv_fwd:avx2", "forward_inference")
    assert one.operands[:2] == (Operand("src", "f32", "acdb"), Operand("wei", "f32", "Acdb8a"))
    assert onednn.fused(one) == ("eltwise_relu",)
    assert (one.algorithm, one.seconds) == ("convolution_direct", 0.0114932)
    assert one.problem.startswith("mb16_ic3oc4")


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        (f"onednn_verbose,v1,primitive,create:cache_hit,{BODY}", "create:cache_hit"),
        (f"onednn_verbose,v1,primitive,create_nested:cache_miss,{BODY}", "create_nested:cache_miss"),
        (f"onednn_verbose,v1,1732201.5,primitive,exec,{BODY}", "exec"),
        (f"onednn_verbose,primitive,exec,{BODY}", "exec"),
        (f"onednn_verbose,exec,{BODY.replace(':f32:', '_f32:')}", "exec"),
    ],
)
def test_what_was_made_is_told_from_what_ran_in_every_version(line: str, moment: str) -> None:
    """Lines of creation, of a cache that had it, and those of older versions or with a moment are read alike."""
    log = onednn.read(line)
    assert [one.moment for one in log.primitives] == [moment]
    assert log.unparsed == ()
    assert [operand.role for operand in log.primitives[0].operands] == ["src", "wei", "bia", "dst"]
    assert len(log.executed) == (moment == "exec")


def test_roles_of_two_words_and_absent_operands_are_read() -> None:
    """`src_iter` is a role, not a source of the dtype `iter`; an operand that is not there has no layout."""
    text = EXEC.replace(MEMORY, "src_iter:f32::blocked:ldnc::f0 wei_layer_s8::blocked:ldigo:f0 bia:undef::undef:::")
    (one,) = onednn.read(text).executed
    assert one.operands == (
        Operand("src_iter", "f32", "ldnc"),
        Operand("wei_layer", "s8", "ldigo"),
        Operand("bia", "undef", ""),
    )


def test_the_header_tells_the_instructions_and_is_no_primitive() -> None:
    log = onednn.read(HEADER)
    assert (log.primitives, log.unparsed, log.isas) == ((), (), ("Intel AVX2",))


def test_a_partition_of_the_graph_compiler_is_one_that_ran() -> None:
    """A fused partition tells its operators, without the numbers that the process gave them."""
    line = (
        "onednn_verbose,v1,graph,exec,cpu,100012,quantized_conv,"
        "aten::conv2d_17;aten::relu_18,data:X,in0:f32:1,fpm:strict,larger_partition_kernel_t,dnnl_backend,0.41"
    )
    (one,) = onednn.read(line).executed
    assert (one.name, one.implementation, one.seconds) == ("partition", "quantized_conv", 0.00041)
    assert one.attributes == "aten::conv2d_;aten::relu_"


def test_scales_are_data_and_fusions_are_structure() -> None:
    """The numbers that a calibration found are left out; what is fused, and its whole numbers, stay."""
    before, after = (
        EXEC.replace("attr-post-ops:eltwise_relu", f"attr-post-ops:eltwise_clip:0:6+sum:{scale}")
        for scale in (0.25, 1e-5)
    )
    (one,), (other,) = onednn.read(before).executed, onednn.read(after).executed
    assert one.attributes == other.attributes == "attr-post-ops:eltwise_clip:0:6+sum:#"
    assert onednn.fused(one) == ("eltwise_clip", "sum")


@pytest.mark.parametrize(
    "line",
    [
        "onednn_verbose,v2,primitive,exec,cpu,convolution",
        EXEC.replace("src:f32", "src:q31"),
        EXEC.replace("11.4932", "soon"),
        EXEC + ",one more",
        "onednn_verbose,v1,primitive,error,cpu,convolution,out of luck",
    ],
)
def test_a_line_of_unknown_form_is_kept(line: str) -> None:
    """What cannot be read as a whole is no primitive, half understood: it is counted, and stands as it was."""
    log = onednn.read(f"{EXEC}\n{line}\nsomebody else's print")
    assert (len(log.executed), log.unparsed) == (1, (line,))
