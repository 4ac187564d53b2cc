#!/bin/sh
# The library on other machines, under qemu's user mode: compiled without warnings, then every test
# program that can run there. Programs for i686 run without qemu where the system can.
#
#      sh tests/machines.sh [MACHINE...]      all machines, or these
#
#      CMOCKA=directory    of cmocka's source (on Debian, `apt-get source cmocka`), which is compiled
#                          for each machine; without it, libraries are compiled and no tests run
#      TESTS="a_test ..."  these tests only; what is known of the others from an earlier run stays
#      PTOWSP_SCALE=5      the percentage of rounds of random tests
#      LIMIT=600           seconds that a test may take; one that takes more is skipped, as emulation
#                          and a busy machine are slow
#
# Writes a table to build/machines/table, a row for each test and a column for each machine: ok, FAILED,
# or "-" where it is skipped. Prints its sums, and which tests failed or are skipped and why. A machine
# whose compiler or qemu is missing is skipped, and tests in C++ are without its C++ compiler. The last
# rows of the table are checksums of what examples print: programs, plans and simulated cycles, which
# every machine, this one included, must print alike.
#
# Tests that compile emitted trees and load them have the machine's compiler: it runs here, and what it
# makes there.
set -eu
OUT=${BUILD:-build}/machines
CMOCKA=${CMOCKA:-}
SCALE=${PTOWSP_SCALE:-5}
LIMIT=${LIMIT:-600}
LEVEL=${LEVEL:--O1}
JOBS=${JOBS:-$(nproc 2> /dev/null || echo 2)}
W="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Werror"
WC="$W -Wstrict-prototypes -Wmissing-prototypes"
# Tests may convert sizes as 64-bit machines can.
WT="-Wall -Wextra -Wpedantic -Wundef -Werror"
PRINTED="csp_pipeline deadlock hello_workload lattice timelines"
mkdir -p "$OUT"

# A machine: name, compiler, its options, qemu, and the directory of the machine's libraries. The long
# double of ppc64el is a pair of doubles unless an option says otherwise, which references do not hold on.
MACHINES='s390x|s390x-linux-gnu-gcc||qemu-s390x|/usr/s390x-linux-gnu
i686-sse|i686-linux-gnu-gcc|-msse2 -mfpmath=sse|qemu-i386|/usr/i686-linux-gnu
i686-x87|i686-linux-gnu-gcc|-march=i586 -mno-sse|qemu-i386|/usr/i686-linux-gnu
armhf|arm-linux-gnueabihf-gcc||qemu-arm|/usr/arm-linux-gnueabihf
arm64|aarch64-linux-gnu-gcc||qemu-aarch64|/usr/aarch64-linux-gnu
riscv64|riscv64-linux-gnu-gcc||qemu-riscv64|/usr/riscv64-linux-gnu
ppc64el|powerpc64le-linux-gnu-gcc|-mabi=ieeelongdouble -Wno-psabi|qemu-ppc64le|/usr/powerpc64le-linux-gnu'

# say MACHINE TEST WHAT: notes a result. The last one of a test counts.
say() {
    echo "$1 $2 $3" >> "$OUT/$1.results"
    echo "   $1: $2 $3"
}

# built MACHINE TARGET...: makes targets for a machine, as far as they can be made.
built() {
    machine=$1
    shift
    make -s -k -j"$JOBS" "$@" BUILD="$build" CC="$compiler" CXX="$cxx" AR="${compiler%gcc}ar" \
        C11="-std=c11 $WT" CXX17="-std=c++17 $WT" CFLAGS="$options $LEVEL" EXECUTE_LEVEL=-O0 TEST_LEVEL=-O0 \
        CPPFLAGS="-I$CMOCKA/include -D_FILE_OFFSET_BITS=64" LDFLAGS="-L$build" >> "$OUT/$machine.log" 2>&1 || true
}

# run MACHINE TEST: runs a test and says how it went.
run() {
    status=0
    timeout "$LIMIT" env CC="$compiler $options" CXX="$cxx $options" PTOWSP_SCALE="$SCALE" $runner "$build/$2" > "$build/$2.log" 2>&1 || status=$?
    case $status in
    0) say "$1" "$2" ok ;;
    124) say "$1" "$2" "skipped: over $LIMIT s" ;;
    *)
        say "$1" "$2" FAILED
        grep -m 6 -E '^\[  (FAILED|  ERROR)|LINE|qemu:' "$build/$2.log" || true
        ;;
    esac
}

# tests MACHINE: builds and runs them all.
tests() {
    CMOCKA="$CMOCKA" sh tests/cmocka.sh "$build" "$compiler" $options
    cxx=${compiler%gcc}g++
    some=${TESTS:-$(find tests -name '*_test.c' -o -name '*_test.cpp' | sed 's,.*/,,; s/\..*//' | sort)}
    list=
    for test in $some; do
        if [ "$1" = i686-x87 ] && [ -e "tests/isa/$test.cpp" ]; then
            say "$1" "$test" "skipped: C++ computes with more than a float's bits there, also what it expects"
        elif { ls tests/*/"$test.cpp" > /dev/null 2>&1 || echo "$test" | grep -q '^npu_clock'; } && ! command -v "$cxx" > /dev/null; then
            say "$1" "$test" "skipped: $cxx is missing"
        else
            list="$list $test"
        fi
    done
    built "$1" $(for test in $list; do echo "$build/$test"; done)
    grep -m 20 -E 'error:|warning:|undefined reference|\*\*\*' "$OUT/$1.log" || true
    for first in $(seq "$JOBS"); do
        at=0
        for test in $list; do
            at=$((at % JOBS + 1))
            if [ "$at" -ne "$first" ]; then
                :
            elif [ -e "$build/$test" ]; then
                run "$1" "$test"
            else
                say "$1" "$test" "FAILED to compile"
            fi
        done &
    done
    wait
}

# printed MACHINE: what examples print there.
printed() {
    mkdir -p "$build/examples/common"
    for file in $(ls examples/common/*.c | grep -v /emit.c); do
        $compiler -std=c11 -w $options -O1 -I. -c "$file" -o "$build/${file%.c}.o"
    done
    for example in $PRINTED; do
        $compiler -std=c11 -w $options -O1 -I. "examples/$example.c" "$build"/examples/common/*.o \
            "$build/libtested.a" -o "$build/example_$example" -pthread -lm -ldl &&
            (cd "$build" && $runner "./example_$example") > "$build/$example.txt" 2>&1 ||  # it may write files
            echo "$1 failed" >> "$build/$example.txt"
        say "$1" "prints_$example" "$(cksum < "$build/$example.txt" | cut -d' ' -f1)"
    done
}

machine() {
    name=$1 compiler=$2 options=$3 qemu=$4 build=$OUT/$1
    runner="$qemu -L $5"
    if "$5/lib/ld-linux.so.2" --version > /dev/null 2>&1; then
        qemu= runner="$5/lib/ld-linux.so.2 --library-path $5/lib"
    fi
    for tool in "$compiler" $qemu; do
        command -v "$tool" > /dev/null || {
            say "$name" - "skipped: $tool is missing"
            return 0
        }
    done
    mkdir -p "$build"
    : > "$OUT/$name.log"
    [ -n "${TESTS:-}" ] || : > "$OUT/$name.results"
    for file in ptowsp ptowsp_npu_emit ptowsp_dump; do
        if $compiler -std=c11 $WC $options $LEVEL -c $file.c -o "$build/$file.o" > "$OUT/$name.log" 2>&1; then
            say "$name" $file ok
        else
            say "$name" $file FAILED
            grep -m 5 -E 'error|warning' "$OUT/$name.log" || true
        fi
    done
    if [ -z "$CMOCKA" ]; then
        say "$name" - "skipped: tests, as CMOCKA names no source of cmocka"
        return 0
    fi
    tests "$name"
    printed "$name"
}

: > "$OUT/here.results"
if [ -n "$CMOCKA" ]; then
    name=here compiler=gcc options= runner= build=$OUT/here cxx=g++
    mkdir -p "$build"
    : > "$OUT/here.log"
    built here "$build/libtested.a"
    printed here
fi
echo "$MACHINES" > "$OUT/list"
while IFS='|' read -r name compiler options qemu root; do
    case " ${*:-$name} " in
    *" $name "*) machine "$name" "$compiler" "$options" "$qemu" "$root" < /dev/null ;;
    esac
done < "$OUT/list"

# The table; a checksum that is not this machine's has an exclamation mark. Then its sums, and the rest.
awk -v table="$OUT/table" '
    FNR == 1 { name[++machines] = $1 }
    $2 == "-" { why[$1, "-"] = $0; next }
    { if (!($2 in row)) { row[$2] = ++rows; test[rows] = $2 }
      cell[$1, $2] = $3 == "skipped:" ? "-" : $3; why[$1, $2] = $0 }
    END {
        printf "%-26s", "" > table
        for (i = 1; i <= machines; i++) printf " %11s", name[i] > table
        for (j = 1; j <= rows; j++) {
            printf "\n%-26s", test[j] > table
            kind = test[j] ~ /_test$/ ? "program" : test[j] ~ /^prints_/ ? "print" : "file"
            for (i = 1; i <= machines; i++) {
                m = name[i]
                c = cell[m, test[j]]
                if (kind == "print" && c != "" && c != cell["here", test[j]]) {
                    c = c "!"
                    why[m, test[j]] = why[m, test[j]] ", not as here"
                }
                printf " %11s", c > table
                result = c == "ok" || c == "-" || c == "" ? c : kind == "print" && c !~ /!/ ? "ok" : "FAILED"
                count[m, kind, result]++
                failed += result == "FAILED"
                if (c != "" && result != "ok") rest[++rests] = why[m, test[j]]
            }
        }
        print "" > table
        printf "%-12s %8s %8s %8s %8s %8s\n", "machine", "compiled", "passed", "failed", "skipped", "prints"
        for (i = 1; i <= machines; i++) {
            m = name[i]
            if (m != "here") printf "%-12s %8d %8d %8d %8d %8d\n", m, count[m, "file", "ok"], count[m, "program", "ok"],
                count[m, "program", "FAILED"], count[m, "program", "-"], count[m, "print", "ok"]
            if ((m, "-") in why) print why[m, "-"]
        }
        for (k = 1; k <= rests; k++) print rest[k]
        exit failed > 0
    }' "$OUT/here.results" $(cut -d'|' -f1 "$OUT/list" | while read -r name; do
    [ ! -s "$OUT/$name.results" ] || echo "$OUT/$name.results"
done)
