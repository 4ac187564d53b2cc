#!/bin/sh
# src/README.md names every room of src/, in the section of its floor, and no room that is not there;
# and the table of floors every floor that another one includes.
set -eu
map=src/README.md
wrong=0

# The names in the first column of the table of a floor.
rooms() {
    awk -v floor="### $1" '/^#/ { on = $0 == floor } on && /^\| `/ { split($0, cell, "|"); print cell[2] }' $map |
        grep -o '`[^`]*`' | tr -d '`'
}

for directory in src/*/; do
    floor=$(basename "$directory")
    there=$(find "$directory" -maxdepth 1 -type f | sed 's|.*/||; s|\..*||' | sort -u)
    named=$(rooms "$floor" | sed 's|^tree/.*|tree|' | sort -u)
    for room in $there; do
        echo "$named" | grep -qx "$room" || { echo "map_test: $map has no $floor/$room" >&2; wrong=1; }
    done
    for room in $named; do
        echo "$there" | grep -qx "$room" || { echo "map_test: $map names $floor/$room, which is not there" >&2; wrong=1; }
    done
done
# What a floor depends on, by the table.
depends() {
    awk -F'|' -v floor="[\`$1\`](#$1)" 'index($2, floor) { print $4 }' $map
}

for directory in src/*/; do
    floor=$(basename "$directory")
    for below in $(grep -ho '^#include "\.\./[a-z_]*/' "$directory"*.[ch] | cut -d/ -f2 | sort -u); do
        depends "$floor" | grep -qw "$below" || { echo "map_test: $floor includes $below, which $map does not allow" >&2; wrong=1; }
    done
done
for folder in $(rooms npu | grep '^tree/'); do
    [ -d "src/npu/$folder" ] || { echo "map_test: there is no src/npu/$folder" >&2; wrong=1; }
done
[ $wrong = 0 ] && echo "map_test: good"
