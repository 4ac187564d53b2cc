#!/bin/sh
# Builds the archive and the tests once with clang's coverage, runs them, and prints for each floor of
# src/ which share of its lines and branches they reach; with clang 19, also which share of the
# conditions of decisions was shown to decide on its own (MC/DC). `make coverage` runs this.
#
#      COVERAGE_SCALE=20     the percentage of rounds of random tests
#      COVERAGE_TESTS=...    only these tests
#      CMOCKA=directory      of cmocka's source (tests/cmocka.sh): NEON is measured too, under qemu
#      NEON_RUNTIME=archive  clang's profile runtime for arm64, if it is not among clang's files
#
# What vector code could change runs four times: as this machine chooses, with AVX-512 but not its products
# of bytes and bf16, with AVX2 only, and plain (support/vectors.c). What is the same in all emitted trees counts where tests are linked to it, and in the
# trees that tests emit, compile and run: they stay in $BUILD/trees until the next run.
#
# Tests that refuse allocations run once more without any room to spare, so that every request for
# memory can be refused.
#
# NEON is a fifth way, for which clang 19, qemu-aarch64, the cross compiler and the runtime have to be
# there: on Debian, qemu-user, g++-aarch64-linux-gnu and, of the architecture arm64, libclang-rt-19-dev,
# which `dpkg -x` may unpack anywhere. Its counts are exported by themselves, as its functions have the
# names of others.
#
# Into $BUILD go coverage.txt (the table), files.txt (a row for each file, those that miss most
# branches first), missing.txt (lines and sides of branches that are not reached), neon.txt (files that are
# NEON's alone), and lines/ (every file of src/ with its counts).
set -eu
BUILD=${BUILD:-build/coverage}
JOBS=$(nproc 2> /dev/null || echo 2)
W=$BUILD/work
FLOORS=$(cd src && ls -d */ | tr -d /)
TESTS=${COVERAGE_TESTS:-$(ls tests/*/*_test.c tests/*/*_test.cpp | sed 's,.*/,,; s/\..*//' | sort)}
mkdir -p "$W"

fail() {
    echo "coverage: $*" >&2
    exit 1
}

# The newest clang that has its tools beside it.
for version in -19 -14 ''; do
    if command -v "clang$version" > /dev/null && command -v "llvm-cov$version" > /dev/null &&
        command -v "llvm-profdata$version" > /dev/null; then
        found=$version
        break
    fi
done
[ "${found+yes}" ] || fail "needs clang, llvm-cov and llvm-profdata of one version"
COUNTING="-fprofile-instr-generate -fcoverage-mapping"
[ "$found" != -19 ] || COUNTING="$COUNTING -fcoverage-mcdc"
FLAGS="-O1 $COUNTING"

# Assertions stay, as tests break them on purpose. Trees find the switch of tight memory in the program.
made() {
    make -s -k -j"$JOBS" BUILD="$BUILD" CC="clang$found" CXX="clang++$found" CFLAGS="$FLAGS" \
        CPPFLAGS='-DPTOWSP_COVERAGE -DPTOWSP_TIGHT' EXECUTE_LEVEL=-O0 TEST_LEVEL=-O0 TREE_CFLAGS="$COUNTING" \
        LDFLAGS=-rdynamic "$@"
}

took() {
    echo "   $*$(($(date +%s) - begun)) s"
}

# run WHAT TEST...: runs tests; a program adds its counts to those of its runs before.
run() {
    begun=$(date +%s)
    echo "running $1"
    shift
    [ $# -gt 0 ] || return 0
    LLVM_PROFILE_FILE="$(cd "$W" && pwd)/%m.profraw" PTOWSP_SCALE=${COVERAGE_SCALE:-20} \
        PTOWSP_TEST_CACHE="$TREES" made passed TESTS="$*" > "$W/run.log" 2>&1 || {
        grep '^== .* failed' "$W/run.log" || tail -n 20 "$W/run.log"
        fail "see $W/run.log"
    }
    took "$(grep -c '^== .*_test: ' "$W/run.log") programs, "
}

begun=$(date +%s)
echo "building with clang$found $FLAGS"
made $(for test in $TESTS; do echo "$BUILD/$test"; done) > "$W/build.log" 2>&1 || {
    grep -E 'error: |\*\*\*' "$W/build.log" | head -n 20
    fail "see $W/build.log"
}
took

rm -rf "$W"/*.profraw "$BUILD/trees"
mkdir -p -m 700 "$BUILD/trees"
TREES=$(cd "$BUILD/trees" && pwd)
run "tests" $TESTS
memory=$(for test in $TESTS; do grep -l refuse_at tests/*/"$test".c* || true; done | sed 's,.*/,,; s/\..*//')
export PTOWSP_MEMORY=tight
run "tests of memory, tight" $memory
unset PTOWSP_MEMORY
if [ "$(uname -m)" = x86_64 ]; then
    vector=$(for test in $TESTS; do echo "$test"; done | grep -E \
        '^(isa_.*|kernel_.*|cases|merge|plan.*|count|dtype|attention_.*|attend_.*|moe_.*|workload_random)_test$' || true)
    for PTOWSP_VECTORS in avx512 avx2 plain; do
        export PTOWSP_VECTORS
        run "tests of vector code, $PTOWSP_VECTORS" $vector
    done
fi

# -- from counts to tables ------------------------------------------------------------------------

# Branches and decisions of an export in JSON, a line for each, as coverage.awk reads them. A file's
# branches stand before its name there.
regions() {
    sed 's/"\(branches\|filename\|mcdc_records\|segments\|summary\)":/\n\1 /g; s/\],\[/\n+ /g' | awk '
        function numbers(line) {
            gsub(/true/, "1", line)
            gsub(/false/, "0", line)
            gsub(/[^0-9]+/, " ", line)
            return line
        }
        /^(branches|filename|mcdc_records|segments|summary) / { what = $1 }
        /^branches [{]/ { what = "" }  # of a summary
        what == "branches" && /[0-9]/ { branch[++count] = numbers($0) }
        what == "filename" {
            split($0, part, "\"")
            print "F", part[2]
            for (i = 1; i <= count; i++) {
                if (split(branch[i], n, " ") >= 6) {
                    print "B", n[1], n[2], n[3], n[4], n[5], n[6]
                }
            }
            count = 0
            what = ""
        }
        what == "mcdc_records" && /[0-9]/ {
            count_of = split(numbers($0), n, " ")
            line = "M " n[1] " " n[2] " " n[3] " " n[4]
            for (i = 7; i <= count_of; i++) {
                line = line " " n[i]
            }
            print line
        }'
}

# counts NAME OPTIONS FILE...: the counts of objects and libraries, as $W/NAME.lcov and $W/NAME.regions.
# Each is exported by itself: of all that have a function of one name, as inline functions of C++ are,
# llvm-cov would take the first, which may be one that never calls it and has no code for it.
counts() {
    name=$1 options=$2
    shift 2
    for file in "$@"; do
        "llvm-cov$found" export $options -format=lcov "$file" 2>> "$W/export.log" || true  # no code
    done > "$W/$name.lcov"
    for file in "$@"; do
        "llvm-cov$found" export $options -skip-functions -skip-expansions "$file" 2>> "$W/export.log" || true
        echo
    done | regions > "$W/$name.regions"
}

# Tests of the instructions, which need no more than the shim.
neon() {
    begun=$(date +%s)
    echo "running tests of vector code, NEON"
    N=$BUILD/neon
    mkdir -p "$N"
    rm -f "$N"/*.profraw
    sh tests/cmocka.sh "$N" aarch64-linux-gnu-gcc
    some=$(for test in $TESTS; do [ ! -e "tests/isa/$test.c" ] || echo "$test"; done | grep '^isa_' || true)
    [ -n "$some" ] || return 0
    # The driver's own options would look for the runtime among clang's files.
    (FLAGS="-O1 -Xclang -fprofile-instrument=clang -Xclang -fcoverage-mapping -Xclang -fcoverage-mcdc"
        found="-19 --target=aarch64-linux-gnu"
        BUILD=$N made CPPFLAGS="-DPTOWSP_COVERAGE -I$CMOCKA/include" \
            "$N/tests/support/vectors.o" $(for test in $some; do echo "$N/tests/isa/$test.o"; done)) > "$W/neon.log" 2>&1 || fail "see $W/neon.log"
    set --
    for test in $some; do
        set -- "$@" "$N/tests/isa/$test.o"
        aarch64-linux-gnu-gcc "$N/tests/isa/$test.o" "$N/tests/support/vectors.o" "$runtime" -o "$N/$test" -L"$N" -lcmocka -lm -pthread \
            -Wl,-u,__llvm_profile_runtime
        LLVM_PROFILE_FILE="$N/%m.profraw" PTOWSP_SCALE=1 qemu-aarch64 -L /usr/aarch64-linux-gnu "$N/$test" \
            > "$N/$test.log" 2>&1 || fail "see $N/$test.log"
    done
    llvm-profdata-19 merge -sparse "$N"/*.profraw -o "$W/neon.profdata"
    only="-instr-profile=$W/neon.profdata -ignore-filename-regex=(^|/)(tests|include)/|/ptowsp[.]h$|^/usr/"
    counts neon "$only" "$@"
    took "$(echo "$some" | wc -l) programs, "
}

: > "$W/neon.lcov"
: > "$W/neon.regions"
runtime=${NEON_RUNTIME:-$("clang$found" -print-resource-dir)/lib/linux/libclang_rt.profile-aarch64.a}
if [ "$found" = -19 ] && [ -n "${CMOCKA:-}" ] && [ -e "$runtime" ] && command -v qemu-aarch64 > /dev/null; then
    neon
else
    echo "without NEON"
fi

# table BY NAME...: a table of the counts of these names.
table() {
    by=$1
    shift
    awk -v by="$by" -f tests/coverage.awk $(for floor in $FLOORS; do ls src/"$floor"/*.[ch]; done) \
        $(find src/npu/tree -type f) ptoisa_shim.h $(find "$W/tree" -name "*.made") \
        $(for name in "$@"; do echo "$W/$name.lcov"; done) $(for name in "$@"; do echo "$W/$name.regions"; done)
}

# The files of the runtime as trees have them, whose lines coverage.awk finds in those of src/: as
# NAME.made.
texts() {
    rm -rf "$W/tree"
    mkdir "$W/tree"
    for file in "$TREES"/*/tree/*/* "$BUILD"/npu/text/*/*/*; do
        name=$W/tree/${file##*/}.made
        [ -f "$name" ] || ! grep -q '^// == src/npu/tree/' "$file" 2> /dev/null || cp "$file" "$name"
    done
}

# The counts of the libraries of trees, for their files that are the same in all. That is not
# wsp_core.cpp, which lacks the line of what a program has not, and then has stand-ins in its place that
# nothing calls.
trees_export() {
    texts
    set --
    for library in "$TREES"/*/libwsp_tree.so; do
        [ ! -f "$library" ] || set -- "$@" "$library"
    done
    only="-instr-profile=$W/coverage.profdata -ignore-filename-regex=/(ptowsp|ptoisa_shim)[.]h$|/wsp_core[.]|^/usr/|/headers[.]h$|/kernels/|/sources/|/(expand|program|dispatch)[.]"
    counts trees "$only" "$@"
}

begun=$(date +%s)
echo "merging"
: > "$W/export.log"
"llvm-profdata$found" merge -sparse "$W"/*.profraw -o "$W/coverage.profdata"
# Objects, not archives: llvm-cov wants their sections aligned. Tests may need nothing of the tree.
objects=$(find "$BUILD/src" "$BUILD/tree" "$BUILD/tests" -name '*.o' 2> /dev/null || true)
ONLY="-instr-profile=$W/coverage.profdata -ignore-filename-regex=(^|/)(tests|build|examples)/|/(ptowsp[.][ch]|wsp_core[.]h)$|^/usr/"
counts coverage "$ONLY" $objects
trees_export
rm -rf "$BUILD/lines"
"llvm-cov$found" show $ONLY -show-branches=count -output-dir="$BUILD/lines" $(printf -- '-object %s ' $objects) \
    2>> "$W/export.log"
table floor coverage trees neon > "$BUILD/coverage.txt"
table file coverage trees neon > "$BUILD/files.txt"
table place coverage trees neon > "$BUILD/missing.txt"
table file neon | grep -E '^file|/[a-z]*_neon' > "$BUILD/neon.txt"
took
cat "$BUILD/coverage.txt"
[ ! -s "$W/neon.lcov" ] || cat "$BUILD/neon.txt"
echo "files: $BUILD/files.txt, lines: $BUILD/lines/"
