#!/bin/sh
# cmocka.sh DIRECTORY COMPILER [OPTION...]: compiles cmocka from its source, as DIRECTORY/libcmocka.a, for a
# machine, a C library or a sanitizer that the system's own is not for. CMOCKA names the directory of the
# source (on Debian, `apt-get source cmocka`).
set -eu
directory=$1 compiler=$2
shift 2
mkdir -p "$directory"
# It is its compiler's own C.
"$compiler" -w -std=gnu99 -O1 "$@" -DHAVE_STDINT_H -DHAVE_INTTYPES_H -DHAVE_SIGNAL_H -DHAVE_STRSIGNAL \
    -DHAVE_STRUCT_TIMESPEC -DHAVE_CLOCK_GETTIME_REALTIME -DHAVE_TIME_H -DHAVE_MALLOC_H \
    -I"$CMOCKA/include" -c "$CMOCKA/src/cmocka.c" -o "$directory/cmocka.o"
rm -f "$directory/libcmocka.a"
case $compiler in
*-linux-gnu*-gcc) "${compiler%gcc}ar" rcs "$directory/libcmocka.a" "$directory/cmocka.o" ;;
*) ar rcs "$directory/libcmocka.a" "$directory/cmocka.o" ;;
esac
