# ptowsp. `make` needs a C compiler only; `make help` lists the targets.
#
# The library, examples and benchmarks have no debug information: make CFLAGS='-O0 -g' is a debug build.
# Tests have it (DEBUG).

CC       ?= cc
CXX      ?= c++
AR       ?= ar
CFLAGS   ?= -O2
DEBUG    ?= -g
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
PROGRAMS := $(basename $(wildcard tests/*/*_test.c tests/*/*_test.cpp))
TESTS    := $(notdir $(PROGRAMS))
MISPLACED := $(wildcard tests/*.c tests/*.cpp tests/*.h)
ifneq ($(MISPLACED),)
$(error $(MISPLACED): a test is in the folder of its room in src/, and what several rooms share in tests/support (tests/README.md))
endif
ifdef NO_ISA_TESTS
TESTS    := $(filter-out isa_%,$(TESTS))
endif

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

# -- tests ------------------------------------------------------------------------------------------
#
# The files of src/ are compiled one by one into an archive, in which private functions are visible
# to the linker. Each file tests/ROOM/NAME_test.c is one program, $(BUILD)/NAME_test, linked to it. A test
# that needs the statics of a file, or hooks in it, includes that file, which the linker then does not
# take from the archive.

TREE      := src/npu/tree
SOURCES   := $(shell find src -name '*.c' ! -path '$(TREE)/*')
TESTED    := $(SOURCES:src/%.c=$(BUILD)/src/%.o) $(BUILD)/src/npu/fixed.o
MAKE_DEPS  = -MMD -MP

$(BUILD)/src/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(C11) $(MAKE_DEPS) $(CPPFLAGS) $(CFLAGS) $(DEBUG) -c $< -o $@

# By far the largest of them, as instructions are expanded in it; sanitizers take their time over it.
$(BUILD)/src/kernel/execute.o: CFLAGS += $(EXECUTE_LEVEL)

# The files of emitted trees, as strings.
$(BUILD)/src/npu/fixed.c: tools/amalgamate.sh LICENSE ptowsp.h $(shell find $(TREE) -type f) \
    $(wildcard src/*/*.[ch])
	@mkdir -p $(@D)
	tools/amalgamate.sh --fixed $@

$(BUILD)/src/npu/fixed.o: $(BUILD)/src/npu/fixed.c
	$(CC) -std=c11 $(CPPFLAGS) $(CFLAGS) -Isrc/npu -c $< -o $@

$(BUILD)/libtested.a: $(TESTED)
	rm -f $@
	$(AR) rcs $@ $^

TEST_LIBS = $(LDFLAGS) -pthread -lcmocka -lm -ldl

# What tests say is compiled plainly, which takes a fifth of the time; what is computed by the shim's
# instructions, which are in their tests, and slow references as the library is.
TEST_LEVEL ?= -O0
$(BUILD)/tests/isa/%.o $(addprefix $(BUILD)/tests/,$(addsuffix _test.o,runtime/deps kernel/list_verify kernel/list_loops \
    data/dtype attend/attend_kernel attend/attend_bits $(addprefix plan/,attention_plan attention_random \
    attention_invariant moe_units moe_place))): TEST_LEVEL =
$(addprefix $(BUILD)/tests/isa/isa_,$(addsuffix _test.o,cost face faults fifo kernels map)): TEST_LEVEL = -O0

# Headers of a test's own folder, those that are shared, and files of other folders by their path in tests/.
TEST_PATHS := -I. -Itests -Itests/support

$(BUILD)/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(CC) $(C11) $(MAKE_DEPS) $(CPPFLAGS) $(CFLAGS) $(DEBUG) $(TEST_LEVEL) $(TEST_PATHS) -c $< -o $@

# In every test: PTOWSP_VECTORS in the environment chooses the vector code.
VECTORS := $(BUILD)/tests/support/vectors.o

# The object of each program, and, in order, objects and archives.
$(foreach program,$(PROGRAMS),$(eval $(BUILD)/$(notdir $(program)): $(BUILD)/$(program).o))
LINKED = $(filter %.o,$^) $(filter %.a,$^)

$(BUILD)/%_test: $(VECTORS) $(BUILD)/libtested.a
	$(CC) $(CFLAGS) $(LINKED) -o $@ $(TEST_LIBS)

# Files of emitted trees that are the same in all of them; tests bring program and kernels along.
TREE_PATHS   := $(TEST_PATHS) -I$(BUILD)/include -Itests/npu/cann_stub $(addprefix -I$(TREE)/,include aicpu aicore host)
TREE_OBJECTS := $(patsubst $(TREE)/%.cpp,$(BUILD)/tree/%.o,$(wildcard $(TREE)/aicpu/*.cpp \
    $(TREE)/aicore/wsp_worker.cpp $(TREE)/host/wsp_[blrt]*.cpp))

# The library's part of them, which is written only where it changes.
CORE := $(BUILD)/include/wsp_core.made

$(CORE): tools/amalgamate.sh $(shell find src -name '*.[ch]' ! -path '$(TREE)/*')
	@mkdir -p $(@D)
	tools/amalgamate.sh --core $(@D)/wsp_core.h
	@touch $@

$(BUILD)/include/wsp_core.h: $(CORE)
	@:

$(BUILD)/tree/%.o: $(TREE)/%.cpp | $(CORE)
	@mkdir -p $(@D)
	$(CXX) $(CXX17) $(MAKE_DEPS) $(CPPFLAGS) $(CXXFLAGS) $(DEBUG) $(TREE_PATHS) -c $< -o $@

$(BUILD)/libwsp_fixed.a: $(TREE_OBJECTS)
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/tests/%.o: tests/%.cpp | $(CORE)
	@mkdir -p $(@D)
	$(CXX) $(CXX17) $(MAKE_DEPS) $(CPPFLAGS) $(CXXFLAGS) $(DEBUG) $(TEST_LEVEL) $(TREE_PATHS) -c $< -o $@

# In C++, or with objects that are.
CXX_TESTS   := $(addprefix $(BUILD)/,$(notdir $(basename $(wildcard tests/*/*_test.cpp))))
CLOCK_TESTS := $(addprefix $(BUILD)/,$(notdir $(basename $(wildcard tests/npu/npu_clock*_test.c))))

$(CXX_TESTS): $(VECTORS) $(BUILD)/libwsp_fixed.a $(BUILD)/libtested.a
	$(CXX) $(CXXFLAGS) $(LINKED) -o $@ $(TEST_LIBS)

$(CLOCK_TESTS): $(VECTORS) $(addprefix $(BUILD)/,tests/npu/npu_clock.o tree/aicpu/wsp_clock.o tree/aicpu/wsp_core.o \
    libtested.a)
	$(CXX) $(CXXFLAGS) $(LINKED) -o $@ $(TEST_LIBS)

# A source of PTO-ISA's own form, whose headers are the shim.
$(BUILD)/tests/isa/isa_fifo_test.o: TREE_PATHS += -Itests/npu/own

# The fixed files with a program written by hand.
SAMPLE := $(patsubst tests/%.cpp,$(BUILD)/tests/%.o,$(wildcard tests/npu/sample/[ep]*.cpp))
$(SAMPLE) $(BUILD)/tests/npu/npu_runtime_test.o: TREE_PATHS += -Itests/npu/sample
$(BUILD)/npu_runtime_test: $(SAMPLE)

# Trees are built without optimisation, with precompiled headers, which the text of the first has, a
# pipeline. What is the same in all of them is compiled for that one, and its objects are given to the
# tests.
TREE_OPTIONS := -O0 -include $(abspath $(BUILD))/npu/headers.h $(TREE_CFLAGS)
FIRST_TREE    = NPU_EQUAL_COUNT=1 NPU_EQUAL_JOBS=1 NPU_EQUAL_KIND=pipelines $(1) \
    $(abspath $(BUILD))/npu_equal_test > $@.log 2>&1 || cat $@.log
TREE_FLAGS   := $(shell sed -n '/define NPU_FLAGS/,/"$$/s/.*"\(.*\)"$$/\1/p' src/npu/npu_build.h)
TREE_TESTS   := $(patsubst %,$(BUILD)/npu_%_test.passed,cases equal error execute loop_tree own plan \
    transient)

$(BUILD)/npu/headers.h.gch: tests/npu/npu_headers.h $(BUILD)/npu_equal_test
	@mkdir -p $(@D)/text
	@$(call FIRST_TREE,NPU_EQUAL_TREES=$(abspath $(@D))/text)
	cp $< $(@D)/headers.h
	cd $(@D)/text/* && $(CXX) $(TREE_FLAGS) -O0 $(TREE_CFLAGS) $(addprefix -I,include aicpu aicore host) \
	    -x c++-header $(abspath $(@D))/headers.h -o $(abspath $@)

$(BUILD)/npu/first: $(BUILD)/npu/headers.h.gch
	@mkdir -p -m 700 $(@D)/cache
	@$(call FIRST_TREE,NPU_EQUAL_OPTIONS='$(TREE_OPTIONS)' PTOWSP_TEST_OBJECTS= \
	    PTOWSP_TEST_CACHE=$(abspath $(@D))/cache)
	@touch $@

$(TREE_TESTS): $(BUILD)/npu/first
$(TREE_TESTS): export NPU_EQUAL_OPTIONS ?= $(TREE_OPTIONS)
$(TREE_TESTS): export PTOWSP_TEST_OBJECTS = $(abspath $(BUILD))/npu/cache

# A program that has passed is not run again until it changes, or a seed or a scale is given.
PASSED := $(TESTS:%=$(BUILD)/%.passed)

$(BUILD)/%.passed: $(BUILD)/% $(if $(PTOWSP_SEED)$(PTOWSP_SCALE),FORCE)
	@sh tests/run_one.sh $(abspath $<)
	@touch $@

# Cases are read when they run.
$(patsubst %,$(BUILD)/%_test.passed,cases npu_cases npu_clock_cases): $(wildcard tests/cases/*.case)

test:
	+@$(PARALLEL) passed

passed: $(PASSED)
	@tools/amalgamate.sh --check
	@echo '$(words $(PASSED)) test programs pass'

# Which share of src/ the tests reach, in a build of its own (needs clang and llvm; clang-19 measures most).
coverage:
	@MAKEFLAGS= BUILD=$(BUILD)/coverage COVERAGE_SCALE=$(COVERAGE_SCALE) sh tests/coverage.sh

.SECONDARY:  # objects of tests are kept

-include $(shell find $(BUILD)/src $(BUILD)/tests $(BUILD)/tree -name '*.d' 2> /dev/null)

# -- fuzzers ---------------------------------------------------------------------------------------
#
# Each target is linked twice: to a main that replays its inputs, with the library as tests have it,
# and to clang's fuzzer with a library under sanitizers, in a folder of its own.

FUZZ_TARGETS := attention builder emit expr graph kernel moe pipeline plan prefix program records trace tree
FUZZ_SECONDS ?= 60
FUZZ_FLAGS   := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_MAINS   := $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/%)
FUZZ_INCLUDE := -Iexamples
FUZZ_MAIN    := $(BUILD)/tests/fuzz/replay.o

$(BUILD)/tests/fuzz/%.o: CPPFLAGS += $(FUZZ_INCLUDE)
$(FUZZ_MAINS): %: %.o $(FUZZ_MAIN) $(BUILD)/common/lengths.o $(BUILD)/libtested.a
	$(CC) $(CFLAGS) $^ -o $@ $(FUZZ_LINK) $(TEST_LIBS)

# Trees take the objects of the tests'.
replay: export NPU_EQUAL_OPTIONS ?= $(TREE_OPTIONS)
replay: export PTOWSP_TEST_OBJECTS = $(abspath $(BUILD))/npu/cache
replay: $(FUZZ_MAINS) $(BUILD)/npu/first
	@for target in $(FUZZ_TARGETS); do echo "replaying $$target"; \
	    $(abspath $(BUILD))/tests/fuzz/$$target tests/fuzz/corpus/$$target/* > $(BUILD)/replay.log 2>&1 || \
	    { cat $(BUILD)/replay.log; exit 1; }; done

fuzz:
	+@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD)/fuzz CC=clang CFLAGS='$(FUZZ_FLAGS)' TEST_LEVEL=-O1 \
	    EXECUTE_LEVEL=-O0 FUZZ_MAIN= FUZZ_LINK=-fsanitize=fuzzer $(FUZZ_TARGETS:%=$(BUILD)/fuzz/tests/fuzz/%)
	@for target in $(FUZZ_TARGETS); do echo "fuzzing $$target for $(FUZZ_SECONDS) s"; \
	    mkdir -p $(BUILD)/fuzz/corpus/$$target; \
	    $(abspath $(BUILD))/fuzz/tests/fuzz/$$target -max_total_time=$(FUZZ_SECONDS) -len_control=0 \
	    -timeout=30 -verbosity=0 -print_final_stats=1 -artifact_prefix=$(BUILD)/fuzz/ $(BUILD)/fuzz/corpus/$$target \
	    tests/fuzz/corpus/$$target > $(BUILD)/fuzz/$$target.log 2>&1 || { cat $(BUILD)/fuzz/$$target.log; exit 1; }; \
	    grep number_of_executed_units $(BUILD)/fuzz/$$target.log; done

# -- soak -----------------------------------------------------------------------------------------
#
# Random programs of all kinds with injected faults, for SOAK_SECONDS; SOAK_SEED=n repeats a case.
# Sanitizers of clang 14 ask for addresses that are not randomised widely (tests/check.sh).

SOAK         ?= asan
SOAK_SECONDS ?= 3600
STILL        := $(shell setarch $$(uname -m) -R true 2> /dev/null && echo setarch $$(uname -m) -R)
SOAK_FLAGS   := -O1 -g -fno-sanitize-recover=all $(if $(filter tsan,$(SOAK)),-fsanitize=thread,-fsanitize=address$(COMMA)undefined)

$(BUILD)/soak_cases: $(patsubst tests/%.c,$(BUILD)/tests/%.o,$(filter-out %_test.c,$(wildcard tests/soak/*.c))) $(BUILD)/libtested.a
	$(CC) $(CFLAGS) $^ -o $@ $(addprefix -Wl$(COMMA)--wrap=,pthread_create write) $(TEST_LIBS)

soak:
	+@$(MAKE) -s --no-print-directory -j$(JOBS) BUILD=$(BUILD)/soak/$(SOAK) CC=clang CFLAGS='$(SOAK_FLAGS)' \
	    TEST_LEVEL=-O1 EXECUTE_LEVEL=-O0 $(BUILD)/soak/$(SOAK)/soak_cases
	@SOAK_SECONDS=$(SOAK_SECONDS) $(STILL) $(abspath $(BUILD))/soak/$(SOAK)/soak_cases

# -- examples and benchmarks ----------------------------------------------------------------------
#
# Examples that emit have the emitter linked, the tool the reader of dumps as well, the others the library
# alone.

EXAMPLES := $(patsubst examples/%.c,$(BUILD)/%,$(wildcard examples/*.c))
EMITTING := $(filter $(BUILD)/emit_% $(addprefix $(BUILD)/,own_kernel demo_kernels ptowsp_tool softmax rmsnorm matmul attention topk \
    quantized_matmul),$(EXAMPLES))
COMMON   := $(patsubst examples/%.c,$(BUILD)/%.o,$(filter-out %/emit.c %/measure.c,$(wildcard examples/common/*.c)))

SAVED     = $(patsubst $(BUILD)/%,$(BUILD)/saved/%,$(1))

# Those over MPI, where its compiler is.
MPICC        ?= mpicc
MPI_EXAMPLES := $(if $(shell command -v $(MPICC) 2> /dev/null),$(patsubst \
    examples/%.c,$(BUILD)/%,$(wildcard examples/mpi/*_mpi.c)))

examples: $(EXAMPLES) $(MPI_EXAMPLES)
	@$(if $(MPI_EXAMPLES),:,echo 'examples/mpi is skipped, as there is no $(MPICC)')

$(BUILD)/common/predict_instruction.o $(BUILD)/common/predict_kernel.o: ptoisa_shim.h

$(BUILD)/common/%.o: examples/common/%.c $(wildcard examples/common/*.h) ptowsp.h
	@mkdir -p $(@D)
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -I. -c $< -o $@

$(BUILD)/examples/%.o: examples/%.c $(wildcard examples/common/*.h) ptowsp.h
	@mkdir -p $(@D)
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -I. -c $< -o $@

LINK_EXAMPLE = $(CC) $(CFLAGS) $^ -o $@ $(LDFLAGS) -pthread -lm -ldl

$(EMITTING) $(call SAVED,$(EMITTING)): $(addprefix $(BUILD)/,common/emit.o common/measure.o ptowsp_npu_emit.o)
$(BUILD)/ptowsp_tool $(call SAVED,$(BUILD)/ptowsp_tool): $(BUILD)/ptowsp_dump.o
$(EXAMPLES): $(BUILD)/%: $(BUILD)/examples/%.o $(COMMON) $(BUILD)/ptowsp.o
	$(LINK_EXAMPLE)

# The same, where each program that is created is saved and loaded (tests/examples/saved_programs.c).
saved: $(call SAVED,$(EXAMPLES))

$(BUILD)/saved/saved_programs.o: tests/examples/saved_programs.c ptowsp.h
	@mkdir -p $(@D)
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -I. -c $< -o $@

$(call SAVED,$(EXAMPLES)): $(BUILD)/saved/%: $(BUILD)/examples/%.o $(BUILD)/saved/saved_programs.o $(COMMON) $(BUILD)/ptowsp.o
	$(LINK_EXAMPLE) $(addprefix -Wl$(COMMA)--wrap=ptowsp_,kernel_make module_parse module_destroy program_create run_execute)

$(MPI_EXAMPLES): $(BUILD)/%: examples/%.c $(wildcard examples/mpi/*_transport.[ch]) $(COMMON) $(BUILD)/ptowsp.o ptowsp.h
	@mkdir -p $(@D)
	$(MPICC) $(C11) $(CPPFLAGS) $(CFLAGS) -I. -Iexamples $(filter %.c %.o,$^) -o $@ $(LDFLAGS) -pthread -lm -ldl

# The main example, with the part of the library that it needs, which compiles in seconds: no tiles.
DEMO := $(addprefix $(BUILD)/demo/,ptowsp.o examples/decode_batch.o $(addprefix examples/common/, \
    command.o deal.o decode_check.o decode_data.o decode_options.o decode_plan.o decode_report.o decode_timeline.o \
    lengths.o pool.o print.o))

$(BUILD)/demo/%.o: %.c $(LIBRARY) $(wildcard examples/common/*.h)
	@mkdir -p $(@D)
	@echo 'compiling $<'
	@$(CC) $(C11) -DPTOWSP_NO_TILES $(CPPFLAGS) $(CFLAGS) -I. -c $< -o $@

$(BUILD)/demo/decode_batch: $(DEMO)
	@$(CC) $(CFLAGS) $^ -o $@ $(LDFLAGS) -pthread -lm

demo:
	+@$(PARALLEL) $(BUILD)/demo/decode_batch
	@$(abspath $(BUILD)/demo/decode_batch) $(DEMO_FLAGS)

# Graphs run beside OpenMP, if the compiler has it, and oneTBB, if a C++ compiler finds it; matrix products
# beside OpenBLAS.
OPENMP = $(shell echo 'int main(void) { return 0; }' | $(CC) -fopenmp -x c - -o /dev/null 2>/dev/null && echo -fopenmp)
TBB    = $(shell $(CXX) -std=c++17 -include tbb/flow_graph.h -x c++ -fsyntax-only /dev/null 2>/dev/null && echo yes)
BLAS   = $(shell $(CC) -include cblas-openblas.h -x c -fsyntax-only /dev/null 2>/dev/null && echo yes)

STARPU  = $(shell pkg-config --exists starpu-1.3 2>/dev/null && echo yes)
SIMGRID = $(shell pkg-config --exists simgrid 2>/dev/null && echo yes)

# What the benchmark compares with, as far as it is there: defines, objects in C++, libraries.
PEER_DEFINES = $(OPENMP) $(if $(TBB),-DBENCH_HAS_TBB) $(if $(BLAS),-DBENCH_HAS_BLAS) $(if $(SIMGRID),-DBENCH_HAS_SIMGRID) \
    $(if $(STARPU),-DBENCH_HAS_STARPU $(subst -I,-isystem ,$(shell pkg-config --cflags starpu-1.3)))
PEER_SOURCES = $(if $(TBB),bench/graph_tbb.cpp) $(if $(SIMGRID),bench/peer_simgrid.cpp)
PEER_OBJECTS = $(PEER_SOURCES:bench/%.cpp=$(BUILD)/bench_%.o)
PEER_LIBS    = $(if $(TBB),-ltbb) $(if $(SIMGRID),-lsimgrid) $(if $(PEER_SOURCES),-lstdc++) $(if $(BLAS),-lopenblas) \
    $(if $(STARPU),$(shell pkg-config --libs starpu-1.3))

$(BUILD)/bench: $(wildcard bench/*.[ch] bench/*.cpp) $(COMMON) $(BUILD)/libptowsp.a ptowsp.h ptoisa_shim.h
	@mkdir -p $(@D)
	set -e; for peer in $(PEER_SOURCES:bench/%.cpp=%); do \
	    $(CXX) $(CXX17) $(CXXFLAGS) -c bench/$$peer.cpp -o $(BUILD)/bench_$$peer.o; done
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) $(PEER_DEFINES) -I. -Iexamples $(wildcard bench/*.c) $(COMMON) \
	    $(PEER_OBJECTS) $(BUILD)/libptowsp.a -o $@ $(LDFLAGS) -pthread -lm -ldl $(PEER_LIBS)

bench: $(BUILD)/bench
	$(abspath $(BUILD))/bench --json $(BUILD)/bench.json

bench-readme: $(BUILD)/bench
	$(abspath $(BUILD))/bench --json $(BUILD)/bench.json --markdown bench/README.md

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
