# Examples. Those that emit have the emitter linked, the tool the reader of dumps as well, the others the library
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

# Those on a GPU: the dispatcher opens CUDA while it runs, the kernel needs its compiler.
NVCC          ?= nvcc
CUDA_EXAMPLES := $(BUILD)/cuda_dispatch $(if $(shell command -v $(NVCC) 2> /dev/null),$(BUILD)/cuda_decode)

examples: $(EXAMPLES) $(MPI_EXAMPLES) $(CUDA_EXAMPLES)
	@$(if $(MPI_EXAMPLES),:,echo 'examples/mpi is skipped, as there is no $(MPICC)')
	@$(if $(filter %/cuda_decode,$(CUDA_EXAMPLES)),:,echo 'examples/cuda/decode.cu is skipped, as there is no $(NVCC)')

$(BUILD)/common/predict_attention.o $(BUILD)/common/predict_instruction.o $(BUILD)/common/predict_kernel.o: ptoisa_shim.h

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

$(BUILD)/cuda_dispatch: examples/cuda/dispatch.c $(wildcard examples/cuda/chain*.[ch]) $(BUILD)/ptowsp.o
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -I. $(filter %.c %.o,$^) -o $@ $(LDFLAGS) -pthread -lm -ldl

$(BUILD)/cuda_rules.o: examples/cuda/decode_rules.c examples/cuda/decode_rules.h ptowsp.h
	@mkdir -p $(@D)
	$(CC) $(C11) $(CPPFLAGS) $(CFLAGS) -I. -c $< -o $@

$(BUILD)/cuda_decode: examples/cuda/decode.cu examples/cuda/decode_kernel.h $(addprefix $(BUILD)/,cuda_rules.o common/lengths.o common/command.o ptowsp.o)
	$(NVCC) -std=c++17 -O3 -arch=native -I. $(filter %.cu %.o,$^) -o $@ -lpthread -lm -ldl

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
