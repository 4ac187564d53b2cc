#!/bin/sh
# The public interface is shown: each function of ptowsp.h is called by an example, by bench/, or by code of README.md or of the
# manual (the comments of ptowsp.h, whose code header_programs_test.sh compiles). And examples fill descriptions by name.
#
#   tests/shown_test.sh [DIRECTORY]      for files on the way
#
# HIDDEN are the exceptions: a name that is shown by now, or no longer exists, is an error, so the list only gets shorter.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.."
out=${1:-$(mktemp -d)}
mkdir -p "$out"
CC=${CC:-cc}
HIDDEN=""

# Declarations, inline functions included, without comments; then the names before their parentheses.
sed 's|//.*||' ptowsp.h | tr '\n' ' ' | sed 's/PTOWSP_API/\n&/g; s/PTOWSP_NPU_API/\n&/g; s/PTOWSP_INLINE/\n&/g; s/# *define/\n&/g' |
    sed -nE 's/^(PTOWSP_API|PTOWSP_NPU_API|PTOWSP_INLINE) [^(;{]*[ *](ptowsp_[a-z0-9_]+)\(.*/\2/p' | sort -u > "$out/public"
[ "$(wc -l < "$out/public")" -gt 400 ] || { echo "shown: ptowsp.h has few functions" >&2; exit 1; }

# The library's macros call functions for those who use the macros.
awk '/^# *define/ { on = 1 } on { print } !/\\$/ { on = 0 }' ptowsp.h | grep -oE 'ptowsp_[a-z0-9_]+' > "$out/by_macro"
{
    find examples bench \( -name '*.[ch]' -o -name '*.cpp' \) -exec sed 's|//.*||' {} +
    cat README.md
    grep -E '^//    ' ptowsp.h | grep -vE '^//  +ptowsp_[a-z_0-9]+ +[a-z(]|[0-9]$'  # neither tables nor the index
} | grep -oE 'ptowsp_[a-z0-9_]+' | sort -u - "$out/by_macro" > "$out/shown"

wrong=0
for name in $(comm -23 "$out/public" "$out/shown"); do
    case " $HIDDEN " in *" $name "*) continue ;; esac
    echo "shown: no example calls $name" >&2
    wrong=1
done
for name in $HIDDEN; do
    if ! grep -qx "$name" "$out/public" || grep -qx "$name" "$out/shown"; then
        echo "shown: $name is no exception: take it off the list" >&2
        wrong=1
    fi
done

# Descriptions by name: gcc reports fields by position where a structure says so. {0} is every field's default.
if $CC --version | grep -q clang || ! $CC -Wdesignated-init -fsyntax-only -xc /dev/null 2> /dev/null; then
    echo "shown: positions are not checked, as $CC is not gcc"
else
    mkdir -p "$out/include"
    awk '/^typedef enum [^}]*$/ { is_enum = 1 }
        /^} ptowsp_[a-z0-9_]*;/ { if (!is_enum) sub(/^}/, "} __attribute__((designated_init))"); is_enum = 0 }
        { print }' ptowsp.h > "$out/include/ptowsp.h"
    find examples -name '*.c' ! -path '*/mpi/*' -exec $CC -std=c11 -fsyntax-only -Wdesignated-init -I"$out/include" -Iexamples -I. {} \; \
        2>&1 | grep -A1 '^examples.*warning: positional' | grep -E '^ +[0-9]+ ' | grep -vE '\{(0|NULL)\}|#define' > "$out/positions" || true
    if [ -s "$out/positions" ]; then
        echo "shown: descriptions with fields by position in examples:" >&2
        sort -u "$out/positions" | head -20 >&2
        wrong=1
    fi
fi
[ $wrong = 0 ] && echo "shown: good"
exit $wrong
