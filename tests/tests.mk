# Tests.
#
# The files of src/ are compiled floor by floor into an archive, in which private functions are visible to
# the linker: a file alone takes longer to read the headers than to be compiled. Each file
# tests/ROOM/NAME_test.c is one program, $(BUILD)/NAME_test, linked to it. A test that needs the statics of a
# file, or hooks in it, includes that file, which is compiled alone, so that the linker then does not take it
# from the archive.

PROGRAMS := $(basename $(wildcard tests/*/*_test.c tests/*/*_test.cpp))
TESTS    := $(notdir $(PROGRAMS))
MISPLACED := $(wildcard tests/*.c tests/*.cpp tests/*.h)
ifneq ($(MISPLACED),)
$(error $(MISPLACED): a test is in the folder of its room in src/, and what several rooms share in tests/support (tests/README.md))
endif
ifdef NO_ISA_TESTS
TESTS    := $(filter-out isa_%,$(TESTS))
endif

TREE      := src/npu/tree
MAKE_DEPS  = -MMD -MP

# In the order of the floors and, in each, of the amalgamation. Alone are files that tests include, and the
# two that take longest.
SOURCES  := $(shell grep -oE 'src/[a-z]+/[a-z0-9_]+\.c\b' tools/amalgamate.sh | awk '!seen[$$0]++')
ALONE    := $(sort $(shell grep -rhoE 'src/[a-z]+/[a-z0-9_]+\.c"' tests --include='*.[ch]' --include='*.cpp' | tr -d '"') \
    src/kernel/execute.c src/attend/attend_x86.c)
FLOORS   := $(sort $(patsubst src/%/,%,$(dir $(SOURCES))))
FLOOR     = $(filter-out $(ALONE),$(filter src/$(1)/%,$(SOURCES)))
WHOLE    := $(foreach floor,$(FLOORS),$(if $(call FLOOR,$(floor)),$(BUILD)/src/$(floor).o))
TESTED   := $(WHOLE) $(ALONE:%.c=$(BUILD)/%.o) $(BUILD)/src/npu/fixed.o

COMPILE_TESTED = $(CC) $(C11) $(MAKE_DEPS) $(CPPFLAGS) $(CFLAGS) $(DEBUG) -I. -c $< -o $@

$(BUILD)/src/%.o: src/%.c
	@mkdir -p $(@D)
	$(COMPILE_TESTED)

$(WHOLE): %.o: %.c
	$(COMPILE_TESTED)

$(WHOLE:.o=.c): $(BUILD)/src/%.c: FORCE
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(call FLOOR,$*) | cmp -s - $@ || printf '#include "%s"\n' $(call FLOOR,$*) > $@

# By far the largest of them, as instructions are expanded in it; sanitizers take their time over it.
$(BUILD)/src/kernel/execute.o: CFLAGS += $(EXECUTE_LEVEL)

# The files of emitted trees, as strings.
$(BUILD)/src/npu/fixed.c: tools/amalgamate.sh LICENSE ptowsp.h $(shell find $(TREE) -type f) \
    $(wildcard src/*/*.[ch])
	@mkdir -p $(@D)
	tools/amalgamate.sh --fixed $@

$(BUILD)/src/npu/fixed.o: $(BUILD)/src/npu/fixed.c
	$(CC) -std=c11 $(CPPFLAGS) $(CFLAGS) -Isrc/npu -c $< -o $@

# LTO=1 optimises the library across its files, once for all programs, where CFLAGS say -flto; a test that
# includes a file of src/ cannot be linked to that.
$(BUILD)/src/linked.o: $(TESTED)
	$(CC) $(CFLAGS) -r -flinker-output=nolto-rel $^ -o $@

$(BUILD)/libtested.a: $(if $(LTO),$(BUILD)/src/linked.o,$(TESTED))
	rm -f $@
	$(AR) rcs $@ $^

TEST_LIBS = $(LDFLAGS) -pthread -lcmocka -lm -ldl

# Tests are compiled plainly, which takes a fifth of the time, with the files of trees that they link; those
# whose slow reference takes long at -O1: higher levels take longer to compile than they save.
TEST_LEVEL ?= -O0
$(addprefix $(BUILD)/tests/,$(addsuffix _test.o,kernel/list_loops attend/attend_kernel attend/attend_bits)): TEST_LEVEL =
$(addprefix $(BUILD)/tests/,$(addsuffix _test.o,isa/isa_product runtime/deps runtime/reorder base/base base/number data/dtype data/expr data/region \
    dump/dump_check dump/dump_rings graph/graph_random attend/attend_faults csp/pipeline_explore time/contention time/batch_tiles \
    $(addprefix kernel/,list_verify list_waits kernel_random kernel_shape kernel_ops kernel_panels) \
    $(addprefix plan/,plan_random prefix_random attention_plan attention_random moe_units))): TEST_LEVEL = -O1
$(BUILD)/tests/engine/explore_test.o: TEST_LEVEL = -Og

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

# Files of emitted trees that are the same in all of them, compiled as those are; tests, and objects of many
# trees (npu_kernel_fixture.h), bring program and kernels along.
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
	$(CXX) $(TREE_FLAGS) $(WARNINGS) $(MAKE_DEPS) $(CPPFLAGS) $(CXXFLAGS) $(DEBUG) $(TEST_LEVEL) $(TREE_PATHS) -c $< -o $@

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

# Emitted trees and kernels are built without optimisation, with precompiled headers, which are those of a
# tree with a tile kernel. What is the same in all of them is compiled once: the functions of the shim, and
# the objects of the first trees, which are given to the tests.
NPU          := $(abspath $(BUILD))/npu
TREE_FLAGS   := $(shell sed -n '/define NPU_FLAGS/,/"$$/s/.*"\(.*\)"$$/\1/p' src/npu/npu_build.h)
TREE_LEVEL    = -O0 -DPTOISA_SIMULATOR_TYPES $(TREE_CFLAGS)
TREE_OPTIONS  = -include $(NPU)/headers.h -Wl,$(NPU)/libshim.a $(TREE_LEVEL)
A5_OPTIONS    = -std=c++20 $(subst headers.h,headers_a5.h,$(TREE_OPTIONS))
TREE_TESTS   := $(patsubst %,$(BUILD)/npu_%_test.passed,cases equal error execute halves indexing instruction \
    expand expand_text expr kernel loop loop_tree measure ops optional own plan shape transient)
COMPILE_TREE  = cd $(NPU)/text/tree && $(CXX) $(TREE_FLAGS) $(TREE_LEVEL) $(addprefix -I,include aicpu aicore host shim)

$(BUILD)/npu/npu_first: $(BUILD)/tests/npu/npu_first.o $(VECTORS) $(BUILD)/libtested.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -o $@ $(TEST_LIBS)

$(BUILD)/npu/headers.h: tests/npu/npu_headers.h $(BUILD)/npu/npu_first
	@mkdir -p $(@D)/text $(@D)/plain
	$(@D)/npu_first write $(@D)/text/tree
	{ echo '#define WSP_TARGET_A5'; cat $<; } > $(@D)/plain/headers_a5.h
	cp $< $(@D)/plain/headers.h
	cp $(@D)/plain/headers_a5.h $(@D)
	cp $< $@

$(BUILD)/npu/headers.h.gch: $(BUILD)/npu/headers.h
	$(COMPILE_TREE) -x c++-header $(NPU)/headers.h -o $(NPU)/headers.h.gch

$(BUILD)/npu/headers_a5.h.gch: $(BUILD)/npu/headers.h
	$(COMPILE_TREE) -std=c++20 -x c++-header $(NPU)/headers_a5.h -o $(NPU)/headers_a5.h.gch

$(BUILD)/npu/libshim.a: $(BUILD)/npu/headers.h
	$(COMPILE_TREE) -DNPU_HEADERS_BODIES -x c++ -c $(NPU)/plain/headers.h -o $(NPU)/shim.o
	rm -f $@
	$(AR) rcs $@ $(@D)/shim.o

$(BUILD)/npu/first: $(addprefix $(BUILD)/npu/,npu_first headers.h.gch headers_a5.h.gch libshim.a)
	@mkdir -p -m 700 $(@D)/cache
	@CXX='$(CXX)' $< build $(NPU)/cache '$(TREE_OPTIONS)'
	@touch $@

$(TREE_TESTS): $(BUILD)/npu/first $(BUILD)/libwsp_fixed.a
$(TREE_TESTS): export NPU_EQUAL_OPTIONS ?= $(TREE_OPTIONS)
$(TREE_TESTS): export NPU_EQUAL_OPTIONS_A5 ?= $(A5_OPTIONS)
$(TREE_TESTS): export PTOWSP_TEST_OBJECTS = $(NPU)/cache
$(TREE_TESTS): export PTOWSP_TEST_HEADERS = $(NPU)
$(TREE_TESTS): export CXX := $(CXX)

# A program that has passed is not run again until it changes, or a seed or a scale is given.
PASSED := $(TESTS:%=$(BUILD)/%.passed)

$(BUILD)/%.passed: $(BUILD)/% $(if $(PTOWSP_SEED)$(PTOWSP_SCALE),FORCE)
	@sh tests/run_one.sh $(abspath $<)
	@touch $@

# Cases, facts and other texts are read when tests run: those in a test's own folder, and some of others.
TEXTS = $(wildcard $(addprefix $(dir $(1)),*.txt *.facts *.case *.py */*.*))
$(foreach program,$(PROGRAMS),$(eval $(BUILD)/$(notdir $(program)).passed: $(call TEXTS,$(program))))
$(patsubst %,$(BUILD)/npu_%_test.passed,cases clock_cases): $(wildcard tests/cases/*.case)
$(patsubst %,$(BUILD)/%_test.passed,npu_expand_text npu_simpler save_golden): $(wildcard tests/golden/*)

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
