#!/bin/sh
# Everything that has to hold before a commit; `make check` runs it. Each step prints a line; the first
# that fails ends it. Needs gcc, g++, clang, clang-format, cmocka, and clang's sanitizer runtime.
# Models are explored if spin is there.
set -eu
BUILD=${BUILD:-build}
OUT=$BUILD/check
W="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Werror"
WC="$W -Wstrict-prototypes -Wmissing-prototypes"
LEVELS="-O0 -O2 -O3"
JOBS=$(nproc 2> /dev/null || echo 2)
mkdir -p "$OUT"

step() {
    echo "-- $*"
}

fail() {
    echo "check: $*" >&2
    exit 1
}

step "amalgamation: ptowsp.c matches src/, and the script refuses what it should"
tools/amalgamate.sh --check
sh tests/amalgamate_test.sh

step "formatting"
clang-format --dry-run -Werror ptowsp.h $(find src tests examples bench \( -name '*.[ch]' -o -name '*.cpp' \) ! -path 'tests/golden/*')
if grep -nP '[^\x00-\x7f]' ptowsp.h ptowsp.c ptowsp_npu_emit.c $(find src -type f); then
    fail "the library's files are ASCII"
fi

# Compiling the library takes seconds: commands are collected, and run on all processors.
TASKS="$OUT/tasks"

task() {
    echo "$* -o $OUT/task-$(wc -l < "$TASKS").o" >> "$TASKS"
}

run_tasks() {
    xargs -P "$JOBS" -I{} sh -c '{} || exit 255' < "$TASKS" || fail "a compiler complains"
    : > "$TASKS"
}

: > "$TASKS"
step "warnings: the library as C11, C17 and C++17, gcc and clang, -O0 to -O3, and its options"
for compiler in gcc clang; do
    for level in -O0 -O2 -O3; do
        task $compiler -std=c11 $WC $level -c ptowsp.c
    done
    for standard in c17 gnu11; do
        task $compiler -std=$standard $WC -fsyntax-only -c ptowsp.c
    done
done
for level in -O0 -O2 -O3; do
    task g++ -x c++ -std=c++17 $W $level -c ptowsp.c
done
task clang++ -x c++ -std=c++17 $W -O2 -c ptowsp.c
for option in PTOWSP_NO_THREADS PTOWSP_NO_SIMD PTOWSP_STATIC NDEBUG; do
    task gcc -std=c11 $WC -O2 -D$option -c ptowsp.c
    task clang -std=c11 $WC -fsyntax-only -D$option -c ptowsp.c
    task g++ -x c++ -std=c++17 $W -fsyntax-only -D$option -c ptowsp.c
done
step "warnings: the emitter, the same"
for level in -O0 -O2 -O3; do
    task gcc -std=c11 $WC $level -c ptowsp_npu_emit.c
    task clang -std=c11 $WC $level -c ptowsp_npu_emit.c
    task g++ -x c++ -std=c++17 $W $level -c ptowsp_npu_emit.c
    task clang++ -x c++ -std=c++17 $W $level -c ptowsp_npu_emit.c
done
task gcc -std=c11 $WC -O2 -DNDEBUG -c ptowsp_npu_emit.c
task g++ -x c++ -std=c++20 $W -O2 -c ptowsp_npu_emit.c
run_tasks

step "warnings: every file of src/ alone, examples, benchmarks"
for file in $(find src -name '*.c'); do
    task gcc -std=c11 $WC -O2 -c "$file"
    task clang -std=c11 $WC -fsyntax-only -c "$file"
done
for file in examples/*.c examples/common/*.c bench/*.c; do
    for level in $LEVELS; do
        task gcc -std=c11 $WC $level -I. -Iexamples -c "$file"
    done
    task clang -std=c11 $WC -O2 -I. -Iexamples -c "$file"
done
run_tasks

step "packaging"
CC=gcc CXX=g++ OUT="$OUT/gcc" sh tests/packaging_test.sh
CC=clang CXX=clang++ OUT="$OUT/clang" sh tests/packaging_test.sh

step "README: its programs compile and print what it says"
export XDG_CACHE_HOME="$PWD/$OUT/cache"
for number in 1 2 3 4 5 6; do
    awk -v want=$number -v program="$OUT/readme.c" -v text="$OUT/readme.expected" '
        /^```c$/ { block++; mode = block == want ? "program" : ""; next }
        /^```/ { if (mode == "text") exit; mode = mode == "program" ? "between" : mode == "between" ? "text" : ""; next }
        mode == "program" { print > program }
        mode == "text" { print > text }' README.md
    emitter=
    [ "$number" != 6 ] || emitter=ptowsp_npu_emit.c
    gcc -std=c11 -Wall -Wextra -Werror -I. "$OUT/readme.c" $emitter -o "$OUT/readme" -pthread -ldl
    "$OUT/readme" > "$OUT/readme.txt"
    cmp "$OUT/readme.txt" "$OUT/readme.expected" || fail "README's program prints $(cat "$OUT/readme.txt")"
done

step "what must not compile"
sh tests/compile_fail.sh gcc clang g++ clang++

# Tests of the shim, and those of emitted trees that compile some, take long: they are left out where
# what they would show is shown elsewhere. Without threads, and under TSan, those run that have to do
# with threads.
without() {
    (cd tests && ls *_test.c *_test.cpp) | sed 's/\..*//' | grep -vE "^($1)_test\$" | tr '\n' ' '
}
COMPILING="npu_(build|build_memory|equal|error|execute|expand.*|expr|instruction|kernel|native|ops|oracle.*|pick|shape)"
run_tests() {
    directory="$OUT/test-$1"
    shift
    make -s -j"$JOBS" JOBS="$JOBS" test BUILD="$directory" "$@"
}
step "tests: plain; what compilers and vector code could change with clang, and without; without threads"
run_tests gcc CC=gcc CXX=g++
only() {
    (cd tests && ls *_test.c) | sed 's/\..*//' | grep -E "^($1)_test\$" | tr '\n' ' '
}
run_tests clang CC=clang CXX=clang++ \
    TESTS="$(only "(oracle|workload|pipeline|plan|kernel)_random|oracle|oracle_kernel|merge|dtype|isa_(matmul|elementwise|reduce|convert)")"
run_tests no-simd CC=gcc CXX=g++ CFLAGS="-O2 -g -DPTOWSP_NO_SIMD" \
    TESTS="$(only "isa_.*|kernel_.*|oracle_kernel|merge|plan.*|count|dtype|decode_attention")"
THREADED=$(cd tests && { grep -lE 'pthread_|THREADS_' *_test.c; ls graph*_test.c device*_test.c *lanes*_test.c; } |
    sed 's/\.c$//' | grep -vE "^${COMPILING}_test\$" | sort -u | tr '\n' ' ')
run_tests no-threads CC=gcc CFLAGS="-O2 -g -DPTOWSP_NO_THREADS" TESTS="$THREADED"

step "tests under ASan and UBSan, and under TSan"
run_tests asan CC=clang CXX=clang++ TESTS="$(without "$COMPILING")" \
    CFLAGS="-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
run_tests tsan CC=clang CXX=clang++ CFLAGS="-O1 -g -fsanitize=thread" \
    TESTS="$THREADED npu_runtime_test npu_network_test npu_pipeline_test"

step "emitted trees under ASan and UBSan, under TSan, and without warnings"
OUT="$OUT/npu" COUNT=1 sh tests/npu_sanitize_test.sh

step "models: spin explores them, and finds the faults that are seeded in them"
ls tests/models/*.pml | xargs -P "$JOBS" -n 1 sh tests/models_test.sh

step "fuzzing the trace reader, 20 seconds"
clang -std=c11 $WC -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iexamples \
    -I. tests/fuzz_trace.c examples/common/lengths.c -o "$OUT/fuzz_trace" -lm
mkdir -p "$OUT/corpus"
"$OUT/fuzz_trace" -max_total_time=20 -max_len=4096 -verbosity=0 -print_final_stats=0 \
    -artifact_prefix="$OUT/" "$OUT/corpus" tests/traces 2> "$OUT/fuzz.log" ||
    { cat "$OUT/fuzz.log"; fail "the fuzzer found something"; }

step "the examples: options, bad input, decode_batch's bits for 1, 2 and 4 threads"
make -s -j"$JOBS" BUILD="$OUT/test-gcc" CC=gcc examples
DECODE_BATCH="$OUT/test-gcc/decode_batch" sh tests/decode_batch_test.sh
EXAMPLES="$OUT/test-gcc" sh tests/examples_test.sh
make -s -j"$JOBS" BUILD="$OUT/test-asan" CC=clang examples \
    CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
DECODE_BATCH="$OUT/test-asan/decode_batch" sh tests/decode_batch_test.sh
EXAMPLES="$OUT/test-asan" sh tests/examples_test.sh

if command -v aarch64-linux-gnu-gcc > /dev/null && command -v qemu-aarch64 > /dev/null; then
    step "arm64, under qemu: examples with NEON, and the same plan as here"
    aarch64-linux-gnu-gcc -std=c11 $WC -O2 -c ptowsp.c -o "$OUT/arm64.o"
    for example in decode_batch softmax matmul attention topk quantized_matmul; do
        aarch64-linux-gnu-gcc -std=c11 $WC -O2 -static -I. "examples/$example.c" \
            $(ls examples/common/*.c | grep -v /emit.c) "$OUT/arm64.o" -o "$OUT/${example}_arm64" -pthread -lm
        [ "$example" = decode_batch ] || qemu-aarch64 "$OUT/${example}_arm64" > "$OUT/arm64.txt" ||
            fail "$(cat "$OUT/arm64.txt")"
    done
    SMALL="--batch 8 --heads 4 --kv-heads 2 --dim 64 --kv-mib 4 --steps 1 --threads 2 --json"
    qemu-aarch64 "$OUT/decode_batch_arm64" $SMALL > "$OUT/arm64.json"
    grep -q '"variant": "neon".*"good": true' "$OUT/arm64.json" || fail "$(cat "$OUT/arm64.json")"
    "$OUT/test-gcc/decode_batch" $SMALL > "$OUT/here.json"
    [ "$(sed 's/.*"chunk"/"chunk"/; s/, "chunk_us.*//' "$OUT/arm64.json")" = \
        "$(sed 's/.*"chunk"/"chunk"/; s/, "chunk_us.*//' "$OUT/here.json")" ] || fail "another plan on arm64"
else
    step "arm64: skipped, as aarch64-linux-gnu-gcc or qemu-aarch64 is missing"
fi

echo "check: all good"
