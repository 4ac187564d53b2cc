#!/bin/sh
# The Python interface: its tests and examples over the shared library, and its installation into a fresh environment, as its
# README has it. Skipped, with a message, where numpy is missing, unless PTOWSP_NEED_NUMPY is set, as in CI.
#
#   BUILD=build OUT=build/check/python tests/packaging/python_test.sh      BUILD has libptowsp.so; OUT is for what is made
set -eu
PYTHON=${PYTHON:-/usr/bin/python3}
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
OUT=${OUT:-$BUILD/python}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
LIBRARY=$(cd "$BUILD" && pwd)/libptowsp.so

fail() {
    echo "python: $*" >&2
    exit 1
}

if ! "$PYTHON" -c 'import numpy' 2> /dev/null; then
    [ -z "${PTOWSP_NEED_NUMPY-}" ] || fail "$PYTHON has no numpy (Debian: python3-numpy)"
    echo "python: skipped, as $PYTHON has no numpy (Debian: python3-numpy)"
    exit 0
fi
[ -f "$LIBRARY" ] || fail "there is no $LIBRARY: make builds it"
[ "$(wc -l < "$ROOT/python/README.md")" -le 60 ] || fail "python/README.md has more than 60 lines"

# Header first, and alone: with a field too few, other tests crash.
for tests in Header ""; do
    PTOWSP_LIBRARY=$LIBRARY PYTHONPATH=$ROOT/python "$PYTHON" -B -W error "$ROOT/tests/packaging/python_test.py" $tests
done

# Installed without network: pure, with a library in the environment's lib; and with the library in the wheel.
if ! "$PYTHON" -c 'import ensurepip' 2> /dev/null; then
    [ -z "${PTOWSP_NEED_NUMPY-}" ] || fail "$PYTHON has no ensurepip (Debian: python3-venv)"
    echo "python: installation is skipped, as $PYTHON has no ensurepip (Debian: python3-venv)"
    exit 0
fi
rm -rf "$OUT/environment" "$OUT/source" "$OUT/fresh"
"$PYTHON" -m venv --system-site-packages "$OUT/environment"
mkdir "$OUT/fresh"
cp -r "$ROOT/python" "$OUT/source"

# uses WHERE: the five lines in a fresh directory, with the library WHERE in the environment.
uses() {
    (cd "$OUT/fresh" && env -u PTOWSP_LIBRARY "$OUT/environment/bin/python" -B -c '
import ptowsp
plan = ptowsp.attention_plan([250, 100, 50], heads=1, lanes=4, cost={"per_token": 1})
print(ptowsp.__file__, *plan.units["kv_len"])') > "$OUT/printed" || fail "installed with the library in $1: $(cat "$OUT/printed")"
    grep -q "^$OUT/environment/.* 100 100 50 50 50 50\$" "$OUT/printed" || fail "installed with the library in $1: $(cat "$OUT/printed")"
}

install() {
    "$OUT/environment/bin/pip" install --no-index --force-reinstall --no-deps "$OUT/source" > "$OUT/log" 2>&1 || fail "$(cat "$OUT/log")"
}

install
cp "$LIBRARY" "$OUT/environment/lib/"
uses lib
rm "$OUT/environment/lib/libptowsp.so"
cp "$LIBRARY" "$OUT/source/"
install
uses "the wheel"
echo "python: good"
