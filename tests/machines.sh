#!/bin/sh
# The library on other machines, under qemu's user mode: compiled without warnings, then test programs.
#
#      sh tests/machines.sh [MACHINE...]      all machines, or these; TESTS="base_test expr_test" others
#
# Prints a table, a row for each test and a column for each machine: ok, FAILED, or "-" where it is
# skipped, with the reasons below. A machine whose compiler or qemu is missing is skipped. cmocka is
# compiled for each machine from CMOCKA, a directory with its source (on Debian, `apt-get source
# cmocka`); without it, libraries are compiled and no tests run.
set -eu
OUT=${BUILD:-build}/machines
CMOCKA=${CMOCKA:-}
SCALE=${PTOWSP_SCALE:-5}
LIMIT=${LIMIT:-120}
W="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Werror"
W="$W -Wstrict-prototypes -Wmissing-prototypes"
TESTS=${TESTS:-isa_fill_test isa_index_test isa_map_test isa_elementwise_test isa_convert_test isa_reduce_test
    merge_test count_test plan_test moe_sort_test prefix_test
    deps_test region_test graph_test pipeline_test workload_test workload_random_test report_test npu_text_test
    npu_emit_test oracle_test save_test save_golden_test kernel_text_test fingerprint_test transient_test}
mkdir -p "$OUT"

# machine: name, compiler, its options, qemu, and the directory of the machine's libraries.
MACHINES='s390x|s390x-linux-gnu-gcc||qemu-s390x|/usr/s390x-linux-gnu
i686-sse|i686-linux-gnu-gcc|-msse2 -mfpmath=sse|qemu-i386|/usr/i686-linux-gnu
i686-x87|i686-linux-gnu-gcc|-march=i586 -mno-sse|qemu-i386|/usr/i686-linux-gnu
armhf|arm-linux-gnueabihf-gcc||qemu-arm|/usr/arm-linux-gnueabihf
arm64|aarch64-linux-gnu-gcc||qemu-aarch64|/usr/aarch64-linux-gnu
riscv64|riscv64-linux-gnu-gcc||qemu-riscv64|/usr/riscv64-linux-gnu
ppc64el|powerpc64le-linux-gnu-gcc||qemu-ppc64le|/usr/powerpc64le-linux-gnu'

say() {
    echo "$1 $2 $3" >> "$OUT/results"
    echo "   $1: $2 $3"
}

# try MACHINE COMMAND...: prints the first errors of a command that fails.
try() {
    log=$OUT/$1.log
    shift
    "$@" > "$log" 2>&1 || {
        grep -m 5 -E 'error|warning' "$log" || tail -n 5 "$log"
        return 1
    }
}

machine() {
    name=$1 compiler=$2 options=$3 qemu=$4 root=$5 build=$OUT/$1
    for tool in "$compiler" "$qemu"; do
        command -v "$tool" > /dev/null || {
            say "$name" - "skipped: $tool is missing"
            return 0
        }
    done
    mkdir -p "$build"
    for file in ptowsp ptowsp_npu_emit; do
        try "$name" $compiler -std=c11 $W $options -O1 -c $file.c -o "$build/$file.o" || {
            say "$name" $file FAILED
            return 0
        }
    done
    say "$name" library ok
    [ -n "$CMOCKA" ] || {
        say "$name" - "skipped: tests, as CMOCKA names no source of cmocka"
        return 0
    }
    # Tests may be of their compiler's own C, and convert sizes as 64-bit machines can.
    $compiler -w -std=gnu99 $options -O1 -DHAVE_STDINT_H -DHAVE_INTTYPES_H -DHAVE_SIGNAL_H -DHAVE_STRSIGNAL \
        -DHAVE_STRUCT_TIMESPEC -DHAVE_CLOCK_GETTIME_REALTIME -DHAVE_TIME_H -DHAVE_MALLOC_H \
        -I"$CMOCKA/include" -c "$CMOCKA/src/cmocka.c" -o "$build/cmocka.o"
    ${compiler%gcc}ar rcs "$build/libcmocka.a" "$build/cmocka.o"
    for test in $TESTS; do
        if ! $compiler -dM -E - < /dev/null | grep -q SIZEOF_INT128 && grep -rqs '__int128' \
            "tests/$test.c" $(sed -n 's/^#include "\([a-z_0-9]*\.h\)"/tests\/\1/p' "tests/$test.c"); then
            say "$name" "$test" "skipped: its reference needs __int128"
            continue
        fi
        try "$name" make -s "$build/$test" BUILD="$build" CC="$compiler" AR="${compiler%gcc}ar" \
            C11="-std=c11 -Wall -Wextra" CFLAGS="$options -O1" TEST_LEVEL=-O0 CPPFLAGS="-I$CMOCKA/include -D_FILE_OFFSET_BITS=64" \
            LDFLAGS="-L$build" || {
            say "$name" "$test" "FAILED to compile"
            continue
        }
        if timeout "$LIMIT" env PTOWSP_SCALE="$SCALE" $qemu -L "$root" "$build/$test" > "$build/$test.log" 2>&1; then
            say "$name" "$test" ok
        else
            status=$?
            say "$name" "$test" "$([ $status = 124 ] && echo "skipped: over $LIMIT s" || echo FAILED)"
            grep -m 4 -E '^\[  FAILED|LINE' "$build/$test.log" || true
        fi
    done
}

: > "$OUT/results"
echo "$MACHINES" > "$OUT/list"
while IFS='|' read -r name compiler options qemu root; do
    case " ${*:-$name} " in
    *" $name "*) machine "$name" "$compiler" "$options" "$qemu" "$root" < /dev/null ;;
    esac
done < "$OUT/list"

awk '{ m = $1; t = $2; if (!(m in seen)) { seen[m] = ++machines; name[machines] = m }
       if (t == "-") next
       if (!(t in row)) { row[t] = ++tests; test[tests] = t }
       cell[m, t] = $3 == "skipped:" ? "-" : $3
       count[m, cell[m, t]]++ }
     END { printf "%-22s", ""; for (i = 1; i <= machines; i++) printf " %9s", name[i]; print ""
           for (j = 1; j <= tests; j++) { printf "%-22s", test[j]
               for (i = 1; i <= machines; i++) printf " %9s", cell[name[i], test[j]]; print "" }
           split("ok FAILED -", kinds, " ")
           for (k = 1; k <= 3; k++) { printf "%-22s", k == 1 ? "passed" : k == 2 ? "failed" : "skipped"
               for (i = 1; i <= machines; i++) printf " %9d", count[name[i], kinds[k]]; print "" } }' "$OUT/results"
grep 'skipped' "$OUT/results" || true
! grep -q FAILED "$OUT/results"
