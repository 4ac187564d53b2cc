# The soak: random programs of all kinds with injected faults, for SOAK_SECONDS; SOAK_SEED=n repeats a case.
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
