#!/bin/sh
# Over MPI, where there is one: 200 random programs over meshes of processes (tests/support/layout_programs.h),
# and what the transport does where MPI has less support for threads than it is asked for. BUILD is
# the directory with ptowsp.o and the examples over MPI.
set -eu
BUILD=${BUILD:-build}
MPICC=${MPICC:-mpicc}
OUT=$BUILD/mpi_test
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

fail() {
    echo "mpi_test: $*" >&2
    exit 1
}

if ! command -v "$MPICC" > /dev/null || ! command -v mpirun > /dev/null; then
    echo "mpi_test: skipped, as there is no mpirun or no $MPICC"
    exit 0
fi
mkdir -p "$OUT"

program() {  # name: of tests/ranks/mpi, with the library and the transport
    "$MPICC" -std=c11 -O2 -Wall -Wextra -Werror -I. -Itests/support -Iexamples "tests/ranks/mpi/$1.c" examples/mpi/mpi_transport.c \
        "$BUILD/ptowsp.o" -o "$OUT/$1" -pthread -lm -ldl
}

program layout_programs_mpi
program threads_mpi
"$MPICC" -std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC tests/ranks/mpi/level.c -o "$OUT/level.so"

# 200 programs on 2, 3 and 4 processes.
for ranks in 2 3 4; do
    mpirun --oversubscribe -n "$ranks" "$OUT/layout_programs_mpi" $((ranks == 4 ? 66 : 67)) > "$OUT/log" 2>&1 ||
        fail "$ranks ranks: $(cat "$OUT/log")"
    grep "on $ranks ranks, .*: good$" "$OUT/log" || fail "$ranks ranks: $(cat "$OUT/log")"
done

# level NUMBER PROGRAM: on two processes, whose MPI has this support for threads.
level() {
    number=$1
    shift
    set +e
    mpirun --oversubscribe -n 2 -x MPI_LEVEL="$number" -x LD_PRELOAD="$(pwd)/$OUT/level.so" "$@" > "$OUT/log" 2>&1
    code=$?
    set -e
}

says() {  # text: on both ranks
    for rank in 0 1; do
        grep -qF "rank $rank: $1" "$OUT/log" || fail "level $number: no 'rank $rank: $1' in: $(cat "$OUT/log")"
    done
}

level 0 "$OUT/threads_mpi"
says "create: no transport"
says "create on another thread: no transport"
! grep -q "sum" "$OUT/log" || fail "level 0: $(cat "$OUT/log")"

level 1 "$OUT/threads_mpi"
says "create: created"
says "sum: summed"
says "sum on another thread: ranks: all_reduce: the transport"
says "create on another thread: no transport"
[ "$(grep -c "the transport to rank [01]: this build cannot do that" "$OUT/log")" = 2 ] ||
    fail "level 1: $(cat "$OUT/log")"

for number in 2 3; do
    level "$number" "$OUT/threads_mpi"
    says "sum: summed"
    says "sum on another thread: summed"
    says "create on another thread: created"
    [ "$code" = 0 ] || fail "level $number: exit $code"
done

# Programs say it in their own words.
if [ -x "$BUILD/mpi/collectives_mpi" ]; then
    level 0 "$BUILD/mpi/collectives_mpi" --count 10 --runs 1
    [ "$code" != 0 ] && grep -qF "no support for threads, not even MPI_THREAD_FUNNELED" "$OUT/log" ||
        fail "collectives_mpi: $(cat "$OUT/log")"
    level 1 "$BUILD/mpi/tensor_parallel_mpi"
    [ "$code" != 0 ] && grep -qF "does not let threads call it, not even one at a time" "$OUT/log" ||
        fail "tensor_parallel_mpi: $(cat "$OUT/log")"
fi
echo "mpi_test: good"
