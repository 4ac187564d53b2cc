#!/bin/sh
# Runs tests whose outcome could depend on time, again and again, beside a busy loop on every processor:
# those with threads, child processes, faults, time limits or clocks, but not those that compile trees.
#
#      sh tests/busy_test.sh BUILD [TEST...]     tests of a build that has been made, as build or
#                                                build/check/asan; default: all that the build has
#      sh tests/busy_test.sh --list              the names of all
#
# COUNT: times that each runs (20). PTOWSP_SCALE: percent of random rounds (10). LIMIT: seconds until a run
# counts as hanging (600). The output of each failed run is kept in BUILD/busy/TEST.RUN, and is otherwise
# removed. Prints a line for each test, and fails if any run did.
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd)
COUNT=${COUNT:-20} LIMIT=${LIMIT:-600}
PTOWSP_SCALE=${PTOWSP_SCALE:-10}
export PTOWSP_SCALE

fail() {
    echo "busy_test: $*" >&2
    exit 1
}

# What a test, or a header of its own, has if time could decide about it.
TIMED='pthread_|THREADS_|test_lanes_desc|fork\(|time_limit|TIMED_OUT|refuse_at|usleep|clock_ns|std::thread'

list() {
    cd "$ROOT/tests"
    compiling=$(sed -n 's/^COMPILING="\(.*\)"$/\1/p' check.sh)
    headers=$(grep -lE "$TIMED" */*.h | sed 's,.*/,,' | grep -vx test.h | sed 's/.*/"&"/' | paste -sd'|')
    { grep -lE "$TIMED|#include ($headers)" */*_test.c */*_test.cpp; ls */graph*_test.c */device*_test.c */*lanes*_test.c */*faults*_test.c; } |
        sed 's,.*/,,; s/\..*//' | grep -vE "^${compiling}_test\$" | sort -u
}

case "${1-}" in
--list) list; exit 0 ;;
'' | -*) fail "usage: tests/busy_test.sh BUILD [TEST...] | --list" ;;
esac
BUILD=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- $(list)
STILL="setarch $(uname -m) -R"  # see check.sh
$STILL true 2> /dev/null || STILL=
rm -rf "$BUILD/busy"
mkdir -p "$BUILD/busy"

loops=
stop() {
    for loop in $loops; do
        kill "$loop" 2> /dev/null || true
    done
}
trap stop EXIT
trap 'exit 1' HUP INT TERM
for processor in $(seq "$(nproc 2> /dev/null || echo 2)"); do
    (while :; do :; done) &
    loops="$loops $!"
done

failed=0 ran=0 missing=0
for name; do
    if [ ! -x "$BUILD/$name" ]; then
        missing=$((missing + 1))
        continue
    fi
    begin=$(date +%s) bad=0
    for run in $(seq "$COUNT"); do
        log=$BUILD/busy/$name.$run
        if (cd "$ROOT" && timeout -k 10 "$LIMIT" $STILL "$BUILD/$name") > "$log" 2>&1; then
            rm "$log"
        else
            echo "== status $?" >> "$log"
            bad=$((bad + 1))
        fi
    done
    ran=$((ran + 1))
    echo "$name: $COUNT runs, $(($(date +%s) - begin)) s$([ $bad = 0 ] || echo ", $bad FAILED: $BUILD/busy/$name.*")"
    failed=$((failed + bad))
done
[ $ran -gt 0 ] || fail "$BUILD has none of these tests"
echo "busy_test: $ran tests, $COUNT runs each, $failed failed; $missing tests are not in this build"
[ $failed = 0 ]
