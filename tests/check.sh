#!/bin/sh
# The checks beyond `make test`, each step with the seconds it took; a step with failures names them
# and ends the run.
#
#      sh tests/check.sh          every change passes these: make check
#      sh tests/check.sh all      and these, for releases: make check-all runs both
#
# Needs gcc, g++, clang, clang-format, cmocka and clang's sanitizer runtime. Models are explored if
# spin is there; Python is tested if numpy is; arm64 is tried if its compiler and qemu are.
set -eu
BUILD=${BUILD:-build}
OUT=$BUILD/check
W="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Werror"
WC="$W -Wstrict-prototypes -Wmissing-prototypes"
JOBS=$(nproc 2> /dev/null || echo 2)
WHAT=${1-}
mkdir -p "$OUT"

# -- steps ----------------------------------------------------------------------------------------

begun=$(date +%s)
last=$begun
name=

# step NAME: ends the step before, with its time.
step() {
    now=$(date +%s)
    [ -z "$name" ] || echo "   $((now - last)) s"
    last=$now
    name="$*"
    [ -z "$name" ] || echo "-- $name"
}

fail() {
    echo "check: $*" >&2
    exit 1
}

# Commands are collected, and run on all processors: by make, with which builds among them share the
# processors, so that none idles while the longest ends. Each is a file, its number the name.
TASKS="$OUT/tasks"
tasks=0

task() {
    [ $tasks -gt 0 ] || { rm -rf "$TASKS" && mkdir "$TASKS"; }
    tasks=$((tasks + 1))
    echo "$*" > "$TASKS/$tasks"
}

# Every task runs, in the order in which they were collected; those that failed are named at the end,
# each with the last lines it printed.
run_tasks() {
    printf 'all: %s\n%%.done: ; +@sh tests/check.sh task $*\n' "$(seq -f "$TASKS/%g.done" $tasks | tr '\n' ' ')" |
        make --no-print-directory -k -j"$JOBS" -f - || true
    tasks=0
    set -- "$TASKS"/*.failed
    [ ! -e "$1" ] || fail "$(cat "$@")"
}

# run_task FILE: what make runs.
run_task() {
    if sh "$1" > "$1.log" 2>&1; then
        cat "$1.log"
    else
        { tail -n 20 "$1.log"; echo "FAILED: $(cat "$1")"; } > "$1.failed"
    fi
}

# job NAME [VARIABLE=VALUE...] COMMAND...: a task whose output is printed in one piece, with its time, and
# which has nothing from make.
job() {
    name_of_job=$1
    shift
    task sh tests/run_one.sh "$OUT/$name_of_job" env -u MAKEFLAGS -u MAKELEVEL "$@"
}

# The parts of a log that tell what failed: compilers' errors, and of each failed program its failed
# tests, its sanitizer's first lines and its end. Short, since logs of logs are cut.
failures() {
    grep -nE '(error|warning): |^make.*\*\*\*' "$1" | head -n 20 || true
    for program in $(sed -n 's/^== \([a-z0-9_]*\) failed: .*/\1/p' "$1"); do
        echo "-- $program"
        sed -n "/^== $program\$/,/^== $program failed/p" "$1" > "$1.failed"
        grep -E '\[  (FAILED|  ERROR)|^\[   LINE|ERROR: |WARNING: |SUMMARY: |runtime error|seed ' "$1.failed" | head -n 20 || true
        tail -n 12 "$1.failed"
    done
}

# Sanitizers of clang 14 place their shadow memory where a kernel that randomises addresses widely may
# have put something: their programs run without that, where the system lets them.
STILL="setarch $(uname -m) -R"
$STILL true 2> /dev/null || STILL=

# The number of jobs for make: none among tasks, which share theirs.
jobs() {
    case ${MAKEFLAGS-} in
    *jobserver*) ;;
    *) echo "-j$JOBS" ;;
    esac
}

# run_tests NAME VARIABLE=VALUE...: tests in a configuration of their own.
run_tests() {
    directory="$OUT/$1"
    shift
    $STILL make -s -k $(jobs) test BUILD="$directory" "$@" > "$directory.log" 2>&1 || {
        failures "$directory.log"
        fail "$directory.log"
    }
    echo "   $(grep -c '^== .*_test: ' "$directory.log" || true) programs run"
}

# Tests whose names match, or do not.
only() {
    find tests -name '*_test.c' | sed 's,.*/,,; s/\..*//' | sort | grep -E "^($1)_test\$" | tr '\n' ' '
}
without() {
    find tests -name '*_test.c' -o -name '*_test.cpp' | sed 's,.*/,,; s/\..*//' | sort | grep -vE "^($1)_test\$" | tr '\n' ' '
}

# Tests that compile emitted trees, or have coroutines, which sanitizers do not follow; and those in which
# several threads meet.
COMPILING="(explore|npu_(build|build_memory|cases|equal|error|execute|expand.*|expr|indexing|instruction|kernel|loop|loop_tree|native|ops|own|plan|shape|transient))"
THREADED=$(cd tests && { grep -lE 'pthread_|THREADS_|test_lanes_desc' */*_test.c; ls */graph*_test.c */device*_test.c */*lanes*_test.c; } |
    sed 's,.*/,,; s/\.c$//' | grep -vE "^${COMPILING}_test\$" | sort -u | tr '\n' ' ')
# And those that include a file of the library.
INSIDE=$(cd tests && grep -lE '^#include "(src/[a-z]+/[a-z0-9_]+\.c|npu_refuse\.h|npu_clock_mirror\.h)"' */*_test.c | sed 's,.*/,,; s/\.c$//')
ASAN="-g -fsanitize=address,undefined -fno-sanitize-recover=all"

# Under sanitizers the largest file and what tests say is compiled plainly: optimising it takes longer
# than it saves.
PLAIN="EXECUTE_LEVEL=-O0 TEST_LEVEL=-O0"
run_asan() {
    run_tests asan CC=clang CXX=clang++ CFLAGS="-O1 $ASAN" $PLAIN TESTS="$(without "$COMPILING|isa_.*")" "$@"
}
run_tsan() {
    run_tests tsan CC=clang CXX=clang++ CFLAGS="-O1 -g -fsanitize=thread" $PLAIN "$@"
}
run_threaded() {
    run_tsan TESTS="$(echo $THREADED npu_runtime_test npu_network_test npu_pipeline_test | sed 's/workload_memory_test//')" "$@"
}

# The two files, as users compile them: gcc -O2; the tests; and all that the next step has programs of.
build_all() {
    make -s -k $(jobs) BUILD="$BUILD" CC=gcc all test > "$OUT/test.log" 2>&1 || {
        failures "$OUT/test.log"
        fail "$OUT/test.log"
    }
    tail -n 1 "$OUT/test.log"
    make -s $(jobs) BUILD="$BUILD" replay
    make -s $(jobs) BUILD="$BUILD" CC=gcc examples saved "$BUILD/bench"
}

# -- what every change passes ---------------------------------------------------------------------

# What needs no library that is built, beside building it; the longest first, as all share the processors.
# gcc's warnings in src/ are those of the two files; clang reads each file of src/ by itself.
alone() {
    task sh tests/check.sh built
    job parts COMPILERS=gcc sh tests/packaging/parts_test.sh
    for model in tests/models/*.pml; do
        job "$(basename "$model")" sh tests/models/models_test.sh "$model"
    done
    job amalgamate sh tests/packaging/amalgamate_test.sh
    job compile_fail sh tests/packaging/compile_fail.sh gcc clang
    job formatting sh tests/packaging/formatting_test.sh
    job map sh tests/packaging/map_test.sh
    job cases sh tests/cases_index.sh --check
    job english sh tests/packaging/english_test.sh
    job shown sh tests/packaging/shown_test.sh "$OUT/shown"
    job portable sh tests/packaging/portable_test.sh
    job top sh tests/packaging/top_test.sh
    job header sh tests/packaging/header_test.sh
    for file in ptowsp.c ptowsp_npu_emit.c ptowsp_dump.c; do
        task gcc -std=c17 $WC -fsyntax-only $file
        task clang -std=gnu11 $WC -fsyntax-only $file
        task g++ -x c++ -std=c++17 $W -fsyntax-only $file
        task clang++ -x c++ -std=c++20 $W -fsyntax-only $file
    done
    for option in PTOWSP_NO_THREADS PTOWSP_NO_SIMD PTOWSP_STATIC NDEBUG; do
        task gcc -std=c11 $WC -fsyntax-only -D$option ptowsp.c
        task clang++ -x c++ -std=c++17 $W -fsyntax-only -D$option ptowsp.c
    done
    for file in $(find src -name '*.c') examples/*.c examples/common/*.c bench/*.c; do
        task clang -std=c11 $WC -fsyntax-only -I. -Iexamples "$file"
    done
    for file in examples/*.c examples/common/*.c bench/*.c; do
        task gcc -std=c11 $WC -fsyntax-only -I. -Iexamples "$file"
    done
    run_tasks
}

check() {
    step "the generated files match src/"
    tools/amalgamate.sh --check

    step "two files, parts, models and the faults seeded in them, formatting, warnings by syntax;" \
        "tests that have not passed yet, inputs of the fuzzers, the examples"
    alone

    step "tests under ASan and UBSan, and of threads under TSan, with a part of their random rounds;" \
        "examples and bad input to them, saved and loaded; packaging, README, Python, emitted trees, instructions"
    task sh tests/check.sh asan PTOWSP_SCALE=10
    task sh tests/check.sh tsan PTOWSP_SCALE=10
    job packaging CC=gcc CXX=g++ OUT="$OUT/use" BUILT="$BUILD" sh tests/packaging/packaging_test.sh
    job examples EXAMPLES="$BUILD" AGAIN="$BUILD/saved" sh tests/examples/examples_test.sh
    job mpi BUILD="$BUILD" sh tests/ranks/mpi_test.sh
    job npu_tree BUILD="$BUILD" CXX=g++ OUT="$OUT/use-npu" sh tests/npu/npu_tree_test.sh
    job simpler BUILD="$BUILD" CXX=g++ OUT="$OUT/use-simpler" sh tests/npu/simpler_test.sh
    job npu_sanitize OUT="$OUT/npu" COUNT=1 sh tests/npu/npu_sanitize_test.sh address
    job decode_batch DECODE_BATCH="$BUILD/decode_batch" sh tests/examples/decode_batch_test.sh
    job counts BUILD="$BUILD" sh tests/packaging/counts_test.sh
    job cmake CC=gcc CXX=g++ OUT="$OUT/use-cmake" sh tests/packaging/cmake_test.sh
    job readme BUILD="$BUILD" OUT="$OUT/use-readme" sh tests/packaging/readme_test.sh
    job null CC=gcc sh tests/packaging/null_test.sh "$BUILD/libtested.a" "$OUT/null"
    job header_programs sh tests/packaging/header_programs_test.sh "$BUILD/libptowsp.a" "$OUT/use-header"
    job engines CC=gcc CXX=g++ sh tests/examples/engines_test.sh
    job locale sh tests/packaging/locale_test.sh "$BUILD/libptowsp.a" "$OUT/use-locale"
    job serve_trace SERVE_TRACE="$BUILD/serve_trace" sh tests/examples/serve_trace_test.sh
    job python BUILD="$BUILD" OUT="$OUT/use-python" sh tests/packaging/python_test.sh
    job cuda BUILD="$BUILD" CC=gcc CXX=g++ sh tests/examples/cuda_test.sh
    run_tasks
}

# -- what a release passes ------------------------------------------------------------------------

# Every clang warning except those against our style:
#   - pointers into arrays, declarations beside their use, casts of a function's result, exact comparisons of
#     floats, padding, vectors loaded from bytes;
#   - switches that name only some values of an enum, or all of them without a default;
#   - table macros and header functions that one of the three files does not use;
#   - false alarms: a variable set only by a call that succeeds, a format passed on by a function that is
#     declared to take one.
EVERYTHING=$(command -v clang-19 || echo clang)
OFF="-Wno-unknown-warning-option"
for warning in unsafe-buffer-usage declaration-after-statement bad-function-cast float-equal double-promotion \
    switch-enum switch-default covered-switch-default padded cast-align unused-macros used-but-marked-unused \
    conditional-uninitialized format-nonliteral missing-noreturn comma extra-semi-stmt pre-c11-compat; do
    OFF="$OFF -Wno-$warning"
done

check_all() {
    step "warnings: library, emitter, examples and benchmarks, gcc and clang, -O0 to -O3, C11 and C++17"
    for level in -O0 -O2 -O3; do
        for file in ptowsp.c ptowsp_npu_emit.c ptowsp_dump.c examples/*.c examples/common/*.c bench/*.c; do
            task gcc -std=c11 $WC $level -I. -Iexamples -c "$file" -o /dev/null
            task clang -std=c11 $WC $level -I. -Iexamples -c "$file" -o /dev/null
        done
        for file in ptowsp.c ptowsp_npu_emit.c ptowsp_dump.c; do
            task g++ -x c++ -std=c++17 $W $level -c $file -o /dev/null
            task clang++ -x c++ -std=c++17 $W $level -c $file -o /dev/null
        done
    done
    for option in PTOWSP_NO_THREADS PTOWSP_NO_SIMD PTOWSP_STATIC NDEBUG; do
        task gcc -std=c11 $WC -O2 -D$option -c ptowsp.c -o /dev/null
    done
    for file in ptowsp.c ptowsp_npu_emit.c ptowsp_dump.c; do
        task "$EVERYTHING" -std=c11 -Weverything $OFF -Werror -fsyntax-only $file
    done
    for file in ptowsp_npu_emit.c ptowsp_dump.c; do
        task g++ -x c++ -std=c++20 $W -O2 -c $file -o /dev/null
        task gcc -std=c11 $WC -O2 -DNDEBUG -c $file -o /dev/null
    done
    run_tasks

    step "packaging, parts, CMake and emitted trees with clang"
    job parts COMPILERS=clang sh tests/packaging/parts_test.sh
    job packaging CC=clang CXX=clang++ OUT="$OUT/use-clang" sh tests/packaging/packaging_test.sh
    job npu_tree BUILD="$BUILD" CXX=clang++ OUT="$OUT/use-npu-clang" sh tests/npu/npu_tree_test.sh
    job cmake CC=clang CXX=clang++ OUT="$OUT/use-cmake-clang" sh tests/packaging/cmake_test.sh
    run_tasks

    step "all tests, clang -O2, with more rounds and all cases"
    run_tests clang CC=clang CXX=clang++ PTOWSP_SCALE=300

    step "all tests, gcc -O3"
    run_tests o3 CC=gcc CXX=g++ CFLAGS="-O3 -g" TEST_LEVEL=

    step "tests of what vector code could change, without it"
    run_tests no-simd CC=gcc CXX=g++ CFLAGS="-O2 -g -DPTOWSP_NO_SIMD" \
        TESTS="$(only "isa_.*|kernel_.*|cases|merge|plan.*|count|dtype|attend_.*")"

    step "products of bytes, with assembly in the other order of operands"
    run_tests intel CC=gcc CFLAGS="-O2 -g -masm=intel" TESTS=isa_product_test

    step "tests of threads, without them"
    run_tests no-threads CC=gcc CFLAGS="-O2 -g -DPTOWSP_NO_THREADS" TESTS="$THREADED"

    step "tests of the shim under ASan and UBSan"
    run_tests asan-isa CC=clang CXX=clang++ CFLAGS="-O0 $ASAN" TESTS="$(only "isa_.*") isa_kernels_test isa_face_test isa_fifo_test"

    step "tests under ASan and UBSan, with all their rounds"
    run_asan PTOWSP_SCALE=100

    step "refused memory under TSan"
    run_tsan TESTS=workload_memory_test

    step "emitted trees under ASan and UBSan, under TSan, and without warnings"
    OUT="$OUT/npu" COUNT=3 sh tests/npu/npu_sanitize_test.sh

    step "the examples under ASan and UBSan"
    make -s -j"$JOBS" BUILD="$OUT/examples-asan" CC=clang CFLAGS="-O1 $ASAN" examples
    job decode_batch DECODE_BATCH="$OUT/examples-asan/decode_batch" sh tests/examples/decode_batch_test.sh
    job serve_trace SERVE_TRACE="$OUT/examples-asan/serve_trace" sh tests/examples/serve_trace_test.sh
    job examples EXAMPLES="$OUT/examples-asan" sh tests/examples/examples_test.sh
    run_tasks

    step "random tests, other seeds"
    for seed in 1 2 3; do
        run_tests "seed" CC=gcc CXX=g++ PTOWSP_SEED=$seed TESTS="$(only ".*random")"
    done

    step "tests that time could decide about, 20 times each beside busy processors, plain and under sanitizers"
    for build in "$BUILD" "$OUT/asan" "$OUT/tsan"; do
        sh tests/busy_test.sh "$build" > "$build/busy.log" 2>&1 || fail "$build/busy.log: $(grep FAILED "$build/busy.log")"
        echo "   $build: $(tail -n 1 "$build/busy.log")"
    done

    step "ten thousand programs over meshes of ranks"
    LAYOUT_PROGRAMS=10000 "$BUILD/layout_random_test" > "$OUT/layouts" 2>&1 || fail "$(cat "$OUT/layouts")"

    step "mutants: the library broken in 200 places, one at a time"
    python3 tests/mutation/mutation.py --build "$OUT/mutation" --jobs "$JOBS" > "$OUT/mutation.log" 2>&1 || {
        sed -n '/^mutation: /,$p' "$OUT/mutation.log"
        fail "$OUT/mutation.log: more than 5 % survive without an explanation"
    }
    grep '^mutation: ' "$OUT/mutation.log"

    step "fuzzers, two minutes each"
    make -s fuzz BUILD="$BUILD" FUZZ_SECONDS=120 || fail "a fuzzer found something"

    step "random programs with injected faults, five minutes"
    make -s soak BUILD="$BUILD" SOAK_SECONDS=300 || fail "soak found something"

    step "other compilers without warnings; examples with musl"
    builds

    step "all tests, gcc -Os, and with the linker's optimisation"
    run_tests os CC=gcc CXX=g++ CFLAGS="-Os -g"
    linked=$(only ".*" | tr ' ' '\n' | grep -vE "^${COMPILING}_test\$" | grep -vxF "$INSIDE" | tr '\n' ' ')
    run_tests lto CC=gcc CXX=g++ CFLAGS="-O2 -g -flto=auto" LTO=1 TESTS="$linked"

    # MSan follows no vector instructions, trees that another compiler makes, nor calls that a test is
    # in between of. Of cmocka, which the system has without it, tests get nothing that they look at.
    c_tests=$(only ".*" | tr ' ' '\n' | grep -vE "^($COMPILING|npu_(answer|clock.*|disk|halves|measure)|tune_disk)_test\$" | tr '\n' ' ')
    step "tests in C under MSan"
    run_tests msan CC=clang CFLAGS="-O1 -g -fsanitize=memory -fno-sanitize-recover=all" $PLAIN PTOWSP_SCALE=10 \
        PTOWSP_VECTORS=plain TESTS="$c_tests"
    if [ -n "${CMOCKA-}" ] && command -v musl-gcc > /dev/null; then
        step "tests in C with musl"
        sh tests/cmocka.sh "$OUT/musl-tests" musl-gcc
        run_tests musl-tests CC=musl-gcc CFLAGS="-O1 -g -static" $PLAIN PTOWSP_SCALE=10 \
            CPPFLAGS="-isystem $CMOCKA/include" LDFLAGS="-L$OUT/musl-tests" TESTS="$c_tests"
    else
        step "tests with musl: skipped, as musl-gcc is missing, or CMOCKA names no source of cmocka"
    fi

    step "other machines, under qemu: the library without warnings, and tests if CMOCKA is set"
    sh tests/machines.sh || fail "what is marked FAILED above"

    if command -v aarch64-linux-gnu-gcc > /dev/null && command -v qemu-aarch64 > /dev/null; then
        step "arm64, under qemu: examples with NEON, and the same plan as here"
        arm64
    else
        step "arm64: skipped, as aarch64-linux-gnu-gcc or qemu-aarch64 is missing"
    fi
}

# Compilers that are there, by their own names; those that are not are named, and skipped.
builds() {
    for compiler in gcc-11 gcc-13 gcc-14 clang-15 clang-16 clang-19 musl-gcc; do
        if ! command -v "$compiler" > /dev/null; then
            echo "   $compiler: skipped, as it is missing"
            continue
        fi
        for file in ptowsp.c ptowsp_npu_emit.c ptowsp_dump.c; do
            task "$compiler" -std=c11 $WC -fsyntax-only $file
            task "$compiler" -std=c11 $WC -fsyntax-only -DNDEBUG $file
        done
    done
    run_tasks
    if command -v musl-gcc > /dev/null; then
        musl-gcc -std=c11 $WC -O2 -c ptowsp.c -o "$OUT/musl.o"
        musl-gcc -std=c11 $WC -O2 -c ptowsp_npu_emit.c -o "$OUT/musl_emit.o"
        for example in softmax csp_pipeline deadlock work_queue graph_threads; do
            musl-gcc -std=c11 $WC -O2 -static -I. "examples/$example.c" examples/common/*.c \
                "$OUT/musl.o" "$OUT/musl_emit.o" -o "$OUT/${example}_musl" -pthread -lm
            "$OUT/${example}_musl" > "$OUT/musl.txt" || fail "$example with musl: $(cat "$OUT/musl.txt")"
        done
    else
        echo "   musl: skipped, as musl-gcc is missing"
    fi
}

arm64() {
    aarch64-linux-gnu-gcc -std=c11 $WC -O2 -c ptowsp.c -o "$OUT/arm64.o"
    aarch64-linux-gnu-gcc -std=c11 $WC -O2 -c ptowsp_npu_emit.c -o "$OUT/arm64_emit.o"
    for example in decode_batch softmax matmul attention topk quantized_matmul; do
        aarch64-linux-gnu-gcc -std=c11 $WC -O2 -static -I. "examples/$example.c" \
            examples/common/*.c "$OUT/arm64.o" "$OUT/arm64_emit.o" -o "$OUT/${example}_arm64" -pthread -lm
        [ "$example" = decode_batch ] || qemu-aarch64 "$OUT/${example}_arm64" > "$OUT/arm64.txt" ||
            fail "$(cat "$OUT/arm64.txt")"
    done
    SMALL="--batch 8 --heads 4 --kv-heads 2 --dim 64 --kv-mib 4 --steps 1 --threads 2 --json"
    for kv in f32 bf16 i8 f16; do
        qemu-aarch64 "$OUT/decode_batch_arm64" $SMALL --kv $kv > "$OUT/arm64.json"
        grep -q '"variant": "neon".*"good": true' "$OUT/arm64.json" || fail "$(cat "$OUT/arm64.json")"
    done
    "$BUILD/decode_batch" $SMALL > "$OUT/here.json"
    for plan in attention_plan chunk_plan; do
        [ "$(sed "s/.*\"$plan\"//; s/, \"plan_us.*//" "$OUT/arm64.json")" = \
            "$(sed "s/.*\"$plan\"//; s/, \"plan_us.*//" "$OUT/here.json")" ] || fail "another $plan on arm64"
    done
}

[ $# -eq 0 ] || shift
case "$WHAT" in
'') check ;;
all) check_all ;;
task) run_task "${1%.done}"; exit ;;  # the parts of a check
built) build_all; exit ;;
asan) run_asan "$@"; exit ;;
tsan) run_threaded "$@"; exit ;;
*) fail "usage: tests/check.sh [all]" ;;
esac
step
echo "check: all good, $((last - begun)) s"
