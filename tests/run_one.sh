#!/bin/sh
# run_one.sh NAME [COMMAND...]: runs a command, or the program of that name, and prints its output in
# one piece, as others run at the same time, with the seconds that it took. NAME.log is a copy. Ends
# xargs (status 255) if the command fails.
begin=$(date +%s)
log=$1.log name=$(basename "$1")
[ $# -eq 1 ] || shift
"$@" > "$log" 2>&1
status=$?
{ echo "== $name"; cat "$log"; echo "== $name: $(($(date +%s) - begin)) s"; } 2>&1
[ $status -eq 0 ] || { echo "== $name failed: status $status"; exit 255; }
