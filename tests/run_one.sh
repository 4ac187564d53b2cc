#!/bin/sh
# Runs one test program and prints its output in one piece, as others run at the same time, with the
# seconds that it took. Ends xargs (status 255) if the test fails.
begin=$(date +%s)
"$1" > "$1.log" 2>&1
status=$?
{ echo "== $(basename "$1")"; cat "$1.log"; echo "== $(basename "$1"): $(($(date +%s) - begin)) s"; } 2>&1
[ $status -eq 0 ] || { echo "== $(basename "$1") failed: status $status"; exit 255; }
