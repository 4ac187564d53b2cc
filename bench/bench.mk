# The benchmark. Graphs run beside OpenMP, if the compiler has it, and oneTBB, if a C++ compiler finds it; matrix products
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
