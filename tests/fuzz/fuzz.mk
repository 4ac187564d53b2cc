# Fuzzers. Each target is linked twice: to a main that replays its inputs, with the library as tests have it,
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
