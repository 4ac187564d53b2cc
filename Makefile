# ptowsp. `make` needs a C compiler only; `make help` lists the targets.

CC       ?= cc
CXX      ?= c++
AR       ?= ar
CFLAGS   ?= -O2 -g
CXXFLAGS ?= $(CFLAGS)
PREFIX   ?= /usr/local
BUILD    ?= build
VERSION  := 0.1.0

WARNINGS   := -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual
WARNINGS_C := $(WARNINGS) -Wstrict-prototypes -Wmissing-prototypes
C11        := -std=c11 $(WARNINGS_C)
CXX17      := -std=c++17 $(WARNINGS)

LIBRARY  := ptowsp.c ptowsp.h ptoisa_shim.h
OBJECTS  := $(BUILD)/ptowsp.o $(BUILD)/ptowsp_npu_emit.o
TESTS    := $(patsubst tests/%.c,%,$(wildcard tests/*_test.c)) \
            $(patsubst tests/%.cpp,%,$(wildcard tests/*_test.cpp))
ifdef NO_ISA_TESTS
TESTS    := $(filter-out isa_%,$(TESTS))
endif
EXAMPLES := $(patsubst examples/%.c,%,$(wildcard examples/*.c))

.PHONY: all test demo bench check examples install uninstall clean help amalgamate
.DELETE_ON_ERROR:

all: $(BUILD)/libptowsp.a $(BUILD)/libptowsp.so

$(BUILD):
	mkdir -p $@

$(BUILD)/ptowsp.o: $(LIBRARY) | $(BUILD)
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -c ptowsp.c -o $@

$(BUILD)/ptowsp_npu_emit.o: ptowsp_npu_emit.c ptowsp.h | $(BUILD)
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -c ptowsp_npu_emit.c -o $@

$(BUILD)/libptowsp.a: $(OBJECTS)
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libptowsp.so: $(OBJECTS)
	$(CC) $(CPPFLAGS) $(CFLAGS) -shared -Wl,-soname,libptowsp.so.0 $^ -o $@ $(LDFLAGS) -pthread

# -- tests: each file is one program; those that call private functions have the library inside ---

TEST_HEADERS := $(wildcard tests/*.h examples/common/*)
TREE         := src/npu/tree
INSIDE       := $(patsubst tests/%.c,$(BUILD)/%,$(shell grep -lE 'pwsp_|PWSP_' tests/*_test.c))
INSIDE       := $(filter-out $(BUILD)/npu_clock%,$(INSIDE))
ISA          := $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/isa_*_test.c))

$(INSIDE) $(ISA): $(BUILD)/%_test: tests/%_test.c $(TEST_HEADERS) $(LIBRARY) | $(BUILD)
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -I. $< -o $@ $(LDFLAGS) -pthread -lcmocka -lm

$(BUILD)/%_test: tests/%_test.c $(TEST_HEADERS) ptowsp.h $(BUILD)/libptowsp.a
	$(CC) $(C11) -DPTOWSP_TEST_LINKED $(CPPFLAGS) $(CFLAGS) -I. $< $(BUILD)/libptowsp.a -o $@ \
	    $(LDFLAGS) -pthread -lcmocka -lm

# Files of emitted trees that are the same in all of them; tests bring program and kernels along.
TREE_PATHS   := -I. -Itests/cann_stub $(addprefix -I$(TREE)/,include aicpu aicore host shim)
TREE_OBJECTS := $(patsubst $(TREE)/%.cpp,$(BUILD)/tree/%.o,$(wildcard $(TREE)/aicpu/*.cpp \
    $(TREE)/shim/*.cpp $(TREE)/aicore/wsp_worker.cpp $(TREE)/host/wsp_[br]*.cpp))

$(BUILD)/tree/%.o: $(TREE)/%.cpp $(wildcard $(TREE)/*/*.h) ptowsp.h
	@mkdir -p $(@D)
	$(CXX) $(CXX17) $(CPPFLAGS) $(CXXFLAGS) $(TREE_PATHS) -c $< -o $@

$(BUILD)/libwsp_fixed.a: $(TREE_OBJECTS)
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/npu_ascend_test: $(TREE)/host/wsp_ascend.cpp

$(BUILD)/npu_%_test: tests/npu_%_test.cpp $(wildcard tests/*.h) $(wildcard $(TREE)/*/*.h) \
    $(BUILD)/libwsp_fixed.a $(BUILD)/libptowsp.a
	$(CXX) $(CXX17) -DPTOWSP_TEST_LINKED $(CPPFLAGS) $(CXXFLAGS) $(TREE_PATHS) $< \
	    $(BUILD)/libwsp_fixed.a $(BUILD)/libptowsp.a -o $@ $(LDFLAGS) -pthread -lcmocka -lm

# These run the scenes of another test.
$(foreach n,instruction ops pick shape,$(eval $(BUILD)/npu_$(n)_test: tests/kernel_$(n)_test.c))

$(BUILD)/%_test: tests/%_test.cpp $(wildcard tests/*.h) ptoisa_shim.h | $(BUILD)
	$(CXX) $(CXX17) $(CPPFLAGS) $(CXXFLAGS) -I. $< -o $@ $(LDFLAGS) -pthread -lcmocka -lm

# The clock of emitted trees runs beside the library that is inside its tests.
SHIM := src/npu/tree/shim

$(BUILD)/npu_clock.o: tests/npu_clock.cpp tests/npu_clock.h $(SHIM)/wsp_clock.h ptowsp.h | $(BUILD)
	$(CXX) $(CXX17) $(CPPFLAGS) $(CXXFLAGS) -I. -c $< -o $@

$(BUILD)/wsp_clock.o: $(wildcard $(SHIM)/wsp_clock*) ptowsp.h | $(BUILD)
	$(CXX) $(CXX17) $(CPPFLAGS) $(CXXFLAGS) -I. -c $(SHIM)/wsp_clock.cpp -o $@

$(BUILD)/npu_clock%test: tests/npu_clock%test.c $(TEST_HEADERS) $(wildcard tests/oracle*_test.c) $(LIBRARY) \
    $(BUILD)/npu_clock.o $(BUILD)/wsp_clock.o
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -I. -c $< -o $@.o
	$(CXX) $(CXXFLAGS) $@.o $(BUILD)/npu_clock.o $(BUILD)/wsp_clock.o -o $@ $(LDFLAGS) -pthread -lcmocka -lm

# The fixed files of emitted trees, with a program written by hand.
NPU_RUNTIME := $(addprefix src/npu/tree/,aicpu/wsp_expand.cpp aicpu/wsp_scheduler.cpp \
               aicpu/wsp_scheduler_ready.cpp aicpu/wsp_region_map.cpp aicore/wsp_worker.cpp \
               host/wsp_bindings.cpp host/wsp_run.cpp host/wsp_runner.cpp shim/wsp_clock.cpp) \
               tests/npu_sample/program.cpp tests/npu_sample/expand.cpp
NPU_INCLUDE := $(addprefix -Isrc/npu/tree/,include aicpu aicore host shim) -Itests/npu_sample -I.

$(BUILD)/npu_runtime_test: tests/npu_runtime_test.cpp $(NPU_RUNTIME) tests/npu_sample/dispatch.cpp \
    $(wildcard tests/npu_sample/*.h src/npu/tree/*/*.h) ptowsp.h | $(BUILD)
	$(CXX) $(CXX17) $(CPPFLAGS) $(CXXFLAGS) $(NPU_INCLUDE) $< $(NPU_RUNTIME) -o $@ $(LDFLAGS) \
	    -pthread -lcmocka

# What has the emitter inside, and the words that its texts are compiled with.
$(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/npu_exp*_test.c)): ptowsp_npu_emit.c \
    $(wildcard tests/npu_words/*.h)
$(BUILD)/npu_number_test: src/npu/tree/include/wsp_number.h

# As many at a time as there are processors; each prints when it has ended.
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

test: $(addprefix $(BUILD)/,$(TESTS))
	@tools/amalgamate.sh --check
	@printf '%s\n' $(abspath $^) | xargs -P $(JOBS) -n 1 sh tests/run_one.sh

# -- examples and benchmarks ----------------------------------------------------------------------

examples: $(addprefix $(BUILD)/,$(EXAMPLES))

COMMON := $(patsubst examples/%.c,$(BUILD)/%.o,$(wildcard examples/common/*.c))

$(BUILD)/common/%.o: examples/common/%.c $(wildcard examples/common/*.h) ptowsp.h
	@mkdir -p $(@D)
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -I. -c $< -o $@

$(BUILD)/%: examples/%.c $(COMMON) $(BUILD)/libptowsp.a ptowsp.h
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -I. $< $(COMMON) $(BUILD)/libptowsp.a -o $@ $(LDFLAGS) -pthread -lm

demo: $(BUILD)/decode_batch
	$(abspath $(BUILD))/decode_batch $(DEMO_FLAGS)

# Graphs run beside OpenMP, if the compiler has it, and oneTBB, if a C++ compiler finds it.
OPENMP = $(shell echo 'int main(void) { return 0; }' | $(CC) -fopenmp -x c - -o /dev/null 2>/dev/null && echo -fopenmp)
TBB    = $(shell $(CXX) -std=c++17 -include tbb/flow_graph.h -x c++ -fsyntax-only /dev/null 2>/dev/null && echo yes)

$(BUILD)/bench: $(wildcard bench/*) $(COMMON) $(BUILD)/libptowsp.a ptowsp.h ptoisa_shim.h
	@mkdir -p $(@D)
	if [ "$(TBB)" ]; then $(CXX) $(CXX17) $(CXXFLAGS) -c bench/graph_tbb.cpp -o $(BUILD)/graph_tbb.o; fi
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) $(OPENMP) $(if $(TBB),-DBENCH_HAS_TBB) -I. -Iexamples $(wildcard bench/*.c) $(COMMON) \
	    $(if $(TBB),$(BUILD)/graph_tbb.o) $(BUILD)/libptowsp.a -o $@ $(LDFLAGS) -pthread -lm $(if $(TBB),-ltbb -lstdc++)

bench: $(BUILD)/bench
	$(abspath $(BUILD))/bench --json $(BUILD)/bench.json

# -- checks: everything that has to hold before a commit ------------------------------------------

check:
	BUILD=$(BUILD) sh tests/check.sh

# -- housekeeping ---------------------------------------------------------------------------------

amalgamate:
	tools/amalgamate.sh

install: all
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 ptowsp.h ptoisa_shim.h $(DESTDIR)$(PREFIX)/include/
	install -d $(DESTDIR)$(PREFIX)/share/ptowsp
	install -m 644 ptowsp.c ptowsp_npu_emit.c LICENSE $(DESTDIR)$(PREFIX)/share/ptowsp/
	install -m 644 $(BUILD)/libptowsp.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(BUILD)/libptowsp.so $(DESTDIR)$(PREFIX)/lib/libptowsp.so.$(VERSION)
	ln -sf libptowsp.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libptowsp.so.0
	ln -sf libptowsp.so.0 $(DESTDIR)$(PREFIX)/lib/libptowsp.so
	printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' '' \
	    'Name: ptowsp' 'Description: Plans and runs dynamic LLM workloads' \
	    'Version: $(VERSION)' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lptowsp' \
	    'Libs.private: -pthread' > $(DESTDIR)$(PREFIX)/lib/pkgconfig/ptowsp.pc

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/include/ptowsp.h $(DESTDIR)$(PREFIX)/include/ptoisa_shim.h $(DESTDIR)$(PREFIX)/lib/libptowsp.a
	rm -f $(DESTDIR)$(PREFIX)/lib/libptowsp.so* $(DESTDIR)$(PREFIX)/lib/pkgconfig/ptowsp.pc
	rm -rf $(DESTDIR)$(PREFIX)/share/ptowsp

clean:
	rm -rf $(BUILD)

help:
	@echo 'make            the static and the shared library, in $(BUILD)/'
	@echo 'make test       all tests (needs cmocka)'
	@echo 'make demo       the main example: a decode step, planned, run and checked'
	@echo 'make examples   all examples'
	@echo 'make bench      benchmarks: a table, and $(BUILD)/bench.json'
	@echo 'make check      warnings, formatting, packaging, sanitizers: all that must hold'
	@echo 'make amalgamate ptowsp.c from src/'
	@echo 'make install    into PREFIX=$(PREFIX); DESTDIR is honoured; make uninstall'
	@echo 'make clean      removes $(BUILD)/'
