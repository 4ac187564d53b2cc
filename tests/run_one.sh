#!/bin/sh
# Runs one test program and prints what it said in one piece, as others run at the same time. Ends xargs
# (status 255) if the test fails.
"$1" > "$1.log" 2>&1
status=$?
{ echo "== $(basename "$1")"; cat "$1.log"; } 2>&1
[ $status -eq 0 ] || { echo "== $(basename "$1") failed: status $status"; exit 255; }
