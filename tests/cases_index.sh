#!/bin/sh
# The index of the cases: for each rule of the manual (a section of ptowsp.h and a topic, which a comment
# "# rule:" of a file names) the cases that state it. With --check: is tests/cases/README.md this index, and has
# ptowsp.h these sections?
set -eu
export LC_ALL=C
index() {
    cat <<'END'
# Cases by rule of the manual

Numbers are sections of `ptowsp.h`. The form of cases is in [tests/README.md](../README.md). This index is written by `tests/cases_index.sh`.

| rule | cases |
|---|---|
END
    awk '/^# rule: / { rule = substr($0, 9) }
        /^case / { if (!rule) { print FILENAME ": " $0 ": no rule" > "/dev/stderr"; exit 1 }
            file = FILENAME; sub(/.*\//, "", file)
            print rule "\t" file "\t" $2 }
        FNR == 1 { rule = "" }' tests/cases/*.case | sort -t"$(printf '\t')" -k1,1n -k1,1 -k2,2 -s |
        awk -F'\t' '$1 != rule { if (rule) print " |"; printf "| %s |", $1; rule = $1; file = "" }
            $2 != file { printf " [%s](%s):", $2, $2; file = $2; comma = "" }
            { gsub(/_/, " ", $3); printf "%s %s", comma, $3; comma = "," }
            END { print " |" }'
}
if [ "${1:-}" = --check ]; then
    sed -n 's/^# rule: \([0-9]* [^:]*\):.*/\1/p' tests/cases/*.case | sort -u | while read -r number title; do
        grep -qx "// $number. $title" ptowsp.h || {
            echo "cases_index: ptowsp.h has no section \"$number. $title\", which a rule names" >&2
            exit 1
        }
    done
    index | cmp -s - tests/cases/README.md || {
        echo "cases_index: tests/cases/README.md is not what tests/cases_index.sh > tests/cases/README.md writes" >&2
        exit 1
    }
    echo "cases_index: good"
else
    index
fi
