#!/usr/bin/env bash
# What a card shows in minutes, on a machine without a network: `benchmarks/card/run.sh FOLDER [DEVICE] [PART...]`.
#
# `proofs` runs every mode once, all at the same time: what is red there is red for its proof, not for its speed.
# `processor` does so with the low precisions of the host's CPU. `speeds` measures, alone. Everything goes to FOLDER as it
# comes: a log and a history of each step, and inductor's code. ONLY=PATTERN takes the steps with such names.
set -u
into=$(realpath -m "$1")
device=${2:-cuda}
shift $(($# < 2 ? $# : 2))
parts=("$@")
test $# -eq 0 && parts=(proofs processor speeds)
python=${PYTHON:-python3}
mkdir -p "$into"
cd "$(dirname "$0")/../.." || exit
export PYTHONUNBUFFERED=1 PYTHONPATH="$PWD:$PWD/benchmarks/card${PYTHONPATH:+:$PYTHONPATH}"

measure() { # NAME SECONDS OPTION...
    local name=$1 seconds=$2 begin=$SECONDS
    shift 2
    [[ $name =~ ${ONLY:-.} ]] || return 0
    timeout --foreground --signal=INT --kill-after=20 "$seconds" "$python" -m pytest suites/ --device "$device" --stack stock \
        --perf-db "$into/$name.db" --perf-cache "${CACHE:-/tmp/ipexperf-card}" --perf-baselines "$into/baselines" \
        "$@" >"$into/$name.log" 2>&1
    echo "$name: status $? after $((SECONDS - begin)) s: $(tail -n 1 "$into/$name.log")"
}

prove() { # NAME OPTION...
    local name=$1
    shift
    measure "$name" "${PROOFS:-240}" -p crowded --perf-preset preflight --perf-seconds 0.2 --perf-samples 4 \
        --perf-without=roof --perf-lease off "$@" &
}

machine() {
    "$python" -c "import sys, torch; print(sys.version, torch.__version__)
if torch.$device.is_available(): print(torch.$device.get_device_properties(0))"
    nvidia-smi
    timeout 60 "$python" -m ipexperf.cli doctor --no-pairs --device "$device"
}

proofs() {
    machine >"$into/machine.log" 2>&1 &
    [[ code =~ ${ONLY:-.} ]] && timeout 200 "$python" benchmarks/card/generated.py "$into/code" "$device" >"$into/code.log" 2>&1 &
    prove images --model resnet18 --dtype fp32,bf16 --mode infer,infer_jit,load
    prove images_compiled --model resnet18 --dtype fp32,bf16 --mode infer_compile
    prove training --model resnet18 --dtype fp32,bf16 --mode train,train_compile
    prove ranks --model resnet18 --dtype fp32 --mode train_ddp
    prove half --model resnet18 --dtype fp16 --mode infer,infer_jit,infer_compile
    prove half_training --model resnet18 --dtype fp16 --mode train
    prove decoders --model gpt_small --dtype fp32,bf16 --mode prefill,decode
    prove decoders_compiled --model gpt_small --dtype fp32,bf16 --mode prefill_compile,decode_compile
    prove autotune --model resnet18 --dtype bf16 --mode infer_compile --perf-knobs max_autotune=on
    prove autotune_training --model resnet18 --dtype bf16 --mode train_compile --perf-knobs max_autotune=on
    prove autotune_decoder --model gpt_small --dtype bf16 --mode decode_compile --perf-knobs max_autotune=on
    wait
}

processor() {
    local device=cpu
    prove cpu_images --model resnet18 --dtype fp32,bf16,fp16,int8 --mode infer_jit
    prove cpu_compiled --model resnet18 --dtype bf16,fp16,int8 --mode infer_compile
    prove cpu_text --model bert_base --dtype fp32,bf16,fp16 --mode infer_jit
    prove cpu_training --model resnet18 --dtype bf16 --mode train,train_compile
    wait
}

speeds() {
    measure quick "${SPEEDS:-150}" --perf-without=roof
    measure compiled "${SPEEDS:-150}" --model resnet50 --dtype fp32,bf16 --mode infer,infer_jit,infer_compile --perf-launches 2
    measure decode "${SPEEDS:-150}" --model llama_135m --dtype bf16 --mode decode,decode_compile --perf-launches 2
}

for part in "${parts[@]}"; do "$part"; done
