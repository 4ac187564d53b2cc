#!/bin/sh
# The top of the tree has these files and folders and no others, so that what a program writes to its
# directory is noticed. Files that git ignores do not count; without git, build/ does not.
set -eu
cd "$(dirname "$0")/../.."
EXPECTED=".ci .clang-format .gitignore CHANGELOG.md CMakeLists.txt CONTRIBUTING.md LICENSE Makefile README.md bench examples
parts ptoisa_shim.h ptowsp.c ptowsp.h ptowsp_dump.c ptowsp_npu_emit.c python src tests tools"
there=$({ git ls-files --cached --others --exclude-standard 2> /dev/null || ls -A; } | cut -d/ -f1 | grep -vx build | sort -u)
wrong=0
for name in $there; do
    echo $EXPECTED | tr ' ' '\n' | grep -qxF -- "$name" || { echo "top_test: $name does not belong here" >&2; wrong=1; }
done
for name in $EXPECTED; do
    echo "$there" | grep -qxF -- "$name" || { echo "top_test: $name is missing" >&2; wrong=1; }
done
[ $wrong = 0 ] && echo "top_test: good"
