#!/bin/sh
# parts/attention is C11 without an operating system: clang reads it for Windows and macOS, against the C
# library that it needs and no more (bare_libc/). What these targets' own headers and linkers say is
# not known from here.
#
#   sh tests/packaging/portable_test.sh          PART=DIR: another place of the two files
set -eu
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
: "${CLANG:=clang}"

if ! command -v "$CLANG" > /dev/null; then
    echo "portable: skipped, as there is no $CLANG"
    exit 0
fi
if [ -z "${PART-}" ]; then
    PART=$tmp/part
    mkdir "$PART"
    tools/amalgamate.sh --part plan "$PART"
fi

fail() {
    echo "portable: $1" >&2
    exit 1
}

# What is used of the C library: headers of the part, but those of POSIX.
bare="-ffreestanding -nostdlibinc -isystem tests/packaging/bare_libc"
for target in x86_64-pc-windows-msvc aarch64-pc-windows-msvc i686-pc-windows-msvc x86_64-apple-macosx \
    arm64-apple-macosx x86_64-pc-windows-gnu x86_64-unknown-freebsd; do
    case $target in
    *windows*) posix= ;;
    *) posix="-isystem tests/packaging/bare_libc/posix" ;;
    esac
    for language in "c -std=c11" "c++ -std=c++17"; do
        # shellcheck disable=SC2086
        "$CLANG" --target="$target" $bare $posix -x $language -Wall -Wextra -Werror -I"$PART" -fsyntax-only \
            "$PART/ptowsp.c" > "$tmp/log" 2>&1 || fail "$target, $language: $(head -n 20 "$tmp/log")"
        for plain in -DPTOWSP_NO_SIMD -DNDEBUG; do
            # shellcheck disable=SC2086
            "$CLANG" --target="$target" $bare $posix -x $language -Wall -Wextra -Werror $plain -I"$PART" \
                -fsyntax-only "$PART/ptowsp.c" > "$tmp/log" 2>&1 ||
                fail "$target, $language, $plain: $(head -n 20 "$tmp/log")"
        done
    done
done

# The check sees what is not there.
printf '#include <pthread.h>\n' > "$tmp/posix.c"
# shellcheck disable=SC2086
! "$CLANG" --target=x86_64-pc-windows-msvc $bare -fsyntax-only "$tmp/posix.c" 2> /dev/null ||
    fail "headers of this machine are read"
echo "portable: ok"
