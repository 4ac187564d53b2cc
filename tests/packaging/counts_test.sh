#!/bin/sh
# Instructions per unit of the benchmark's rows, counted by callgrind, against bench/counts.txt: 10 %
# more or fewer fail. Fewer, too, since a table that is out of date would hide the next loss.
#
#      sh tests/packaging/counts_test.sh            compares
#      sh tests/packaging/counts_test.sh --renew    writes the table
#
# Counts depend on the compiler, so the table's first line names the one that they are of; with another
# one, or without valgrind, this is skipped. Callgrind has AVX2 and nothing newer on all x86-64.
set -eu
BUILD=${BUILD:-build}
OUT=${OUT:-$BUILD/check/counts}
CC=${CC:-gcc}
TABLE=bench/counts.txt
GROUPS="plan merge decode time pipeline kernel"

compiler="# $CC $($CC -dumpfullversion) -O2, $(uname -m), instructions per unit by callgrind"
if ! command -v valgrind > /dev/null; then
    echo "counts: skipped, as there is no valgrind"
    exit 0
fi
if [ "${1-}" != --renew ] && [ "$(head -n 1 $TABLE)" != "$compiler" ]; then
    echo "counts: skipped, as $TABLE is of another compiler: $(head -n 1 $TABLE)"
    exit 0
fi

# count GROUP: lines of name, unit and instructions per unit.
count() {
    rm -f "$OUT/$1".*
    valgrind -q --tool=callgrind --callgrind-out-file="$OUT/$1.out" --toggle-collect=bench_counted \
        --dump-after=bench_counted "$BUILD/bench" --only "$1" --count > "$OUT/$1.rows" 2> "$OUT/$1.log" ||
        { cat "$OUT/$1.log" >&2; exit 1; }
    [ "$(wc -l < "$OUT/$1.rows")" = "$(ls "$OUT" | grep -c "^$1.out.[0-9]")" ] ||
        { echo "counts: rows of $1 that are no counts, or counts that are no rows" >&2; exit 1; }
    i=0
    while read -r line; do
        i=$((i + 1))
        printf '%s\t%s\n' "$line" "$(sed -n 's/^totals: //p' "$OUT/$1.out.$i")"
    done < "$OUT/$1.rows" | awk -F '\t' '!seen[$1]++ { printf "%s\t%s\t%.6g\n", $1, $2, $3 * $4 }'
}

mkdir -p "$OUT"
for group in $GROUPS; do
    count "$group"
done > "$OUT/counts.txt"

if [ "${1-}" = --renew ]; then
    { echo "$compiler"; cat "$OUT/counts.txt"; } > $TABLE
    echo "counts: $TABLE has $(grep -vc '^#' $TABLE) rows"
    exit 0
fi
grep -v '^#' $TABLE | awk -F '\t' -v now="$OUT/counts.txt" '
    BEGIN { while ((getline line < now) > 0) { split(line, part, "\t"); count[part[1]] = part[3] } }
    { before[$1] = $3 }
    !($1 in count) { printf "counts: no row %s any more\n", $1; bad = 1; next }
    count[$1] > 1.1 * $3 || count[$1] < 0.9 * $3 {
        printf "counts: %s takes %s instructions per unit, %s before\n", $1, count[$1], $3
        bad = 1
    }
    END {
        for (name in count) if (!(name in before)) { printf "counts: %s is not in the table\n", name; bad = 1 }
        if (bad) { print "counts: if that is meant, sh tests/packaging/counts_test.sh --renew"; exit 1 }
        print "counts: " NR " rows as in the table"
    }'
