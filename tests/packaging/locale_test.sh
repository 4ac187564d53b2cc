#!/bin/sh
# Numbers do not depend on the locale. Nothing in src/ prints or reads floating-point numbers by the C library, or sorts letters
# by it; and in locales whose decimal point is a comma, or has two bytes, all texts and trees are those of the C locale.
#
#   tests/packaging/locale_test.sh LIBRARY [OUT]      a static library with the emitter; a directory
set -eu
[ $# -ge 1 ] || { echo "usage: tests/packaging/locale_test.sh LIBRARY [OUT]" >&2; exit 2; }
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
LIBRARY=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
OUT=${2:-$(dirname "$1")/locale}
CC=${CC:-gcc}
rm -rf "$OUT"
mkdir -p "$OUT/locales"
OUT=$(cd "$OUT" && pwd)

fail() {
    echo "locale: $*" >&2
    exit 1
}

# Code without comments, line by line with its file. FUNCTIONS are those of the C library that look at the locale.
FUNCTIONS='strto(d|f|ld)|ato(f|i|l|ll)|v?[fs]?scanf|localeconv|setlocale|to(upper|lower)|is(alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)|str(coll|xfrm|ftime|casecmp|ncasecmp)|wcs[a-z]*|mb(r?to|s)[a-z]*|stod|stof|stold'
CONVERSION='"[^"]*%[-+ #0-9.*'"'"']*(l|L)?[aefgAEFG]'
find "$ROOT/src" -name '*.[ch]' -o -name '*.cpp' | sort | while read -r file; do
    sed 's://.*::; s:%%::g' "$file" | grep -nE "$CONVERSION|(^|[^a-z_0-9>.])($FUNCTIONS)\(" | sed "s:^:${file#$ROOT/}, line :"
done > "$OUT/uses"
[ ! -s "$OUT/uses" ] || fail "these depend on the locale; src/base/number.h has what they need: $(cat "$OUT/uses")"

# The C locale first; then those that this system can make, in a directory of their own.
$CC -std=c11 -Wall -Wextra -Werror -I"$ROOT" "$ROOT/tests/packaging/locale_program.c" "$LIBRARY" -o "$OUT/program" -pthread -lm -ldl
cd "$OUT"
./program C tree > C.txt
[ "$(grep -c '[0-9]\.[0-9]' C.txt)" -gt 50 ] || fail "locale_program prints few numbers"
mv tree C.tree
count=0
for name in de_DE ps_AF; do
    if localedef -i $name -f UTF-8 "locales/$name.UTF-8" > log 2>&1 || [ -d "locales/$name.UTF-8" ]; then
        LOCPATH=$OUT/locales ./program $name.UTF-8 tree > $name.txt || fail "$name fails"
        diff C.txt $name.txt > difference || fail "texts in $name: $(cat difference)"
        diff -r C.tree tree > difference || fail "trees in $name: $(cat difference)"
        count=$((count + 1))
    fi
done
[ $count -gt 0 ] || echo "locale: this system makes no locales: $(cat log)"
echo "locale: good"
