#!/bin/sh
# Explores models (those it is given, or all of tests/models) with spin, and every fault that is seeded
# in them: the model must hold, and each fault must be found. Lines of a model's comments say what to explore:
#
#   // HOLDS: -DENDS -a -f     in each of these ways it holds; without such a line, in the plain one
#   // FAULT: -DNO_RECHECK     and in each of these spin must find an error
#
# -D... are for the model, other options for the verifier, and words for the reader.
set -eu
cd "$(dirname "$0")/../.."
ROOT=$(pwd)
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT

fail() {
    echo "models_test: $*" >&2
    exit 1
}

if ! command -v spin > /dev/null; then
    echo "models_test: SKIPPED: spin is not installed (on Debian: apt-get install spin)"
    exit 0
fi

# explore MODEL WORDS...: writes what the verifier says to $DIR/pan.txt.
explore() {
    model=$1
    what="$*"
    shift
    defines= options= safety=-DSAFETY
    for word; do
        case "$word" in
        -D*) defines="$defines $word" ;;
        -a | -l) options="$options $word" safety= ;;
        -*) options="$options $word" ;;
        esac
    done
    cd "$DIR"
    spin $defines -a "$ROOT/$model" > spin.txt 2>&1 || fail "$what: $(cat spin.txt)"
    ${CC:-gcc} $level -w -DCOLLAPSE $safety pan.c -o pan || fail "$what: pan.c does not compile"
    ./pan -m1000000 $options > pan.txt 2>&1 || true
    cd "$ROOT"
    grep -q 'errors: [0-9]' "$DIR/pan.txt" || fail "$what: $(cat "$DIR/pan.txt")"
    ! grep -q 'depth too small\|out of memory' "$DIR/pan.txt" || fail "$what: not all was searched"
}

# lines MODEL NAME: the lines of a model's comments that begin so.
lines() {
    sed -n "s|^// *$2:|:|p" "$1"
}

models=${*:-$(echo tests/models/*.pml)}
set -f  # words for the reader are no patterns
for model in $models; do
    [ -n "$(lines "$model" HOLDS)" ] || echo "models_test: $model has no line that begins // HOLDS:"
    { lines "$model" HOLDS | grep . || echo :; } > "$DIR/holds"
    lines "$model" FAULT > "$DIR/faults"
    states=
    level=-O2
    while read -r line; do
        explore "$model" $line
        grep -q 'errors: 0' "$DIR/pan.txt" || fail "$model $line: $(cat "$DIR/pan.txt")"
        states="$states $(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$DIR/pan.txt" | head -1)"
    done < "$DIR/holds"
    count=0 level=-O0  # faults are found soon
    while read -r line; do
        explore "$model" $line
        ! grep -q 'errors: 0' "$DIR/pan.txt" || fail "$model $line: was not found"
        count=$((count + 1))
    done < "$DIR/faults"
    echo "models_test: $(basename "$model") holds, in$states states; $count seeded faults found"
done
