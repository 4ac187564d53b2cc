#!/bin/sh
# The header alone: no warning in any standard that it supports, a sentence in those that it does not,
# and one version everywhere.
#
#   tests/packaging/header_test.sh CC... -- CXX...       default: gcc clang -- g++ clang++
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- gcc clang -- g++ clang++
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
W="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Werror"
WCXX="$W -Wold-style-cast -Wzero-as-null-pointer-constant"

fail() {
    echo "header: $*" >&2
    exit 1
}

# A use of each macro that expands to code, as macros are only judged where they are used.
cat > "$work/use.h" << 'END'
#include "ptowsp.h"
#define DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(head, 8)
PTOWSP_DEFINE_SPACE(decode_space, DIMS)
PTOWSP_INLINE void body(const ptowsp_work *work, uint32_t lane, void *user, int tier) {
    (void)work, (void)lane, (void)user, (void)tier;
}
PTOWSP_DEFINE_TIERS(attend, PTOWSP_DECODE_TIERS, body)
PTOWSP_SOURCE(kernel_source, static inline int twice(int x) { return 2 * x; })
uint64_t use(ptowsp_module *m, ptowsp_axis axis, ptowsp_axis sparse, ptowsp_channel channel);
uint64_t use(ptowsp_module *m, ptowsp_axis axis, ptowsp_axis sparse, ptowsp_channel channel) {
    PTOWSP_WORKLOAD(m, "all") {
        PTOWSP_PARALLEL(m, i, axis) {
            PTOWSP_FOR_EACH(m, j, axis) {
                PTOWSP_WHEN(m, ptowsp_lt(i, j)) {
                    PTOWSP_SELECT(m, e, sparse) {
                        PTOWSP_COMBINE(m) { ptowsp_slot_set_make(m, 0, e); }
                    }
                }
                PTOWSP_OTHERWISE(m) {
                    PTOWSP_SEQUENCE(m) { ptowsp_slot_set_make(m, 0, j); }
                }
            }
        }
        PTOWSP_PIPELINE(m, "pipeline") {
            PTOWSP_PROCESS(m, "one") {
                PTOWSP_CONSUME(m, t, channel) { ptowsp_slot_set_make(m, 0, t); }
            }
            PTOWSP_REPLICATE(m, r, axis, "many") {
                PTOWSP_RECEIVE(m, t, channel) { ptowsp_slot_set_make(m, 0, ptowsp_add(r, t)); }
            }
        }
    }
    bool has_source = kernel_source[0] == 's' && twice(1) == 2;
    return PTOWSP_CYCLES_MAX + PTOWSP_HASH_START + PTOWSP_NO_INDEX + PTOWSP_NO_LANE + (has_source ? 1 : 0);
}
END
cp "$work/use.h" "$work/use.c"
cp "$work/use.h" "$work/use.cpp"
echo '#include "ptowsp.h"' > "$work/part.c"
cp "$work/part.c" "$work/part.cpp"
language=C
for compiler in "$@"; do
    if [ "$compiler" = -- ]; then
        language=C++
    elif [ $language = C ]; then
        for standard in c11 c17 gnu17; do
            $compiler -std=$standard $W -I. -fsyntax-only "$work/use.c" || fail "$compiler -std=$standard"
        done
        for part in ONLY_PLAN NO_TILES; do
            $compiler -std=c11 $W -I. -DPTOWSP_$part -fsyntax-only "$work/part.c" || fail "$compiler, $part"
        done
        for standard in c89 c99 gnu99; do
            $compiler -std=$standard -I. -fsyntax-only "$work/use.c" > "$work/log" 2>&1 &&
                fail "$compiler -std=$standard is accepted"
            grep -q 'ptowsp.h needs C11 or later: ' "$work/log" ||
                fail "$compiler -std=$standard is not told what it needs"
        done
    else
        for standard in c++17 c++20; do
            $compiler -std=$standard $WCXX -I. -fsyntax-only "$work/use.cpp" || fail "$compiler -std=$standard"
        done
        for part in ONLY_PLAN NO_TILES; do
            $compiler -std=c++17 $WCXX -I. -DPTOWSP_$part -fsyntax-only "$work/part.cpp" || fail "$compiler, $part"
        done
    fi
done

# One version: the header's, and that of the installed library. (base_test compares ptowsp_version.)
header=$(sed -n 's/^#define PTOWSP_VERSION  *"\(.*\)"$/\1/p' ptowsp.h)
make=$(printf 'include Makefile\nversion:\n\t@echo $(VERSION)\n' | make -s --no-print-directory -f - version)
[ -n "$header" ] && [ "$header" = "$make" ] || fail "ptowsp.h has version '$header', Makefile '$make'"
echo "header: good"
