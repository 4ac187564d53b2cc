# ptowsp. `make` needs a C compiler only; `make help` lists the targets.
#
# The library, examples and benchmarks have no debug information: make CFLAGS='-O0 -g' is a debug build.
# Tests have lines and functions, which is what sanitizers and backtraces show; DEBUG=-g has variables.

CC       ?= cc
CXX      ?= c++
AR       ?= ar
CFLAGS   ?= -O2
DEBUG    ?= -g1
CXXFLAGS ?= $(CFLAGS)
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
BUILD    ?= build
VERSION  := $(shell sed -n 's/^.define PTOWSP_VERSION  *"\(.*\)"$$/\1/p' ptowsp.h)
MAJOR    := $(firstword $(subst ., ,$(VERSION)))
# Before version 1 a minor version may change what the library has.
ABI      := $(if $(filter 0,$(MAJOR)),0.$(word 2,$(subst ., ,$(VERSION))),$(MAJOR))

WARNINGS   := -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual
WARNINGS_C := $(WARNINGS) -Wstrict-prototypes -Wmissing-prototypes
C11        := -std=c11 $(WARNINGS_C)
CXX17      := -std=c++17 $(WARNINGS)

LIBRARY  := ptowsp.c ptowsp.h ptoisa_shim.h
OBJECTS  := $(BUILD)/ptowsp.o $(BUILD)/ptowsp_npu_emit.o $(BUILD)/ptowsp_dump.o
COMMA := ,

.PHONY: all test passed coverage fuzz replay soak demo bench bench-readme check check-all machines FORCE examples saved install uninstall clean help amalgamate
.DELETE_ON_ERROR:
.SUFFIXES:

MAKEFLAGS += --no-builtin-rules

# As many jobs at a time as there are processors, unless -j says otherwise. (Recipes know whether it does.)
JOBS     ?= $(shell nproc 2>/dev/null || echo 2)
PARALLEL  = $(MAKE) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS)) --no-print-directory

all: $(BUILD)/libptowsp.a $(BUILD)/libptowsp.so

$(BUILD):
	mkdir -p $@

$(BUILD)/ptowsp.o: $(LIBRARY) | $(BUILD)
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -c ptowsp.c -o $@

$(BUILD)/ptowsp_npu_emit.o $(BUILD)/ptowsp_dump.o: $(BUILD)/%.o: %.c ptowsp.h | $(BUILD)
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -c $< -o $@

$(BUILD)/libptowsp.a: $(OBJECTS)
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libptowsp.so: $(OBJECTS)
	$(CC) $(CPPFLAGS) $(CFLAGS) -shared -Wl,-soname,libptowsp.so.$(ABI) $^ -o $@ $(LDFLAGS) -pthread -ldl

# -- each in the folder that it is about ----------------------------------------------------------

include tests/tests.mk tests/fuzz/fuzz.mk tests/soak/soak.mk examples/examples.mk bench/bench.mk

# -- checks: what every change passes, and what a release does ------------------------------------

check:
	@MAKEFLAGS= BUILD=$(BUILD) sh tests/check.sh

check-all: check
	@MAKEFLAGS= BUILD=$(BUILD) sh tests/check.sh all

machines:
	@MAKEFLAGS= BUILD=$(BUILD) sh tests/machines.sh

# -- housekeeping ---------------------------------------------------------------------------------

amalgamate:
	tools/amalgamate.sh

INCLUDE := $(DESTDIR)$(PREFIX)/include
SHARE   := $(DESTDIR)$(PREFIX)/share/ptowsp
LIB     := $(DESTDIR)$(LIBDIR)

install: all
	install -d $(INCLUDE) $(SHARE) $(LIB)/pkgconfig
	install -m 644 ptowsp.h ptoisa_shim.h $(INCLUDE)/
	install -m 644 ptowsp.c ptowsp_npu_emit.c ptowsp_dump.c LICENSE $(SHARE)/
	install -m 644 $(BUILD)/libptowsp.a $(LIB)/
	install -m 755 $(BUILD)/libptowsp.so $(LIB)/libptowsp.so.$(VERSION)
	ln -sf libptowsp.so.$(VERSION) $(LIB)/libptowsp.so.$(ABI)
	ln -sf libptowsp.so.$(ABI) $(LIB)/libptowsp.so
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' \
	    -e 's|@VERSION@|$(VERSION)|' tools/ptowsp.pc.in > $(BUILD)/ptowsp.pc
	install -m 644 $(BUILD)/ptowsp.pc $(LIB)/pkgconfig/

uninstall:
	rm -f $(INCLUDE)/ptowsp.h $(INCLUDE)/ptoisa_shim.h
	rm -f $(LIB)/libptowsp.a $(LIB)/libptowsp.so* $(LIB)/pkgconfig/ptowsp.pc
	rm -rf $(SHARE)

clean:
	rm -rf $(BUILD)

help:
	@echo 'make            the static and the shared library, in $(BUILD)/'
	@echo 'make test       all tests (needs cmocka)'
	@echo 'make demo       the main example: a decode step, planned, run and checked'
	@echo 'make examples   all examples'
	@echo 'make bench      benchmarks: a table, and $(BUILD)/bench.json'
	@echo 'make bench-readme  the same, into the table of bench/README.md'
	@echo 'make check      the rest of what every change passes: formatting, warnings, packaging, sanitizers'
	@echo 'make check-all  what a release passes: all compilers and levels, more sanitizers, long runs'
	@echo 'make machines   library and tests on other machines, under qemu; CMOCKA=directory of cmocka'"'"'s source'
	@echo 'make coverage   which share of src/ the tests reach, by floor (needs clang and llvm; clang-19 measures most;'
	@echo '                half an hour and more)'
	@echo 'make soak       random programs with injected faults, SOAK_SECONDS=3600 of them; SOAK=tsan under TSan'
	@echo 'make fuzz       FUZZ_SECONDS=60 of each fuzzer, under sanitizers (needs clang); make replay: their corpora'
	@echo 'make amalgamate ptowsp.c from src/'
	@echo 'make install    into PREFIX=$(PREFIX), LIBDIR=$(LIBDIR); DESTDIR is honoured; make uninstall'
	@echo 'make clean      removes $(BUILD)/'
