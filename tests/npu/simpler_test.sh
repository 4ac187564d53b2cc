#!/bin/sh
# Trees for PTO Runtime, from program to answer, against a stand-in for the runtime (simpler_stand_in): programs of examples/
# are written as scene tests, compiled, and run in three orders of their tasks. Outputs are the library's to the byte; dumps
# are clean; with the rings that `ptowsp_tool dump rings` gives, and with those of the test, a run passes, and with half of the
# task window it ends with the error that the tool predicts.
#
#   BUILD=build OUT=build/check/simpler tests/npu/simpler_test.sh [PROGRAM...]     BUILD has the examples; OUT is for what is made
set -eu
PYTHON=${PYTHON:-python3}
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
OUT=${OUT:-$BUILD/simpler}
TOOL=$BUILD/ptowsp_tool
rm -rf "$OUT"
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
export PYTHONPATH="$ROOT/tests/npu/simpler_stand_in/python" PYTHONDONTWRITEBYTECODE=1 STAND_IN_SHIM="$ROOT"
[ $# -gt 0 ] || set -- softmax rmsnorm matmul attention quantized_matmul topk emit_llama emit_llama_decode emit_indexer emit_gemm npu_simpler_test

fail() {
    echo "simpler: $*" >&2
    exit 1
}

if ! command -v "$PYTHON" > /dev/null; then
    echo "simpler: skipped, as there is no $PYTHON"
    exit 0
fi

# Comparing with a tolerance: (type, recorded, got) that are refused, and that are near.
PYTHONPATH="$PYTHONPATH:$ROOT/src/npu/tree/simpler" $PYTHON - > "$OUT/compare.log" 2>&1 << 'END' || fail "compare: $(cat "$OUT/compare.log")"
import struct
import wsp_recording as w

inf, nan = float("inf"), float("nan")


def pack(dtype, value):
    return struct.pack("<f", value)[2:] if dtype == "bf16" else struct.pack("<" + w.DTYPES[dtype][1], value)


def is_near(dtype, wanted, got):
    recording = w.Recording.__new__(w.Recording)
    try:
        recording.compare_numbers("x", w.View("1/1@1+0", dtype), pack(dtype, got), pack(dtype, wanted), 1e-3)
    except AssertionError:
        return False
    return True


for dtype in ("f16", "bf16", "f32", "f64"):
    for wanted in (inf, -inf, nan):
        assert is_near(dtype, wanted, wanted), (dtype, wanted)
        for got in (0.0, 3.0, -65024.0, inf, -inf, nan):
            same = got == wanted or got != got and wanted != wanted
            assert is_near(dtype, wanted, got) == same, (dtype, wanted, got)
            assert is_near(dtype, 3.0, got) == (got == 3.0), (dtype, got)
END

# scene TREE: its scene test, against the stand-in.
scene() {
    $PYTHON "$1"/test_*.py -p a2a3sim > "$STAND_IN_OUTPUTS/log" 2>&1 || fail "$1: $(tail -n 20 "$STAND_IN_OUTPUTS/log")"
}

for program; do
    mkdir -p "$OUT/$program"
    case $program in
    npu_*) PTOWSP_SIMPLER_TREES=$OUT/$program "$BUILD/$program" > "$OUT/$program.log" 2>&1 ;;
    emit_*) "$BUILD/$program" --simpler "$OUT/$program/run" > "$OUT/$program.log" ;;
    *) "$BUILD/$program" --simpler "$OUT/$program" > "$OUT/$program.log" ;;
    esac || fail "$program: $(cat "$OUT/$program.log")"
    for tree in "$OUT/$program"/*; do
        STAND_IN_OUTPUTS=$tree.out
        export STAND_IN_OUTPUTS
        mkdir -p "$STAND_IN_OUTPUTS"
        if [ "$(basename "$tree")" = refused ]; then
            STAND_IN_ERROR=9 scene "$tree"
            grep -q '^error 9: tensor x: strides -16 and 1: PTO Runtime takes 1 to 4294967295$' "$STAND_IN_OUTPUTS/log" ||
                fail "$tree: $(cat "$STAND_IN_OUTPUTS/log")"
            continue
        fi
        scene "$tree"
        if [ "$(basename "$tree")" = random4 ]; then
            grep -q '^[1-9].*, [1-9]' "$STAND_IN_OUTPUTS/seed0/predicates" || fail "$tree: no task has a predicate that does not hold"
        fi
        if [ "$(basename "$tree")" = reload ] && grep -q '"kernel_ids":\[-1,-1,-1\]' "$STAND_IN_OUTPUTS/seed0/deps.json"; then
            fail "$tree: a dummy, although nothing waits for many tasks"
        fi
        for seed in 0 1 2; do
            "$TOOL" dump check "$STAND_IN_OUTPUTS/seed$seed" > "$STAND_IN_OUTPUTS/check" ||
                fail "$tree: $(head -n 40 "$STAND_IN_OUTPUTS/check")"
        done
        least=$("$TOOL" dump rings "$STAND_IN_OUTPUTS/seed0" | tr -d '\n' | sed 's/.*: {/{/')
        STAND_IN_REUSE=1 STAND_IN_RINGS=$least scene "$tree"
        window=$(($(echo "$least" | sed 's/.*window": \[[0-9]*, [0-9]*, *\([0-9]*\).*/\1/') / 2))
        less=$(echo "$least" | sed "s/\(window\": \[[0-9]*, [0-9]*, *\)[0-9]*/\1$window/")
        if [ "$window" -ge 4 ]; then
            "$TOOL" dump rings "$STAND_IN_OUTPUTS/seed0" "4,4,$window,4" 4294967296 1048576 > "$STAND_IN_OUTPUTS/rings" || :
            error=$(sed -n 's/^error \([0-9]*\),.*/\1/p' "$STAND_IN_OUTPUTS/rings")
            [ -n "$error" ] || fail "$tree: with a window of $window nothing is predicted: $(cat "$STAND_IN_OUTPUTS/rings")"
            STAND_IN_REUSE=1 STAND_IN_RINGS=$less STAND_IN_ERROR=$error scene "$tree"
        fi
        echo "$program $(basename "$tree"): $(sed -n '1s/:.*//p' "$STAND_IN_OUTPUTS/check"); rings $least"
    done
done
