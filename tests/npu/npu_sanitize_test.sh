#!/bin/sh
# Emitted trees under sanitizers and compilers: random programs as trees, built with ASan and UBSan and
# with TSan, run inside a test program that is built alike (a tree's shared object and the program
# that loads it share one runtime); and the text of trees compiled without warnings by g++ and
# clang++, as C++17 and C++20, and for a device: against the declarations of tests/npu/cann_stub, linked.
#
#      sh tests/npu/npu_sanitize_test.sh [address|thread|warnings]...
#
# COUNT random programs of each kind (default 2), OUT for what is built.
set -eu
OUT=${OUT:-build/npu_sanitize}
COUNT=${COUNT:-2}
JOBS=$(nproc 2> /dev/null || echo 2)
W="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Werror"
[ $# -gt 0 ] || set -- address thread warnings
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)

fail() {
    echo "npu_sanitize: $*" >&2
    exit 1
}

# build NAME FLAGS: the test programs with the library and the emitter in them
build() {
    printf '%s\n' ptowsp.c ptowsp_npu_emit.c tests/npu/npu_equal_test.c tests/npu/npu_error_test.c |
        xargs -P "$JOBS" -I{} sh -c "clang -std=c11 -O0 -g $2 -I. -Itests -Itests/support -c {} \
            -o $OUT/$1-\$(basename {}).o || exit 255"
    for test in npu_equal_test npu_error_test; do
        clang++ $2 "$OUT/$1-$test.c.o" "$OUT/$1-ptowsp.c.o" "$OUT/$1-ptowsp_npu_emit.c.o" \
            -o "$OUT/$1-$test" -pthread -lcmocka -lm -ldl
    done
}

# sanitize NAME FLAGS
sanitize() {
    build "$1" "$2"
    for test in npu_equal_test npu_error_test; do
        NPU_EQUAL_COUNT=$COUNT NPU_EQUAL_COMPILER=clang++ NPU_EQUAL_OPTIONS="-O1 -g $2" \
            PTOWSP_TEST_CACHE="$OUT/$1-cache" "$OUT/$1-$test" > "$OUT/$1-$test.log" 2>&1 || {
            tail -n 60 "$OUT/$1-$test.log"
            fail "$test fails with $1"
        }
        grep "$test\|trees built" "$OUT/$1-$test.log" || true
        if grep -q "WARNING: ThreadSanitizer\|ERROR: AddressSanitizer\|runtime error" \
            "$OUT/$1-$test.log"; then
            fail "$1 complains: $OUT/$1-$test.log"
        fi
    done
}

# Every file of some trees, once each: files of several trees are mostly the same.
compile_all() {
    rm -rf "$OUT/trees" && mkdir "$OUT/trees" && : > "$OUT/seen" && : > "$OUT/files"
    build plain ""
    NPU_EQUAL_COUNT=$COUNT NPU_EQUAL_TREES="$OUT/trees" "$OUT/plain-npu_equal_test" > /dev/null
    NPU_EQUAL_TREES="$OUT/trees" "$OUT/plain-npu_error_test" > /dev/null
    for tree in "$OUT"/trees/*; do
        for file in $(cd "$tree" && find . -name '*.cpp' | sort); do
            sum=$(cksum < "$tree/$file")
            case $file in
            */program.cpp | */expand.cpp | */kernels/* | */dispatch.cpp) ;;
            *)
                grep -qx "$file $sum" "$OUT/seen" && continue
                echo "$file $sum" >> "$OUT/seen"
                ;;
            esac
            echo "$tree $file" >> "$OUT/files"
        done
    done
    while read -r tree file; do
        for compiler in g++ clang++; do
            for standard in c++17 c++20; do
                level=-fsyntax-only
                [ "$compiler $standard" != "g++ c++17" ] || level="-O2 -c -o /dev/null"
                echo "cd $tree && $compiler -std=$standard $W $level -Iinclude -Iaicpu -Iaicore" \
                    "-Ihost -Ishim $file"
            done
        done
    done < "$OUT/files" > "$OUT/commands"
    xargs -P "$JOBS" -I{} sh -c '{} || { echo "{}"; exit 255; }' < "$OUT/commands" ||
        fail "a compiler complains"
    echo "$(wc -l < "$OUT/files") files of $(ls "$OUT/trees" | wc -l) trees compiled without warnings"
}

# For a device the host's program lacks nothing but CANN, and the AICPU's library nothing.
link_for_device() {
    tree=$(ls -d "$OUT"/trees/* | head -n 1)
    stub=$PWD/tests/npu/cann_stub
    (
        cd "$tree"
        set -- -std=c++17 $W -DWSP_ASCEND -Iinclude -Iaicpu -Iaicore -Ihost -isystem "$stub"
        g++ "$@" -DWSP_HOST host/*.cpp aicpu/*.cpp aicore/dispatch.cpp -pthread -ldl -o "$OUT/host" 2>&1 |
            grep 'error:\|warning:\|multiple definition\|undefined reference' |
            grep -v 'undefined reference to `\(acl\|rt\)\|error: ld returned' && exit 1
        g++ "$@" aicpu/*.cpp aicore/dispatch.cpp -fPIC -shared -Wl,-z,defs -pthread -o "$OUT/aicpu.so"
    ) || fail "$tree cannot be linked for a device"
}

for what in "$@"; do
    case $what in
    address) sanitize address "-fsanitize=address,undefined -fno-sanitize-recover=all" ;;
    thread) sanitize thread "-fsanitize=thread" ;;
    warnings) compile_all && link_for_device ;;
    *) fail "nothing is called $what" ;;
    esac
done
