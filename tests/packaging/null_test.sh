#!/bin/sh
# Every function of ptowsp.h with NULL for each of its pointers: an error, never a crash (null_calls.c).
#
#      tests/packaging/null_test.sh ARCHIVE [DIRECTORY]      ARCHIVE: with the library, the emitter and the reader of dumps
#
# The calls are made from the declarations, with the values of null_values: a function that has none fails.
# They are made twice: with ARCHIVE, which has assertions, and with ptowsp.c compiled without. The second
# time takes NDEBUG_ARCHIVE instead, if that is set.
set -eu
cd "$(dirname "$0")/../.."
archive=$1
out=${2:-$(mktemp -d)}
CC=${CC:-cc}
mkdir -p "$out"
out=$(cd "$out" && pwd)

# What a line is about, without comments and linkage, and with "*" next to the type.
plain() {
    sed 's|//.*||; s/^#.*//; s/PTOWSP_NPU_API/PTOWSP_API/; s/PTOWSP_AICORE//; s/PTOWSP_AICPU//; s/PTOWSP_GM//g
        s/PWSP_ALIGNAS([0-9]*)//' ptowsp.h | tr '\n' ' ' | sed 's/  */ /g; s/ \*/*/g; s/\* */*/g'
}
plain | sed 's/typedef struct [a-z_0-9]* {/\n&/g; s/} ptowsp_[a-z_0-9]*;/&\n/g' |
    grep '^typedef struct [a-z_0-9]* {' > "$out/structures"
# The inline functions that bind one thing are declarations, too.
plain | sed 's/PTOWSP_INLINE \(ptowsp_status ptowsp_run_bind_[a-z]*([^)]*)\) {/PTOWSP_API \1;/g' |
    sed 's/PTOWSP_API/\n&/g' | sed -n 's/^PTOWSP_API *\([^;{}]*)\) *;.*/\1/p' |
    sed 's/PWSP_PRINTF([^)]*)//' | grep '(' > "$out/declarations"
awk -f tests/packaging/null_rows.awk tests/packaging/null_values "$out/structures" "$out/declarations" > "$out/null_calls.h"

export XDG_CACHE_HOME="$out/cache"
run() {
    $CC -std=c11 -g -O0 -Wall -Wextra -I. -I"$out" $2 tests/packaging/null_calls.c "$1" -o "$out/null" -pthread -lm -ldl
    (cd "$out" && ./null)
}
run "$archive" "-UNDEBUG"
if [ -z "${NDEBUG_ARCHIVE:-}" ]; then
    NDEBUG_ARCHIVE="$out/ndebug.a"
    for file in ptowsp ptowsp_npu_emit ptowsp_dump; do
        $CC -std=c11 -O0 -DNDEBUG -I. -c $file.c -o "$out/$file.o"
    done
    ar rcs "$NDEBUG_ARCHIVE" "$out/ptowsp.o" "$out/ptowsp_npu_emit.o" "$out/ptowsp_dump.o"
fi
run "$NDEBUG_ARCHIVE" -DNDEBUG
