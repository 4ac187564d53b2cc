#!/bin/sh
# Patterns of translated English in comments of the header and of src/, counted. A count may fall, and
# its limit is then lowered here; it may not rise. CONTRIBUTING.md has what to write instead.
set -eu
LC_ALL=C
export LC_ALL
comments=$(find ptowsp.h src \( -name '*.[ch]' -o -name '*.cpp' \) -exec grep -oHE '//.*' {} +)
bad=0

# pattern LIMIT NAME INSTEAD REGEX
pattern() {
    count=$(printf '%s\n' "$comments" | grep -cE "$4" || true)
    [ -z "${VERBOSE-}" ] || echo "$count of $1: $2"
    if [ "$count" -gt "$1" ]; then
        echo "english: $count lines with $2, at most $1; $3. Such as:" >&2
        printf '%s\n' "$comments" | grep -E "$4" | tail -n 5 >&2
        bad=1
    fi
}

pattern 19 '"what" as a noun' 'name the thing' \
    '\b[Ww]hat (is|has|does|was|are|have|do|did|it|they|a|an|the|comes|stands|may|can|needs|must|happens|would|will|each|all|others|belongs|follows)\b'
pattern 8 '"that of", "those of", "of which"' 'repeat the noun, or split the sentence' '\b(that|those) of\b|\bof whi?ch\b|\bof whom\b'
pattern 7 '"is none", "is no X"' 'write "is not an X"' '\b(is|are|was|were) (none|no [a-z]+)\b'
pattern 14 '"behind", "anew", "go on", "whoever"' 'write after, again, continue, the owner' '\bbehind\b|\banew\b|\bgo(es)? on\b|\bWhoever\b'
exit $bad
