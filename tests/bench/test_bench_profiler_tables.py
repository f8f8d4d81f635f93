"""The events of torch's profiler become rows: who called whom, in which dtypes, and kernels by plain names."""

from typing import Any

import pytest

from ipexperf.proof import profiler


def event(name: str, begin: float, length: float, **more: Any) -> dict[str, Any]:
    """One operator of a trace: its moment and length in microseconds."""
    told = {"Input type": more.pop("types", ["float"]), "Input Dims": more.pop("dims", [[2, 3]])}
    return {"cat": "cpu_op", "name": name, "ts": begin, "dur": length, "tid": 1, "args": told, **more}


EVENTS = [
    event("aten::copy_", 22.0, 10.0, types=["float", "c10::BFloat16"]),
    event("aten::to", 20.0, 20.0, types=["c10::BFloat16", "Scalar"]),
    event("aten::linear", 0.0, 19.0),
    event("aten::addmm", 2.0, 15.0),
    event("aten::addmm", 50.0, 5.0, dims=[[4, 4]]),
    event("profiler::_record_function_enter_new", 60.0, 1.0),
    {"cat": "user_annotation", "name": "Optimizer.step", "ts": 0.0, "dur": 100.0, "tid": 1},
]


def test_an_operator_has_its_calls_dtypes_shapes_callers_and_own_time() -> None:
    """What runs inside another is told as such, and its time is not the other's own."""
    rows, seconds = profiler.operators(EVENTS)
    found = {row["operator"]: (row, time) for row, time in zip(rows, seconds, strict=True)}
    assert set(found) == {"aten::copy_", "aten::to", "aten::linear", "aten::addmm"}
    addmm, time = found["aten::addmm"]
    assert addmm["inside"] == {"": 1, "aten::linear": 1}
    assert addmm["shapes"] == {"2x3": 1, "4x4": 1}
    assert (addmm["calls"], time) == (2, pytest.approx(20e-6))
    assert found["aten::linear"][1] == pytest.approx(4e-6)
    assert found["aten::copy_"][0]["types"] == {"float32, bfloat16": 1}
    assert found["aten::to"][0]["types"] == {"bfloat16": 1}


def test_kernels_have_their_count_and_the_devices_own_time() -> None:
    """They are no operators."""
    device = [
        {"cat": "kernel", "name": "void gemm<1>(float*)", "ts": 0.0, "dur": 4.0, "tid": 7},
        {"cat": "kernel", "name": "void gemm<2>(float*)", "ts": 5.0, "dur": 6.0, "tid": 7},
        {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 5.0, "dur": 1.0, "tid": 7},
    ]
    rows, seconds = profiler.kernels([*EVENTS, *device])
    assert rows == [{"kernel": "Memcpy HtoD", "calls": 1}, {"kernel": "gemm", "calls": 2}]
    assert seconds == pytest.approx([1e-6, 10e-6])
    assert profiler.counts([*EVENTS, *device], kernels=True) == {"operators": 5, "kernels": 3}


def test_the_order_of_the_events_does_not_matter() -> None:
    """A trace is written in any order, and threads are apart from one another."""
    assert profiler.operators(EVENTS[::-1]) == profiler.operators(EVENTS)
    rows, _ = profiler.operators([event("aten::linear", 0.0, 19.0), event("aten::addmm", 2.0, 15.0, tid=2)])
    assert all(row["inside"] == {"": 1} for row in rows)


def test_many_shapes_are_folded_and_another_one_shows() -> None:
    """A digest stands for many shapes; it changes with each of them, and with how often each was there."""
    many = [event("aten::mm", 10.0 * size, 1.0, dims=[[size, size]]) for size in range(1, 9)]
    folded = profiler.operators(many)[0][0]["shapes"]
    assert isinstance(folded, str)
    assert profiler.operators(many[1:] + many[:1])[0][0]["shapes"] == folded
    other = [*many[:-1], event("aten::mm", 80.0, 1.0, dims=[[99, 99]])]
    assert profiler.operators(other)[0][0]["shapes"] != folded


def test_a_section_stays_small_and_what_is_beyond_its_end_still_counts() -> None:
    """Thousands of different names end in a bounded number of rows; a change in the last of them is seen."""
    many = [event(f"custom::operator{number}", 10.0 * number, 1.0) for number in range(3 * profiler.ROWS)]
    rows, seconds = profiler.operators(many)
    assert len(rows) == len(seconds) == profiler.ROWS + 1
    assert rows[-1]["rest"] == 2 * profiler.ROWS
    assert sum(seconds) == pytest.approx(3 * profiler.ROWS * 1e-6)
    later = max(many, key=lambda one: str(one["name"]))
    other = [*(one for one in many if one is not later), event(later["name"], later["ts"], 1.0, dims=[[7]])]
    assert profiler.operators(other)[0][-1] != rows[-1]


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
                "std::array<char*, 1ul> >"
                "(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"
            ),
            "at::native::vectorized_elementwise_kernel",
        ),
        (
            "void at::native::(anonymous namespace)::softmax<float, 3>(float*)",
            "at::native::anonymous::softmax",
        ),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n"),
        ("triton_poi_fused_relu_0", "triton_poi_fused_relu_0"),
        ("kernel_0123456789abcdef0123", "kernel_#"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD"),
    ],
)
def test_a_kernel_has_a_plain_name(name: str, plain: str) -> None:
    """Arguments, template arguments and hashes differ from build to build: the name is without them."""
    assert profiler.plain(name) == plain


def taken(size: int, moment: float, number: int, device: int = 0) -> dict[str, Any]:
    told = {"Bytes": size, "Device Type": device, "Ev Idx": number}
    return {"cat": "cpu_instant_event", "name": "[memory]", "ts": moment, "args": told}


def test_memory_is_counted_from_where_the_step_began() -> None:
    """What was there before and is freed meanwhile does not raise the peak; two at one moment keep their order."""
    events = [taken(-100, 1.0, 0), taken(300, 2.0, 1), taken(-300, 3.0, 3), taken(50, 3.0, 2), taken(64, 4.0, 4, 1)]
    assert profiler.memory(events, accelerator=False) == {"allocations": 2, "allocated": 350, "peak": 250}
    assert profiler.memory(events[::-1], accelerator=True) == {"allocations": 1, "allocated": 64, "peak": 64}
    assert profiler.memory([], accelerator=False) == {"allocations": 0, "allocated": 0, "peak": 0}
    assert profiler.memory(events[:1], accelerator=True) == {}
    assert profiler.memory(EVENTS, accelerator=False) == {"allocations": 0, "allocated": 0, "peak": 0}
