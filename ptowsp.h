// ptowsp: plans dynamic LLM workloads, describes them once, runs them, and computes beforehand how
// many cycles of an accelerator they take. Two files, C11 or C++17, MIT licence.
//
// WHAT IT IS
//
// Serving a language model is dynamic work: every decode step has a different batch and different
// sequence lengths. ptowsp cuts such a step into equal pieces ("work descriptors", 24 bytes each)
// and sorts them into size tiers. It runs them over the lanes of a thread pool or of your own
// executor, and merges the partial results of sequences that were split:
//
//      KV lengths            plan                    dispatch                     merge
//      [350, 17000, 0, ...]  chunk = 1024       ->   lane 0: table[tier](work) -> one output
//                            work = 24 B each        lane 1: table[tier](work)    per sequence
//
// Planning costs microseconds and allocates nothing. It can run before every step, on any thread,
// or on the scheduler core of an accelerator.
//
// Larger work (layers, routing, conditions, pipelines of kernels) is described as a workload: a
// typed tree of loops, conditions and tasks over tensors, compiled once into a small program. Each
// step binds sizes, lengths and memory to the program and runs its kernels. The same run simulates
// the step's time on any number of lanes, under a schedule of your choice. The result is
// deterministic:
//
//      module               program              run
//      axes, tensors,       flat, immutable,     bind sizes and data  ->  outputs
//      kernels, loops  ->   a few kilobytes  ->  execute              ->  makespan, lanes,
//      + schedule           shared by runs       (or time only)           stalls, critical path
//
// Kernels are C functions, or operations on tiles that are lowered to PTO-ISA instructions. The
// instructions run on the CPU, with the valid sizes of tiles at the edges of tensors, and are
// counted in an accelerator's cycles.
//
// WHAT IT DOES NOT DO
//
// It does not own your threads unless you ask, keep global state, allocate while it plans, compile
// kernels at run time, print, or write files other than the tuning records you name. It needs a
// POSIX libc (planning and attention alone: any) and, optionally, pthreads; nothing else. Its
// implementation compiles with gcc and clang. Floats have the same bits on every machine. So
// compiling it with -ffast-math, or with a part of it that the compiler reports, is an error. Do not
// link programs with -ffast-math either: their start-up code then flushes subnormal numbers to 0. On
// 32-bit x86 without SSE the same bits need C in an ISO mode (-std=c11): otherwise compilers keep
// more bits there than a float has.
// (Two optional files do more: ptowsp_npu_emit.c writes and compiles source trees, ptowsp_dump.c reads
// dumps of PTO Runtime.)
//
// HOW TO ADD IT
//
// Copy ptowsp.h and ptowsp.c into your project. Then either compile ptowsp.c like any other file,
// or write, in exactly one C or C++ file,
//
//      #define PTOWSP_IMPLEMENTATION
//      #include "ptowsp.h"
//
// To emit NPU code, compile ptowsp_npu_emit.c as well; to check dumps of PTO Runtime, ptowsp_dump.c.
// Link with -pthread, and with -ldl for the emitter where the C library needs it.
//
// The following macros change the build. Define them before the header in every file that includes
// it, and for ptowsp.c:
//
//      PTOWSP_STATIC         everything becomes private to the one file that has the implementation
//      PTOWSP_NO_THREADS     no pthreads: PTOWSP_THREADS_OWN is refused, the other modes work
//      PTOWSP_NO_SIMD        portable C only, no vector code chosen at run time
//      PTOWSP_ONLY_PLAN      sections 1 to 12, 32 and 33 alone, without pthreads: planning,
//                            dispatch, merging and attention kernels. The rest is not declared, nor
//                            the generator of routes in section 11.
//                            parts/attention/ has these two files, for engines to copy.
//      PTOWSP_ONLY_ATTENTION the same without MoE plans and prefix trees (functions of sections 11
//                            and 12)
//      PTOWSP_NO_TILES       all but tile kernels and emission: no functions of sections 24 and 30,
//                            and no ptowsp_program_prove
//      PTOWSP_ASSERT(x)      replaces assert(x), which checks preconditions of the API
//      PTOWSP_API            replaces the linkage of public functions
//      PTOWSP_AICORE, PTOWSP_AICPU, PTOWSP_GM
//                            qualifiers for kernels, for scheduler functions and for pointers to
//                            global memory; empty on a CPU
//
// SIX PATHS, A PROGRAM EACH
//
// Most programs need one of these paths and the sections named with it. The programs compile as C11
// and as C++17. They set the fields of zeroed (static) descriptions, as zero means the default; C
// and C++20 can use designated initialisers instead. They leave freeing to the end of the process.
//
// 1. PLAN: cut a ragged batch into work units that are balanced over lanes, run them, and merge the
// parts of split sequences (sections 5, 8 and 9). Here 4 lanes share 3 sequences in 6 units, 5 of
// them parts. The toy kernel averages token numbers, so each result is half of the last number.
// Section 6 has plans with one chunk for all sequences instead.
//
//    #include "ptowsp.h"
//    #include <stdio.h>
//    static ptowsp_partial states[8]; static float accs[8]; static uint32_t progress[256];
//    static void attend(const ptowsp_work *w, uint32_t lane, void *user) {  // token t has value t
//        float n = (float)ptowsp_work_kv_len(w), mean = (float)ptowsp_work_kv_end(w) - (n + 1) / 2;
//        uint32_t slot = ptowsp_work_slot(w); (void)lane;
//        if (slot == PTOWSP_NO_SLOT) ((float *)user)[ptowsp_work_request(w)] = mean;  // whole
//        else states[slot].l = n, accs[slot] = n * mean; }  // all scores are 0, and so is m
//    static void merge(const ptowsp_work *w, uint32_t lane, void *user) { (void)lane;  // a row
//        uint32_t first = ptowsp_work_slot_first(w), count = ptowsp_work_slot_count(w);
//        float *out = (float *)user + ptowsp_work_request(w);
//        ptowsp_merge_partials(states + first, accs + first, count, 1, 1, out); }
//    int main(void) {
//        const int32_t kv[] = {2501, 1001, 501}; float out[3];  // by sequence
//        static ptowsp_attention_batch batch; batch.kv_lengths = kv, batch.sequence_count = 3;
//        static ptowsp_attention_config config; config.kv_head_count = 1, config.lane_count = 4;
//        ptowsp_attention_sizes sizes; ptowsp_attention_plan plan; ptowsp_work_fn table = attend;
//        static uint64_t block[64]; static ptowsp_attention_job job;
//        if (ptowsp_attention_size(&batch, &config, &sizes, NULL)) return 1;
//        if (ptowsp_attention_place(&sizes, block, sizeof block, &plan)) return 1;
//        if (ptowsp_attention_generate(&batch, &config, &plan, NULL)) return 1;
//        job.plan = &plan, job.table = &table, job.table_count = 1, job.merge = merge;
//        job.user = out, job.progress = progress;
//        if (ptowsp_attention_run_serial(&job, NULL)) return 1;
//        printf("%u units, means %g, %g and %g\n", plan.unit_count, out[0], out[1], out[2]); }
//
// It prints:
//
//    6 units, means 1250, 500 and 250
//
// 2. WORKLOAD: describe loops over kernels once, bind sizes and memory, run (sections 13, 14, 15,
// 16, 17, 18 to 21). Section 21 runs the same program on threads, section 28 on a device.
//
//    #include "ptowsp.h"
//    #include <stdio.h>
//    static ptowsp_cycles twice(const ptowsp_task *task, void *user) {  // a kernel in C
//        *(float *)task->tiles[0].data *= 2;
//        return user ? 0 : 100;  // its cycles
//    }
//    int main(void) {
//        ptowsp_context *ctx; ptowsp_module *m; ptowsp_program *p; ptowsp_run *run;
//        static ptowsp_kernel_desc k; static ptowsp_task_desc task;  // zero: the defaults
//        k.name = "twice", k.fn = twice, k.tiles[0].name = "x", k.tiles[0].dtype = PTOWSP_F32;
//        k.tiles[0].direction = PTOWSP_INOUT, k.tiles[0].rows = k.tiles[0].cols = 1;
//        static ptowsp_tensor_desc x; x.name = "x", x.dtype = PTOWSP_F32, x.rank = 1;
//        x.shape[0] = PTOWSP_DYNAMIC;
//        if (ptowsp_context_create(NULL, &ctx) || ptowsp_module_create(ctx, NULL, &m)) return 1;
//        task.kernel = ptowsp_kernel_make(m, &k), task.views[0].tensor = ptowsp_tensor_make(m, &x);
//        PTOWSP_WORKLOAD(m, "scale") {
//            PTOWSP_PARALLEL(m, i, ptowsp_axis_dynamic(m, "n"))
//                task.views[0].col = i, ptowsp_task_make(m, &task); }
//        float data[3] = {1, 2, 3}; static ptowsp_buffer b;
//        b.data = data, b.size = sizeof data, b.dtype = PTOWSP_F32, b.rank = 1, b.shape[0] = 3;
//        if (ptowsp_program_create(ctx, m, NULL, &p) || ptowsp_run_create(ctx, p, &run)) return 1;
//        if (ptowsp_run_bind_size(run, "n", 3) || ptowsp_run_bind_tensor(run, "x", &b)) return 1;
//        if (ptowsp_run_execute(run, NULL)) return 1;
//        printf("%g in %d cycles\n", data[2], (int)ptowsp_run_result(run)->makespan_cycles);
//    }
//
// It prints:
//
//    6 in 300 cycles
//
// 3. TILE KERNEL: write a kernel as operations on tiles, and measure it (section 24). It is used in
// workloads like a kernel in C.
//
//    #include "ptowsp.h"
//    #include <stdio.h>
//    int main(void) {
//        ptowsp_context *ctx; ptowsp_module *m; ptowsp_kernel_stats stats;
//        static ptowsp_body_desc desc; static ptowsp_cost cost;
//        desc.name = "softmax", cost.model = PTOWSP_MODEL_910B;
//        if (ptowsp_context_create(NULL, &ctx) || ptowsp_module_create(ctx, NULL, &m)) return 1;
//        ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
//        ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 64, 128);
//        ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 64, 128);
//        ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(x, ptowsp_tile_rowmax(x)));
//        ptowsp_tile_store(y, ptowsp_tile_div(e, ptowsp_tile_rowsum(e)));
//        ptowsp_kernel softmax = ptowsp_kernel_end(k);
//        if (ptowsp_kernel_measure(m, softmax, &cost, &stats)) return 1;
//        printf("%u instructions, %d cycles on a 910B\n", stats.insn_count, (int)stats.cycles);
//    }
//
// It prints:
//
//    17 instructions, 4588 cycles on a 910B
//
// 4. PIPELINE: processes that overlap and meet in channels, with a time of their own (section 25).
//
//    #include "ptowsp.h"
//    #include <stdio.h>
//    int main(void) {
//        ptowsp_context *ctx; ptowsp_module *m; ptowsp_program *p; ptowsp_run *run;
//        static ptowsp_kernel_desc k; static ptowsp_task_desc task; static ptowsp_run_options how;
//        k.name = "stage", k.axis_count = 1, k.cycles = 100, how.mode = PTOWSP_RUN_TIME_ONLY;
//        if (ptowsp_context_create(NULL, &ctx) || ptowsp_module_create(ctx, NULL, &m)) return 1;
//        task.kernel = ptowsp_kernel_make(m, &k);
//        PTOWSP_WORKLOAD(m, "step") {
//            PTOWSP_PIPELINE(m, "two_stages") {
//                static ptowsp_channel_desc desc; desc.name = "loaded", desc.depth = 2;
//                desc.latency = 50; ptowsp_channel c = ptowsp_channel_make(m, &desc);
//                PTOWSP_PROCESS(m, "load") {
//                    ptowsp_produces(m, c);
//                    PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "tiles", 8))
//                        task.axes[0] = i, ptowsp_send_task_make(m, c, &task);
//                }
//                PTOWSP_PROCESS(m, "compute") {
//                    ptowsp_consumes(m, c);
//                    PTOWSP_CONSUME(m, t, c) task.axes[0] = t, ptowsp_task_make(m, &task);
//        } } }
//        if (ptowsp_program_create(ctx, m, NULL, &p) || ptowsp_run_create(ctx, p, &run)) return 1;
//        if (ptowsp_run_execute(run, &how)) return 1;
//        printf("8 tiles in %d cycles\n", (int)ptowsp_run_result(run)->makespan_cycles);
//    }
//
// It prints:
//
//    8 tiles in 950 cycles
//
// 5. GRAPH: C functions with an order between some of them, on threads (section 23).
//
//    #include "ptowsp.h"
//    #include <stdio.h>
//    static ptowsp_status square(void *user, uint64_t task, uint32_t lane) {
//        int *x = (int *)user;
//        x[task] = (int)(task * task);
//        return (void)lane, PTOWSP_OK;
//    }
//    static ptowsp_status sum(void *user, uint64_t task, uint32_t lane) {
//        int *x = (int *)user;
//        for (uint64_t i = 0; i < task; i++) x[task] += x[i];
//        return (void)lane, PTOWSP_OK;
//    }
//    int main(void) {
//        ptowsp_context *ctx; ptowsp_graph *graph; int x[5] = {0};
//        static ptowsp_context_desc threads; static ptowsp_graph_task_desc part, whole;
//        threads.threads = PTOWSP_THREADS_OWN;
//        part.fn = square, part.user = x, whole.fn = sum, whole.user = x;
//        if (ptowsp_context_create(&threads, &ctx)) return 1;
//        if (ptowsp_graph_create(ctx, NULL, &graph)) return 1;
//        for (int i = 0; i < 4; i++) ptowsp_graph_task_make(graph, &part, NULL);  // tasks 0 to 3
//        ptowsp_graph_task_make(graph, &whole, NULL);  // task 4
//        for (uint64_t i = 0; i < 4; i++) ptowsp_graph_edge_make(graph, i, 4);  // i before 4
//        if (ptowsp_graph_run(graph)) return 1;
//        printf("the squares of 0 to 3 add up to %d\n", x[4]);
//    }
//
// It prints:
//
//    the squares of 0 to 3 add up to 14
//
// 6. EMISSION: write a workload as a source tree for an Ascend NPU, which runs here first (section
// 30).
//
//    #include "ptowsp.h"
//    #include <stdio.h>
//    int main(void) {
//        ptowsp_context *ctx; ptowsp_module *m; ptowsp_program *p;
//        static ptowsp_body_desc desc; static ptowsp_task_desc task; static ptowsp_npu_desc tree;
//        desc.name = "twice", tree.directory = "scale_npu", tree.is_replacing = true;
//        if (ptowsp_context_create(NULL, &ctx) || ptowsp_module_create(ctx, NULL, &m)) return 1;
//        ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
//        ptowsp_value x = ptowsp_tile_inout(k, "x", PTOWSP_F32, 1, 64);
//        ptowsp_tile_store(x, ptowsp_tile_mul(x, ptowsp_tile_const(k, 2)));
//        task.kernel = ptowsp_kernel_end(k);
//        static ptowsp_tensor_desc t; t.name = "x", t.dtype = PTOWSP_F32, t.rank = 2;
//        t.shape[0] = PTOWSP_DYNAMIC, t.shape[1] = 64;
//        task.views[0].tensor = ptowsp_tensor_make(m, &t);
//        PTOWSP_WORKLOAD(m, "scale") {
//            PTOWSP_PARALLEL(m, i, ptowsp_axis_dynamic(m, "rows")) {
//                task.views[0].row = i;
//                ptowsp_task_make(m, &task);
//            }
//        }
//        if (ptowsp_program_create(ctx, m, NULL, &p) || ptowsp_npu_emit(ctx, p, &tree)) return 1;
//        printf("emitted: make -C %s && %s/build/run --help\n", tree.directory, tree.directory);
//    }
//
// It prints:
//
//    emitted: make -C scale_npu && scale_npu/build/run --help
//
// CONTENTS
//
//    1. Build configuration                 352    18. Schedules                          3901
//    2. Status and errors                   459    19. Modules as text                    4396
//    3. Contexts and threads                525    20. Programs                           4448
//    4. Sinks                               691    21. Runs                               4527
//    5. Work and tiers                      720    22. Seeing runs                        5212
//    6. Chunk plans                         873    23. Graphs                             5766
//    7. Dispatch                           1215    24. Tile kernels                       6020
//    8. Merging                            1285    25. Pipelines                          6666
//    9. Attention plans                    1334    26. Ranks                              6852
//   10. Attention kernels                  1846    27. Layouts                            7396
//   11. MoE plans                          2140    28. Devices                            7713
//   12. Prefix trees                       2626    29. Tuning                             7875
//   13. Data types and tensors             2915    30. Emitting                           8201
//   14. Modules                            3000    31. Dumps of PTO Runtime               8431
//   15. Kernels                            3215    32. Spaces                             8683
//   16. Scalar expressions                 3531    33. Utilities                          8742
//   17. Workloads                          3632
//
//   Appendix A. Reading programs                   8756
//   Appendix B. The grammar of modules as text     9288
//   Appendix C. Macros                             9386
//   Appendix D. Index of functions                 9609
//
// WORDS
//
//      lane          a worker that does one thing at a time: a thread, an SM, a core; or a simulated one
//      context       the state that calls of one thread share: memory, lanes and the last error
//      unit          a piece of a plan for one lane, a ptowsp_work: a part of a request's KV tokens.
//                    ptowsp_unit is the kind of core that a kernel needs: cube, vector or both
//      tier          a class of units by size, with a kernel of its own
//      tile          in plans: query tokens that a unit computes together; in kernels: rows x columns
//      slot          in plans: room for a part's state until it is merged; in workloads: a 64-bit
//                    cell by which tasks are counted or chosen
//      layout        in tensors: the mesh axes over which each dimension is spread; in tile kernels:
//                    the order of a tile's elements
//      record        of a run: the times and lane of a task or step; of an event: a statement that
//                    ends a wait; in tuning: a measured time
//      merge         parts of one softmax to the whole, by their maxima and sums
//      cost          of a plan: any unit that is the same for all work, such as cycles or KV tokens
//      module        axes, tensors, kernels and workloads, as they are built or read from text
//      axis          the iterations of a loop: a fixed number, bound, ragged or sparse
//      kernel        the work of a task: a C function, operations on tiles, or a source
//      task          a call of a kernel on views of tensors
//      view          the part of a tensor that a task reads or writes
//      workload      a tree of loops, branches and tasks
//      schedule      the lane of each task, its dependences, and how many tasks are in flight
//      program       a workload with its schedule, compiled: immutable, shared by runs
//      run           a program with its bindings (sizes, lengths, memory), and its results
//      window        the largest number of tasks in flight
//      process       a branch of a pipeline, with a time of its own
//      channel       a bounded queue of tokens between processes
//      rank          one of many machines that run the same workload on their parts of tensors
//      cycles        of the machine that a cost model stands for
//      makespan      cycles from the start of a run to the end of its last task or pipeline
//
// Names that end in _make, _begin and _end build: they add to a module or a graph, and run nothing.
//
// CONVENTIONS
//
// Functions without a context are pure: they touch only their arguments, allocate nothing and may
// be called from any thread. A context, and everything made from it, belongs to one thread at a
// time; different contexts are independent.
//
// A user's mistake, a limit or missing memory is a status in every build. A broken precondition
// (marked "Requires") is an assertion. Section 2 has the rule for NULL. A call that fails has
// changed nothing, unless its comment says otherwise. Descriptions may be zeroed: zero is the
// default.

#ifndef PTOWSP_H
#define PTOWSP_H

#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L)
#error "ptowsp.h needs C11 or later: compile with -std=c11 or -std=c17 (as C++: C++17 or later)"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// -------------------------------------------------------------------------------------------------
// 1. Build configuration
// -------------------------------------------------------------------------------------------------

#define PTOWSP_VERSION_MAJOR 0
#define PTOWSP_VERSION_MINOR 2
#define PTOWSP_VERSION_PATCH 0
#define PTOWSP_VERSION       "0.2.0"

#if defined(PTOWSP_ONLY_ATTENTION) && !defined(PTOWSP_ONLY_PLAN)
#define PTOWSP_ONLY_PLAN
#endif
#if defined(PTOWSP_ONLY_PLAN) && !defined(PTOWSP_NO_THREADS)
#define PTOWSP_NO_THREADS
#endif

#ifndef PTOWSP_AICORE
#define PTOWSP_AICORE
#endif
#ifndef PTOWSP_AICPU
#define PTOWSP_AICPU
#endif
#ifndef PTOWSP_GM
#define PTOWSP_GM
#endif

#ifndef PTOWSP_API
#if defined(PTOWSP_STATIC)
#if defined(__GNUC__) || defined(__clang__)
#define PTOWSP_API static __attribute__((unused))
#else
#define PTOWSP_API static
#endif
#elif defined(__GNUC__) || defined(__clang__)
#define PTOWSP_API extern __attribute__((visibility("default")))
#else
#define PTOWSP_API extern
#endif
#endif

// The linkage of ptowsp_npu_emit.c and ptowsp_dump.c: files of their own, even where each file has a
// private library.
#ifndef PTOWSP_NPU_API
#if !defined(PTOWSP_STATIC)
#define PTOWSP_NPU_API PTOWSP_API
#elif defined(__GNUC__) || defined(__clang__)
#define PTOWSP_NPU_API extern __attribute__((visibility("default")))
#else
#define PTOWSP_NPU_API extern
#endif
#endif

#if defined(PTOWSP_STATIC) && !defined(PTOWSP_IMPLEMENTATION) && !defined(PTOWSP_C)
#define PTOWSP_IMPLEMENTATION  // a private copy needs its code here
#endif

#if defined(__cplusplus)
#define PTOWSP_STATIC_ASSERT(condition, text) static_assert(condition, text)
#define PWSP_ALIGNAS(bytes)                   alignas(bytes)
#else
#define PTOWSP_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#define PWSP_ALIGNAS(bytes)                   _Alignas(bytes)
#endif

#if defined(__GNUC__) || defined(__clang__)
#define PWSP_UNUSED   __attribute__((unused))
#define PTOWSP_INLINE static inline __attribute__((always_inline, unused))
#else
#define PWSP_UNUSED
#define PTOWSP_INLINE static inline
#endif

// A cast and a null pointer that C++ compilers accept with all warnings.
#if defined(__cplusplus)
#define PWSP_CAST(type, value) static_cast<type>(value)
#define PWSP_NULL              nullptr
#else
#define PWSP_CAST(type, value) ((type)(value))
#define PWSP_NULL              NULL
#endif

// The last constant of every enumeration. It makes the type 32 bits wide under every compiler
// option, and any 32-bit value may be held in it.
#define PWSP_FORCE_INT(prefix) prefix##_FORCE_INT = 0x7fffffff

#ifdef __cplusplus
extern "C" {
#endif

// The version of the compiled library, "0.2.0". Compare it with PTOWSP_VERSION to detect a library
// whose version differs from the header's.
PTOWSP_API const char *ptowsp_version(void);

// Names of version 0.1. Using one is a compile error that contains the new name.
#define ptowsp_call           ptowsp_call_IS_NOW_ptowsp_call_make
#define ptowsp_close          ptowsp_close_IS_NOW_ptowsp_close_make
#define ptowsp_moe_unit_bound ptowsp_moe_unit_bound_IS_NOW_ptowsp_moe_bound
#define ptowsp_record         ptowsp_record_IS_NOW_ptowsp_record_make
#define ptowsp_send           ptowsp_send_IS_NOW_ptowsp_send_make
#define ptowsp_send_task      ptowsp_send_task_IS_NOW_ptowsp_send_task_make
#define ptowsp_slot_load      ptowsp_slot_load_IS_NOW_ptowsp_slot_load_make
#define ptowsp_slot_set       ptowsp_slot_set_IS_NOW_ptowsp_slot_set_make
#define ptowsp_text           ptowsp_text_IS_NOW_ptowsp_output
#define ptowsp_text_buffer    ptowsp_text_buffer_IS_NOW_ptowsp_output_buffer
#define ptowsp_text_to_buffer ptowsp_text_to_buffer_IS_NOW_ptowsp_output_to_buffer
#define ptowsp_wait           ptowsp_wait_IS_NOW_ptowsp_wait_make

// -------------------------------------------------------------------------------------------------
// 2. Status and errors
// -------------------------------------------------------------------------------------------------
//
// Zero is success. Positive values are normal outcomes (none yet), negative values are errors. The
// values never change. The first three errors have the names of the PTO-WSP specification.
//
// NULL     The object that a function works on must not be NULL: that is an assertion. It is the
//          first parameter: a context, module, body, program, run, graph, device, hub,
//          communicator, tuning table, tree or dump. Any other pointer may be NULL where its
//          comment says so. Elsewhere NULL is INVALID_PARAMS, and so is NULL with a count above 0.
//          A function without a status then does nothing and returns zero (0, 0.0, false or NULL);
//          ptowsp_tier_find returns -1, and ptowsp_hash its start. A building call gives the error
//          to its module. A sink without a function takes text and drops it.
// Texts    A call with a context, or with an object made from one, leaves the status and a text of
//          its error in that context: ptowsp_context_error. Functions that return no status, or
//          have no context, leave no error.

#define PTOWSP_STATUSES(STATUS)                                                                    \
    STATUS(OK, 0, "ok")                                                                            \
    STATUS(BUFFER_OVERFLOW, -1, "the buffer is too small")                                         \
    STATUS(UNSUPPORTED_SIZE, -2, "a size is outside every supported range")                        \
    STATUS(INVALID_PARAMS, -3, "a parameter is invalid")                                           \
    STATUS(OUT_OF_MEMORY, -4, "the allocator returned no memory")                                  \
    STATUS(LIMIT_EXCEEDED, -5, "a count exceeds what its type can hold")                           \
    STATUS(UNSUPPORTED, -6, "this build cannot do that")                                           \
    STATUS(SYSTEM_FAILED, -7, "the operating system refused")                                      \
    STATUS(BUSY, -8, "the context is already running something")                                   \
    STATUS(UNBOUND, -9, "something that is needed is not bound")                                   \
    STATUS(STUCK, -10, "nothing can proceed")                                                      \
    STATUS(KERNEL_FAILED, -11, "a kernel failed")                                                  \
    STATUS(CANCELLED, -12, "the run was cancelled")                                                \
    STATUS(SKIPPED, -13, "not run, as something before it failed or all was cancelled")            \
    STATUS(LEAKED, -14, "memory of the device was not freed")                                      \
    STATUS(TIMED_OUT, -15, "the run reached its time limit")                                       \
    STATUS(DIFFERENT, -16, "something is not what was expected of it")                             \
    STATUS(RANK_FAILED, -17, "another rank failed, ended or differs")

// clang-format off
typedef enum ptowsp_status {
#define PWSP_STATUS_ENUM(name, value, text) PTOWSP_##name = value,
    PTOWSP_STATUSES(PWSP_STATUS_ENUM)
#undef PWSP_STATUS_ENUM
    PWSP_FORCE_INT(PTOWSP_STATUS)
} ptowsp_status;
// clang-format on

// The name of a status ("BUFFER_OVERFLOW") and a short text; "UNKNOWN" and "no such status" for
// other values.
PTOWSP_API const char *ptowsp_status_name(ptowsp_status status);
PTOWSP_API const char *ptowsp_status_text(ptowsp_status status);

#define PTOWSP_NO_INDEX       UINT64_MAX
#define PTOWSP_NEGATIVE_INDEX (UINT64_MAX - 1)

// The last failure of a context. `text` is one line, "module: the fault, with name and value". It
// belongs to the context and lives until the next failure. After BUSY the text is one constant
// line, and other threads may ask for it. BUSY does not replace the error of an execution that is
// under way.
typedef struct ptowsp_error {
    ptowsp_status status;
    uint64_t index;  // of the offending element, or PTOWSP_NO_INDEX; PTOWSP_NEGATIVE_INDEX is one
                     // below 0, which the text gives
    const char *text;
} ptowsp_error;

// -------------------------------------------------------------------------------------------------
// 3. Contexts and threads
// -------------------------------------------------------------------------------------------------
//
// A context holds an allocator, an executor for parallel work, and the last error. Parallel work
// runs on *lanes*, numbered from 0. No two calls ever run on one lane at the same time, so arrays
// indexed by lane need no locks. The calling thread helps as lane 0 (your executor decides this
// itself).
//
// Work on a lane must not wait for other lanes: a lane whose thread is slow to wake may get nothing
// to do. It must return normally: leaving it by longjmp or exception leaves the context busy.
//
//      PTOWSP_THREADS_SERIAL   one lane, no threads (the default)
//      PTOWSP_THREADS_OWN      the context owns lane_count - 1 threads, which sleep between jobs
//      PTOWSP_THREADS_USER     your executor runs the lanes, through a callback
//      PTOWSP_THREADS_WORKERS  your threads run the lanes, each inside an operator of your engine
//                              already: ptowsp_context_run_worker
//
// Fork. A child of fork() has a copy of the forking thread alone. If that thread owns a context, the
// child may use its copies of the context and of everything made from it:
//
//      contexts, graphs, runs    start new threads when they need them. If the system has no room
//                                for them, lanes are omitted, and ptowsp_run_start and
//                                ptowsp_graph_start return SYSTEM_FAILED
//      started runs and graphs   if they had not ended at the fork, only the parent gets their
//                                results: wait and poll return SYSTEM_FAILED, other calls return
//                                BUSY. Destroying them makes their context usable again; memory
//                                that a run was using stays allocated
//      devices                   can be closed, and copied from; other calls return SYSTEM_FAILED
//      shared hubs               a rank stays with the process that took its transport: destroying
//                                its communicator in a child does not end the rank
//
// Fork outside of tasks: a task may fork only for a child that calls exec or _exit. In a child, do
// not touch the contexts that other threads were using at the fork.

// Resizes a block, like Lua's allocator: ptr NULL allocates (old_size is 0), new_size 0 frees and
// returns NULL, otherwise the block moves or stays. Returns NULL if memory is out, and leaves the
// old block untouched. Memory is aligned as malloc aligns it. The hook is called on the thread that
// called ptowsp, or, while a program runs on lanes of your executor, on the thread of one lane.
typedef void *(*ptowsp_resize_fn)(void *user, void *ptr, size_t old_size, size_t new_size);

// One lane of a parallel job. Call it once for every lane from 0 to lane_count - 1, on any threads,
// in any order, at the same time or one after another.
typedef void (*ptowsp_lane_fn)(void *job, uint32_t lane);

// Your executor: runs all lanes and returns when every one of them has returned. Usually lane 0
// runs on the calling thread. Omitting a lane, calling one twice or calling one that does not exist
// is an error (SYSTEM_FAILED); the other lanes complete the work all the same.
typedef void (*ptowsp_run_lanes_fn)(void *user, uint32_t lane_count, ptowsp_lane_fn lane,
                                    void *job);

typedef enum ptowsp_threads {
    PTOWSP_THREADS_SERIAL = 0,
    PTOWSP_THREADS_OWN,
    PTOWSP_THREADS_USER,
    PTOWSP_THREADS_WORKERS,
    PWSP_FORCE_INT(PTOWSP_THREADS)
} ptowsp_threads;

#define PTOWSP_LANE_COUNT_MAX 1024

typedef struct ptowsp_context_desc {
    ptowsp_resize_fn resize;        // default: realloc and free
    void *resize_user;              // handed to resize
    ptowsp_threads threads;         // default: PTOWSP_THREADS_SERIAL
    uint32_t lane_count;            // default: 1 (SERIAL), ptowsp_processor_count() (OWN);
                                    // required for USER and WORKERS (the most of them)
    ptowsp_run_lanes_fn run_lanes;  // USER only
    void *run_lanes_user;           // handed to run_lanes
} ptowsp_context_desc;

typedef struct ptowsp_context ptowsp_context;

// Creates a context; desc may be NULL.
//
// Memory   One block for the context, one for its pool.
// Errors   INVALID_PARAMS (unknown mode; SERIAL with more than one lane; more lanes than
//          PTOWSP_LANE_COUNT_MAX; USER without run_lanes or lane_count; WORKERS without lane_count;
//          run_lanes without USER; out_context NULL).
//          UNSUPPORTED (OWN or WORKERS in a PTOWSP_NO_THREADS build), OUT_OF_MEMORY, SYSTEM_FAILED (a thread
//          could not be started). *out_context is NULL then.
PTOWSP_API ptowsp_status ptowsp_context_create(const ptowsp_context_desc *desc,
                                               ptowsp_context **out_context);

// Stops the threads and frees the context; NULL is ignored. Requires that everything made from it
// has been destroyed (modules, programs, runs, graphs, devices and descriptors are counted), and
// that no job is running.
PTOWSP_API void ptowsp_context_destroy(ptowsp_context *context);

// The last failure, or {PTOWSP_OK, PTOWSP_NO_INDEX, ""}. Success does not clear it.
PTOWSP_API ptowsp_error ptowsp_context_error(const ptowsp_context *context);

// Sets the last failure and returns its status. Code that builds on this library can report its own
// errors with it. The text is copied, and cut off when it is very long. Requires an error.
PTOWSP_API ptowsp_status ptowsp_context_fail(ptowsp_context *context, ptowsp_status status,
                                             uint64_t index, const char *text);

PTOWSP_API uint32_t ptowsp_context_lane_count(const ptowsp_context *context);

// The number of processors that this process may use, from 1 to PTOWSP_LANE_COUNT_MAX. On Linux it
// is the number in the affinity of the calling thread, or less: the smallest CPU quota of the
// process's cgroups (version 1 or 2), rounded down. Elsewhere it is the number that is online.
//
// Cost     The system opens some files: tens of microseconds.
PTOWSP_API uint32_t ptowsp_processor_count(void);

// Runs items [begin, end) on a lane.
typedef void (*ptowsp_range_fn)(void *user, uint64_t begin, uint64_t end, uint32_t lane);

// Calls fn over disjoint ranges that together cover [0, item_count), on all lanes, and returns when
// all are done. Lanes take ranges as they become free, so the lane of a range is not defined.
//
// Ranges   grain 0 lets the library choose: large ranges first, smaller ones towards the end.
//          Otherwise every range but the last has grain items.
// Errors   INVALID_PARAMS (fn NULL). SYSTEM_FAILED (USER: run_lanes broke its contract; the work is
//          done). BUSY (called from inside a job of the same context: does nothing).
// Cost     Well under a microsecond when threads are awake. Waking sleeping threads takes the
//          system tens of microseconds. Threads stay awake for some 20 us after a job.
PTOWSP_API ptowsp_status ptowsp_parallel_for(ptowsp_context *context, uint64_t item_count,
                                             uint64_t grain, ptowsp_range_fn fn, void *user);

// The function that worker 0 of a session calls; see ptowsp_context_run_worker. It may make any
// calls that run on lanes of the context, one after another.
typedef ptowsp_status (*ptowsp_lead_fn)(void *user);

// Lends the calling thread to a context of PTOWSP_THREADS_WORKERS, as worker `worker` of
// worker_count. An engine whose threads are all inside an operator makes this call on each of them:
//
//      static ptowsp_status step(void *user) {              // on worker 0
//          struct layer *layer = user;
//          ptowsp_dispatch_spmd(layer->context, layer->work, layer->count, table, 1, layer);
//          return ptowsp_graph_run(layer->graph);
//      }
//      void operator(struct layer *layer, int worker, int worker_count) {      // on each of them
//          ptowsp_context_run_worker(layer->context, worker, worker_count, step, layer);
//      }
//
// Worker 0 calls lead(user). Meanwhile the others run lanes of all that lead runs: of parallel-for,
// dispatch, sorting, attention plans, graphs, programs. Worker i is lane i; lanes without a worker
// stay idle. All workers return the status of lead, when it has returned. ptowsp_graph_run_worker
// and ptowsp_run_execute_worker are this call with a lead of one line. One worker alone may come to
// any context: it calls lead, which runs on the context's own lanes.
//
// Workers  Every worker from 0 to worker_count - 1 has to call once per session, at any time and on
//          any thread. Lead does not wait for workers that are late: these find it done. The context,
//          and the graph or run of the calls below, must live until all workers have returned.
// Again    A new session begins when all workers have returned; the number of workers may differ.
// Errors   INVALID_PARAMS (several workers, and not a context of WORKERS; worker_count not 1 to its
//          lanes; worker not below worker_count; lead NULL). BUSY (this worker is in a session, or
//          a session of a different worker_count has not ended). After these the call has done
//          nothing, and leaves a text unless a session is under way. All other errors come from
//          lead.
// Cost     A microsecond per session, and per job of lead as for PTOWSP_THREADS_OWN. Workers spin,
//          and sleep where lead runs nothing for some 20 us.
PTOWSP_API ptowsp_status ptowsp_context_run_worker(ptowsp_context *context, uint32_t worker,
                                                   uint32_t worker_count, ptowsp_lead_fn lead,
                                                   void *user);

// When and where something ran, by the wall clock. Plans and graphs record spans, and your own code
// may; ptowsp_spans_export draws them. (What runs record is in section 22.)
typedef struct ptowsp_span {
    uint64_t begin, end;  // of ptowsp_clock_ns; end 0: it did not run
    uint32_t lane;
    uint32_t kind;  // the kind of work: the index of a name
} ptowsp_span;

// -------------------------------------------------------------------------------------------------
// 4. Sinks
// -------------------------------------------------------------------------------------------------
//
// Functions that print or export write to a sink: a callback that takes text or other bytes, piece
// by piece. Neither printing nor reading depends on the locale: numbers always have a decimal
// point. Only messages of the operating system in errors may be in its language.

// Takes bytes, which are not terminated; false: it failed. A function that returns a status then
// ends with SYSTEM_FAILED; any other function continues.
typedef struct ptowsp_output {
    bool (*write)(void *user, const void *data, size_t size);
    void *user;
} ptowsp_output;

// A sink over the caller's buffer. The text is always terminated (if size > 0) and cut off when it
// does not fit. `length` counts all of the text, cut off or not, as snprintf does.
typedef struct ptowsp_output_buffer {
    char *data;
    size_t size;    // of data, in bytes
    size_t length;  // of the whole text so far, without terminator
} ptowsp_output_buffer;

// Empties the buffer and returns a sink that appends to it. The buffer outlives the sink.
PTOWSP_API ptowsp_output ptowsp_output_to_buffer(ptowsp_output_buffer *buffer);

// A sink that appends to an open FILE of <stdio.h>, which outlives it; NULL: nothing is written.
PTOWSP_API ptowsp_output ptowsp_output_to_file(void *file);

// -------------------------------------------------------------------------------------------------
// 5. Work and tiers
// -------------------------------------------------------------------------------------------------
//
// A work descriptor names the piece of a step that one kernel call computes. It has 24 bytes, the
// same on every machine of one byte order, so host, scheduler core and kernel core share arrays of
// descriptors:
//
//      offset  0         4      5       6          8           12          16          20
//              work_id   tier   flags   reserved   params[0]   params[1]   params[2]   params[3]
//              u32       u8     u8      u16 (0)    u32         u32         u32         u32
//
//      attention                                   request     head        kv_start    kv_len
//      mixture of experts                          batch       expert      token_start token_count
//      merge of parts (section 9)                 request     head        first slot  slot count
//
// Attention plans (section 9) use `reserved` for the query tile, and work_id for the slot of a
// part. MoE plans (section 11) use `reserved` for the part of the output columns.

typedef struct ptowsp_work {
    PWSP_ALIGNAS(8) uint32_t work_id;
    uint8_t tier;
    uint8_t flags;  // PTOWSP_WORK_FIRST | ...
    uint16_t reserved;
    uint32_t params[4];
} ptowsp_work;

PTOWSP_STATIC_ASSERT(sizeof(ptowsp_work) == 24, "a work descriptor has 24 bytes");
PTOWSP_STATIC_ASSERT(offsetof(ptowsp_work, tier) == 4, "tier lives at 4");
PTOWSP_STATIC_ASSERT(offsetof(ptowsp_work, flags) == 5, "flags live at 5");
PTOWSP_STATIC_ASSERT(offsetof(ptowsp_work, reserved) == 6, "reserved lives at 6");
PTOWSP_STATIC_ASSERT(offsetof(ptowsp_work, params) == 8, "params live at 8");

#define PTOWSP_WORK_FIRST 0x01u  // the first chunk of its (request, head)
#define PTOWSP_WORK_LAST  0x02u  // the last chunk of its (request, head)
#define PTOWSP_WORK_INIT  0x04u  // never set by the planner: for lanes that chain chunks
#define PTOWSP_WORK_ROWS  0x08u  // a merge of some rows of its tile: ptowsp_work_merge_rows

// A unit of attention with sinks besides its KV, or without KV (section 9, Positions).
#define PTOWSP_WORK_POSITIONS 0x10u

// Not a unit: fills the arrays of an attention plan, a MoE plan or joins up to their capacity.
#define PTOWSP_WORK_INVALID 0x80u

PTOWSP_INLINE uint32_t ptowsp_work_request(const PTOWSP_GM ptowsp_work *work) {
    return work->params[0];
}
PTOWSP_INLINE uint32_t ptowsp_work_head(const PTOWSP_GM ptowsp_work *work) {
    return work->params[1];
}
PTOWSP_INLINE uint32_t ptowsp_work_kv_start(const PTOWSP_GM ptowsp_work *work) {
    return work->params[2];
}
PTOWSP_INLINE uint32_t ptowsp_work_kv_len(const PTOWSP_GM ptowsp_work *work) {
    return work->params[3];
}
PTOWSP_INLINE uint32_t ptowsp_work_kv_end(const PTOWSP_GM ptowsp_work *work) {
    return work->params[2] + work->params[3];
}
PTOWSP_INLINE uint32_t ptowsp_work_batch(const PTOWSP_GM ptowsp_work *work) {
    return work->params[0];
}
PTOWSP_INLINE uint32_t ptowsp_work_expert(const PTOWSP_GM ptowsp_work *work) {
    return work->params[1];
}
PTOWSP_INLINE uint32_t ptowsp_work_token_start(const PTOWSP_GM ptowsp_work *work) {
    return work->params[2];
}
PTOWSP_INLINE uint32_t ptowsp_work_token_count(const PTOWSP_GM ptowsp_work *work) {
    return work->params[3];
}
PTOWSP_INLINE uint32_t ptowsp_work_token_end(const PTOWSP_GM ptowsp_work *work) {
    return work->params[2] + work->params[3];
}
PTOWSP_INLINE uint32_t ptowsp_work_tile(const PTOWSP_GM ptowsp_work *work) {
    return work->reserved;
}
PTOWSP_INLINE uint32_t ptowsp_work_column_part(const PTOWSP_GM ptowsp_work *work) {
    return work->reserved;
}
PTOWSP_INLINE uint32_t ptowsp_work_slot(const PTOWSP_GM ptowsp_work *work) {
    return work->work_id;
}
PTOWSP_INLINE uint32_t ptowsp_work_slot_first(const PTOWSP_GM ptowsp_work *work) {
    return work->params[2];
}
PTOWSP_INLINE uint32_t ptowsp_work_slot_count(const PTOWSP_GM ptowsp_work *work) {
    return work->params[3];
}
// The rows that a merge covers, of a tile of `rows` rows: *out_first, and their number as the
// result. All of them, unless lanes share the merge (ptowsp_attention_config.shares_merges).
PTOWSP_INLINE uint32_t ptowsp_work_merge_rows(const PTOWSP_GM ptowsp_work *work, uint32_t rows,
                                              uint32_t *out_first) {
    const bool is_shared = (work->flags & PTOWSP_WORK_ROWS) != 0;
    *out_first = is_shared ? work->work_id & 0xffffu : 0;
    return is_shared ? work->work_id >> 16 : rows;
}
PTOWSP_INLINE bool ptowsp_work_is_valid(const PTOWSP_GM ptowsp_work *work) {
    return (work->flags & PTOWSP_WORK_INVALID) == 0;
}
PTOWSP_INLINE bool ptowsp_work_is_whole(const PTOWSP_GM ptowsp_work *work) {
    return (work->flags & (PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST)) ==
           (PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST);
}
PTOWSP_INLINE bool ptowsp_work_is_first(const PTOWSP_GM ptowsp_work *work) {
    return (work->flags & PTOWSP_WORK_FIRST) != 0;
}
PTOWSP_INLINE bool ptowsp_work_is_last(const PTOWSP_GM ptowsp_work *work) {
    return (work->flags & PTOWSP_WORK_LAST) != 0;
}

// Builds one descriptor: params are (request, head, kv_start, kv_len) or (batch, expert,
// token_start, token_count).
PTOWSP_INLINE ptowsp_work ptowsp_work_of(uint32_t work_id, uint8_t tier, uint8_t flags,
                                         uint32_t outer, uint32_t inner, uint32_t start,
                                         uint32_t length) {
    ptowsp_work work = {work_id, tier, flags, 0, {outer, inner, start, length}};
    return work;
}

// Writes one line without a line end: "#7 tier 1 first (3, 0) [0, 1024)". It holds id, tier, any of
// "first last init", params 0 and 1, and the tokens.
PTOWSP_API void ptowsp_work_print(const PTOWSP_GM ptowsp_work *work, ptowsp_output output);

// Allocates count zeroed descriptors, aligned to 64 bytes; destroy them before the context.
// Errors   INVALID_PARAMS (out_work NULL, count 0, more than SIZE_MAX / 2 bytes), OUT_OF_MEMORY.
//          *out_work is NULL then.
PTOWSP_API ptowsp_status ptowsp_work_create(ptowsp_context *context, uint64_t count,
                                            ptowsp_work **out_work);

// Frees descriptors. Takes the context that created them; work may be NULL.
PTOWSP_API void ptowsp_work_destroy(ptowsp_context *context, ptowsp_work *work);

// Tiers group sequences by length, so that each group has a kernel of its own. Where tiers overlap,
// the first in order wins. Any order is allowed, and so are gaps.
typedef struct ptowsp_tier {
    uint8_t id;          // carried by descriptors; the index into dispatch tables
    int32_t length_min;  // inclusive
    int32_t length_max;  // inclusive
} ptowsp_tier;

// The id of the first tier that covers the length, or -1.
PTOWSP_API PTOWSP_AICPU int32_t ptowsp_tier_find(const ptowsp_tier *tiers, uint32_t tier_count,
                                                 int32_t length);

// The standard decode tiers, as a list TIER(id, length_min, length_max).
#define PTOWSP_DECODE_TIERS(TIER)                                                                  \
    TIER(0, 1, 1024) TIER(1, 1025, 4096) TIER(2, 4097, 16384) TIER(3, 16385, 131072)
#define PTOWSP_DECODE_TIER_COUNT 4

// The same as an array of PTOWSP_DECODE_TIER_COUNT.
PTOWSP_API const ptowsp_tier *ptowsp_decode_tiers(void);

// -------------------------------------------------------------------------------------------------
// 6. Chunk plans
// -------------------------------------------------------------------------------------------------
//
// A plan cuts every sequence of a batch into chunks of KV tokens. Each chunk of each head is one
// work descriptor. Small chunks give parallelism, but each costs a descriptor and a merge. The rule
// is:
//
//      chunk = the smallest chunk in [chunk_min, chunk_max] whose work units number at most
//              max_work_units, or chunk_max when none does
//      work units = kv_head_count * (sum over sequences of ceil(length / chunk))
//
// (The text of PTO-WSP v4 says "largest" but its algorithm finds the smallest; ptowsp follows the
// algorithm.)
//
// A sequence of length len becomes n = ceil(len / chunk) pieces, in one of two ways:
//
//      PTOWSP_CHUNKS_BALANCED   pieces differ by at most `align` tokens: len 10, chunk 4 -> 3 3 4
//      PTOWSP_CHUNKS_FIXED      all are `chunk` long but the last:       len 10, chunk 4 -> 4 4 2
//
// Balanced pieces finish together. Fixed boundaries depend on the sequence alone, not on the rest
// of the batch, as long as the chunk is kept: use them for batch-invariant results. With align > 1
// (the KV page size) pieces start at multiples of align, and chunks are multiples of it. Balanced
// pieces that are one unit of `align` longer come last, since the last piece may end inside a unit.
//
// Descriptors are ordered by sequence, then head, then chunk. work_id counts from 0. tier is the
// tier of the whole sequence. FIRST marks chunk 0 and LAST the last chunk. A sequence of length 0
// has no work. kv_head_count is the number of heads that have KV of their own (KV heads under
// grouped-query attention, 1 under MLA).
//
// These functions take no context. *out_info, which may be NULL, receives the fault and the
// sequence at fault; ptowsp_plan_explain turns it into a line of text.
//
//      uint32_t chunk;
//      if (ptowsp_plan_chunk_size(&batch, &config, &chunk, &info) == PTOWSP_OK &&
//          ptowsp_plan_generate(&batch, &config, chunk, work, capacity, &info) == PTOWSP_OK) {
//          ptowsp_dispatch_spmd(context, work, info.work_count, table, tier_count, user);
//      }

typedef struct ptowsp_batch {
    const PTOWSP_GM int32_t *lengths;  // [sequence_count] KV tokens of each sequence, 0 allowed
    uint32_t sequence_count;           // 0 is an empty step
    uint32_t kv_head_count;            // at least 1
} ptowsp_batch;

typedef enum ptowsp_chunks {
    PTOWSP_CHUNKS_BALANCED = 0,
    PTOWSP_CHUNKS_FIXED,
    PWSP_FORCE_INT(PTOWSP_CHUNKS)
} ptowsp_chunks;

#define PTOWSP_CHUNK_MIN_DEFAULT      256
#define PTOWSP_CHUNK_MAX_DEFAULT      4096
#define PTOWSP_MAX_WORK_UNITS_DEFAULT 65536

// A NULL config, or zero fields, mean the defaults.
typedef struct ptowsp_plan_config {
    uint32_t chunk_min;        // tokens; default 256, or chunk_max if that is smaller and given
    uint32_t chunk_max;        // tokens; default 4096, or chunk_min if that is larger and given
    uint32_t max_work_units;   // default 65536
    uint32_t align;            // tokens; default 1
    ptowsp_chunks chunks;      // default balanced
    const ptowsp_tier *tiers;  // default the standard decode tiers; each length above 0 needs one
    uint32_t tier_count;
} ptowsp_plan_config;

// The faults that this section reports, in the order of the checks, and then the faults that
// sections 9 to 12 add, with the status and the text of each. `%i` is info.index, `%v` info.value
// and `%l` info.limit. Names follow in braces where the number stands for one: 1 is b in {a|b|c}.
#define PTOWSP_PLAN_FAULTS(FAULT)                                                                  \
    FAULT(NONE, OK, "no fault")                                                                    \
    FAULT(OUT_NULL, INVALID_PARAMS,                                                                \
          "%v{the output pointer|out_sizes|order|placement|next|out_ids|out_balance} is NULL")     \
    FAULT(CHUNKS_UNKNOWN, INVALID_PARAMS, "config.chunks has the unknown value %v")                \
    FAULT(CHUNK_ORDER, INVALID_PARAMS, "chunk_min %v is greater than chunk_max %l")                \
    FAULT(TIERS_NULL, INVALID_PARAMS, "tiers is NULL with tier_count %v")                          \
    FAULT(TIERS_EMPTY, INVALID_PARAMS, "tiers is given with tier_count 0")                         \
    FAULT(TIER_ORDER, INVALID_PARAMS, "tier at %i has length_min %v above its length_max %l")      \
    FAULT(CHUNK_ALIGN, INVALID_PARAMS, "no multiple of align %v is in chunk_min to chunk_max %l")  \
    FAULT(CHUNK_INVALID, INVALID_PARAMS, "chunk %v is not a positive multiple of align %l")        \
    FAULT(BATCH_NULL, INVALID_PARAMS, "batch is NULL")                                             \
    FAULT(LIMITS_NULL, INVALID_PARAMS, "limits is NULL")                                           \
    FAULT(LENGTHS_NULL, INVALID_PARAMS, "lengths is NULL with sequence_count %v")                  \
    FAULT(HEADS_ZERO, INVALID_PARAMS, "kv_head_count is 0")                                        \
    FAULT(LIMITS_LENGTH, INVALID_PARAMS, "a largest length in limits is %v")                       \
    FAULT(RANGE, INVALID_PARAMS, "sequences from %i, %v of them, lie outside the batch of %l")     \
    FAULT(LENGTH_NEGATIVE, INVALID_PARAMS, "sequence %i has the negative length %v")               \
    FAULT(LENGTH_UNCOVERED, UNSUPPORTED_SIZE, "sequence %i has length %v, which no tier covers")   \
    FAULT(TOTAL_OVERFLOW, LIMIT_EXCEEDED, "the number of work units exceeds 63 bits")              \
    FAULT(IDS_EXHAUSTED, LIMIT_EXCEEDED, "%v work units exceed the %l work ids")                   \
    FAULT(WORK_NULL, INVALID_PARAMS, "work is NULL with capacity %v")                              \
    FAULT(BUFFER_SMALL, BUFFER_OVERFLOW, "%v work units do not fit the buffer, which holds %l")    \
    FAULT(CONFIG_NULL, INVALID_PARAMS, "config is NULL")                                           \
    FAULT(HEADS_MULTIPLE, INVALID_PARAMS,                                                          \
          "query_head_count %v is not a multiple of kv_head_count %l")                             \
    FAULT(HEADS_OTHER, INVALID_PARAMS,                                                             \
          "query_head_count %v is not kv_head_count * group, which is %l")                         \
    FAULT(LANES_COUNT, INVALID_PARAMS, "lane_count %v is not in 1 to %l")                          \
    FAULT(SPEEDS_ZERO, INVALID_PARAMS, "the speeds of all %v lanes are 0")                         \
    FAULT(MODE_UNKNOWN, INVALID_PARAMS, "config.mode has the unknown value %v")                    \
    FAULT(CHUNK_PAGES, INVALID_PARAMS, "chunk %v is not a multiple of page_size %l")               \
    FAULT(GRAIN_PAGES, INVALID_PARAMS, "grain %v is not a multiple of page_size %l")               \
    FAULT(GRAIN_CHUNK, INVALID_PARAMS, "grain %v does not divide chunk %l")                        \
    FAULT(COST_INVALID, INVALID_PARAMS,                                                            \
          "cost.%i{per_unit|per_token|per_row_token|per_merged_row|per_expert} is "                \
          "negative, NaN or out of range")                                                         \
    FAULT(COST_APART, INVALID_PARAMS,                                                              \
          "cost.%i{per_unit|per_token|per_row_token|per_merged_row|per_expert} is "                \
          "over 2^%l times the smallest")                                                          \
    FAULT(QUERY_NEGATIVE, INVALID_PARAMS, "sequence %i has the negative query length %v")          \
    FAULT(QUERY_LONG, INVALID_PARAMS,                                                              \
          "sequence %i has %v queries for %l KV tokens, under is_causal")                          \
    FAULT(TILES_EXCEEDED, LIMIT_EXCEEDED, "sequence %i has %v query tiles, more than %l")          \
    FAULT(UNITS_EXCEEDED, LIMIT_EXCEEDED, "%v units are more than the %l of a plan")               \
    FAULT(COST_OVERFLOW, LIMIT_EXCEEDED,                                                           \
          "the cost of the batch exceeds 2^%l of the planner's grid")                              \
    FAULT(PLAN_NULL, INVALID_PARAMS, "plan is NULL")                                               \
    FAULT(PLAN_ARRAY, INVALID_PARAMS,                                                              \
          "plan.%i{units|merges|unit_begin|merge_begin} is NULL: was the plan placed?")            \
    FAULT(LANES_SMALL, BUFFER_OVERFLOW, "%v lanes do not fit the plan, which has room for %l")     \
    FAULT(UNITS_SMALL, BUFFER_OVERFLOW, "%v units do not fit the plan, which holds %l")            \
    FAULT(MERGES_SMALL, BUFFER_OVERFLOW, "%v merges do not fit the plan, which holds %l")          \
    FAULT(SLOTS_SMALL, BUFFER_OVERFLOW, "%v slots do not fit the scratch, which holds %l")         \
    FAULT(PLAN_OTHER, INVALID_PARAMS,                                                              \
          "the plan is of another configuration: it has %v where %l belongs")                      \
    FAULT(COUNT_WRONG, INVALID_PARAMS, "the plan says %v where %l belongs")                        \
    FAULT(LANE_RANGE, INVALID_PARAMS,                                                              \
          "the range of lane %i ends at %v, not in order or beyond %l")                            \
    FAULT(UNIT_WRONG, INVALID_PARAMS, "unit %i has the value %v where %l belongs")                 \
    FAULT(UNIT_MISSING, INVALID_PARAMS, "unit %i should be of sequence %l, and is not there")      \
    FAULT(UNIT_EXTRA, INVALID_PARAMS, "unit %i is beyond what the batch has")                      \
    FAULT(MERGE_WRONG, INVALID_PARAMS, "merge %i has the value %v where %l belongs")               \
    FAULT(INPUT_NULL, INVALID_PARAMS,                                                              \
          "%i{routes|routes.ids|scratch|cluster|loads|batch.counts|traffic|counts|order.counts|"   \
          "order.offsets|order.pairs|placement|placement.replica_experts|placement.expert_counts|" \
          "placement.expert_replicas|replica_experts} is NULL")                                    \
    FAULT(TOP_K_RANGE, INVALID_PARAMS, "top_k %v is not in 1 to %l")                               \
    FAULT(EXPERTS_COUNT, INVALID_PARAMS, "%v experts or replicas are not in 1 to %l")              \
    FAULT(PAIRS_EXCEEDED, LIMIT_EXCEEDED, "%v pairs or rows are more than %l")                     \
    FAULT(EXPERT_RANGE, INVALID_PARAMS, "pair %i has expert %v, which is not below %l")            \
    FAULT(ROWS_SMALL, BUFFER_OVERFLOW, "%v rows do not fit the order, which holds %l")             \
    FAULT(OFFSET_WRONG, INVALID_PARAMS, "offset %i is %v, and the rows before it end at %l")       \
    FAULT(DECAY_INVALID, INVALID_PARAMS, "decay is not in 0 to 1")                                 \
    FAULT(RANKS_DIVIDE, INVALID_PARAMS, "%v experts or replicas cannot be divided among %l ranks") \
    FAULT(GROUPS_DIVIDE, INVALID_PARAMS, "%v experts cannot be divided into %l groups")            \
    FAULT(NODES_DIVIDE, INVALID_PARAMS, "%v ranks or groups cannot be divided among %l nodes")     \
    FAULT(REPLICAS_FEW, INVALID_PARAMS, "%v replicas are fewer than the %l experts")               \
    FAULT(LOAD_INVALID, INVALID_PARAMS, "load %i is negative, infinite or NaN")                    \
    FAULT(SCRATCH_SMALL, BUFFER_OVERFLOW, "the scratch has %v bytes of the %l that are needed")    \
    FAULT(STRIDE_SMALL, BUFFER_OVERFLOW, "expert %i has %v replicas, and the stride is %l")        \
    FAULT(REPLICAS_MANY, INVALID_PARAMS,                                                           \
          "a rank has %v replicas, and only %l different experts to spread")                       \
    FAULT(REPLICA_EXPERT, INVALID_PARAMS, "replica %i has expert %v, which is not below %l")       \
    FAULT(EXPERT_ABSENT, INVALID_PARAMS, "expert %i has no replica")                               \
    FAULT(REPLICA_WRONG, INVALID_PARAMS,                                                           \
          "expert %i has %v where a count or a replica up to %l belongs")                          \
    FAULT(PATTERN_UNKNOWN, INVALID_PARAMS, "pattern has the unknown value %v")                     \
    FAULT(SKEW_RANGE, INVALID_PARAMS, "skew is not in 1 to expert_count / top_k")                  \
    FAULT(TREE_NULL, INVALID_PARAMS,                                                               \
          "%v{tree|tree.order|tree.common|tree.owners|tree.nodes|tree.scratch} is NULL: "          \
          "was the tree placed?")                                                                  \
    FAULT(TREE_FULL, BUFFER_OVERFLOW, "%v requests do not fit the tree, which holds %l")           \
    FAULT(BLOCKS_NULL, INVALID_PARAMS,                                                             \
          "%v{block_ids|block_begin|parents|node_tokens|request_nodes} is NULL")                   \
    FAULT(BLOCK_TOKENS, INVALID_PARAMS, "block_tokens is 0")                                       \
    FAULT(BLOCKS_ORDER, INVALID_PARAMS, "the blocks of request %i end at %v, before they begin")   \
    FAULT(BLOCKS_MANY, INVALID_PARAMS, "request %i has %v blocks, where its KV fills %l")          \
    FAULT(BLOCKS_LARGE, BUFFER_OVERFLOW, "request %i has %v blocks, the tree has room for %l")     \
    FAULT(BLOCK_REPEATED, INVALID_PARAMS, "request %i has the same id at blocks %l and %v")        \
    FAULT(NODE_PARENT, INVALID_PARAMS, "node %i has the parent %v, of %l nodes")                   \
    FAULT(NODE_CYCLE, INVALID_PARAMS, "node %i is above itself")                                   \
    FAULT(NODES_LARGE, BUFFER_OVERFLOW,                                                            \
          "%v nodes are more than the %l that the tree has room for")                              \
    FAULT(REQUEST_NODE, INVALID_PARAMS, "request %i is at node %v, of %l nodes")                   \
    FAULT(NODE_TOKENS, INVALID_PARAMS,                                                             \
          "request %i has %v tokens in nodes, of %l that can be shared")                           \
    FAULT(REQUEST_RANGE, INVALID_PARAMS, "request %v is not one of the %l of the batch")           \
    FAULT(REQUEST_PRESENT, INVALID_PARAMS, "request %v is in the tree already")                    \
    FAULT(REQUEST_ABSENT, INVALID_PARAMS, "request %v is not in the tree")                         \
    FAULT(TREE_WINDOW, INVALID_PARAMS, "prefix plans have no window, and config.window is %v")     \
    FAULT(TREE_SHARES, INVALID_PARAMS, "prefix plans have no shared merges")                       \
    FAULT(TREE_OTHER, INVALID_PARAMS, "position %i shares %v tokens, of %l that can be shared")    \
    FAULT(PREFIX_ARRAY, INVALID_PARAMS,                                                            \
          "plan.%i{segments|requests|tokens|joins} is NULL: was the plan placed?")                 \
    FAULT(SEGMENTS_SMALL, BUFFER_OVERFLOW, "%v segments do not fit the plan, which holds %l")      \
    FAULT(REQUESTS_SMALL, BUFFER_OVERFLOW, "%v requests do not fit the plan, which holds %l")      \
    FAULT(TOKENS_SMALL, BUFFER_OVERFLOW, "%v query tokens do not fit the plan, which holds %l")    \
    FAULT(JOINS_SMALL, BUFFER_OVERFLOW, "%v joins do not fit the plan, which holds %l")            \
    FAULT(SEGMENT_WRONG, INVALID_PARAMS, "segment %i has the value %v where %l belongs")           \
    FAULT(REQUEST_WRONG, INVALID_PARAMS, "position %i has the value %v where %l belongs")          \
    FAULT(JOIN_WRONG, INVALID_PARAMS, "join %i has the value %v where %l belongs")                 \
    FAULT(COST_WRONG, INVALID_PARAMS,                                                              \
          "cost %i (of lanes, largest, mean) is not that of its units")                            \
    FAULT(POLICY_UNKNOWN, INVALID_PARAMS, "cluster.policy has the unknown value %v")               \
    FAULT(SCRATCH_NULL, INVALID_PARAMS, "scratch is NULL")                                         \
    FAULT(COLUMN_PARTS, INVALID_PARAMS, "column_parts %v is above %l")                             \
    FAULT(POSITIONS_COUNT, INVALID_PARAMS, "positions are of %v sequences, and the batch has %l")  \
    FAULT(POSITIONS_ALONE, INVALID_PARAMS,                                                         \
          "positions.%v{|query_stride|kv_first|kv_stride} is given without query_first")           \
    FAULT(POSITIONS_AFTER, INVALID_PARAMS, "positions.after is given, and config.is_causal")       \
    FAULT(QUERY_FIRST, INVALID_PARAMS, "sequence %i has the negative query_first %v")              \
    FAULT(QUERY_STRIDE, INVALID_PARAMS, "sequence %i has the query_stride %v, below %l")           \
    FAULT(QUERY_LARGE, INVALID_PARAMS, "queries of sequence %i end at position %v, beyond %l")     \
    FAULT(KV_FIRST, INVALID_PARAMS, "sequence %i has the negative kv_first %v")                    \
    FAULT(KV_STRIDE, INVALID_PARAMS, "sequence %i has the kv_stride %v, below %l")                 \
    FAULT(KV_LARGE, INVALID_PARAMS, "the KV of sequence %i ends at position %v, beyond %l")        \
    FAULT(SINKS_RANGE, INVALID_PARAMS, "sequence %i has %v sinks, of %l KV tokens")                \
    FAULT(TREE_POSITIONS, INVALID_PARAMS, "prefix plans have no positions")                        \
    FAULT(SCRATCH_ALIGN, INVALID_PARAMS, "the scratch is not aligned to %l bytes")                 \
    FAULT(ATTEND_JOB_NULL, INVALID_PARAMS, "the job, its cache or its step is NULL")               \
    FAULT(ATTEND_LIMITS_NULL, INVALID_PARAMS, "the limits, the block or the result is NULL")       \
    FAULT(ATTEND_STEP_NULL, INVALID_PARAMS, "the step's batch, lengths, config or plan is NULL")   \
    FAULT(ATTEND_ROWS_NULL, INVALID_PARAMS, "the step's queries, outputs or pages are NULL")       \
    FAULT(ATTEND_CACHE_NULL, INVALID_PARAMS,                                                       \
          "the cache's keys or values, or the scales of I8, are NULL")                             \
    FAULT(ATTEND_MEMORY_NULL, INVALID_PARAMS, "the job's memory was not placed")                   \
    FAULT(ATTEND_TYPE_UNKNOWN, INVALID_PARAMS, "the cache has the unknown type %v")                \
    FAULT(ATTEND_KEY_DIM, INVALID_PARAMS, "key_dim is %v, not a multiple of %l from it to 576")    \
    FAULT(ATTEND_VALUE_DIM, INVALID_PARAMS,                                                        \
          "value_dim is %v, not a multiple of %l from it to 576")                                  \
    FAULT(ATTEND_STEP_GROUP, INVALID_PARAMS, "the plan has a group of %v, the config of %l")       \
    FAULT(ATTEND_STEP_TILE, INVALID_PARAMS, "the plan has tiles of %v tokens, the config of %l")   \
    FAULT(ATTEND_STEP_LANES, INVALID_PARAMS, "the plan has %v lanes, the config %l")               \
    FAULT(ATTEND_STEP_PAGE, INVALID_PARAMS,                                                        \
          "the cache's pages of %v tokens do not divide the config's of %l")                       \
    FAULT(ATTEND_STEP_PREFIX, INVALID_PARAMS, "the step's plan is not its prefix plan's")          \
    FAULT(ATTEND_STEP_QUERIES, INVALID_PARAMS,                                                     \
          "request %i has %v query tokens, and no query_starts")                                   \
    FAULT(ATTEND_MEMORY_SLOTS, BUFFER_OVERFLOW, "the plan has %v slots, and the job's memory %l")  \
    FAULT(ATTEND_MEMORY_ROWS, BUFFER_OVERFLOW,                                                     \
          "slots have %v rows, and those of the job's memory %l")                                  \
    FAULT(ATTEND_MEMORY_DIM, INVALID_PARAMS, "value_dim is %v, and the job's memory has %l")       \
    FAULT(ATTEND_MEMORY_PROGRESS, BUFFER_OVERFLOW,                                                 \
          "progress has %v elements, and the job's memory %l")                                     \
    FAULT(ATTEND_BLOCK_SMALL, BUFFER_OVERFLOW, "the block has %v bytes of the %l that are needed") \
    FAULT(ATTEND_BLOCK_ALIGN, INVALID_PARAMS, "the block is not aligned to %l bytes")              \
    FAULT(ATTEND_BLOCK_LARGE, LIMIT_EXCEEDED, "the limits need more bytes than 63 bits count")     \
    FAULT(ATTEND_WORKER_COUNT, INVALID_PARAMS, "%v workers are not in 1 to %l")                    \
    FAULT(ATTEND_WORKER_RANGE, INVALID_PARAMS, "worker %v is not below %l")                        \
    FAULT(ATTEND_WORKER_TWICE, BUSY, "worker %v is in a run that has not ended")                   \
    FAULT(ATTEND_RUN_OTHER, BUSY, "a run of %l workers has not ended, and this is one of %v")      \
    FAULT(ATTEND_UNIT_FOREIGN, INVALID_PARAMS, "unit %i of the plan is not of the step")           \
    FAULT(ATTEND_STRIDE, INVALID_PARAMS,                                                           \
          "a stride is %v elements, not a multiple of a block's %l")                               \
    FAULT(ATTEND_STRIDE_PAGE, INVALID_PARAMS,                                                      \
          "request %i begins at row %v without pages, and a page stride of the cache is %l")       \
    FAULT(ATTEND_MASK, INVALID_PARAMS,                                                             \
          "the mask of request %i begins or ends at %v of its %l tokens")                          \
    FAULT(ATTEND_STARTS, INVALID_PARAMS,                                                           \
          "the queries of request %i begin at %v, and those of the prefix plan at %l")

// clang-format off
typedef enum ptowsp_plan_fault {
#define PWSP_FAULT_ENUM(name, status, text) PTOWSP_FAULT_##name,
    PTOWSP_PLAN_FAULTS(PWSP_FAULT_ENUM)
#undef PWSP_FAULT_ENUM
    PTOWSP_FAULT_COUNT,
    PWSP_FORCE_INT(PTOWSP_FAULT)
} ptowsp_plan_fault;
// clang-format on

typedef struct ptowsp_plan_info {
    uint64_t work_count;      // total_work: the units. generate: units written, or the number
                              // needed after BUFFER_OVERFLOW. 0 otherwise
    ptowsp_plan_fault fault;  // the check that failed, or PTOWSP_FAULT_NONE
    uint64_t index;           // of the first offending sequence of the batch, or of the tier; else
                              // PTOWSP_NO_INDEX
    int64_t value;            // the offending value, at most INT64_MAX; else 0
    int64_t limit;            // the limit that it violates, at most INT64_MAX; else 0
    bool is_over;             // no fault: the units are more than max_work_units, as chunk_max (or
                              // a chunk of your own) is too small for fewer
} ptowsp_plan_info;

// Picks the chunk by the rule above, among multiples of align. An empty step gets the smallest.
// Errors   INVALID_PARAMS, UNSUPPORTED_SIZE (a length that no tier covers). *out_chunk is 0 then.
// Cost     2 to 7 passes over the lengths: 1 to 4 us for 10,000 sequences (AVX-512). If lengths
//          have few distinct values, up to 7 + log2(chunk_max - chunk_min) passes: 10 us.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_plan_chunk_size(const ptowsp_batch *batch,
                                                             const ptowsp_plan_config *config,
                                                             uint32_t *out_chunk,
                                                             ptowsp_plan_info *out_info);

// Counts the work units of a batch under a chunk, in out_info->work_count. The chunk comes from
// ptowsp_plan_chunk_size, or is any other multiple of align.
// Errors   INVALID_PARAMS, UNSUPPORTED_SIZE, LIMIT_EXCEEDED (beyond 63 bits).
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_plan_total_work(const ptowsp_batch *batch,
                                                             const ptowsp_plan_config *config,
                                                             uint32_t chunk,
                                                             ptowsp_plan_info *out_info);

// Writes the descriptors of a batch under a chunk. Everything is checked before anything is
// written. With work NULL and capacity 0 it reports the size to allocate, as BUFFER_OVERFLOW. Slots
// from info.work_count on are left as they are: in a buffer that is used again they hold units of
// an earlier step, which are not part of this plan. A launch of fixed size needs work_count, too.
//
// Errors   As total_work. LIMIT_EXCEEDED (more than 2^32 units). BUFFER_OVERFLOW (info.work_count
//          is the number needed). The buffer is untouched then.
// Cost     Two passes over the lengths, then 2 to 4 ns per sequence and 0.2 ns per descriptor
//          (AVX-512). The lookup of tiers is linear in their number.
PTOWSP_API PTOWSP_AICPU ptowsp_status
ptowsp_plan_generate(const ptowsp_batch *batch, const ptowsp_plan_config *config, uint32_t chunk,
                     PTOWSP_GM ptowsp_work *work, uint64_t capacity, ptowsp_plan_info *out_info);

// Writes the descriptors of sequences [first, first + count) of a batch, from work[0] on, with ids
// from first_work_id. They equal the output of ptowsp_plan_generate if first_work_id is the number
// of units of all earlier sequences. Schedulers that divide a batch among themselves use this. Only
// lengths in the range are read; indices count in the batch.
// Errors   As generate; also for a range outside the batch, and for ids beyond 2^32.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_plan_generate_range(
    const ptowsp_batch *batch, const ptowsp_plan_config *config, uint32_t chunk, uint32_t first,
    uint32_t count, uint64_t first_work_id, PTOWSP_GM ptowsp_work *work, uint64_t capacity,
    ptowsp_plan_info *out_info);

// Like ptowsp_plan_generate, on all lanes of the context. The result is the same bit for bit, and
// the error's text is in the context. Lanes divide the work by whole sequences. Below 50,000
// descriptors, where lanes do not pay, the calling thread works alone.
// Errors   As generate. Without a fault in *out_info: BUSY and SYSTEM_FAILED, as parallel_for;
//          after SYSTEM_FAILED the work is written all the same.
PTOWSP_API ptowsp_status ptowsp_plan_generate_parallel(
    ptowsp_context *context, const ptowsp_batch *batch, const ptowsp_plan_config *config,
    uint32_t chunk, PTOWSP_GM ptowsp_work *work, uint64_t capacity, ptowsp_plan_info *out_info);

// Limits that a service never exceeds, to size a buffer that is allocated once.
typedef struct ptowsp_plan_limits {
    uint32_t sequence_count_max;
    uint32_t kv_head_count;    // the exact number
    int32_t length_max;        // of one sequence
    uint64_t token_count_max;  // of all sequences together (the KV cache's size); 0: no such limit
} ptowsp_plan_limits;

// Bounds the number of work units of any batch within the limits, if ptowsp_plan_chunk_size picked
// the chunk under the same config. A buffer of this size never overflows. The bound may be larger
// than generate can number (2^32).
// Errors   INVALID_PARAMS, LIMIT_EXCEEDED (beyond 63 bits); *out_count is 0 then.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_plan_work_bound(const ptowsp_plan_config *config,
                                                             const ptowsp_plan_limits *limits,
                                                             uint64_t *out_count,
                                                             ptowsp_plan_info *out_info);

// Writes a line without a line end: "plan: sequence 3 has length 200000, which no tier covers".
PTOWSP_API void ptowsp_plan_explain(const ptowsp_plan_info *info, ptowsp_output output);

// -------------------------------------------------------------------------------------------------
// 7. Dispatch
// -------------------------------------------------------------------------------------------------
//
// A dispatch table has one kernel per tier id. A descriptor runs as table[work->tier](...).
//
// Memory   None is allocated; MPMD takes 16 KiB of stack.
// Cost     The calling thread first checks the tiers of all descriptors: 1 ns each. Then 1 to 2 ns
//          per descriptor, and one shared counter per range of descriptors.

// Computes one work unit. No two calls with the same lane run at the same time.
typedef void (*ptowsp_work_fn)(const PTOWSP_GM ptowsp_work *work, uint32_t lane, void *user);

// PTOWSP_DEFINE_TIERS makes one kernel per tier from one body. The body gets the tier's number as a
// constant, which the compiler folds. At file scope,
//
//      PTOWSP_INLINE void attend(const ptowsp_work *work, uint32_t lane, void *user, int tier) {
//          ((uint32_t *)user)[lane] += (uint32_t)tier * work->work_id;
//      }
//      PTOWSP_DEFINE_TIERS(attend, PTOWSP_DECODE_TIERS, attend)
//
// defines, as static:
//
//      attend_tier_0, attend_tier_1, ...      a kernel per tier
//      attend_tiers, attend_tier_count        the list as ptowsp_tier[], for a ptowsp_plan_config
//      attend_table                           the kernels as ptowsp_work_fn[attend_tier_count]
//      attend_dispatch(work, lane, user)      inline, through a switch instead of a table
//
// Limits   16 tiers, whose ids are 0, 1, 2, ... in order (checked when compiling). Fill tables for
//          other ids by hand.
// Runs the descriptors in order, on the calling thread, as lane 0. Every descriptor's tier must
// have a kernel (index below table_count, not NULL). Otherwise nothing runs, the status is
// INVALID_PARAMS, and *out_index (may be NULL) is the first descriptor without a kernel. *out_index
// is PTOWSP_NO_INDEX on success, and when work or table is NULL.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_dispatch_serial(const PTOWSP_GM ptowsp_work *work,
                                                             uint64_t work_count,
                                                             const ptowsp_work_fn *table,
                                                             uint32_t table_count, void *user,
                                                             uint64_t *out_index);

// Runs the descriptors on all lanes of the context, every lane with the same table (single program,
// multiple data), and returns when all are done. Lanes take descriptors in order as they become
// free, so the lane of a descriptor is not defined.
// Errors   INVALID_PARAMS (as above; the error's index is the descriptor's), BUSY, SYSTEM_FAILED
//          (as ptowsp_parallel_for).
PTOWSP_API ptowsp_status ptowsp_dispatch_spmd(ptowsp_context *context,
                                              const PTOWSP_GM ptowsp_work *work,
                                              uint64_t work_count, const ptowsp_work_fn *table,
                                              uint32_t table_count, void *user);

// Lanes that share a table, such as cube cores or vector cores.
typedef struct ptowsp_lane_group {
    uint32_t lane_count;
    const ptowsp_work_fn *table;
    uint32_t table_count;
} ptowsp_lane_group;

#define PTOWSP_LANE_GROUP_MAX 255

// Runs the descriptors on lanes with different kernels (multiple programs, multiple data). A
// descriptor goes to the first group whose table has its tier, and there to a free lane. Kernels
// see lanes numbered over all groups: group 0 has 0 .. lane_count - 1, and so on. The groups may
// have more lanes than the context, or fewer.
// Errors   As spmd; also for no groups, too many groups, a group without lanes, more than
//          PTOWSP_LANE_COUNT_MAX lanes in all.
PTOWSP_API ptowsp_status ptowsp_dispatch_mpmd(ptowsp_context *context,
                                              const PTOWSP_GM ptowsp_work *work,
                                              uint64_t work_count, const ptowsp_lane_group *groups,
                                              uint32_t group_count, void *user);

// -------------------------------------------------------------------------------------------------
// 8. Merging
// -------------------------------------------------------------------------------------------------
//
// Attention over a chunk of KV gives a partial state per query row (online softmax, Milakov and
// Gimelshein 2018; split-KV decode, Dao et al. 2023):
//
//      m = max of the chunk's scores
//      l = sum of exp(score - m)
//      acc[d] = sum of exp(score - m) * v[d]
//
// Two states of one row merge by rescaling to the larger m. The result row is acc / l, and m +
// log(l) is its log-sum-exp. A state with m = -INFINITY is empty: the identity, whatever else it
// holds. A kernel that computes a normalised row o and its log-sum-exp has the state (lse, 1, o).
// NaN or +INFINITY in a state that is not empty gives NaN or infinity in the row, in its
// log-sum-exp, or both. Merge chunks in their order: then the result does not depend on threads.

typedef struct ptowsp_partial {
    float m;
    float l;
} ptowsp_partial;

// The bits of merged rows depend on the processor and the compiler (fused multiply-add), never on
// threads.

// Makes the state empty: m = -INFINITY, l = 0, acc = 0.
PTOWSP_API PTOWSP_AICORE void ptowsp_merge_clear(ptowsp_partial *state, float *acc, uint32_t dim);

// Merges a part into a state. Arrays are acc[dim]; they must not overlap.
PTOWSP_API PTOWSP_AICORE void ptowsp_merge_add(ptowsp_partial *state, float *acc,
                                               const ptowsp_partial *part, const float *part_acc,
                                               uint32_t dim);

// Writes the result row out[dim] = acc / l, zeros for an empty state, and returns its log-sum-exp,
// -INFINITY for an empty state. out may be acc.
PTOWSP_API PTOWSP_AICORE float ptowsp_merge_finish(const ptowsp_partial *state, const float *acc,
                                                   uint32_t dim, float *out);

// Merges part_count states of one row in order, writes the result row out[dim] and returns the
// log-sum-exp. Part i is states[i * stride] with accs[i * stride * dim ...]: for arrays
// states[chunk][row] and accs[chunk][row][dim], stride is the number of rows. A stride of 0 merges
// the same part repeatedly. dim may be 0, and accs and out NULL then. out must not overlap accs. If
// only one part is not empty, the result has the bits of ptowsp_merge_finish of that part.
// Cost     About two reads of the parts. Faster than adding parts one by one, since each row is
//          read once and never rescaled; the two results may differ in the last bits.
PTOWSP_API PTOWSP_AICORE float ptowsp_merge_partials(const ptowsp_partial *states,
                                                     const float *accs, uint32_t part_count,
                                                     size_t stride, uint32_t dim, float *out);

// -------------------------------------------------------------------------------------------------
// 9. Attention plans
// -------------------------------------------------------------------------------------------------
//
// A chunk plan (section 6) cuts all sequences by one chunk, and lanes take its units as they become
// free. An attention plan decides more. It gives each lane its share, and splits sequences only
// where shares end. It says which units write their output themselves, and which lane merges the
// others. A launch of fixed size needs nothing else.
//
//      lengths 250, 100, 50 on 4 lanes, one KV head, and a cost of 1 per KV token alone:
//
//      sequence    0                                  1               2
//      KV          [0 ======= 100 ====== 200 == 250]  [0 = 50 = 100]  [0 = 50]
//      lane         0          1          2            2    3          3
//      unit         0          1          2            3    4          5
//      slot         0          1          2            3    4          none: whole
//
//      unit_begin  0 1 2 4 6       lane 2 computes units 2 and 3
//      merges      0: slots 0 to 2 -> sequence 0, on lane 0      merge_begin  0 1 1 2 2
//                  1: slots 3 and 4 -> sequence 1, on lane 2
//
// USE THIS where lanes are known (cores of an accelerator, threads of an engine), lengths differ,
// or results have to be batch-invariant. Use a chunk plan where kernels want pieces of one size, or
// where the PTO-WSP specification asks for it.
//
// Queries. The queries of a sequence are cut into *tiles*. A tile is a run of tile_tokens query
// tokens, with the `group` query heads of one KV head: rows = tokens * group, ordered by token,
// then query head. Tile t has the query tokens from t * tile_tokens on; the last one may have
// fewer. KV is read once per tile. Query token j of a sequence with q queries and n KV tokens has
// position n - q + j: the queries are the last of the KV. It sees
//
//      KV tokens [begin, end)      end = is_causal ? position + 1 : n
//                                  begin = window ? max(0, position - window + 1) : 0
//
// and a tile has the KV from the smallest begin to the largest end of its tokens; kernels mask the
// rest. Sequences without queries have no units: nothing is written for them. The same holds for
// sequences without KV, unless positions are given. If queries are not the last of the KV, or
// windows differ, set config.positions: see Positions.
//
// Units are descriptors (section 5), ordered by sequence, head, tile and KV over all lanes, so that
// neighbours share KV:
//
//      params      request, head, kv_start, kv_len       reserved    tile
//      flags       FIRST, LAST: of the pieces of a tile  tier        of the KV length, or 0
//      work_id     slot of the partial state, or PTOWSP_NO_SLOT for a whole unit (FIRST and LAST)
//
// Merges are descriptors as well: one per tile that was split, ordered as units are. Slots of one
// tile are consecutive and in KV order: merge them in this order (section 8).
//
//      params      request, head, first slot, number of slots    reserved    tile
//      work_id     index of the merge                            flags       0; tier is not used
//
// Merges that lanes share differ: see Shared merges.
//
// Descriptors from unit_count to unit_capacity, and of merges likewise, are PTOWSP_WORK_INVALID,
// with kv_len 0 (no slots) and no other flag. Lanes without work have empty ranges. The first slots
// of merges are in ascending order, and equal for all merges of a tile. A merge is on the lane of its
// tile's first part, which gets less KV in return.
//
// Shared merges. A merge reads slots * rows states. With many rows and many lanes that is more than
// a lane's share of the KV. Then lanes stay idle: one sequence of 131,072 tokens under MLA, 128
// rows, uses 55 of 256 lanes, as the first lane could not merge the parts of more. With
// shares_merges each of the n lanes that have parts of a tile merges some of its rows: lane i of
// them, from 0, the rows
//
//      [rows * i / n, rows * (i + 1) / n)      rounded down; no merge if that is empty
//
// of all slots. Such a merge has the flag PTOWSP_WORK_ROWS, and its work_id is the first row plus
// 65,536 times the number of rows: ptowsp_work_merge_rows. A tile that one lane has, or a tile of
// more than 65,535 rows, still has one merge. Merges of a tile follow one another, in order of
// rows. A launch needs all parts of a tile before any of its merges, so put a barrier between them.
// In ptowsp_attention_run and ptowsp_attend_run no lane waits: the lane that ends last merges all
// rows. The results have the same bits.
//
// Positions. config.positions has arrays with an element for each sequence. Query token j stands at
// position query_first + j * query_stride, and KV token t at kv_first + t * kv_stride. A query at
// position p sees the KV tokens
//
//      at the positions from p - before to p + after, and
//      of the first `sinks` tokens all up to position p + after.
//
//      tokens dealt to ranks in turn       query_first = rank, query_stride = ranks; for KV that comes
//      (context parallelism)               from rank s: kv_first = s, kv_stride = ranks
//      a chunk of a prompt, whose KV       query_first = tokens before the chunk
//      is complete already
//      compressed KV, 4 : 1                kv_first = 3, kv_stride = 4: an entry is seen from the last
//                                          of its tokens on; query_first is required
//      a window for each sequence          before = window - 1
//      windows to both sides               before, after; without is_causal
//      sinks in front of a window          before, sinks
//
// Here rank `rank` of `ranks` computes its queries of one sequence against the KV that rank `from`
// has sent it. The rows from all ranks' KV are then merged (section 8):
//
//      const int32_t first = rank, kv_first = from, stride = ranks;
//      const ptowsp_attention_positions positions = {.sequence_count = 1,
//                                                    .query_first = &first,
//                                                    .query_stride = &stride,
//                                                    .kv_first = &kv_first,
//                                                    .kv_stride = &stride};
//      config.is_causal = true;
//      config.positions = &positions;
//      if (ptowsp_attention_generate(&batch, &config, &plan, &info)) {
//          ptowsp_plan_explain(&info, output);
//          return 1;
//      }
//
// ptowsp_attention_see returns the tokens that a query token sees. Tiles have the KV from the
// smallest begin to the largest end, and in addition the sinks if these end before it:
//
//      BALANCED    The FIRST unit of such a tile also has the tokens [0, min(sinks, kv_start)). They
//                  are not counted in kv_len; in the cost they are. If there are any it has the
//                  flag PTOWSP_WORK_POSITIONS.
//      INVARIANT   In every tile of a sequence with sinks and a window, the sinks, rounded up to a
//                  multiple of `grain`, are a piece of their own, which no multiple of `chunk` cuts.
//                  So a row of such a sequence is cut there, too, in all of its tiles.
//
// A tile whose queries see nothing has one unit, of kv_len 0 and with the same flag. Its rows are
// zeros, and their log-sum-exp is -INFINITY, so that results of several ranks can be merged (section
// 8). The same holds for a sequence without KV, such as a rank's part of a short sequence; its tier
// is the first.
//
// A mask that no such rule describes takes two steps: ask for a superset, then hide the rest by the
// bits of a mask (section 10). Take a tree of q drafts after c tokens, under a window. Draft j, of
// depth d, stands at c + d, and the plan has it at c + j. So before = window - 1 + max(j - d) is
// enough, and bits of the mask from token max(0, c - before) on hide the rest. For documents
// that are packed into one sequence use the mask alone, or make each a sequence, which reads less.
//
// Cost     A decode step of 256 sequences and 8 heads on 264 lanes takes 4 to 6 us, and 23 us with a
//          window. With positions it takes 18 us, and 30 us with windows of its own in `before`.
//          So in decode steps, positions add 6 to 14 ns for each tile.
//
// Captured launches. A launch of fixed size, as in a CUDA graph, is captured once over the
// capacities of a plan, and serves every later step:
//
//      once        ptowsp_attention_bound of the service's limits, and ptowsp_attention_place in
//                  one block, which the launch reads
//      each step   ptowsp_attention_generate into the same plan, or into a copy on the host whose
//                  block is then copied to the device; ptowsp_attention_export if the kernel reads
//                  arrays
//
// Planning writes every element up to the capacities, so nothing of an earlier step remains. A
// launch with one block per unit skips INVALID units; a launch with one block per lane reads
// unit_begin and merge_begin.
//
// Modes.
//
//      BALANCED    Lanes get contiguous shares of the total cost. Where a share ends inside a tile,
//                  the tile is split, at a multiple of page_size from the start of the sequence,
//                  if that pays: at most lane_count - 1 units more than tiles. Slots, and so
//                  scratch, depend on the number of lanes and not on the batch.
//      INVARIANT   Every tile is cut at the multiples of `chunk`, then pieces are placed for
//                  balance. With a window the first piece of a tile starts at the last multiple
//                  of `grain` at or before the tile's first visible token. No query token of the
//                  tile sees the tokens between the two. The kernel masks or skips them, and their
//                  pages may have been freed.
//
// INVARIANT guarantees two things. Inside the KV tokens that a query token sees, pieces are cut
// only at multiples of `chunk`, except at sinks (Positions). Every piece starts at a multiple of
// `grain`. Under is_causal both follow from the position of the query token and the configuration
// alone. They do not depend on the other query tokens of the step (one prefill, prefill in chunks,
// verification of drafts, decode), on tiles, other sequences, lanes or speeds. Without is_causal
// they also depend on the sequence's KV length, up to which every query token sees. So a row of the
// output has the same bits in all of these, if the kernel keeps three rules:
//
//      - a row's partial state depends on the row's query and on the KV tokens that it sees in the
//        piece; blocks inside a piece start at kv_start plus a multiple of a divisor of `grain`,
//        or at multiples of the block size from KV token 0
//      - a row that sees nothing of a piece has the empty state (section 8), which merging ignores
//      - a whole unit has the bits of ptowsp_merge_finish, merged parts have the bits of
//        ptowsp_merge_partials
//
// Cost. The planner balances predicted cost, in the user's unit:
//
//      unit    per_unit + kv_len * (per_token + rows * per_row_token)
//      merge   slots * rows * per_merged_row
//
// A lane's cost is the sum of its units and merges, divided by its speed. The mean is the cost of
// all of them over the speed of all lanes. Costs are rounded to a fixed-point grid of 0.1 % or
// better of the smallest one, so that plans are the same on every machine.
//
// Memory   None. All arrays are the caller's.
// Threads  Pure functions.
// Limits   2^32 - 1 units, 65,536 tiles of a sequence, PTOWSP_ATTENTION_LANE_MAX lanes.

#define PTOWSP_NO_SLOT            UINT32_MAX
#define PTOWSP_ATTENTION_LANE_MAX 65536

typedef struct ptowsp_attention_batch {
    const PTOWSP_GM int32_t *kv_lengths;     // [sequence_count], the tokens of the queries included
    const PTOWSP_GM int32_t *query_lengths;  // [sequence_count]; NULL: 1 each (decode)
    uint32_t sequence_count;                 // 0 is an empty step
} ptowsp_attention_batch;

// Arrays by sequence, see Positions. Any may be NULL. Positions are from 0 to INT32_MAX.
typedef struct ptowsp_attention_positions {
    uint32_t sequence_count;                // elements of each array; at least the batch's
    const PTOWSP_GM int32_t *query_first;   // NULL: kv_length - query_length; required with strides
                                            // of queries, and with positions of KV
    const PTOWSP_GM int32_t *query_stride;  // at least 1. NULL: 1
    const PTOWSP_GM int32_t *kv_first;      // NULL: 0
    const PTOWSP_GM int32_t *kv_stride;     // at least 1. NULL: 1
    // Positions before and after its own that a query sees; beyond INT32_MAX: all.
    const PTOWSP_GM uint32_t *before;  // NULL: window - 1, or all without a window
    const PTOWSP_GM uint32_t
        *after;  // NULL: none under is_causal, otherwise all. Not with is_causal
    const PTOWSP_GM int32_t *sinks;  // KV tokens, at most kv_length. NULL: 0
} ptowsp_attention_positions;

typedef enum ptowsp_attention_mode {
    PTOWSP_ATTENTION_BALANCED = 0,
    PTOWSP_ATTENTION_INVARIANT,
    PWSP_FORCE_INT(PTOWSP_ATTENTION)
} ptowsp_attention_mode;

// Each is 0, or from 1e-100 to 1e100; the latter are at most a factor of 2^30 apart. All zero: the
// defaults, whose unit is the time to read one KV token of one head.
typedef struct ptowsp_attention_cost {
    double per_unit;        // default 64
    double per_token;       // of KV; default 1
    double per_row_token;   // of the scores; default 1 / 64
    double per_merged_row;  // a row of a slot; default 1
} ptowsp_attention_cost;

#define PTOWSP_ATTENTION_TILE_ROWS_DEFAULT 64
#define PTOWSP_ATTENTION_CHUNK_DEFAULT     1024
#define PTOWSP_ATTENTION_GRAIN_DEFAULT     64  // the block of section 10

// Zero fields mean the defaults; kv_head_count and lane_count are required.
typedef struct ptowsp_attention_config {
    uint32_t kv_head_count;     // KV heads (1 under MLA)
    uint32_t group;             // query heads per KV head; default 1, or by query_head_count
    uint32_t query_head_count;  // all query heads: kv_head_count * group, or refused. 0: not given
    uint32_t lane_count;        // 1 to PTOWSP_ATTENTION_LANE_MAX
    const uint32_t *lane_speeds;  // [lane_count] relative; 0: gets no work. NULL: all are equal
    ptowsp_attention_mode mode;
    bool is_causal;
    uint32_t window;     // KV tokens that a query sees; 0: all
    uint32_t page_size;  // tokens of a page of KV; 0: no pages, so pieces end at any token
    // Rows of a tile, at most; default 64. Its query tokens are max(1, tile_rows / group).
    uint32_t tile_rows;
    uint32_t piece_min;  // BALANCED: KV tokens of a piece of a split tile, at least, unless all of
                         // the tile's. Rounded up to pages. Default: a page; cost decides beyond
    uint32_t chunk;      // INVARIANT: a multiple of page_size. Default 1024, rounded up to pages
    uint32_t grain;      // INVARIANT: a multiple of page_size that divides chunk. Default: the
                         // larger of 64 and page_size if it is a multiple of both and divides
                         // chunk, else chunk
    ptowsp_attention_cost cost;
    const ptowsp_tier *tiers;  // NULL: none. Otherwise every KV length with units needs one
    uint32_t tier_count;
    bool shares_merges;                           // see Shared merges
    const ptowsp_attention_positions *positions;  // NULL, or all of its arrays are: see Queries
} ptowsp_attention_config;

// Numbers of elements that a plan needs; block_bytes is for all its arrays together.
typedef struct ptowsp_attention_sizes {
    uint64_t unit_count;
    uint64_t merge_count;
    uint64_t slot_count;
    uint32_t slot_rows;  // rows of the largest tile, so of a slot
    uint32_t lane_count;
    uint64_t block_bytes;
} ptowsp_attention_sizes;

// A plan. Set the first part, by ptowsp_attention_place or by hand; planning fills the second.
// Nothing in it points into itself or to the batch: it may be copied, with its arrays, to a device.
//
// In a plan that you set up by hand with lane_capacity 0, the arrays by lane must have room for the
// lane_count of every configuration that you plan with.
typedef struct ptowsp_attention_plan {
    PTOWSP_GM ptowsp_work *units;     // [unit_capacity]
    PTOWSP_GM ptowsp_work *merges;    // [merge_capacity]; may be NULL with capacity 0
    PTOWSP_GM uint32_t *unit_begin;   // [lanes + 1]: lane l has units [l] to [l + 1]
    PTOWSP_GM uint32_t *merge_begin;  // [lanes + 1]
    PTOWSP_GM double *lane_costs;     // [lanes] predicted; may be NULL
    uint32_t unit_capacity, merge_capacity;
    uint32_t slot_capacity;  // slots for which you have scratch
    uint32_t lane_capacity;  // lanes for which the three arrays have room; 0: not checked

    uint32_t unit_count, merge_count, slot_count;
    uint32_t tile_count;  // of all sequences and heads; units beyond them are the price of splits
    uint32_t lane_count;  // of the configuration; ptowsp_attention_place sets it to lane_capacity
    uint32_t tile_tokens, group;
    uint32_t slot_rows;          // rows of a slot; a smaller tile leaves the last ones unused
    double cost_max, cost_mean;  // of lanes
} ptowsp_attention_plan;

// Limits that a service never exceeds, to size memory once.
typedef struct ptowsp_attention_limits {
    uint32_t sequence_count_max;
    int32_t kv_length_max;        // of one sequence
    int32_t query_length_max;     // of one sequence; 0: 1
    uint64_t kv_token_count_max;  // of all sequences together; 0: no such limit
    uint64_t query_token_count_max;
} ptowsp_attention_limits;

// Bounds the sizes of the plans of any batch within limits under a configuration. Of positions it
// only looks at which arrays are given, not at their elements.
// Errors   INVALID_PARAMS, LIMIT_EXCEEDED. *out_sizes is zero then.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attention_bound(const ptowsp_attention_config *config,
                                                             const ptowsp_attention_limits *limits,
                                                             ptowsp_attention_sizes *out_sizes,
                                                             ptowsp_plan_info *out_info);

// The exact sizes of the plan of a batch. Errors and cost as ptowsp_attention_generate, without
// writing.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attention_size(const ptowsp_attention_batch *batch,
                                                            const ptowsp_attention_config *config,
                                                            ptowsp_attention_sizes *out_sizes,
                                                            ptowsp_plan_info *out_info);

// Places the arrays of a plan for `sizes` in one block of sizes->block_bytes, aligned to 8, and
// sets the capacities and lane_count; the rest of the plan becomes zero. For a device, copy the
// block.
// Errors   INVALID_PARAMS (a NULL, a block that is not aligned to 8, or sizes of 0 lanes),
//          LIMIT_EXCEEDED (more than 2^32 - 1 units, merges or slots), BUFFER_OVERFLOW (block_bytes
//          below the bytes that the sizes need). The plan is untouched.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attention_place(const ptowsp_attention_sizes *sizes,
                                                             void *block, uint64_t block_bytes,
                                                             ptowsp_attention_plan *out_plan);

// Plans a batch. All is checked and counted before anything is written.
//
// Errors   INVALID_PARAMS (lengths below 0; under is_causal more queries than KV, if there is KV;
//          counts or costs out of range). INVALID_PARAMS of positions (negative or beyond
//          INT32_MAX; strides below 1; sinks below 0 or beyond the KV; arrays of fewer sequences,
//          or an array without one that it needs). UNSUPPORTED_SIZE (a KV length that no tier
//          covers), LIMIT_EXCEEDED, BUFFER_OVERFLOW (lanes, units, merges or slots: info.value of
//          info.limit; the plan is untouched).
// Cost     O(sequences + tiles + lanes) and the writing of units, once if the plan has the sizes of
//          ptowsp_attention_bound, else twice. Small batches are worth several attempts. Where
//          lane_speeds differ and many lanes share a sequence, up to O(lanes^2) and more.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attention_generate(
    const ptowsp_attention_batch *batch, const ptowsp_attention_config *config,
    ptowsp_attention_plan *plan, ptowsp_plan_info *out_info);

// The KV tokens that a query token sees: [0, sinks) and [begin, end), with sinks <= begin. Where the
// two meet, they are one range: sinks and begin are 0.
typedef struct ptowsp_attention_seen {
    uint32_t sinks, begin, end;
} ptowsp_attention_seen;

// The KV tokens that query token `query` of a sequence sees (Queries, Positions). All zero for a
// NULL, and for tokens that the batch does not have.
PTOWSP_API PTOWSP_AICPU ptowsp_attention_seen
ptowsp_attention_see(const ptowsp_attention_batch *batch, const ptowsp_attention_config *config,
                     uint32_t sequence, uint32_t query);

// Proves a plan. Every KV token of every tile of the batch is in exactly one unit. Split tiles have
// exactly one merge, with their slots in KV order. Ranges of lanes are in order, nothing exceeds a
// capacity, and the rest is INVALID. Use it for plans that were copied or made elsewhere.
// Errors   As generate, or INVALID_PARAMS with the first offending unit, merge or lane in
//          *out_info.
// Cost     O(units).
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attention_check(const ptowsp_attention_batch *batch,
                                                             const ptowsp_attention_config *config,
                                                             const ptowsp_attention_plan *plan,
                                                             ptowsp_plan_info *out_info);

// Whether pieces are independent of the batch (see Modes): true for INVARIANT. A chunk plan is
// invariant if its chunks are FIXED and chunk_min equals chunk_max; a chunk that
// ptowsp_plan_chunk_size picked from a range depends on the batch.
PTOWSP_API bool ptowsp_attention_is_invariant(const ptowsp_attention_config *config);
PTOWSP_API bool ptowsp_plan_is_invariant(const ptowsp_plan_config *config);

// The units, or the merges, of a lane, as an array of *out_count.
PTOWSP_INLINE const PTOWSP_GM ptowsp_work *ptowsp_attention_lane_units(
    const ptowsp_attention_plan *plan, uint32_t lane, uint32_t *out_count) {
    *out_count = plan->unit_begin[lane + 1] - plan->unit_begin[lane];
    return *out_count ? plan->units + plan->unit_begin[lane] : plan->units;  // or NULL
}
PTOWSP_INLINE const PTOWSP_GM ptowsp_work *ptowsp_attention_lane_merges(
    const ptowsp_attention_plan *plan, uint32_t lane, uint32_t *out_count) {
    *out_count = plan->merge_begin ? plan->merge_begin[lane + 1] - plan->merge_begin[lane] : 0;
    return *out_count ? plan->merges + plan->merge_begin[lane] : plan->merges;  // or NULL
}

// The rows of a unit or of a merge's tile: its query tokens, times the group. Row r is query token
// r / group of the tile with query head r % group of the KV head.
PTOWSP_INLINE uint32_t ptowsp_attention_unit_rows(const ptowsp_attention_batch *batch,
                                                  const ptowsp_attention_plan *plan,
                                                  const PTOWSP_GM ptowsp_work *unit) {
    const PTOWSP_GM int32_t *queries = batch->query_lengths;
    const uint32_t tokens = queries ? PWSP_CAST(uint32_t, queries[ptowsp_work_request(unit)]) : 1;
    const uint32_t left = tokens - ptowsp_work_tile(unit) * plan->tile_tokens;
    return (left < plan->tile_tokens ? left : plan->tile_tokens) * plan->group;
}

// The plan in arrays of the form that FlashInfer's kernels read. Any may be NULL. Arrays are filled
// up to the plan's capacities, as the plan itself is: a captured launch may read all elements. KV
// ranges, and sinks beside them (Positions), are in the units alone.
typedef struct ptowsp_attention_arrays {
    int32_t *request_indices;  // [unit_capacity] sequence of each unit; then -1
    int32_t *kv_tile_indices;  // [unit_capacity] ordinal of each unit among the pieces of its tile;
                               // then -1
    int32_t *o_indptr;         // [unit_capacity + 1] pieces before each tile, in the order of
                               // units; from tile_count on unit_count: tiles without pieces
    int32_t *merge_indptr;     // [merge_capacity + 1] slots before each tile that has a merge, or
                               // several that lanes share; then slot_count: tiles without slots
} ptowsp_attention_arrays;

// Errors   INVALID_PARAMS (a NULL; counts beyond capacities; INVALID units below unit_count; a
//          tile_count that is not the units'), LIMIT_EXCEEDED (counts beyond 31 bits). Nothing is
//          written then.
// Cost     O(unit_capacity + merge_capacity).
PTOWSP_API PTOWSP_AICPU ptowsp_status
ptowsp_attention_export(const ptowsp_attention_plan *plan, const ptowsp_attention_arrays *arrays);

// Writes a table: units, parts, merges, scratch, largest and mean cost, and a line per lane. A line
// stands for consecutive lanes where there are many. Requires a plan that was made.
PTOWSP_API void ptowsp_attention_print(const ptowsp_attention_plan *plan, ptowsp_output output);

// Partial states in scratch memory: states[slot][row] and accs[slot][row][dim], so slot_count *
// slot_rows * (dim + 2) floats.
typedef struct ptowsp_attention_scratch {
    ptowsp_partial *states;
    float *accs;
    uint32_t rows;  // of a slot: plan.slot_rows
    uint32_t dim;
} ptowsp_attention_scratch;

PTOWSP_INLINE ptowsp_partial *ptowsp_attention_states(const ptowsp_attention_scratch *scratch,
                                                      uint32_t slot) {
    return scratch->states + PWSP_CAST(size_t, slot) * scratch->rows;
}
PTOWSP_INLINE float *ptowsp_attention_accs(const ptowsp_attention_scratch *scratch, uint32_t slot) {
    return scratch->accs + PWSP_CAST(size_t, slot) * scratch->rows * scratch->dim;
}

// Merges one row of a merge's tile into out[dim], and returns its log-sum-exp.
PTOWSP_API PTOWSP_AICORE float ptowsp_attention_merge_row(const ptowsp_attention_scratch *scratch,
                                                          const PTOWSP_GM ptowsp_work *merge,
                                                          uint32_t row, float *out);

// -- running a plan -------------------------------------------------------------------------------
//
// A job runs the kernels of a plan's units, by tier. The lane that finishes the last part of a tile
// merges the tile at once: no barrier stops all lanes, and no lane ever waits. The plan's merge
// lists are for launches that cannot count. INVALID units and merges are skipped.
// Results do not depend on lanes or threads, if merging follows the order of slots.
//
//      ptowsp_attention_run           on the lanes of a context
//      ptowsp_attention_run_worker    on threads of an engine, each inside its operator already
//      ptowsp_attention_run_serial    on the calling thread
//
// A job's `progress` counts parts, and units where lanes take them from each other. It is the
// caller's, of ptowsp_attention_progress_size(plan) elements, and zero before the first run. A run
// leaves it zero, however it ends. So the job can be run again at once, also by a different
// function, with a different number of workers, or with a new plan.
//
// Memory   None is allocated.
// Cost     Checking: 1 to 2 ns per unit on the calling thread; ptowsp_attention_run_worker leaves
//          it out. Running: 2 ns per unit, some 8 more per part, and 10 more where lanes steal.

typedef struct ptowsp_attention_job {
    const ptowsp_attention_plan *plan;
    const ptowsp_work_fn *table;  // [table_count] a kernel per tier; entry 0 alone without tiers
    uint32_t table_count;
    ptowsp_work_fn merge;  // gets descriptors of merges; may be NULL if the plan has none
    void *user;
    uint32_t *progress;
    bool is_stealing;  // lanes that are done take units of others: where lanes turn out unequal
    const struct ptowsp_prefix_plan *prefix;  // section 12: the plan that contains `plan`
    ptowsp_work_fn join;                      // gets its joins; may be NULL for plans without joins
    // Spans that a run writes; NULL (default): none. Unit i is at i, merge m at unit_count + m, and
    // join j of a prefix plan after all of them. Kinds are tiers, then table_count for merges and
    // table_count + 1 for joins. Spans of units that do not run are left as they are. The clock is
    // read twice for each.
    ptowsp_span *spans;
} ptowsp_attention_job;

// The number of elements of progress. It depends on lane_count and merge_capacity alone, so it is
// the same for all plans in the same arrays with the same number of lanes.
PTOWSP_API PTOWSP_AICPU uint64_t ptowsp_attention_progress_size(const ptowsp_attention_plan *plan);

// Runs as worker `worker` of worker_count, on the calling thread: for engines whose threads are
// inside an operator already. Lanes of the plan are dealt to workers in contiguous blocks; there
// may be more workers than lanes, or fewer. Kernels see the worker's number as their lane.
//
// Workers  Every worker from 0 to worker_count - 1 has to call once per run: at any time, in any
//          order, at the same time or one after another, on any threads. Where lanes steal, a
//          worker that comes late finds its units done. The run is over when all have returned:
//          then outputs are complete, and progress is zero.
// Again    The next run of a job begins when the one before is over, as it writes the same outputs
//          and the same slots. The barrier after which an engine reads the outputs is enough;
//          nothing has to be cleared. Jobs with progress, slots and outputs of their own are
//          independent: a worker may start the next job while others are still in this one.
// Requires a valid job, the same for all workers, and worker < worker_count.
// ptowsp_attention_job_check proves the job.
PTOWSP_API PTOWSP_AICPU void ptowsp_attention_run_worker(const ptowsp_attention_job *job,
                                                         uint32_t worker, uint32_t worker_count);

// Checks a job: its pointers, and that the lanes' lists have all units once. Each unit that is not
// INVALID needs a kernel for its tier and, if it is a part, a merge for its slot.
// ptowsp_attention_check proves the plan itself. *out_index, which may be NULL, is the first unit
// without a kernel or a merge, or PTOWSP_NO_INDEX.
// Errors   INVALID_PARAMS.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attention_job_check(const ptowsp_attention_job *job,
                                                                 uint64_t *out_index);

// Runs a job on the calling thread, as lane 0; checked as by ptowsp_attention_job_check.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attention_run_serial(const ptowsp_attention_job *job,
                                                                  uint64_t *out_index);

// Runs a job on all lanes of the context, and returns when all is done. Lane i of n begins with the
// lists that worker i of n would have. A lane that is done takes lists that no lane has begun, as
// another lane's thread may be slow to wake; with is_stealing it takes single units of any list.
// Errors   INVALID_PARAMS (as ptowsp_attention_job_check; the error's index is the unit's), BUSY,
//          SYSTEM_FAILED (as ptowsp_parallel_for; the work is done).
PTOWSP_API ptowsp_status ptowsp_attention_run(ptowsp_context *context,
                                              const ptowsp_attention_job *job);

// -------------------------------------------------------------------------------------------------
// 10. Attention kernels
// -------------------------------------------------------------------------------------------------
//
// Attention over a KV cache on CPUs: decode, prefill, and batches of both. A step is planned as in
// section 9 or 12. A job is a step, its cache and memory for partial states. The threads of an
// engine, inside its operator, each call ptowsp_attend_run_worker; when all have returned, the
// outputs are complete. Here three workers compute a decode step of two requests, whose KV tokens
// begin at 0 and 600. Scores are 0, so an output is the mean of the values:
//
//    #include "ptowsp.h"
//    #include <stdio.h>
//    enum { HEADS = 2, GROUP = 4, DIM = 8, ROW = HEADS * GROUP * DIM, ALL = 700 * HEADS * DIM };
//    static float keys[ALL], values[ALL], queries[2 * ROW], outputs[2 * ROW];  // [token][head][dim]
//    static ptowsp_attention_batch batch; static ptowsp_attention_config config;  // zero: defaults
//    static ptowsp_attend_cache cache; static ptowsp_attend_step step; static ptowsp_attend_job job;
//    static ptowsp_attend_limits limits; static uint64_t block[64], memory[512]; ptowsp_plan_info info;
//    int main(void) {
//        int32_t kv[] = {600, 100}; uint32_t first[] = {0, 600}; ptowsp_attention_plan plan;
//        for (int i = 0; i < ALL; i++) values[i] = (float)(i / (HEADS * DIM));
//        batch.kv_lengths = kv, batch.sequence_count = 2, config.kv_head_count = HEADS;
//        config.group = GROUP, config.lane_count = limits.worker_count = 3, step.page_stride = 1;
//        ptowsp_attention_size(&batch, &config, &limits.plan, &info);  // each has a status
//        ptowsp_attention_place(&limits.plan, block, sizeof block, &plan);
//        if (ptowsp_attention_generate(&batch, &config, &plan, &info)) return 1;
//        limits.value_dim = cache.key_dim = cache.value_dim = DIM, step.pages = first;
//        if (ptowsp_attend_place(&limits, memory, sizeof memory, &job.memory, &info)) return 1;
//        const ptowsp_attend_strides strides = {HEADS * DIM, HEADS * DIM, DIM};  // no pages
//        cache.keys = keys, cache.values = values, cache.key_strides = cache.value_strides = strides;
//        step.batch = &batch, step.config = &config, step.plan = &plan, step.queries = queries;
//        step.outputs = outputs, step.query_token_stride = step.output_token_stride = ROW;
//        step.query_head_stride = step.output_head_stride = DIM, job.cache = &cache, job.step = &step;
//        if (ptowsp_attend_check(&job, &info)) return 1;  // ptowsp_plan_explain has the text
//        for (uint32_t i = 0; i < 3; i++) ptowsp_attend_run_worker(&job, i, 3, &info);
//        printf("%u units, means %g and %g\n", plan.unit_count, outputs[0], outputs[ROW]); }
//
// It prints:
//
//    6 units, means 299.5 and 649.5
//
// Size memory for the largest plan, by the sizes of ptowsp_attention_bound, and place it once. Tiles,
// slots and lists are read from the plan; lengths, group, window and mask from the batch and the
// configuration. So you state nothing twice. Merges are part of the run.
//
// An engine with kernels of its own calls ptowsp_attend_compute for the cases they lack; see also
// ptowsp_attention_job.
//
// Mask     As in section 9: query token j of q has position p = kv_length - q + j. It sees tokens
//          up to p if is_causal, otherwise all of them, and with a window only from p - window + 1
//          on. With config.positions see Positions there.
// Empty    A row that sees nothing has the empty state (section 8); finished it is zeros, and its
//          log-sum-exp is -INFINITY, or its sink. Rows of a request without KV are not written, unless
//          positions are given.
// Bits     A row's state is a function of its query and of the tokens of the unit that it sees, with
//          their positions. Tokens of the unit before and after these do not matter. Neither do
//          other rows of the tile, the layout of the cache, workers, or the rest of the batch. A
//          finished row and its log-sum-exp have the bits of ptowsp_merge_finish. So rows of
//          INVARIANT plans have the same bits in prefill, in chunks of a prefill, in verification
//          and in decode. AVX-512, AVX2 and NEON give the same states; portable code rounds
//          differently.
// Values   Arithmetic is in f32, with online softmax in blocks of 64 tokens that begin at the
//          multiples of 64. Weights below e^-87 of the largest so far are 0. NaN in a query or in a
//          token that a row sees gives NaN in the row. Tokens that no row sees are not read, with
//          two exceptions: tokens between the windows of two rows of a unit, and tokens that only
//          bits of a mask hide. These may be read, and change nothing.
// Memory   Nothing is allocated. A call takes up to 120 KiB of stack.
// Threads  Pure functions, but for the memory of a job.
// Limits   Dimensions are multiples of 8 up to PTOWSP_ATTEND_DIM_MAX; of q8_0 and q4_0,
//          multiples of 32. Any group, any number of rows.
// Errors   In ptowsp_plan_info, which ptowsp_plan_explain turns into text.

#define PTOWSP_ATTEND_DIM_MAX    576  // of keys and of values
#define PTOWSP_ATTEND_WORKER_MAX 65536

typedef enum ptowsp_attend_type {
    PTOWSP_ATTEND_F32 = 0,
    PTOWSP_ATTEND_F16,   // IEEE 754 binary16
    PTOWSP_ATTEND_BF16,  // the upper half of an f32
    PTOWSP_ATTEND_I8,    // an integer times the scale of its token and head
    // Blocks of 32 elements, without padding. Each begins with an f16 scale in the byte order of
    // the machine. Q8_0: then 32 int8, each times the scale. Q4_0: then 16 bytes, the low 4 bits of
    // byte i for element i, the high ones for element i + 16; an element is (bits - 8) * scale.
    // Dimensions and strides are multiples of 32.
    PTOWSP_ATTEND_Q8_0,  // 34 bytes
    PTOWSP_ATTEND_Q4_0,  // 18 bytes
    PTOWSP_ATTEND_TYPE_COUNT,
    PWSP_FORCE_INT(PTOWSP_ATTEND)
} ptowsp_attend_type;

// Elements from one page, one token of a page, and one KV head to the next.
typedef struct ptowsp_attend_strides {
    size_t page, token, head;
} ptowsp_attend_strides;

// A KV cache. Token t of a sequence is slot t % page_size of page pages[t / page_size], and its row
// for a head begins at element
//
//      page * strides.page + slot * strides.token + head * strides.head
//
// of keys or values, and has key_dim or value_dim adjacent elements. Some layouts, with H heads, P
// slots, dimension D:
//
//                                             page             token    head         values
//      [page][head][K or V][slot][dim]        H * 2 * P * D    D        2 * P * D    keys + P * D
//      [page][slot][head][dim], K and V       P * H * D        H * D    D            another array
//      [token][head][dim], no pages           H * D            H * D    D            another array
//      latent (MLA), 576 keys, 512 values     P * 576          576      0            keys
typedef struct ptowsp_attend_cache {
    const void *keys, *values;  // values may be keys
    ptowsp_attend_strides key_strides, value_strides;
    const float *key_scales, *value_scales;  // I8; otherwise not read
    ptowsp_attend_strides scale_strides;     // of both
    ptowsp_attend_type type;
    uint32_t key_dim, value_dim;
    uint32_t page_size;  // tokens of a page; 0: no pages, so tokens follow one another from row
                         // pages[0] of the sequence on
} ptowsp_attend_cache;

// Data shared by all units of a step. KV head h has the query heads from h * group to h * group +
// group - 1. Tokens of queries, outputs and lse are numbered across the batch. Strides are in
// floats.
typedef struct ptowsp_attend_step {
    const ptowsp_attention_batch *batch;
    const ptowsp_attention_config *config;
    const ptowsp_attention_plan *plan;        // not read by ptowsp_attend_compute
    const struct ptowsp_prefix_plan *prefix;  // contains `plan`; NULL: a plan of section 9

    const float *queries;  // not scaled
    size_t query_token_stride, query_head_stride;
    float *outputs;
    size_t output_token_stride, output_head_stride;
    float *lse;  // log-sum-exp of rows; NULL: not wanted
    size_t lse_token_stride, lse_head_stride;

    const uint32_t
        *query_starts;      // [request] first query token; prefix plans: in order; NULL: one each
    const uint32_t *pages;  // page tables of all requests
    const uint32_t *page_starts;  // [request] in pages; NULL: request * page_stride
    size_t page_stride;

    float scale;  // of scores; 0: 1 / sqrt(key_dim)
    float cap;    // > 0: scores are cap * tanh(score / cap)
    // [query head] attention sinks: one more score in the sum of each row, whose value is 0. It is
    // counted once, when the row is finished; partial states have none. NULL, or -INFINITY: no sink.
    const float *sinks;
    // [query head] ALiBi: slope * |position of the query - position of the token| is subtracted from
    // the score, after the cap. Positions are as in the plan, so drafts of a tree stand by index.
    // NULL: none.
    const float *slopes;
    // A mask of bits, as of the drafts of a tree: [query token of the batch][mask_stride] words. Bit
    // t % 32 of word t / 32 says that the query sees KV token mask_starts[request] + t, if Mask above
    // lets it. A mask hides none of the tokens before and after its bits; ptowsp_attend_check refuses
    // one that begins after a request's tokens, or ends before their end. NULL: none.
    const uint32_t *mask;
    size_t mask_stride;
    const uint32_t *mask_starts;  // [request] NULL: 0
} ptowsp_attend_step;

// -- jobs -----------------------------------------------------------------------------------------

// The plans, joins and workers for which a job's memory has room.
typedef struct ptowsp_attend_limits {
    ptowsp_attention_sizes plan;  // of ptowsp_attention_size or ptowsp_attention_bound; in
                                  // ptowsp_prefix_sizes the field `attention`
    uint64_t join_count;          // of ptowsp_prefix_sizes; 0 without one
    uint32_t value_dim;           // of the cache
    uint32_t worker_count;        // 1 to PTOWSP_ATTEND_WORKER_MAX: the most that run
} ptowsp_attend_limits;

// Partial states and progress of a job, in the caller's block. ptowsp_attend_place sets all of it.
typedef struct ptowsp_attend_memory {
    ptowsp_attention_scratch scratch;
    uint32_t *progress;  // [progress_capacity]
    uint32_t *workers;   // [worker_capacity + 4] the workers in a run
    uint64_t slot_capacity, progress_capacity;
    uint32_t worker_capacity;
} ptowsp_attend_memory;

// A job. Copies of it share the memory, so that only one of them runs at a time: such as the layers
// of a model, each with its cache and step.
typedef struct ptowsp_attend_job {
    const ptowsp_attend_cache *cache;
    const ptowsp_attend_step *step;
    ptowsp_attend_memory memory;
    bool is_stealing;    // as in ptowsp_attention_job
    ptowsp_span *spans;  // as in ptowsp_attention_job: NULL, or of units, then merges, then joins
} ptowsp_attend_job;

// The bytes of a block for the memory of a job within limits.
// Errors   INVALID_PARAMS (a NULL, value_dim, worker_count), LIMIT_EXCEEDED. *out_bytes is 0 then.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attend_size(const ptowsp_attend_limits *limits,
                                                         uint64_t *out_bytes,
                                                         ptowsp_plan_info *out_info);

// Places memory in a block, aligned to 8, and makes it ready for the first run.
// Errors   As ptowsp_attend_size; INVALID_PARAMS (a block that is not aligned), BUFFER_OVERFLOW.
// Cost     Clears progress: 128 bytes for a lane, 4 for a merge.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attend_place(const ptowsp_attend_limits *limits,
                                                          void *block, uint64_t block_bytes,
                                                          ptowsp_attend_memory *out_memory,
                                                          ptowsp_plan_info *out_info);

// Checks all of a job: as ptowsp_attend_run_worker does, and query lengths, masks, and the plan, as
// ptowsp_attention_check does. (Of a prefix plan only the lists; ptowsp_prefix_check proves it.) Page
// tables, strides and query_starts are taken as they are, but query_starts that a prefix plan does not
// have are refused, and so are strides that cannot lead to the first row of a request without pages:
// of keys and values both 0, or of scales 0.
// Errors   INVALID_PARAMS, BUFFER_OVERFLOW (memory for fewer slots, rows or lanes).
// Cost     O(units + requests).
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attend_check(const ptowsp_attend_job *job,
                                                          ptowsp_plan_info *out_info);

// Runs as worker `worker` of worker_count, on the calling thread; see ptowsp_attention_run_worker.
// Every worker from 0 to worker_count - 1 has to call once per run, all with the same job.
//
// Errors   A job that is incomplete or does not agree with its plan: INVALID_PARAMS or
//          BUFFER_OVERFLOW for all workers, and nothing is computed. A unit that is not of the
//          step, in *out_info: INVALID_PARAMS, and its rows are not computed. A call that does
//          nothing: INVALID_PARAMS (worker not below worker_count, worker_count not 1 to
//          worker_capacity); BUSY (this worker is in the run already, or a run of a different
//          worker_count has not ended). The run ends when all workers have come. After errors of
//          some workers alone, place the memory again.
// Cost     Checking: below 100 ns. Running: as ptowsp_attention_run_worker.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attend_run_worker(const ptowsp_attend_job *job,
                                                               uint32_t worker,
                                                               uint32_t worker_count,
                                                               ptowsp_plan_info *out_info);

// Runs a job on all lanes of the context, and returns when all is done; see ptowsp_attention_run.
// Errors   As ptowsp_attend_run_worker, and as ptowsp_attention_run.
PTOWSP_API ptowsp_status ptowsp_attend_run(ptowsp_context *context, const ptowsp_attend_job *job);

// -- kernels of a job -----------------------------------------------------------------------------
//
// The calls of a run, for engines with loops of their own, such as a launch with one thread for
// each lane. Each returns INVALID_PARAMS, and writes nothing, if a pointer is NULL or the
// descriptor does not belong to the job's plan.

// Computes a unit: into its slot, or, if it has none, into outputs and lse.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attend_work(const ptowsp_attend_job *job,
                                                         const ptowsp_work *work);

// Merges all rows of a tile into outputs and lse, when all of its parts are done.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attend_merge(const ptowsp_attend_job *job,
                                                          const ptowsp_work *merge);

// The same for a request and KV head of a prefix plan.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attend_join(const ptowsp_attend_job *job,
                                                         const ptowsp_work *join);

// -- single units ---------------------------------------------------------------------------------

// The rows and the KV tokens of a unit.
typedef struct ptowsp_attend_unit {
    uint32_t request, kv_head;
    uint32_t query_start, query_count;  // query tokens of the request
    uint32_t kv_start, kv_len;          // tokens from the request's length on are ignored
    // Segments of prefix plans that requests share: the query tokens of the batch, [query_count].
    // All of them see all of the KV of `request`; query_start is where they lie in
    // the tokens of step->prefix, and read with slopes or a mask only. Without a window, and without
    // positions. NULL: the request's own.
    const uint32_t *tokens;
    uint32_t sinks;  // tokens [0, sinks) that the unit has besides; at most kv_start
} ptowsp_attend_unit;

// The unit, or the tile of the merge, of a descriptor of step->plan. All zero for NULL.
PTOWSP_API PTOWSP_AICPU ptowsp_attend_unit ptowsp_attend_unit_of(const ptowsp_attend_step *step,
                                                                 const ptowsp_work *work);

// Rows of a unit, query_count * group. Row r is query token r / group with head r % group.
PTOWSP_API PTOWSP_AICPU uint32_t ptowsp_attend_unit_rows(const ptowsp_attend_step *step,
                                                         const ptowsp_attend_unit *unit);

// Computes a unit. Writes states[rows] and accs[rows][value_dim]; or, if states is NULL, finished
// rows to step->outputs and step->lse, for a unit that has all tokens its rows see.
// Errors   INVALID_PARAMS (a NULL, type, dimensions, a request or query tokens that are not of the
//          batch): nothing is written.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attend_compute(const ptowsp_attend_cache *cache,
                                                            const ptowsp_attend_step *step,
                                                            const ptowsp_attend_unit *unit,
                                                            ptowsp_partial *states, float *accs);

// Converts elements to f32, exactly, such as queries in f16 or bf16. I8 has no scale.
// Errors   INVALID_PARAMS (a NULL with a count, an unknown type, blocks that are cut off).
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_attend_convert(const void *from,
                                                            ptowsp_attend_type type, size_t count,
                                                            float *to);

// Bytes of `count` elements, at most SIZE_MAX; 0 if the type is unknown, or a block is cut off.
PTOWSP_API PTOWSP_AICPU size_t ptowsp_attend_bytes(ptowsp_attend_type type, size_t count);

// The vector code of this machine: "avx512", "avx2", "neon" or "portable".
PTOWSP_API PTOWSP_AICPU const char *ptowsp_attend_variant(void);

// -------------------------------------------------------------------------------------------------
// 11. MoE plans
// -------------------------------------------------------------------------------------------------
//
// In a layer of mixture of experts each token chooses top_k of the experts. A step has to bring
// together the tokens of each expert, divide them among lanes, and sum the outputs of a token's
// experts. Between steps a service looks at the loads, and places copies of busy experts on ranks.
//
//      token             0      1      2      3            4 tokens, top 2 of 3 experts
//      ids [token][k]    2 0    2 1    0 2    2 -          -: below 0, dropped
//      pair              0 1    2 3    4 5    6 7          token * top_k + k
//
//      expert            0      1    2                     ptowsp_moe_sort
//      counts            2      1    4
//      offsets           0      2    3            7
//      pairs [row]       1 4    3    0   2 5 6             stable: in the order of tokens
//      rows [pair]       3 0    4 2    1 5    6 -          the inverse
//
//      unit (rows)       [0 1]  [2]  [3] [4 5 6]           ptowsp_moe_generate, for 2 lanes,
//      lane               0      0    0   1                which split expert 2
//
//      out[token] = sum over k of gates[pair] * made[rows[pair]]       ptowsp_moe_combine
//
// With block_rows every expert's rows are padded to a multiple of it, for kernels that take whole
// tiles; `pairs` has PTOWSP_MOE_NO_ROW there. Kernels gather tokens[pairs[row] / top_k].
//
// USE THIS for the layer itself on any lanes, or for parts of it. Each function stands alone and
// takes plain arrays: counts may come from a device, and placements may go to any engine.
//
//    #include "ptowsp.h"
//    #include <stdio.h>
//
//    int main(void) {
//        const int32_t ids[8] = {2, 0, 2, 1, 0, 2, 2, -1};
//        static uint32_t counts[3], offsets[4], pairs[8], rows[8]; static uint64_t block[64];
//        static ptowsp_moe_routes routes; static ptowsp_moe_order order;  // zero: the defaults
//        static ptowsp_moe_config config; ptowsp_moe_batch batch; ptowsp_moe_sizes sizes;
//        ptowsp_moe_plan plan;
//        routes.ids = ids, routes.token_count = 4, routes.top_k = 2, routes.expert_count = 3;
//        order.counts = counts, order.offsets = offsets, order.pairs = pairs, order.rows = rows;
//        order.row_capacity = 8;
//        config.expert_count = 3, config.lane_count = 2, config.cost.per_token = 1;
//        batch.counts = counts, batch.offsets = offsets;
//        if (ptowsp_moe_sort(&routes, &order, NULL)) return 1;
//        if (ptowsp_moe_size(&batch, &config, &sizes, NULL)) return 1;
//        if (ptowsp_moe_place(&sizes, block, sizeof block, &plan)) return 1;
//        if (ptowsp_moe_generate(&batch, &config, &plan, NULL)) return 1;
//        for (uint32_t lane = 0; lane < plan.lane_count; lane++)
//            for (uint32_t i = plan.unit_begin[lane]; i < plan.unit_begin[lane + 1]; i++) {
//                const ptowsp_work *unit = &plan.units[i];
//                printf("lane %u: expert %u, rows %u to %u\n", lane, ptowsp_work_expert(unit),
//                       ptowsp_work_token_start(unit), ptowsp_work_token_end(unit));
//            }
//    }
//
// It prints:
//
//    lane 0: expert 0, rows 0 to 2
//    lane 0: expert 1, rows 2 to 3
//    lane 0: expert 2, rows 3 to 4
//    lane 1: expert 2, rows 4 to 7
//
// Memory   None. All arrays are the caller's.
// Threads  Pure functions, but for ptowsp_moe_sort_parallel.
// Errors   A status; *out_info, which may be NULL, has the fault (section 6) and the pair, load,
//          expert or replica at fault in info.index. Nothing is written then.
// Limits   PTOWSP_MOE_EXPERT_MAX experts, and replicas; 2^32 - 2 pairs and rows;
//          PTOWSP_ATTENTION_LANE_MAX lanes.

#define PTOWSP_MOE_NO_ROW           UINT32_MAX
#define PTOWSP_MOE_EXPERT_MAX       65536
#define PTOWSP_MOE_COLUMN_PARTS_MAX 65535

#if !defined(PTOWSP_ONLY_ATTENTION)

// -- sorting --------------------------------------------------------------------------------------

typedef struct ptowsp_moe_routes {
    const PTOWSP_GM int32_t *ids;  // [token_count][top_k] experts; below 0: dropped
    uint32_t token_count;          // 0 is an empty step
    uint32_t top_k;                // at least 1
    uint32_t expert_count;         // 1 to PTOWSP_MOE_EXPERT_MAX
    uint32_t block_rows;           // an expert's rows are padded to a multiple of it; 0: 1
} ptowsp_moe_routes;

// Pairs (token, k) in the order of their experts. Set the first part; sorting fills the second.
typedef struct ptowsp_moe_order {
    PTOWSP_GM uint32_t *counts;        // [expert_count] pairs of each expert
    PTOWSP_GM uint32_t *offsets;       // [expert_count + 1] first row of each expert
    PTOWSP_GM uint32_t *pairs;         // [row_capacity] pair of each row; NO_ROW in padding; from
                                       // row_count on unspecified
    PTOWSP_GM uint32_t *rows;          // [token_count * top_k] row of each pair; NO_ROW if dropped;
                                       // may be NULL
    PTOWSP_GM int32_t *block_experts;  // [row_capacity / block_rows] of each block, then -1; may be
                                       // NULL
    uint32_t row_capacity;             // see ptowsp_moe_row_bound

    uint32_t pair_count;   // not dropped
    uint32_t row_count;    // with padding
    uint32_t block_count;  // row_count / block_rows
    double padding_share;  // of the rows
} ptowsp_moe_order;

// The most rows that any routes of these counts can have: token_count * top_k, and with block_rows
// up to block_rows - 1 of padding for each expert that has tokens.
PTOWSP_API PTOWSP_AICPU uint64_t ptowsp_moe_row_bound(const ptowsp_moe_routes *routes);

// Sorts the pairs by expert; pairs of one expert keep their order.
//
// Errors   INVALID_PARAMS (a NULL; top_k 0; an id that is not below expert_count), LIMIT_EXCEEDED,
//          BUFFER_OVERFLOW (info.value rows of info.limit).
//          Then rows may be written, beyond 512 experts also the offsets, and nothing else.
// Cost     Two passes over the ids.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_sort(const ptowsp_moe_routes *routes,
                                                      ptowsp_moe_order *order,
                                                      ptowsp_plan_info *out_info);

// Like ptowsp_moe_sort, on all lanes of the context, with the same result. `scratch` has
// scratch_count elements, expert_count + 1 per lane (fewer: fewer lanes work), or four times that:
// late lanes then do less. Below PTOWSP_MOE_SORT_PARALLEL_MIN pairs the calling thread works alone.
// Errors   As ptowsp_moe_sort, with their text in the context. Without a fault in *out_info: BUSY,
//          which writes nothing, and SYSTEM_FAILED, as ptowsp_parallel_for: sort again then.
#define PTOWSP_MOE_SORT_PARALLEL_MIN 65536
PTOWSP_API ptowsp_status ptowsp_moe_sort_parallel(ptowsp_context *context,
                                                  const ptowsp_moe_routes *routes,
                                                  ptowsp_moe_order *order, uint32_t *scratch,
                                                  uint64_t scratch_count,
                                                  ptowsp_plan_info *out_info);

// Sums the outputs of the experts. For tokens [token_begin, token_end):
//
//      pair = token * top_k + k
//      out[token][dim] = sum over k of gates[pair] * made[rows[pair]][dim]
//
// in the order of k, from 0; dropped pairs add nothing. gates may be NULL: all are 1. Ranges of
// tokens may be computed by any lanes, with the same bits. out must not overlap made.
// Requires rows of ptowsp_moe_sort, of the same top_k.
PTOWSP_API PTOWSP_AICORE void ptowsp_moe_combine(const PTOWSP_GM uint32_t *rows, uint32_t top_k,
                                                 const PTOWSP_GM float *gates,
                                                 const PTOWSP_GM float *made, uint32_t dim,
                                                 uint32_t token_begin, uint32_t token_end,
                                                 PTOWSP_GM float *out);

// -- units ----------------------------------------------------------------------------------------
//
// Units are descriptors (section 5), ordered by expert, part, batch and row over all lanes. A lane
// has a contiguous share of them. So few experts are read more than once: lanes together read at
// most lane_count - 1 more experts than the step has.
//
//      params      batch, expert, token_start, token_count      tier     0
//      flags       FIRST, LAST: of the units of a (batch, expert, part)
//      work_id     index of the unit
//      reserved    part of the expert's output columns: 0 to plan.column_parts - 1
//
// A step of few tokens keeps few lanes busy: 1 token of 8 experts is 8 units. With column_parts the
// planner also divides the output columns of experts, all into the same number of parts. Each part
// is computed for all of the expert's tokens, from its own columns of the weights, which no other
// part reads. So the lanes read no weights twice:
//
//      column_parts   1         4        1 token of 8 experts on 32 lanes, default costs:
//      units          8         32       a lane reads 64 / 4, instead of 24 lanes that idle
//      busiest lane   69        20.25
//
// ptowsp_moe_column_begin and _end give the columns of a part, of any number of columns, so one
// plan serves all products of a layer.
//
// The planner finds the contiguous shares with the smallest cost of the busiest lane, where
//
//      lane        units * per_unit + tokens * per_token + experts on it * per_expert
//
// with P parts a P-th of per_token and per_expert. Of the numbers 1, 2, 3, 4, 6, 8, 12, ... up to
// column_parts, and column_parts itself, it takes the one whose busiest lane costs least. An expert is
// split at multiples of block_rows of its tokens. Costs are rounded as in attention plans (section
// 9). Descriptors from unit_count to unit_capacity are INVALID.

// As ptowsp_attention_cost. All zero: the default, in which the unit is a token.
typedef struct ptowsp_moe_cost {
    double per_unit;    // default 4
    double per_token;   // default 1
    double per_expert;  // reading its weights, once per lane; default 64
} ptowsp_moe_cost;

typedef struct ptowsp_moe_config {
    uint32_t batch_count;   // steps, or ranks, whose tokens are counted apart; 0: 1
    uint32_t expert_count;  // 1 to PTOWSP_MOE_EXPERT_MAX
    uint32_t lane_count;    // 1 to PTOWSP_ATTENTION_LANE_MAX
    uint32_t unit_tokens;   // of a unit, at most; rounded up to block_rows. 0: any number
    uint32_t block_rows;    // 0: 1
    ptowsp_moe_cost cost;
    uint32_t column_parts;  // parts of an expert's output columns, at most; 0: 1
} ptowsp_moe_config;

// A step: its (token, expert) pairs by expert.
typedef struct ptowsp_moe_batch {
    const PTOWSP_GM uint32_t *counts;  // [batch_count][expert_count] pairs of each expert
    const PTOWSP_GM uint32_t
        *offsets;  // [batch_count][expert_count + 1] first row of each expert, of
                   // ptowsp_moe_sort. NULL: rows count from an expert's first
} ptowsp_moe_batch;

// Numbers of elements that a plan needs; block_bytes is for all its arrays together.
typedef struct ptowsp_moe_sizes {
    uint64_t unit_count;
    uint32_t lane_count;
    uint64_t block_bytes;
} ptowsp_moe_sizes;

// A plan. Set the first part, by ptowsp_moe_place or by hand; planning fills the second.
typedef struct ptowsp_moe_plan {
    PTOWSP_GM ptowsp_work *units;    // [unit_capacity]
    PTOWSP_GM uint32_t *unit_begin;  // [lanes + 1]: lane l has units [l] to [l + 1]
    PTOWSP_GM double *lane_costs;    // [lanes] predicted; may be NULL
    uint32_t unit_capacity;
    uint32_t lane_capacity;  // lanes for which the arrays have room; 0: not checked

    uint32_t unit_count;
    uint32_t lane_count;         // of the configuration; ptowsp_moe_place sets it to lane_capacity
    double cost_max, cost_mean;  // of lanes
    uint32_t column_parts;       // of each expert; 1 to config.column_parts
} ptowsp_moe_plan;

// A limit that a service never exceeds, to size memory once.
typedef struct ptowsp_moe_limits {
    uint64_t pair_count_max;  // (token, expert) pairs of a step: tokens * top_k
} ptowsp_moe_limits;

// Bounds the sizes of the plans of any step within limits.
// Errors   INVALID_PARAMS, LIMIT_EXCEEDED. *out_sizes is zero then.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_bound(const ptowsp_moe_config *config,
                                                       const ptowsp_moe_limits *limits,
                                                       ptowsp_moe_sizes *out_sizes,
                                                       ptowsp_plan_info *out_info);

// The exact sizes of the plan of a step. Errors and cost as ptowsp_moe_generate, without writing.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_size(const ptowsp_moe_batch *batch,
                                                      const ptowsp_moe_config *config,
                                                      ptowsp_moe_sizes *out_sizes,
                                                      ptowsp_plan_info *out_info);

// Places the arrays of a plan in one block, as ptowsp_attention_place.
// Errors   INVALID_PARAMS (a NULL, a block that is not aligned to 8, or sizes of 0 lanes),
//          LIMIT_EXCEEDED (more than 2^32 - 1 units), BUFFER_OVERFLOW (block_bytes too small).
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_place(const ptowsp_moe_sizes *sizes, void *block,
                                                       uint64_t block_bytes,
                                                       ptowsp_moe_plan *out_plan);

// Plans a step.
//
// Errors   INVALID_PARAMS, LIMIT_EXCEEDED, BUFFER_OVERFLOW (lanes or units: info.value of
//          info.limit; the plan is untouched; info.work_count is the number of units needed).
// Cost     Some 20 walks over counts and lanes, and the writing of units. With column_parts as many
//          for each number of parts that is tried; few if one part keeps the lanes busy.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_generate(const ptowsp_moe_batch *batch,
                                                          const ptowsp_moe_config *config,
                                                          ptowsp_moe_plan *plan,
                                                          ptowsp_plan_info *out_info);

// Proves a plan: every token of each expert is in one unit, in order; units are split where they
// may be; lists of lanes and costs agree with the units. It does not prove that no plan is better.
// Errors   As ptowsp_moe_generate; also INVALID_PARAMS with the unit, lane or cost at fault.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_check(const ptowsp_moe_batch *batch,
                                                       const ptowsp_moe_config *config,
                                                       const ptowsp_moe_plan *plan,
                                                       ptowsp_plan_info *out_info);

// The first output column of a part, of column_count that are divided at multiples of block_columns
// (0: 1). Part p of P has blocks [p * blocks / P, (p + 1) * blocks / P), rounded down, so with fewer
// blocks than parts some have none. The end of a part is the beginning of the next; the last one ends
// at column_count. Requires part <= part_count, and part_count > 0.
PTOWSP_INLINE uint32_t ptowsp_moe_column_begin(uint32_t part, uint32_t part_count,
                                               uint32_t column_count, uint32_t block_columns) {
    const uint64_t block = block_columns > 0 ? block_columns : 1;
    const uint64_t blocks = (column_count + block - 1) / block;
    const uint64_t begin = blocks * part / part_count * block;
    return begin < column_count ? PWSP_CAST(uint32_t, begin) : column_count;
}
PTOWSP_INLINE uint32_t ptowsp_moe_column_end(uint32_t part, uint32_t part_count,
                                             uint32_t column_count, uint32_t block_columns) {
    return ptowsp_moe_column_begin(part + 1, part_count, column_count, block_columns);
}

// The pairs of the rows of a unit, as an array of *out_count; of a plan made with order->offsets, for
// one batch. A row's token is its pair / top_k.
PTOWSP_INLINE const PTOWSP_GM uint32_t *ptowsp_moe_unit_rows(const ptowsp_moe_order *order,
                                                             const PTOWSP_GM ptowsp_work *unit,
                                                             uint32_t *out_count) {
    *out_count = ptowsp_work_token_count(unit);
    return order->pairs + ptowsp_work_token_start(unit);
}

// Writes units, experts that several lanes read, costs, and lanes as ptowsp_attention_print.
PTOWSP_API void ptowsp_moe_print(const ptowsp_moe_plan *plan, ptowsp_output output);

// The plan as one that programs bind (ptowsp_run_bind_plan) and jobs run (ptowsp_attention_run_worker,
// section 9): the same units and lanes, no merges. A job needs a table of one kernel, and progress.
PTOWSP_API ptowsp_attention_plan ptowsp_moe_plan_units(const ptowsp_moe_plan *plan);

// -- looking --------------------------------------------------------------------------------------

// How loads are spread over experts (or replicas of experts), and over the ranks that hold equal
// numbers of them, in order.
typedef struct ptowsp_moe_balance {
    uint64_t total;
    uint64_t expert_max, rank_max;
    uint32_t expert_busiest, rank_busiest;  // the first of them
    uint32_t expert_idle, rank_idle;        // how many have nothing
    double expert_ratio, rank_ratio;        // max / mean; 0 without tokens
    uint64_t rank_perfect;  // of the busiest rank, if tokens could go anywhere: ceil(total / ranks)
    double padding_share;   // of the rows, if each expert's are padded to block_rows
} ptowsp_moe_balance;

// Looks at counts[count]. rank_count divides count; block_rows 0 is 1.
// Errors   INVALID_PARAMS.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_look(const PTOWSP_GM uint32_t *counts,
                                                      uint32_t count, uint32_t rank_count,
                                                      uint32_t block_rows,
                                                      ptowsp_moe_balance *out_balance,
                                                      ptowsp_plan_info *out_info);

// Adds a step to a history of loads: loads[i] = loads[i] * decay + counts[i], in double and rounded
// once. decay is from 0 (forgets all) to 1 (sums); a step n steps ago counts decay^n.
// Errors   INVALID_PARAMS.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_history_add(PTOWSP_GM float *loads, uint32_t count,
                                                             const PTOWSP_GM uint32_t *counts,
                                                             double decay,
                                                             ptowsp_plan_info *out_info);

// -- placing --------------------------------------------------------------------------------------
//
// Busy experts get several replicas, and replicas are packed onto ranks, so that ranks have about
// the same load: index by index the result of DeepSeek's EPLB (rebalance_experts), ties included.
// Loads are float32, and so are their sums and quotients; where loads are integers whose sums stay
// below 2^24, all sums are exact.
//
//      HIERARCHICAL   packs groups of experts into nodes, replicates the experts of each node,
//                     packs the replicas onto the node's ranks
//      GLOBAL         replicates and packs without regard to groups and nodes
//
// EPLB may put two replicas of an expert on one rank, where the second only wastes memory. Where
// loads are zero, it gives all spare replicas to the first expert. With is_spread it does neither:
// an expert has at most as many replicas as its node has ranks, each on a rank of its own. Of
// experts with equal loads per replica, the one with fewer replicas gets the next.

typedef enum ptowsp_moe_policy {
    PTOWSP_MOE_EPLB = 0,  // HIERARCHICAL where node_count divides group_count, else GLOBAL
    PTOWSP_MOE_HIERARCHICAL,
    PTOWSP_MOE_GLOBAL,
    PWSP_FORCE_INT(PTOWSP_MOE)
} ptowsp_moe_policy;

typedef struct ptowsp_moe_cluster {
    uint32_t expert_count;
    uint32_t replica_count;  // at least expert_count, a multiple of rank_count
    uint32_t group_count;    // of neighbouring experts; divides expert_count. 0: 1
    uint32_t node_count;     // divides rank_count. 0: 1
    uint32_t rank_count;
    ptowsp_moe_policy policy;
    bool is_spread;  // an expert at most once on a rank; needs as many experts on a node as a rank
                     // has replicas
} ptowsp_moe_cluster;

// Replica i lives on rank i / (replica_count / rank_count); nodes are neighbouring ranks.
typedef struct ptowsp_moe_placement {
    int32_t *replica_experts;  // [layer][replica_count] the expert that a replica is
    int32_t *expert_counts;    // [layer][expert_count] replicas of an expert; may be NULL
    int32_t *expert_replicas;  // [layer][expert_count][stride] its replicas, in the order in which
                               // they were made, then -1; may be NULL
    uint32_t stride;           // replicas that an expert has at most; replica_count - expert_count
                               // + 1 is always enough
} ptowsp_moe_placement;

// Bytes of scratch of ptowsp_moe_rebalance and ptowsp_moe_move, which has to be aligned to 8.
PTOWSP_API PTOWSP_AICPU uint64_t ptowsp_moe_scratch_bytes(const ptowsp_moe_cluster *cluster);

// Places the experts of each layer by its loads[layer][expert_count].
//
// Errors   INVALID_PARAMS (counts that do not divide; scratch that is not aligned; a load that is
//          negative, infinite or NaN), BUFFER_OVERFLOW (scratch, or an expert with more replicas
//          than stride: the layers before are written then).
// Cost     O(replicas * log(replicas)) per layer; with is_spread O(replicas * (ranks + replicas of a
//          rank)), where few replicas need a swap.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_rebalance(const ptowsp_moe_cluster *cluster,
                                                           const float *loads, uint32_t layer_count,
                                                           void *scratch, uint64_t scratch_bytes,
                                                           const ptowsp_moe_placement *placement,
                                                           ptowsp_plan_info *out_info);

// The result of ptowsp_moe_move, in loads of the busiest rank; replicas of an expert share its
// load.
typedef struct ptowsp_moe_moved {
    uint32_t move_count;  // of the steps taken; a replica that two of them change counts twice
    double load_before, load_after, load_mean;
} ptowsp_moe_moved;

// Improves the placement of one layer by at most move_max moves. A move gives one replica a
// different expert, whose weights have to be fetched. A step replaces a replica or swaps two,
// whichever lowers the load of the busiest rank most per move; it stops when no step helps. So the
// busiest rank is never busier than before, and the steps do not depend on move_max. Under
// HIERARCHICAL experts stay in the nodes in which they have replicas.
//
// frontier[move_max + 1], which may be NULL, is the load of the busiest rank with at most that many
// moves: the result of a call with it as move_max. out_moved may be NULL, too.
//
// Errors   As ptowsp_moe_rebalance, and INVALID_PARAMS for an expert that is out of range or has no
//          replica.
// Cost     A step tries about 2 * replicas-per-rank * (replicas + experts) changes.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_move(const ptowsp_moe_cluster *cluster,
                                                      const float *loads, uint32_t move_max,
                                                      void *scratch, uint64_t scratch_bytes,
                                                      int32_t *replica_experts, double *frontier,
                                                      ptowsp_moe_moved *out_moved,
                                                      ptowsp_plan_info *out_info);

// Derives expert_counts and expert_replicas (ascending) of one layer from replica_experts.
// Errors   INVALID_PARAMS, BUFFER_OVERFLOW (stride); both arrays are undefined then.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_index(const ptowsp_moe_cluster *cluster,
                                                       const ptowsp_moe_placement *placement,
                                                       ptowsp_plan_info *out_info);

// Shares the tokens of one step over the replicas of one layer: the i-th pair of expert e goes to
// replica expert_replicas[e][(i + e) % expert_counts[e]]. So the replicas of an expert get the same
// number of pairs, or one more. out_ids[token_count][top_k], which may be
// routes->ids, are replicas; dropped pairs stay below 0. Sort them with expert_count =
// replica_count. next[expert_count] is scratch.
// Errors   INVALID_PARAMS; out_ids is untouched then.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_share(const ptowsp_moe_routes *routes,
                                                       const ptowsp_moe_placement *placement,
                                                       uint32_t *next, int32_t *out_ids,
                                                       ptowsp_plan_info *out_info);

#if !defined(PTOWSP_ONLY_PLAN)

// -- generating routes ----------------------------------------------------------------------------
//
// Routes as routers make them, for tests, benchmarks and sizing. All depend on the fields of the
// description alone. A token's experts differ, and are in random order.
//
//      BALANCED    every expert gets the same number of pairs, or one more
//      SPREAD      uniform; the experts of a token are as far apart as possible, so on top_k ranks
//      HOT_SET     a sixteenth of the experts, at least top_k of them, gets 3 of 4 pairs
//      HOT_RANK    the experts of one rank get 3 of 4 pairs
//      ZERO_RANK   uniform, but the experts of one rank get nothing
//      RAGGED      uniform; a token has 0 to top_k experts, then ids of -1
//      ROTATING    as HOT_SET, and the set moves on by its size with each step
//      BURST       uniform, but a quarter of the tokens, in a row, has the same experts
//      SKEWED      expert i of a seeded order has weight 1 / (i + a), with a such that the busiest
//                  expert gets `skew` times the mean (3 to 13 are measured of real routers)
//
// In all but BALANCED, pairs are drawn by systematic sampling: a token has an expert with exactly
// the probability that is wanted.

typedef enum ptowsp_moe_pattern {
    PTOWSP_MOE_BALANCED = 0,
    PTOWSP_MOE_SPREAD,
    PTOWSP_MOE_HOT_SET,
    PTOWSP_MOE_HOT_RANK,
    PTOWSP_MOE_ZERO_RANK,
    PTOWSP_MOE_RAGGED,
    PTOWSP_MOE_ROTATING,
    PTOWSP_MOE_BURST,
    PTOWSP_MOE_SKEWED,
    PTOWSP_MOE_PATTERN_COUNT,
    PWSP_FORCE_INT(PTOWSP_MOE_PATTERN)
} ptowsp_moe_pattern;

typedef struct ptowsp_moe_traffic {
    ptowsp_moe_pattern pattern;
    uint32_t token_count, top_k, expert_count;
    uint32_t rank_count;  // divides expert_count; 0: 1
    uint32_t step;
    uint64_t seed;
    double skew;  // SKEWED: 1 to expert_count / top_k; 0: 4
} ptowsp_moe_traffic;

// Writes out_ids[token_count][top_k]. scratch has expert_count + 1 elements.
// Errors   INVALID_PARAMS (also top_k above expert_count; above the experts of the other ranks for
//          ZERO_RANK), LIMIT_EXCEEDED.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_moe_routes_generate(const ptowsp_moe_traffic *traffic,
                                                                 uint64_t *scratch,
                                                                 int32_t *out_ids,
                                                                 ptowsp_plan_info *out_info);

#endif  // PTOWSP_ONLY_PLAN

#endif  // PTOWSP_ONLY_ATTENTION

// -------------------------------------------------------------------------------------------------
// 12. Prefix trees
// -------------------------------------------------------------------------------------------------
//
// Requests that begin alike (a system prompt, examples, the turns of a conversation, beams) have
// the same KV up to where they part. A flat plan reads it once per request, a prefix plan once for
// all of them, where that pays:
//
//      five requests by their block ids     the tree                    segments of the plan
//
//      0:  7 3 1                            [7 3] --- [1]  0            A   [7 3]     rows 0 2 4
//      1:  9 5                                |                         B   [1]       rows 0
//      2:  7 3 8 2                            +------ [8] --- [2]  2    C   [8 2]     rows 2
//      3:  4 3                                          |               D   [8 6]     rows 4
//      4:  7 3 8 6                                      +---- [6]  4    E   [9 5]     rows 1
//                                           [9 5] 1    [4 3] 3          F   [4 3]     rows 3
//      order: 3 0 2 4 1
//
// Here block 3 of request 3 is not shared, because the blocks before it differ; and sharing 8 did
// not pay, so both requests read it.
//
// Tree. Requests are sorted by their ids, ties by number, so that the requests of a node are
// neighbours. Positions count in this order. position p shares common[p] KV tokens with p - 1, and
// all nodes follow from that. A node is the KV tokens [kv_begin, kv_end) that its requests share
// and others do not, so a node has at least two requests. The last tokens of a request, its
// queries, are shared only in decode. A request without blocks shares nothing. With is_ordered
// requests stay in the order given, and only neighbours can share.
//
// Decision. Sharing a node saves reading; but its rows become parts that have to be merged, and
// cost slots. A node that is not shared is read by the segments below it. All choices are weighed
// in the cost of section 9, exactly, by dynamic programming over the tree. Not sharing at all is
// one of them, so the cost never exceeds the cost of the flat plan. The lanes are then cut as in
// section 9; if that makes the predicted time longer than the flat plan's, nothing is shared.
//
// Segments take the place of section 9's sequences: the first parameter of units is the segment. A
// segment has the query tokens of all its requests, in order: `tokens` maps each to its token in
// the batch. They are cut into tiles of config.tile_rows, which limits the rows of a unit. All rows
// of a shared segment see all of its KV, which is read from segment.request, its first request. The
// last segment of a request is its own, maybe without KV.
//
//      whole segments     the only segments of their requests: units and merges as in section 9
//      others             every unit has a slot, and every tile an entry in `merges`, even with one
//                         slot: a list of the slots of its rows, and no merge to be done. The rows
//                         are merged by *joins*, one for each request and KV head: over the
//                         segments of the request, in order of depth, and in each by slots, so in
//                         KV order
//
// In INVARIANT mode, segments end at multiples of the chunk. So pieces, and with them the bits of a
// result, equal the flat plan's.
//
//      ptowsp_prefix_limits limits = {.request_count_max = request_count,
//                                     .block_count_max = block_count};
//      uint64_t bytes = ptowsp_prefix_tree_bytes(&limits);
//      ptowsp_prefix_tree tree;
//      ptowsp_prefix_tree_place(&limits, malloc(bytes), bytes, &tree);
//      ptowsp_prefix_batch batch = {
//          .attention = {.kv_lengths = kv_lengths, .sequence_count = request_count},
//          .block_ids = ids, .block_begin = id_begin, .block_tokens = 512};
//      ptowsp_attention_config config = {.kv_head_count = 8, .group = 4, .lane_count = 24};
//      ptowsp_plan_info info;
//      ptowsp_prefix_sizes sizes;
//      ptowsp_prefix_plan plan;
//      if (ptowsp_prefix_build(&batch, &tree, &info) ||
//          ptowsp_prefix_size(&batch.attention, &config, &tree, &sizes, &info) ||
//          ptowsp_prefix_place(&sizes, malloc(sizes.block_bytes), sizes.block_bytes, &plan) ||
//          ptowsp_prefix_generate(&batch.attention, &config, &tree, &plan, &info)) {
//          ptowsp_plan_explain(&info, output);
//          return 1;
//      }
//      ptowsp_prefix_print(&plan, output);
//      ptowsp_attention_job job = {.plan = &plan.attention, .table = kernels, .table_count = 1};
//      job.merge = merge, job.user = user;
//      job.progress = progress;  // ptowsp_prefix_progress_size(&plan) elements
//      job.prefix = &plan;
//      job.join = join;          // for rows r of a join: ptowsp_prefix_join_row
//      ptowsp_attention_run(context, &job);
//
// Memory   None. All arrays are the caller's. No function recurses, so chains may have any length.
// Threads  Pure functions, but for the tree: planning leaves its decision there.
// Limits   2^32 - 1 requests and query tokens; no window, no positions. A segment has at most
//          65,536 tiles.

#define PTOWSP_NO_NODE UINT32_MAX

typedef struct ptowsp_prefix_batch {
    ptowsp_attention_batch attention;       // the lengths
    const PTOWSP_GM uint64_t *block_ids;    // of all requests: equal ids are equal KV
    const PTOWSP_GM uint64_t *block_begin;  // [sequence_count + 1] where a request's blocks begin
    uint32_t block_tokens;                  // of a block, at least 1
} ptowsp_prefix_batch;

// A tree that is known already. Nodes have any order.
typedef struct ptowsp_prefix_given {
    ptowsp_attention_batch attention;
    const uint32_t *parents;      // [node_count] or PTOWSP_NO_NODE
    const uint32_t *node_tokens;  // [node_count] KV tokens of a node
    uint32_t node_count;
    const uint32_t
        *request_nodes;  // [sequence_count] the node where the KV of a request that others
                         // may share ends, or PTOWSP_NO_NODE
} ptowsp_prefix_given;

typedef struct ptowsp_prefix_limits {
    uint32_t request_count_max;
    uint64_t block_count_max;  // of one request. For ptowsp_prefix_build_given: of nodes
} ptowsp_prefix_limits;

typedef struct ptowsp_prefix_node {
    uint32_t parent;            // comes later in the array; or PTOWSP_NO_NODE
    uint32_t first, count;      // positions
    uint32_t kv_begin, kv_end;  // KV tokens
    uint32_t is_shared;         // the last decision: 0 or 1
} ptowsp_prefix_node;

// A tree. ptowsp_prefix_tree_place sets the arrays.
typedef struct ptowsp_prefix_tree {
    uint32_t *order;            // [request_count] request at each position
    uint32_t *common;           // [request_count] KV tokens shared with the position before
    uint32_t *owners;           // [request_count] deepest node of each position or PTOWSP_NO_NODE
    ptowsp_prefix_node *nodes;  // [node_count], children before parents
    uint32_t request_count, node_count;
    bool is_ordered;  // yours: keep the order in which requests come
    uint32_t request_capacity;
    uint64_t block_capacity;
    void *scratch;  // of the library
} ptowsp_prefix_tree;

// A run of KV tokens that is read once for all its rows.
typedef struct ptowsp_prefix_segment {
    uint32_t parent;                    // the segment of its requests before it, or PTOWSP_NO_NODE
    uint32_t request;                   // the first one, whose KV is read
    uint32_t first, count;              // positions
    uint32_t token_begin, token_count;  // its query tokens, in `tokens` of the plan
    uint32_t kv_begin, kv_end;
    uint32_t merge_begin;  // not whole: entry of (head 0, tile 0), then by head and tile
    uint16_t depth;        // segments above it, at most 65535
    bool is_whole;
} ptowsp_prefix_segment;

// A request of a plan, at its position.
typedef struct ptowsp_prefix_request {
    uint32_t request;
    uint32_t segment;      // the last of its segments
    uint32_t token_begin;  // its query tokens in `tokens`
    uint32_t join;         // of head 0; the other heads follow. PTOWSP_NO_NODE: no join
} ptowsp_prefix_request;

typedef struct ptowsp_prefix_sizes {
    ptowsp_attention_sizes attention;
    uint32_t segment_count, request_count, token_count;
    uint64_t join_count;
    uint64_t block_bytes;  // of all arrays
} ptowsp_prefix_sizes;

// Elements of segments, requests and tokens beyond the counts are unspecified; units do not refer
// to them.
typedef struct ptowsp_prefix_plan {
    ptowsp_attention_plan attention;
    ptowsp_prefix_segment *segments;  // [segment_capacity]
    ptowsp_prefix_request *requests;  // [request_capacity + 1]; the last one ends the tokens
    uint32_t *tokens;                 // [token_capacity] query tokens of the batch, in order
    PTOWSP_GM ptowsp_work *joins;  // [join_capacity] params: request, head, position, parts; from
                                   // join_count on INVALID
    uint32_t segment_capacity, request_capacity, token_capacity, join_capacity;

    uint32_t segment_count, request_count, token_count, join_count;
    uint32_t shared_count;  // segments of more than one request
    uint64_t kv_token_reads,
        flat_kv_token_reads;  // over all heads: times bytes of a token's K and V
    double cost, flat_cost;   // of all units and merges, before splits
    double time, flat_time;   // that no lane exceeds, in the same unit
} ptowsp_prefix_plan;

#if !defined(PTOWSP_ONLY_ATTENTION)

// The bytes of a tree within limits, and their placing, aligned to 8. The tree is empty then.
// Errors   INVALID_PARAMS (a NULL, a block that is not aligned), BUFFER_OVERFLOW. Bytes beyond 63
//          bits are UINT64_MAX.
PTOWSP_API PTOWSP_AICPU uint64_t ptowsp_prefix_tree_bytes(const ptowsp_prefix_limits *limits);
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_prefix_tree_place(const ptowsp_prefix_limits *limits,
                                                               void *block, uint64_t block_bytes,
                                                               ptowsp_prefix_tree *out_tree);

// Builds the tree of a batch.
// Errors   INVALID_PARAMS (lengths below 0, blocks that do not ascend, that are more than the KV
//          fills, or that repeat in a request), BUFFER_OVERFLOW (a request or a block too many).
//          The tree is empty then.
// Cost     O(blocks + requests * log requests) comparisons of ids.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_prefix_build(const ptowsp_prefix_batch *batch,
                                                          ptowsp_prefix_tree *tree,
                                                          ptowsp_plan_info *out_info);

// Builds it from nodes that are given. Their requests come in order of depth-first search, children
// by number, or with is_ordered as given.
// Errors   As ptowsp_prefix_build; also a parent or node out of range, a cycle, nodes with more
//          tokens than their requests.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_prefix_build_given(const ptowsp_prefix_given *given,
                                                                ptowsp_prefix_tree *tree,
                                                                ptowsp_plan_info *out_info);

// Adds a request of the batch to a tree that was built from it, or removes one. KV lengths may grow
// without a call.
// Errors   INVALID_PARAMS (a request that is there already, or not there, and as
//          ptowsp_prefix_build), BUFFER_OVERFLOW (the tree is full). The tree is as before then.
// Cost     O(requests).
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_prefix_add(const ptowsp_prefix_batch *batch,
                                                        uint32_t request, ptowsp_prefix_tree *tree,
                                                        ptowsp_plan_info *out_info);
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_prefix_remove(uint32_t request,
                                                           ptowsp_prefix_tree *tree,
                                                           ptowsp_plan_info *out_info);

// Bounds the sizes of the plans of any tree of any batch within limits. In INVARIANT mode there are
// never more units than in a flat plan. In BALANCED mode the worst case is a chain, in which each
// node has one request less than the node above it: tiles for n^2 / 2 tokens of n requests.
// Errors   As ptowsp_attention_bound; a window or positions. *out_sizes is zero then.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_prefix_bound(const ptowsp_attention_config *config,
                                                          const ptowsp_attention_limits *limits,
                                                          ptowsp_prefix_sizes *out_sizes,
                                                          ptowsp_plan_info *out_info);

// The exact sizes of the plan of a tree. Errors and cost as ptowsp_prefix_generate, without
// writing.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_prefix_size(const ptowsp_attention_batch *batch,
                                                         const ptowsp_attention_config *config,
                                                         ptowsp_prefix_tree *tree,
                                                         ptowsp_prefix_sizes *out_sizes,
                                                         ptowsp_plan_info *out_info);

// Places the arrays of a plan in one block, as ptowsp_attention_place.
// Errors   INVALID_PARAMS (a NULL, a block that is not aligned to 8, or sizes of 0 lanes),
//          LIMIT_EXCEEDED (more than 2^32 - 1 units, merges, slots or joins), BUFFER_OVERFLOW
//          (block_bytes too small).
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_prefix_place(const ptowsp_prefix_sizes *sizes,
                                                          void *block, uint64_t block_bytes,
                                                          ptowsp_prefix_plan *out_plan);

// Decides which nodes are shared, and plans the requests of a tree.
// Errors   As ptowsp_attention_generate, by requests of the batch; a window or positions; a tree
//          with requests that the batch does not have, or that share more than they have. The plan
//          is untouched, but for the first part of its arrays after BUFFER_OVERFLOW.
// Cost     O(requests + nodes) for the decision, in trees with few open decisions above each node;
//          then as ptowsp_attention_generate for the flat plan and for segments, and O(joins).
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_prefix_generate(const ptowsp_attention_batch *batch,
                                                             const ptowsp_attention_config *config,
                                                             ptowsp_prefix_tree *tree,
                                                             ptowsp_prefix_plan *plan,
                                                             ptowsp_plan_info *out_info);

// Proves a plan. The segments of each request have its KV tokens once, in order of depth. Units and
// merges are right, as by ptowsp_attention_check. Each request whose segments are not whole has a
// join per head that counts its parts.
// Errors   As ptowsp_attention_check, with segments for sequences; a segment, a request of the plan
//          or a join at fault.
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_prefix_check(const ptowsp_attention_batch *batch,
                                                          const ptowsp_attention_config *config,
                                                          const ptowsp_prefix_tree *tree,
                                                          const ptowsp_prefix_plan *plan,
                                                          ptowsp_plan_info *out_info);

// Writes lines about sharing, then as ptowsp_attention_print.
PTOWSP_API void ptowsp_prefix_print(const ptowsp_prefix_plan *plan, ptowsp_output output);

#endif  // PTOWSP_ONLY_ATTENTION

// The query tokens of the batch that the rows of a unit, or of a merge of a whole segment, are of:
// an array of *out_count. Row r is token r / group with head r % group.
PTOWSP_INLINE const uint32_t *ptowsp_prefix_unit_tokens(const ptowsp_prefix_plan *plan,
                                                        const PTOWSP_GM ptowsp_work *unit,
                                                        uint32_t *out_count) {
    const ptowsp_prefix_segment *segment = &plan->segments[unit->params[0]];
    const uint32_t before = unit->reserved * plan->attention.tile_tokens;
    const uint32_t left = segment->token_count - before;
    *out_count = left < plan->attention.tile_tokens ? left : plan->attention.tile_tokens;
    return plan->tokens + segment->token_begin + before;
}

// Merges a row of a join into out[dim], and returns its log-sum-exp. Row r is query token r / group
// of the request with head r % group.
PTOWSP_API PTOWSP_AICORE float ptowsp_prefix_join_row(const ptowsp_prefix_plan *plan,
                                                      const ptowsp_attention_scratch *scratch,
                                                      const PTOWSP_GM ptowsp_work *join,
                                                      uint32_t row, float *out);

// Elements of progress of a job with this plan.
PTOWSP_API PTOWSP_AICPU uint64_t ptowsp_prefix_progress_size(const ptowsp_prefix_plan *plan);

#if !defined(PTOWSP_ONLY_PLAN)

// -------------------------------------------------------------------------------------------------
// 13. Data types and tensors
// -------------------------------------------------------------------------------------------------
//
// The element types of tensors and typed arrays. f16 is IEEE 754 binary16 and bf16 the upper half
// of an f32; both are passed as uint16_t. bool is one byte, 0 or 1.

// clang-format off
#define PTOWSP_DTYPES(DTYPE) /* name, value, bytes, text */                                        \
    DTYPE(F16, 1, 2, "f16") DTYPE(BF16, 2, 2, "bf16") DTYPE(F32, 3, 4, "f32")                      \
    DTYPE(F64, 4, 8, "f64") DTYPE(I8, 5, 1, "i8")     DTYPE(I16, 6, 2, "i16")                      \
    DTYPE(I32, 7, 4, "i32") DTYPE(I64, 8, 8, "i64")   DTYPE(U8, 9, 1, "u8")                        \
    DTYPE(U16, 10, 2, "u16") DTYPE(U32, 11, 4, "u32") DTYPE(U64, 12, 8, "u64")                     \
    DTYPE(BOOL, 13, 1, "bool")

typedef enum ptowsp_dtype {
    PTOWSP_DTYPE_NONE = 0,
#define PWSP_DTYPE_ENUM(name, value, bytes, text) PTOWSP_##name = value,
    PTOWSP_DTYPES(PWSP_DTYPE_ENUM)
#undef PWSP_DTYPE_ENUM
    PWSP_FORCE_INT(PTOWSP_DTYPE)
} ptowsp_dtype;
// clang-format on

// The location of a tensor. It is recorded for emission and has no effect on a CPU.
#define PTOWSP_LOCATIONS(LOCATION) /* name, text */                                                \
    LOCATION(GLOBAL, "global")                                                                     \
    LOCATION(L2, "l2")                                                                             \
    LOCATION(UB, "ub")                                                                             \
    LOCATION(L1, "l1")

// clang-format off
typedef enum ptowsp_location {
#define PWSP_LOCATION_ENUM(name, text) PTOWSP_LOCATION_##name,
    PTOWSP_LOCATIONS(PWSP_LOCATION_ENUM)
#undef PWSP_LOCATION_ENUM
    PWSP_FORCE_INT(PTOWSP_LOCATION)
} ptowsp_location;
// clang-format on

// The bytes of an element, and the type's name ("f16"); 0 and "none" for other values.
PTOWSP_API uint32_t ptowsp_dtype_size(ptowsp_dtype dtype);
PTOWSP_API const char *ptowsp_dtype_name(ptowsp_dtype dtype);

// "global", "l2", "ub", "l1"; "none" for other values.
PTOWSP_API const char *ptowsp_location_name(ptowsp_location location);

// Narrowing rounds once, to nearest, ties to even. Overflow gives infinity. NaN stays NaN (quiet,
// with its sign and upper payload bits). Subnormals and widening are exact. ptowsp_convert narrows
// doubles, also with one rounding. (On 32-bit x86 functions return floats by the x87, which makes NaNs
// quiet.)
PTOWSP_API uint16_t ptowsp_f16_from_f32(float value);
PTOWSP_API float ptowsp_f32_from_f16(uint16_t bits);
PTOWSP_API uint16_t ptowsp_bf16_from_f32(float value);
PTOWSP_API float ptowsp_f32_from_bf16(uint16_t bits);

// Converts count elements. Floats convert to floats as above. Integers to floats round once, to
// nearest even. Floats to integers round towards zero and saturate; NaN gives 0. Integers to
// integers keep the low bits. Conversion to bool is "not zero" (NaN is true). Arrays need no
// alignment and must not overlap.
// Errors   INVALID_PARAMS (unknown type; an array NULL with count > 0). Nothing is written then.
PTOWSP_API ptowsp_status ptowsp_convert(void *out, ptowsp_dtype out_dtype, const void *in,
                                        ptowsp_dtype in_dtype, uint64_t count);

#define PTOWSP_TENSOR_RANK_MAX 8

// A tensor of a module: its name, element type and shape. Memory is bound to it at run time.
typedef struct ptowsp_tensor_desc {
    const char *name;  // copied; unique in the module
    ptowsp_dtype dtype;
    uint32_t rank;                          // 0 to PTOWSP_TENSOR_RANK_MAX
    int64_t shape[PTOWSP_TENSOR_RANK_MAX];  // outermost first; PTOWSP_DYNAMIC: set when bound
    ptowsp_location location;               // default: PTOWSP_LOCATION_GLOBAL
} ptowsp_tensor_desc;

// Memory for a tensor. Zero fields mean the declared dtype, rank and shape, and row-major strides.
typedef struct ptowsp_buffer {
    void *data;          // aligned to its element; may be NULL in runs that only measure time
    uint64_t size;       // bytes at data, checked against shape and strides; 0: not checked
    ptowsp_dtype dtype;  // the declared one
    uint32_t rank;       // the declared one; may be 0 when no size is PTOWSP_DYNAMIC
    int64_t shape[PTOWSP_TENSOR_RANK_MAX];    // static sizes as declared; ignored if rank is 0
    int64_t strides[PTOWSP_TENSOR_RANK_MAX];  // in elements, any sign; all 0: row-major
} ptowsp_buffer;

// -------------------------------------------------------------------------------------------------
// 14. Modules
// -------------------------------------------------------------------------------------------------
//
// A module holds the parts of workloads: axes, tensors, kernels, scalar expressions, and one or
// several workloads, which may call each other. It is built by calls that read like the loops they
// describe:
//
//      ptowsp_axis batch = ptowsp_axis_dynamic(m, "batch");
//      ptowsp_axis heads = ptowsp_axis_dense(m, "heads", 8);
//      PTOWSP_WORKLOAD(m, "attention") {
//          PTOWSP_PARALLEL(m, b, batch) {
//              PTOWSP_PARALLEL(m, h, heads) {
//                  PTOWSP_WHEN(m, ptowsp_le(ptowsp_array_at(m, "kv_len", PTOWSP_I32, b),
//                                           ptowsp_i64(m, 2048))) {
//                      ptowsp_task_make(m, &short_task);
//                  }
//                  PTOWSP_OTHERWISE(m) { ptowsp_task_make(m, &long_task); }
//              }
//          }
//      }
//
// A module keeps its first error. After it every building call does nothing and returns a zero id,
// and compiling reports the error. So a program that builds a workload checks once.
//
// Names are copied. A name has 1 to PTOWSP_NAME_MAX printable ASCII characters, without quotes or
// backslash. Everything bound at run time (sizes, symbols, arrays, sparse axes, tensors) shares one
// space of names. Names are identified by their FNV-1a-64 hash; two names with one hash are an
// error.

#define PTOWSP_NAME_MAX        63
#define PTOWSP_SLOT_COUNT      256  // default
#define PTOWSP_SLOT_COUNT_MAX  65536
#define PTOWSP_MODULE_NODE_MAX 1000000  // loops, tasks, ... of one module
#define PTOWSP_MODULE_NEST_MAX 64       // nested scopes
#define PTOWSP_EXPR_DEPTH_MAX  200      // nested operations
#define PTOWSP_EXPR_SIZE_MAX   10000    // operations and leaves of one expression

typedef struct ptowsp_module ptowsp_module;

typedef struct ptowsp_module_desc {
    const char *name;     // default: "module"
    uint32_t slot_count;  // default: PTOWSP_SLOT_COUNT
} ptowsp_module_desc;

// Parts of a module are small ids; zero means none. An expression holds its module as well.
typedef struct ptowsp_axis {
    uint32_t id;
} ptowsp_axis;
typedef struct ptowsp_tensor {
    uint32_t id;
} ptowsp_tensor;
typedef struct ptowsp_kernel {
    uint32_t id;
} ptowsp_kernel;
typedef struct ptowsp_node {
    uint32_t id;
} ptowsp_node;
typedef struct ptowsp_expr {
    ptowsp_module *module;
    uint32_t id;
} ptowsp_expr;

// Creates an empty module; desc may be NULL.
// Errors   INVALID_PARAMS (a bad name, too many slots), OUT_OF_MEMORY.
PTOWSP_API ptowsp_status ptowsp_module_create(ptowsp_context *context,
                                              const ptowsp_module_desc *desc,
                                              ptowsp_module **out_module);

// Frees the module and all expressions in it; NULL is ignored. Programs compiled from it stay.
PTOWSP_API void ptowsp_module_destroy(ptowsp_module *module);

// The first error of the module, or {PTOWSP_OK, PTOWSP_NO_INDEX, ""}. Its text names the place in
// the tree: "attention/parallel b/when/task attn: ...".
PTOWSP_API ptowsp_error ptowsp_module_error(const ptowsp_module *module);

// Writes the module as text, the same for the same calls: declarations, tile kernels with their
// operations, then the workloads as trees.
//
// ptowsp_module_parse reads this text (section 19). Names that are not words, and the few
// words that would be read as something else, are in quotes.
PTOWSP_API void ptowsp_module_print(const ptowsp_module *module, ptowsp_output output);

// Axes: the ranges of loops. The variable of a loop is i64.
//
//      dense     0 .. size - 1, with a constant size
//      dynamic   0 .. size - 1, the size bound under the axis' name
//      ragged    lengths bound under the axis' name. Used directly: 0 .. sum of all lengths - 1.
//                Through ptowsp_axis_row: 0 .. lengths[row] - 1.
//      sparse    CSR arrays bound under the axis' name. The variable is the column index. Used
//                directly: the entries of all rows, in order. Through ptowsp_axis_row: the entries
//                of one row.
//      plan      a plan bound under the axis' name, see below
PTOWSP_API ptowsp_axis ptowsp_axis_dense(ptowsp_module *module, const char *name, int64_t size);
PTOWSP_API ptowsp_axis ptowsp_axis_dynamic(ptowsp_module *module, const char *name);
PTOWSP_API ptowsp_axis ptowsp_axis_ragged(ptowsp_module *module, const char *name);
PTOWSP_API ptowsp_axis ptowsp_axis_sparse(ptowsp_module *module, const char *name);

// One row of a ragged or sparse axis, or the part of a plan axis that is one lane's. `row` is an
// i64, usually the variable of an outer loop. A row outside the bound arrays is an error of the
// run.
PTOWSP_API ptowsp_axis ptowsp_axis_row(ptowsp_module *module, ptowsp_axis axis, ptowsp_expr row);

// Plan axes: loops over the units, merges and lanes of an attention plan (section 9), or the units
// and lanes of a MoE plan (section 11). It is bound each step by its name, with
// ptowsp_run_bind_plan; attention plans can also be made by each execution, with
// ptowsp_run_bind_batch. All three axes may have the same name, which then is one plan. A program
// loops over any plan, and is not compiled again:
//
//      ptowsp_axis units = ptowsp_axis_plan(m, "kv"), merges = ptowsp_axis_plan_merges(m, "kv");
//      PTOWSP_WORKLOAD(m, "attention") {
//          PTOWSP_PARALLEL(m, unit, units) {
//              PTOWSP_WHEN(m, ptowsp_loop_field(unit, PTOWSP_PLAN_IS_WHOLE)) {
//                  whole.views[0].row = ptowsp_loop_field(unit, PTOWSP_PLAN_REQUEST);  // of out
//                  ptowsp_task_make(m, &whole);
//              }
//              PTOWSP_OTHERWISE(m) {
//                  part.views[0].row = ptowsp_loop_field(unit, PTOWSP_PLAN_SLOT);  // of the states
//                  ptowsp_task_make(m, &part);
//              }
//          }
//          PTOWSP_PARALLEL(m, merge, merges) {
//              join.views[0].row = ptowsp_loop_field(merge, PTOWSP_PLAN_REQUEST);
//              ptowsp_task_make(m, &join);
//          }
//      }
//
// The variable is the index of the unit or merge. Used directly, a loop runs over the units or
// merges of all lanes, in order. Through ptowsp_axis_row it runs over one lane's, inside a
// loop over ptowsp_axis_plan_lanes (0 .. lane_count - 1). PTOWSP_WORK_INVALID ones are skipped:
// they have no iteration and leave a gap in the index.
//
// The units of a chunk plan (section 6) can be bound to the same name, with ptowsp_run_bind_work.
// They have neither slots, lanes nor merges, and a program that uses these refuses them. Plans
// whose merges are shared by rows (shares_merges, section 9) are refused: a program's merge is a
// tile. So are plans whose units have sinks beside kv_start and kv_len, or no KV (positions). Other
// plans with positions, such as a window for each sequence, are bound as any plan is: kernels hide
// the tokens that a query does not see. Of a prefix plan (section 12) do not bind `attention`: its
// requests are segments, and programs have no joins. In a MoE plan made with column_parts, the part
// of a unit is PTOWSP_PLAN_TILE.
//
// Limits   Names of plans have at most PTOWSP_PLAN_NAME_MAX characters.
#define PTOWSP_PLAN_NAME_MAX 40

PTOWSP_API ptowsp_axis ptowsp_axis_plan(ptowsp_module *module, const char *name);
PTOWSP_API ptowsp_axis ptowsp_axis_plan_merges(ptowsp_module *module, const char *name);
PTOWSP_API ptowsp_axis ptowsp_axis_plan_lanes(ptowsp_module *module, const char *name);

// The fields of a unit or merge: name, text; data type and byte in the descriptor (section 5); the
// flags that have to be set; whether units and merges have it. A field with flags is a bool, any
// other a number, i64. LANE comes from the plan's lists, not from a descriptor. The last four are
// the words for MoE plans; they read the same data as REQUEST, HEAD, KV_START and KV_LEN.
// clang-format off
#define PTOWSP_PLAN_FIELDS(FIELD)                                                                  \
    FIELD(FLAGS,      "flags",      U8,  5,  0,                                     1, 1)          \
    FIELD(LANE,       "lane",       U32, 0,  0,                                     1, 1)          \
    FIELD(REQUEST,    "request",    U32, 8,  0,                                     1, 1)          \
    FIELD(HEAD,       "head",       U32, 12, 0,                                     1, 1)          \
    FIELD(TILE,       "tile",       U16, 6,  0,                                     1, 1)          \
    FIELD(KV_START,   "kv_start",   U32, 16, 0,                                     1, 0)          \
    FIELD(KV_LEN,     "kv_len",     U32, 20, 0,                                     1, 0)          \
    FIELD(TIER,       "tier",       U8,  4,  0,                                     1, 0)          \
    FIELD(IS_FIRST,   "is_first",   U8,  5,  PTOWSP_WORK_FIRST,                     1, 0)          \
    FIELD(IS_LAST,    "is_last",    U8,  5,  PTOWSP_WORK_LAST,                      1, 0)          \
    FIELD(IS_WHOLE,   "is_whole",   U8,  5,  PTOWSP_WORK_FIRST | PTOWSP_WORK_LAST,  1, 0)          \
    FIELD(SLOT,       "slot",       U32, 0,  0,                                     1, 0)          \
    FIELD(SLOT_FIRST, "slot_first", U32, 16, 0,                                     0, 1)          \
    FIELD(SLOT_COUNT, "slot_count", U32, 20, 0,                                     0, 1)          \
    FIELD(BATCH,      "batch",      U32, 8,  0,                                     1, 0)          \
    FIELD(EXPERT,     "expert",     U32, 12, 0,                                     1, 0)          \
    FIELD(TOKEN_START, "token_start", U32, 16, 0,                                   1, 0)          \
    FIELD(TOKEN_COUNT, "token_count", U32, 20, 0,                                   1, 0)

typedef enum ptowsp_plan_field {
#define PWSP_PLAN_FIELD_ENUM(name, text, dtype, byte, flags, units, merges) PTOWSP_PLAN_##name,
    PTOWSP_PLAN_FIELDS(PWSP_PLAN_FIELD_ENUM)
#undef PWSP_PLAN_FIELD_ENUM
    PTOWSP_PLAN_FIELD_COUNT,
    PWSP_FORCE_INT(PTOWSP_PLAN_FIELD)
} ptowsp_plan_field;
// clang-format on

// Declares a tensor.
// Errors   A bad or clashing name; an unknown dtype or location; a rank or size out of range.
PTOWSP_API ptowsp_tensor ptowsp_tensor_make(ptowsp_module *module, const ptowsp_tensor_desc *desc);

// Declares a transient tensor, for data that tasks pass to later tasks. Nothing is bound to it.
// Executions give it memory, and tensors that never live at the same time share it (section 21).
// Row-major.
//
//      ptowsp_tensor_desc desc = {.name = "hidden", .dtype = PTOWSP_F32, .rank = 2,
//                                 .shape = {PTOWSP_DYNAMIC, 64}};
//      ptowsp_expr sizes[2] = {ptowsp_axis_size(m, tokens)};
//      ptowsp_tensor hidden = ptowsp_tensor_transient(m, &desc, sizes);
//
// `sizes` has desc->rank expressions: an i64 for each dimension of size PTOWSP_DYNAMIC, zero for
// the others; NULL: all sizes are static. An expression may read values that stay the same during a
// run: bound sizes, symbols and arrays.
//
// Its scope is the innermost block around all its uses: the body of a loop, a when or otherwise, a
// combine, a sequence, a pipeline, a process, a workload. If several workloads use it, the scope is
// the program's first workload. Each pass through the block starts with undefined contents, like a
// C variable declared there. To carry a value from one iteration to the next, use the tensor
// outside the loop as well, or bind one. In program order a write must come before the first read
// (one task may not do both first). Lifetimes follow program order, from the first use in a pass to
// the last. A parallel loop, a combine or a pipeline counts as one moment, as its parts may run at
// the same time.
//
// Errors   As ptowsp_tensor_make; a dynamic size without expression; an expression for a static
//          size, or one that is not i64. Compiling: a size that reads a variable or a slot; a read
//          before any write (in pipelines only a tensor that is read and never written).
PTOWSP_API ptowsp_tensor ptowsp_tensor_transient(ptowsp_module *module,
                                                 const ptowsp_tensor_desc *desc,
                                                 const ptowsp_expr *sizes);

// -------------------------------------------------------------------------------------------------
// 15. Kernels
// -------------------------------------------------------------------------------------------------
//
// A kernel is a C function that does one task: it reads and writes tiles, and returns the cycles
// that the task takes. (A kernel can also be written as operations on tiles: section 24.) All tasks
// of a run are called in program order, on the calling thread. If the run asks for more lanes
// (section 21) or a device runs it (section 28), tasks that do not wait for each other run at the
// same time.

typedef uint64_t ptowsp_cycles;
#define PTOWSP_CYCLES_MAX UINT64_C(0x7fffffffffffffff)

#define PTOWSP_TASK_AXIS_MAX   8
#define PTOWSP_TASK_TILE_MAX   12
#define PTOWSP_TASK_SCALAR_MAX 8
#define PTOWSP_TASK_TAG_MAX    4
#define PTOWSP_TASK_AFTER_MAX  8

typedef struct ptowsp_tile {
    void *data;  // the tile's first element; NULL in runs that only measure time
    int64_t row_stride, col_stride;  // in elements
} ptowsp_tile;

// A task as its kernel sees it. `args` holds 64-bit cells: the task's axis arguments (i64), then
// the valid rows and columns of each tile, then the scalars. At the edge of a tensor the valid
// sizes are smaller than the tile.
//
//      args   axis 0 .. axis n-1 | rows 0, cols 0, rows 1, cols 1, ... | scalar 0 ..
//             ^ 0                  ^ user_axis_count                     ^ axis_arg_count
typedef struct ptowsp_task {
    const uint64_t *args;
    uint32_t arg_count;
    uint32_t axis_arg_count;  // user_axis_count + 2 * tile_count
    uint32_t user_axis_count;
    uint32_t tile_count;
    const ptowsp_tile *tiles;
    uint64_t index;  // of the task in its run, from 0, in program order
    const char *kernel_name;
    uint32_t lane;  // runs the task, for scratch memory: a lane of the context, a core of a device
} ptowsp_task;

PTOWSP_INLINE int64_t ptowsp_task_axis(const ptowsp_task *task, uint32_t i) {
    return PWSP_CAST(int64_t, task->args[i]);
}
PTOWSP_INLINE int64_t ptowsp_task_rows(const ptowsp_task *task, uint32_t tile) {
    return PWSP_CAST(int64_t, task->args[task->user_axis_count + 2 * tile]);
}
PTOWSP_INLINE int64_t ptowsp_task_cols(const ptowsp_task *task, uint32_t tile) {
    return PWSP_CAST(int64_t, task->args[task->user_axis_count + 2 * tile + 1]);
}
PTOWSP_INLINE uint64_t ptowsp_task_scalar(const ptowsp_task *task, uint32_t i) {
    return task->args[task->axis_arg_count + i];
}

// Does a task and returns its cycles, at most PTOWSP_CYCLES_MAX, or ptowsp_task_fail(status).
typedef ptowsp_cycles (*ptowsp_kernel_fn)(const ptowsp_task *task, void *user);

// The return value of a kernel that fails: it stops the run with an error (a negative status).
PTOWSP_INLINE ptowsp_cycles ptowsp_task_fail(ptowsp_status status) {
    return PWSP_CAST(ptowsp_cycles, status < 0 ? status : PTOWSP_KERNEL_FAILED);
}

typedef enum ptowsp_direction {
    PTOWSP_DIRECTION_NONE = 0,
    PTOWSP_IN,
    PTOWSP_OUT,
    PTOWSP_INOUT,
    PWSP_FORCE_INT(PTOWSP_DIRECTION)
} ptowsp_direction;

// The cores of an accelerator that a task takes. Cube core i and vector cores 2 i and 2 i + 1 are a
// block. A task of MIX takes the three cores of a block at once, for all of its time: its number as
// a core or lane is the cube core's. Vector cores outside of blocks take no part in MIX.
#define PTOWSP_UNITS(UNIT) /* name, text */                                                        \
    UNIT(VECTOR, "vector")                                                                         \
    UNIT(CUBE, "cube")                                                                             \
    UNIT(MIX, "mix")

// clang-format off
typedef enum ptowsp_unit {
#define PWSP_UNIT_ENUM(name, text) PTOWSP_UNIT_##name,
    PTOWSP_UNITS(PWSP_UNIT_ENUM)
#undef PWSP_UNIT_ENUM
    PTOWSP_UNIT_COUNT,
    PTOWSP_UNIT_LINK = 8,  // no core: the links to other ranks (ptowsp_kernel_collective)
    PWSP_FORCE_INT(PTOWSP_UNIT)
} ptowsp_unit;
// clang-format on

PTOWSP_API const char *ptowsp_unit_name(ptowsp_unit unit);  // "cube", "link"; "unknown"

// The families of machines: 910B, 910C; 950PR.
typedef enum ptowsp_family {
    PTOWSP_FAMILY_A2A3 = 0,
    PTOWSP_FAMILY_A5,
    PWSP_FORCE_INT(PTOWSP_FAMILY)
} ptowsp_family;

// Types of scalars and expressions.
typedef enum ptowsp_type {
    PTOWSP_TYPE_NONE = 0,
    PTOWSP_TYPE_BOOL,
    PTOWSP_TYPE_I64,
    PTOWSP_TYPE_U64,
    PWSP_FORCE_INT(PTOWSP_TYPE)
} ptowsp_type;

typedef struct ptowsp_tile_param {
    const char *name;  // copied; NULL ends the list
    ptowsp_direction direction;
    ptowsp_dtype dtype;
    int64_t rows, cols;  // of the tile; PTOWSP_DYNAMIC: as the view
} ptowsp_tile_param;

typedef struct ptowsp_scalar_param {
    const char *name;  // copied; NULL ends the list
    ptowsp_type type;
} ptowsp_scalar_param;

// The source of a kernel that is a C function, for ptowsp_npu_emit: its text, or a file that is
// read when emitting. It defines the function and its helpers at file scope and compiles as C++17.
// It includes nothing but "ptowsp.h" and headers of the C library. Of ptowsp it calls only inline
// functions and functions marked PTOWSP_AICORE. Several kernels may share one text.
typedef struct ptowsp_kernel_source {
    const char *text;  // copied
    const char *file;  // a path; copied
    const char *fn;    // the function's name in it; default: the kernel's name
    const char *cost;  // the cost function's name, required for a kernel with a cost
} ptowsp_kernel_source;

// Compiles code and keeps it as text as well. The text loses comments and line ends. The code may
// not hold preprocessor lines.
//
//      PTOWSP_SOURCE(kernels_source,
//          static ptowsp_cycles scale(const ptowsp_task *task, void *user) {
//              *(float *)task->tiles[0].data *= 2;
//              return user ? 0 : 100;
//          })
//      static const ptowsp_kernel_desc desc = {.name = "scale", .fn = scale,
//                                              .tiles = {{.name = "x", .direction = PTOWSP_INOUT,
//                                                         .dtype = PTOWSP_F32, .rows = 1, .cols = 1}},
//                                              .source = {.text = kernels_source}};
// clang-format off
#if defined(__GNUC__)
#define PWSP_LONG_STRINGS_BEGIN                                                                    \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverlength-strings\"")
#define PWSP_LONG_STRINGS_END _Pragma("GCC diagnostic pop")
#else
#define PWSP_LONG_STRINGS_BEGIN
#define PWSP_LONG_STRINGS_END
#endif
#define PTOWSP_SOURCE(name, ...)                                                                   \
    __VA_ARGS__                                                                                    \
    PWSP_LONG_STRINGS_BEGIN static const char name[] = #__VA_ARGS__; PWSP_LONG_STRINGS_END
// clang-format on

// An argument of a PTO-ISA entry. `index` numbers the tile parameters, axis arguments or scalar
// parameters.
typedef enum ptowsp_pto_value {
    PTOWSP_PTO_NONE = 0,  // ends a list
    PTOWSP_PTO_DATA,      // __gm__ T *: the tile's first element, with T the parameter's dtype
    PTOWSP_PTO_ROWS,      // the tile's valid rows
    PTOWSP_PTO_COLS,
    PTOWSP_PTO_ROW_STRIDE,  // in elements
    PTOWSP_PTO_COL_STRIDE,
    PTOWSP_PTO_AXIS,
    PTOWSP_PTO_SCALAR,
    PTOWSP_PTO_NUMBER,  // `number`
    PWSP_FORCE_INT(PTOWSP_PTO)
} ptowsp_pto_value;

typedef struct ptowsp_pto_arg {
    ptowsp_pto_value value;
    uint32_t index;
    int64_t number;
} ptowsp_pto_arg;

#define PTOWSP_PTO_ARG_MAX     32
#define PTOWSP_PTO_INCLUDE_MAX 8

// A kernel that you have as a PTO-ISA source: C++ with pto::Tile, TLOAD, set_flag. It goes into an
// emitted tree unchanged, as aicore/sources/<kernel>/<kernel>.hpp; a generated file includes it and
// calls its entry. There a task is one block: get_block_idx() is `block`, get_block_num() is
// `block_count`.
//
//      // add.cpp has __global__ AICORE void add(__gm__ float *z, __gm__ float *x, int n)
//      static const ptowsp_pto_source source = {
//          .file = "add.cpp",
//          .args = {{.value = PTOWSP_PTO_DATA, .index = 1}, {.value = PTOWSP_PTO_DATA, .index = 0},
//                   {.value = PTOWSP_PTO_COLS, .index = 0}}};
//      ptowsp_kernel_desc desc = {.name = "add", .cycles = 100, .pto = &source,
//                                 .tiles = {{.name = "x", .direction = PTOWSP_IN,
//                                            .dtype = PTOWSP_F32, .rows = 1, .cols = 64},
//                                           {.name = "z", .direction = PTOWSP_OUT,
//                                            .dtype = PTOWSP_F32, .rows = 1, .cols = 64}}};
//
// Rules    The entry is a function, not a template, at file scope. The source includes <pto/...>,
//          standard headers, and its own headers by "...". The latter are found beside the source
//          or in include_dirs and go into the tree, with all that they include by "...". All
//          #include lines are read first, at file scope, whatever macros the source defines before
//          them. Names of different kernels do not clash, except extern "C" functions other than
//          the entry. Launches (<<<>>>) stand under #ifdef __CCE_AICORE__, #ifndef __CPU_SIM or
//          #ifndef __COSTMODEL, or under a condition of yours; main functions, too. A launch
//          without a condition is UNSUPPORTED when emitting; the error has its line.
// Mixed    is_mixed: the source is compiled twice, with __DAV_CUBE__ and with __DAV_VEC__, and a
//          task runs the first on a cube core and the second on two vector cores
//          (get_subblockid()). They communicate through TPipes only, over memory that is an
//          argument. The unit is PTOWSP_UNIT_MIX, also by default. Own headers must have no include
//          guards, as both halves read them. Such trees build for the shim only (is_for_host). A
//          deadlock fails the task and reports where each core waits.
// Cost     In a tree, the clock of the shim's core under the model of the run, or `cycles` of the
//          kernel; ptowsp_npu_measure has the cycles of one task, and its pipes. The shim checks
//          operands and flags as a device demands them: a fault fails the task. A source that has
//          run only in PTO-ISA's CPU simulator may need is_as_simulator. It permits masks and
//          selections of all types, whole masks in TSTORE, integers in TLOG, TLRELU and TPRELU, and
//          TRSQRT in place. It also permits A5's ways of TINSERT and TINTERLEAVE, loads into the
//          bias table, row sums into row-major tiles, and 512 KiB of UB. A kernel with one of these
//          does not fit a device.
// Running  The library does not compile C++. ptowsp_run_execute needs `fn` of the kernel. It may be
//          a C++ function of yours that calls the same entry, built with ptoisa_shim.h, and returns
//          ptoisa_cycles() of its core. Without fn, the kernel can be timed (with cycles or cost)
//          and emitted; executing it is UNSUPPORTED, and so is timing it without cycles and cost.
typedef struct ptowsp_pto_source {
    const char *text;                         // copied; or
    const char *file;                         // a path, read when emitting; copied
    const char *entry;                        // copied; default: the kernel's name
    ptowsp_pto_arg args[PTOWSP_PTO_ARG_MAX];  // of the entry; default: the data of all tiles, then
                                              // all scalars
    ptowsp_pto_arg block, block_count;        // AXIS, SCALAR or NUMBER; default: 0 and 1. Other
                                              // ones are for the shim and the simulator alone
    const char *include_dirs[PTOWSP_PTO_INCLUDE_MAX];  // copied; NULL ends the list
    ptowsp_family family;                              // the machine: 910B or 950PR
    bool is_mixed;  // for a cube core and its two vector cores, with __DAV_CUBE__ and __DAV_VEC__:
                    // see above
    bool is_as_simulator;  // in a tree, the shim permits what PTO-ISA's CPU simulator permits
} ptowsp_pto_source;

#define PTOWSP_TASK_BYTES_MAX (UINT64_C(1) << 46)
#define PTOWSP_TILE_BYTES     UINT64_MAX  // all valid elements of its tiles; of inout tiles twice

typedef struct ptowsp_kernel_desc {
    const char *name;     // copied; unique among the module's kernels
    uint32_t axis_count;  // the exact number of axis arguments of each task
    ptowsp_tile_param tiles[PTOWSP_TASK_TILE_MAX];
    ptowsp_scalar_param scalars[PTOWSP_TASK_SCALAR_MAX];
    ptowsp_unit unit;       // default: PTOWSP_UNIT_VECTOR; of a mixed PTO-ISA source MIX
    ptowsp_kernel_fn fn;    // does the work; NULL: only for runs that measure time
    ptowsp_kernel_fn cost;  // the cycles of a task, from its args alone (tiles have no data); if
                            // given, it replaces the cycles that fn returns, in every run
    ptowsp_cycles cycles;   // the same as a constant; used if cost is NULL and this is not 0
    void *user;             // handed to fn and cost
    ptowsp_kernel_source source;   // of fn, for emitting
    const ptowsp_pto_source *pto;  // instead of source: a PTO-ISA source, for emitting; copied
    // Bytes that a task moves from and to global memory, evenly over its cycles, for schedules whose
    // lanes share it: a number up to PTOWSP_TASK_BYTES_MAX, or PTOWSP_TILE_BYTES. Default: none.
    uint64_t bytes;
} ptowsp_kernel_desc;

// Declares a kernel.
// Errors   A bad or clashing name; neither fn nor cost nor cycles nor pto; too many axis arguments;
//          a tile or scalar without direction, type or size; a source with both text and file, or
//          with names but neither; source and pto; function names that are not C identifiers; an
//          argument of pto that the kernel does not have; more than PTOWSP_TASK_BYTES_MAX bytes.
PTOWSP_API ptowsp_kernel ptowsp_kernel_make(ptowsp_module *module, const ptowsp_kernel_desc *desc);

// A hash of a kernel's behaviour, the same in every process. For a tile kernel it covers the
// instructions with their tiles, addresses and loops, but not the name. So it changes with the
// target machine, and may change with the version of the library. For others it covers name,
// parameters and source: the text, or the path of a file, whose contents are not read. Rename a C
// function without source when you change it. 0 for an unknown kernel.
PTOWSP_API uint64_t ptowsp_kernel_hash(const ptowsp_module *module, ptowsp_kernel kernel);

// -- cost models ----------------------------------------------------------------------------------
//
// Cost models. UNIT counts elements, as PTO-WSP does; a kernel takes the sum of its instructions.
// A2A3 uses PTO-ISA's public constants for Ascend 910B, and pipes overlap as far as the waits
// between them allow. Expect errors of some tens of per cent against a device. A5 is the same for
// Ascend 950PR. USER is a function, called for each instruction (flags and barriers too), with the
// overlap of A2A3. It must depend on its arguments alone, as it may be called once for all tasks of
// one size, and return at most 2^43 - 1 cycles.
//
// A2A3 and A5 are ideal: transfers have no latency. 910B and 950PR are fitted to published
// measurements: build/predict shows how close they come. They model one core: neither launches and
// dispatch nor memory that many cores share. A cycle of 910B is 1/1800 us (910B2, B3; 910C), one of
// 950PR 1/1650 us. Take 910B for kernels of A2/A3 and 950PR for kernels of A5.
#define PTOWSP_MODELS(MODEL) /* name, what emitted trees call it */                                \
    MODEL(UNIT, "unit")                                                                            \
    MODEL(A2A3, "a2a3")                                                                            \
    MODEL(A5, "a5")                                                                                \
    MODEL(USER, "") /* they have none of the user's */                                             \
    MODEL(910B, "910b")                                                                            \
    MODEL(950PR, "950pr")

// clang-format off
typedef enum ptowsp_model {
#define PWSP_MODEL_ENUM(name, text) PTOWSP_MODEL_##name,
    PTOWSP_MODELS(PWSP_MODEL_ENUM)
#undef PWSP_MODEL_ENUM
    PWSP_FORCE_INT(PTOWSP_MODEL)
} ptowsp_model;
// clang-format on

typedef struct ptowsp_insn ptowsp_insn;                // of tile kernels: section 24
typedef struct ptowsp_core_timing ptowsp_core_timing;  // there, too
typedef ptowsp_cycles (*ptowsp_cost_fn)(const ptowsp_insn *insn, void *user);

typedef struct ptowsp_cost {
    ptowsp_model model;
    ptowsp_cost_fn fn;  // PTOWSP_MODEL_USER
    void *user;
    // 910B and 950PR: times to use instead of the built-in ones, which are all that trees have. They
    // must live as long as the call, or the started run, that they are given to.
    const ptowsp_core_timing *timing;
} ptowsp_cost;

// -------------------------------------------------------------------------------------------------
// 16. Scalar expressions
// -------------------------------------------------------------------------------------------------
//
// Expressions are scalars that are evaluated at run time: values of type bool, i64 or u64 made of
// literals, loop variables, symbols, arrays and slots. Types are checked when an expression is
// built. Mixing i64 and u64 is an error, never a conversion. Arithmetic never traps:
//
//      + - * and neg     wrap around
//      x / 0 and x % 0   are 0; INT64_MIN / -1 is INT64_MIN, INT64_MIN % -1 is 0
//      / and %           of i64 round towards zero
//      << >>             take the count modulo 64; >> of i64 keeps the sign
//
// `select`, `and` and `or` evaluate their right operands only when needed, so a guarded read of an
// array is safe. Constant parts are folded.
//
// Cost     About 1 ns per operation; leaves are free.

// Literals.
PTOWSP_API ptowsp_expr ptowsp_i64(ptowsp_module *module, int64_t value);
PTOWSP_API ptowsp_expr ptowsp_u64(ptowsp_module *module, uint64_t value);
PTOWSP_API ptowsp_expr ptowsp_bool(ptowsp_module *module, bool value);

// A symbol: a u64 bound by name with ptowsp_run_bind_symbol. Making it declares the name: it can be
// bound whether or not a statement uses it. The same holds for arrays.
PTOWSP_API ptowsp_expr ptowsp_symbol(ptowsp_module *module, const char *name);

// Element `index` (i64) of a typed array bound by name. Signed types give i64, unsigned types u64,
// bool gives bool; floats are refused. An index outside the array is an error of the run, and reads
// 0. The name of a ragged axis gives its lengths.
PTOWSP_API ptowsp_expr ptowsp_array_at(ptowsp_module *module, const char *name, ptowsp_dtype dtype,
                                       ptowsp_expr index);

// The size of a dense or dynamic axis, i64; of a plan axis the number of units or merges (those
// that are INVALID included) or lanes.
PTOWSP_API ptowsp_expr ptowsp_axis_size(ptowsp_module *module, ptowsp_axis axis);

// The position of the current entry in the indices of a sparse axis, i64. `variable` belongs to a
// loop over such an axis. Use it for data stored beside the indices, such as the gates of experts.
PTOWSP_API ptowsp_expr ptowsp_loop_entry(ptowsp_expr variable);

// A field of the current unit or merge, i64 or bool. `variable` belongs to a loop over a plan axis.
// The SLOT of a whole unit is PTOWSP_NO_SLOT.
// Errors   A variable of another loop; a field that units, or merges, do not have.
// Cost     As an element of an array; LANE a search in the lists, of log2(lanes) steps.
PTOWSP_API ptowsp_expr ptowsp_loop_field(ptowsp_expr variable, ptowsp_plan_field field);

// Slots: u64 cells of a run, set and loaded by workloads. A cell read as i64 has the same bits;
// read as bool it is "not 0".
PTOWSP_API ptowsp_expr ptowsp_slot(ptowsp_module *module, uint32_t slot, ptowsp_type type);

// Leaves for the keys of a schedule, which are evaluated for each task. task_variable is the
// variable of this name of a loop around the task (i64; a task without one is an error when
// compiling). task_arg is args[i] of the task (i64; 0 if it has fewer). task_tag is a tag of the
// task (u64; 0 if it has no such tag).
PTOWSP_API ptowsp_expr ptowsp_task_variable(ptowsp_module *module, const char *name);
PTOWSP_API ptowsp_expr ptowsp_task_arg(ptowsp_module *module, uint32_t i);
PTOWSP_API ptowsp_expr ptowsp_task_tag(ptowsp_module *module, const char *name);

// Operations on integers, both of one type.
PTOWSP_API ptowsp_expr ptowsp_add(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_sub(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_mul(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_div(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_rem(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_min(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_max(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_bitand(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_bitor(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_bitxor(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_shl(ptowsp_expr a, ptowsp_expr count);
PTOWSP_API ptowsp_expr ptowsp_shr(ptowsp_expr a, ptowsp_expr count);
PTOWSP_API ptowsp_expr ptowsp_neg(ptowsp_expr a);
PTOWSP_API ptowsp_expr ptowsp_bitnot(ptowsp_expr a);

// Comparisons of integers of one type; eq and ne also compare bools. The result is bool.
PTOWSP_API ptowsp_expr ptowsp_eq(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_ne(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_lt(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_le(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_gt(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_ge(ptowsp_expr a, ptowsp_expr b);

// Operations on bools.
PTOWSP_API ptowsp_expr ptowsp_and(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_or(ptowsp_expr a, ptowsp_expr b);
PTOWSP_API ptowsp_expr ptowsp_not(ptowsp_expr a);

// condition ? a : b; a and b of one type.
PTOWSP_API ptowsp_expr ptowsp_select(ptowsp_expr condition, ptowsp_expr a, ptowsp_expr b);

// Casts from any type to any type. Between i64 and u64 the bits stay; from bool the result is 0 or
// 1; to bool it is "not 0".
PTOWSP_API ptowsp_expr ptowsp_cast(ptowsp_expr a, ptowsp_type type);

// The type of an expression; NONE for the zero expression.
PTOWSP_API ptowsp_type ptowsp_expr_type(ptowsp_expr expr);

// Writes the expression with the user's names: "lengths[b + 1] <= 2048".
PTOWSP_API void ptowsp_expr_print(ptowsp_expr expr, ptowsp_output output);

// -------------------------------------------------------------------------------------------------
// 17. Workloads
// -------------------------------------------------------------------------------------------------
//
// A workload is a tree of statements. The scope macros open a node, run their body once, with the
// loop's variable as a symbolic ptowsp_expr, and close the node. Leave a body by its end or
// `continue`, never by break or return: the scope would stay open, which is an error later.
//
//      PTOWSP_WORKLOAD(m, "name") {}     a workload; its statements run one after another
//      PTOWSP_PARALLEL(m, i, axis) {}    a loop whose iterations, and the statements in it, are
//                                        independent of each other
//      PTOWSP_FOR_EACH(m, i, axis) {}    a loop whose iterations, and the statements in it, run one
//                                        after another
//      PTOWSP_SELECT(m, e, axis) {}      a parallel loop over the entries of a sparse axis
//      PTOWSP_WHEN(m, condition) {}      statements under a condition (bool). It adds no order: the
//                                        statements count as children of the scope around it
//      PTOWSP_OTHERWISE(m) {}            the else of the PTOWSP_WHEN right before it; optional
//      PTOWSP_COMBINE(m) {}              statements that are independent of each other
//      PTOWSP_SEQUENCE(m) {}             statements that run one after another
//
// A task chooses among kernels by conditions, such as the tier of a unit (section 14):
//
//      PTOWSP_PARALLEL(m, unit, units) {
//          PTOWSP_WHEN(m, ptowsp_eq(ptowsp_loop_field(unit, PTOWSP_PLAN_TIER), ptowsp_i64(m, 0))) {
//              ptowsp_task_make(m, &short_task);
//          }
//          PTOWSP_OTHERWISE(m) { ptowsp_task_make(m, &long_task); }
//      }
//
// In time, every child of a parallel scope is ready when the scope is ready, and the scope is done
// when all children are. Child i of a sequential scope is ready when child i - 1 is done. A scope
// without children is done when it is ready.
//
// So a sequential scope is a barrier, also between tasks that share no data, as long as the schedule
// keeps the tree's order (STRUCTURE, which the default HYBRID contains; section 18). On 4 lanes, a
// FOR_EACH over 4 tasks of 100 cycles takes 400. Use PTOWSP_PARALLEL where iterations may overlap:
// under HYBRID, tasks that share data still wait for each other. To let data alone decide, in every
// scope, set the schedule's dependencies to OVERLAP: then the same FOR_EACH takes 100.

// clang-format off
#define PTOWSP_WORKLOAD(m, name)     PWSP_SCOPE(m, ptowsp_workload_begin(m, name))
#define PTOWSP_PARALLEL(m, i, axis)  PWSP_SCOPE_LOOP(m, i, ptowsp_parallel_begin(m, #i, axis))
#define PTOWSP_FOR_EACH(m, i, axis)  PWSP_SCOPE_LOOP(m, i, ptowsp_for_each_begin(m, #i, axis))
#define PTOWSP_SELECT(m, i, axis)    PWSP_SCOPE_LOOP(m, i, ptowsp_select_begin(m, #i, axis))
#define PTOWSP_WHEN(m, condition)    PWSP_SCOPE(m, ptowsp_when_begin(m, condition))
#define PTOWSP_OTHERWISE(m)          PWSP_SCOPE(m, ptowsp_otherwise_begin(m))
#define PTOWSP_COMBINE(m)            PWSP_SCOPE(m, ptowsp_combine_begin(m))
#define PTOWSP_SEQUENCE(m)           PWSP_SCOPE(m, ptowsp_sequence_begin(m))
// clang-format on

// The functions that the macros call. ptowsp_scope_end closes the innermost open scope. Loops
// return their variable.
// Errors   A workload inside another; a statement outside a workload; a clashing workload name; a
//          loop variable with the name of one around it; no axis, or a select over an axis that is
//          not sparse; a condition that is not bool; otherwise without when; an expression with a
//          variable whose loop is not around it; too many nodes, or nested too deep.
PTOWSP_API void ptowsp_workload_begin(ptowsp_module *module, const char *name);
PTOWSP_API ptowsp_expr ptowsp_parallel_begin(ptowsp_module *module, const char *variable,
                                             ptowsp_axis axis);
PTOWSP_API ptowsp_expr ptowsp_for_each_begin(ptowsp_module *module, const char *variable,
                                             ptowsp_axis axis);
PTOWSP_API ptowsp_expr ptowsp_select_begin(ptowsp_module *module, const char *variable,
                                           ptowsp_axis axis);
PTOWSP_API void ptowsp_when_begin(ptowsp_module *module, ptowsp_expr condition);
PTOWSP_API void ptowsp_otherwise_begin(ptowsp_module *module);
PTOWSP_API void ptowsp_combine_begin(ptowsp_module *module);
PTOWSP_API void ptowsp_sequence_begin(ptowsp_module *module);
PTOWSP_API void ptowsp_scope_end(ptowsp_module *module);

// A window of a tensor: an index for each dimension but the last two, and a tile on the last two,
// from (row, col). A tensor of rank 1 counts as one row, of rank 0 as one element.
typedef struct ptowsp_view {
    ptowsp_tensor tensor;                           // none ends the list
    ptowsp_expr index[PTOWSP_TENSOR_RANK_MAX - 2];  // i64, one for each leading dimension
    ptowsp_expr row, col;                           // i64; default: 0
    int64_t rows, cols;  // size of the tile; default: the parameter's size, or up to the tensor's
                         // edge where that is PTOWSP_DYNAMIC
    // i64: at most so many rows and columns of the tile are valid, as at an edge; default: no
    // limit. Less than 1 is an error of the run. Set them to the rows that the task touches, such
    // as the KV tokens of a unit or the slots of a merge. Then tasks that touch other rows do not
    // wait for it.
    ptowsp_expr row_count, col_count;
} ptowsp_view;

typedef struct ptowsp_tag {
    const char *name;   // copied; NULL ends the list
    ptowsp_expr value;  // u64
} ptowsp_tag;

typedef struct ptowsp_task_desc {
    ptowsp_kernel kernel;
    ptowsp_expr axes[PTOWSP_TASK_AXIS_MAX];       // i64; axis_count of the kernel
    ptowsp_view views[PTOWSP_TASK_TILE_MAX];      // one for each tile parameter, in order
    ptowsp_expr scalars[PTOWSP_TASK_SCALAR_MAX];  // of the parameters' types
    ptowsp_tag tags[PTOWSP_TASK_TAG_MAX];         // for the keys of schedules
    ptowsp_node after[PTOWSP_TASK_AFTER_MAX];     // tasks to wait for, see below
} ptowsp_task_desc;

// Adds a task. (Of a choice, see below, it adds one for each variant that fits, under conditions,
// and the returned node stands for all of them.) `after` names tasks of the same workload that were
// added before. With explicit dependencies (section 18) the task waits for all their instances that
// the current iteration of the innermost scope around both has issued. In one loop body that is the
// matching instance; after a loop it is all of them.
// Errors   No kernel; too few or too many axes, views or scalars; a wrong type, dtype or rank; a
//          tile that differs from the parameter's; constant indices or offsets outside the tensor;
//          clashing tags; an `after` that is not a task of the workload.
PTOWSP_API ptowsp_node ptowsp_task_make(ptowsp_module *module, const ptowsp_task_desc *desc);

// -- choices --------------------------------------------------------------------------------------
//
// A choice stands for several kernels that do the same: for small and for large tasks, for data
// types, with or without measurements. Tasks name the choice, and each takes the first variant that
// fits it, asked by priority, highest first; then by cost, lowest first, unknown last; then by
// name. A variant fits a task if its tile parameters have the tensors' data types and the views'
// sizes, and its condition holds. Conditions are expressions of the task's arguments
// (ptowsp_task_arg: axis arguments, rows and columns of tiles, scalars), of bound sizes, symbols,
// arrays and slots:
//
//      ptowsp_choice_desc desc = {.name = "gemm", .variants = {
//          {.kernel = gemm_16, .condition = ptowsp_le(ptowsp_task_arg(m, 1), ptowsp_i64(m, 16))},
//          {.kernel = gemm_128}}};
//
// Constant conditions are decided when the task is made. Others become branches of the workload
// (when, otherwise) and are decided task by task, also in time-only runs and in emitted trees.

#define PTOWSP_VARIANT_MAX 8

typedef struct ptowsp_variant {
    ptowsp_kernel kernel;  // none ends the list
    // bool; none: always. Rows and columns are the view's, at most their limit, or the limit alone;
    // without either the parameter's or the tensor's, INT64_MAX up to the edge of a dynamic size.
    // They are not cut by the tensor's edge.
    ptowsp_expr condition;
    int32_t priority;
    uint64_t cost;  // of tasks: any number that compares variants, such as measured nanoseconds;
                    // default: the cycles of a tile kernel with full tiles, `cycles` of others
} ptowsp_variant;

typedef struct ptowsp_choice_desc {
    const char *name;  // copied; a kernel's name
    ptowsp_variant variants[PTOWSP_VARIANT_MAX];
    const ptowsp_cost *cost;  // the model of tile kernels' cycles; default: UNIT
} ptowsp_choice_desc;

// Declares a choice; it is used as a kernel.
// Errors   A bad or clashing name; no variants; one twice, another choice, or one that takes other
//          arguments than the first (numbers of axes and tiles, directions, types of scalars); a
//          condition that is not bool. Making a task: no variant fits, or the last one that does
//          has a condition that may be false.
PTOWSP_API ptowsp_kernel ptowsp_kernel_choice(ptowsp_module *module,
                                              const ptowsp_choice_desc *desc);

// Writes a line for each variant, in the order in which they are asked: priority, cost, and the
// on-chip memory of tile kernels. With a task (not NULL) a line also says whether the variant takes
// it, and why:
//
//      gemm: variants in the order in which they are asked
//        gemm_16              priority 0, cost 411, cube, L1 1024 bytes, ...: taken if rows[b] <= 16
//        gemm_128             priority 0, cost 2806, cube, ...: taken
//
// Adds expressions to the module, nothing else.
PTOWSP_API void ptowsp_kernel_explain(ptowsp_module *module, ptowsp_kernel kernel,
                                      const ptowsp_task_desc *task, ptowsp_output output);

// Declares the next parameter of the workload under construction and returns it as an expression.
// Parameters come before the workload's first statement.
PTOWSP_API ptowsp_expr ptowsp_workload_param(ptowsp_module *module, const char *name,
                                             ptowsp_type type);

// Calls a workload of the module, which may be built later. args are evaluated once. Recursion, or
// a wrong number or type of arguments, is an error when compiling. 64 nested calls are always
// accepted.
#define PTOWSP_CALL_ARG_MAX 16
PTOWSP_API void ptowsp_call_make(ptowsp_module *module, const char *workload,
                                 const ptowsp_expr *args, uint32_t arg_count);

// Sets a slot, in program order and in no time. The value is of any type.
PTOWSP_API void ptowsp_slot_set_make(ptowsp_module *module, uint32_t slot, ptowsp_expr value);

// Loads element (row, col) of a view's tile into a slot. row and col are i64; zero expressions are
// 0. The tile's rows and cols default to 1. The element is an integer, sign-extended if signed, or
// bool. The load reads the values written by the tasks before it in the program; for its time see
// section 18.
PTOWSP_API void ptowsp_slot_load_make(ptowsp_module *module, uint32_t slot, const ptowsp_view *view,
                                      ptowsp_expr row, ptowsp_expr col);

// -- lists of tasks -------------------------------------------------------------------------------
//
// A list is a statement whose tasks are written out, one by one, in arrays: a recorded run, a graph
// of another framework, a program that some other tool has unrolled. It takes the place of loops;
// everything else is the same. Its tasks have kernels, axis arguments, tiles and scalars. They are
// timed under every schedule, recorded, drawn and searched like the tasks of loops.
//
//      const ptowsp_kernel kernels[] = {load, load, add};   // task 2 waits for tasks 0 and 1
//      const uint64_t edge_begins[] = {0, 0, 0, 2};
//      const uint32_t edges[] = {0, 1};
//      const ptowsp_cycles cycles[] = {10, 20, 5};
//      ptowsp_task_list list = {.task_count = 3, .kernels = kernels, .cycles = cycles,
//                               .edge_begins = edge_begins, .edges = edges, .edge_count = 2};
//      PTOWSP_WORKLOAD(m, "recorded") { ptowsp_task_list_make(m, &list); }
//
// Order. A list is a parallel scope: its tasks wait for everything the list waits for, and for
//
//      edges     of the list, as many as there are. They hold where the schedule's dependencies have
//                STRUCTURE or EXPLICIT
//      scopes    parallel and sequential ones, one in another, as in a workload
//      data      tiles, as any task (OVERLAP, EXACT)
//
// An entry without a kernel is a join: it takes no lane and no time, and is not counted as a task. An
// entry after a join waits for all entries that the join waits for, so n tasks before m others take
// n + m edges. Scopes do not order joins: only their edges count. Keys of schedules read axis arguments
// (ptowsp_task_arg).
//
// Lists run on the calling thread, in program order. Runs on lanes, devices, emitters and the reader
// of modules as text refuse them, as do meshes and processes of pipelines. Tensors are not transient.
//
// Limits   PTOWSP_LIST_TASK_MAX entries; 2^31 - 1 edges; PTOWSP_MODULE_NEST_MAX scopes in one another.
// Memory   A program: 4 bytes for each entry and edge. A run: 16 for each entry, if there are
//          edges; where lanes choose among tasks, also the memory of a task in flight (section 21)
//          for each.
// Cost     Making a list takes 50 ns per task with four edges, compiling it 100. A time-only run takes
//          500 ns per task with four edges, and 2 us where lanes choose.

#define PTOWSP_LIST_TASK_MAX (1u << 24)

// A tile of a task of a list. With rows or cols 0 it has the parameter's size, or reaches up to the
// tensor's edge where that is PTOWSP_DYNAMIC.
typedef struct ptowsp_list_view {
    ptowsp_tensor tensor;
    uint32_t rows, cols;
    int64_t row, col;
    int64_t
        matrix;  // the leading indices, as the ordinal of the matrix that they choose, row by row
} ptowsp_list_view;

// Entries [first, first + count) are in a scope.
typedef struct ptowsp_list_scope {
    uint32_t first, count;
    bool is_parallel;  // else they run one after another
} ptowsp_list_scope;

typedef struct ptowsp_task_list {
    uint32_t task_count;           // entries
    const ptowsp_kernel *kernels;  // of each entry; none: a join
    const ptowsp_cycles *cycles;   // of each entry, in all modes; NULL: from the kernels
    // Arguments of all tasks, one task after another, as many as their kernels take.
    const int64_t *axes;
    const ptowsp_list_view *views;
    const uint64_t *scalars;
    uint64_t axis_count, view_count, scalar_count;  // of the arrays
    // Entry i waits for edges[edge_begins[i]] .. edges[edge_begins[i + 1] - 1], which are before it.
    const uint64_t *edge_begins;  // task_count + 1 of them, from 0 to edge_count; NULL: no edges
    const uint32_t *edges;
    uint64_t edge_count;
    const ptowsp_list_scope *scopes;  // by first; a scope follows the one around it
    uint32_t scope_count;
} ptowsp_task_list;

// Adds a list. Its arrays are not copied: they must live, unchanged, until the module and all
// programs that were compiled from it are destroyed.
// Errors   INVALID_PARAMS: no entries; NULL arrays; no such kernel or tensor, a choice, a collective;
//          arrays that are longer or shorter than the kernels take; a view that does not fit its
//          parameter, or of a transient tensor; cycles that sum to more than PTOWSP_CYCLES_MAX; an
//          edge from an entry that does not come before (which excludes cycles); scopes that are
//          empty, overlap or are not in order. The index is the number of the entry, edge or scope.
//          LIMIT_EXCEEDED. UNSUPPORTED: a module with a mesh; a process. Executing: views that are
//          outside of the tensors that are bound.
PTOWSP_API void ptowsp_task_list_make(ptowsp_module *module, const ptowsp_task_list *list);

// -------------------------------------------------------------------------------------------------
// 18. Schedules
// -------------------------------------------------------------------------------------------------
//
// A schedule decides on which lane a task runs, how many tasks may be in flight, and which tasks
// wait for which. Time is simulated: it depends on the program, its data and its kernels' cycles
// alone. Tasks are issued in program order, by a clock that only moves forward. ready is the time
// at which all dependencies of the task are done, and free[lane] is the end of the lane's last
// task:
//
//      in order    clock = max(clock, ready), then timing, then room in the window
//      dataflow    clock moves for slot loads, timing and room in the window only
//      both        start = max(free[lane], clock, ready);  end = start + cycles
//
// In order is the rule of PTO-WSP v9, which does not look at data. Unless dependencies forbid it,
// tasks of one parallel scope that share data overlap in time. (Their kernels still run in program
// order where they share data.) A window counts tasks whose end lies after the clock, waiting or
// running. When the window is full the clock moves to the earliest end. With release in order, a task
// stays in the window until it and all tasks issued before it have ended, as in a ring.
//
// Where lanes choose among tasks (dataflow with work stealing or priorities), time moves from event
// to event instead. At each time three steps repeat until nothing changes. First, tasks that end
// complete. Second, tasks are issued, in program order, while there is room. Third, each free lane,
// by index, takes a task that is issued and ready, and the lanes that are still free steal one. A
// task of 0 cycles completes in the next round at the same time; a pipeline that takes no time
// completes in the round in which it becomes ready.
//
// A task of MIX takes three lanes where pools are by unit: its cube lane, and the two vector lanes
// of that block. free[lane] is then the largest of the three. Where lanes choose, a free cube lane
// takes the task at once; from then on its two vector lanes take no other task, and it starts when
// both are free. So no stream of vector tasks holds it back. It counts as one task: of its cube lane
// (task_count), in the window, and in the depth of the cube pool and of its stream. Its cycles count
// as busy on all three lanes.
//
// Slot loads. In dataflow issue the clock moves to the end of the earlier tasks that have written
// the loaded element, with or without dependencies on data. So control that depends on data is
// issued when the data is there. In order, slot loads take no time and wait for nothing, as in v9;
// the data is still right.
//
// Depths. A stream or a pool with a depth has at most so many tasks in flight, counted as a window
// does. When timing and window let a task be issued, and its stream or pool is full, the clock moves
// to the earliest end of a task there.
//
// Named pools. A machine has more kinds of engines than two: copy engines, cube cores, vector
// cores, cores that are kept for decoding. With pools NAMED, up to 16 pools number their lanes one
// after another, and each pool names the kernels whose tasks it takes:
//
//      static const ptowsp_pool pools[] = {
//          {.name = "cores", .lane_count = 4},  // lanes 0 to 3; all other kernels
//          {.name = "dma", .lane_count = 2, .depth = 8, .kernels = {"load", "store"}}};
//      schedule.pools = PTOWSP_POOLS_NAMED, schedule.named_pools = pools, schedule.pool_count = 2;
//
// Round robin counts by pool, keys are taken modulo the pool's lanes, and lanes steal from lanes of
// their pool. A task of MIX takes one lane, as with one pool.
//
// Rings. A device keeps the state of tasks in flight in rings of fixed sizes. With ring sizes a
// schedule simulates them, so that they can be chosen. A task retires when it has ended and all
// tasks issued before it have retired. When timing, window and depths let a task be issued, it
// needs
//
//      TASKS         1, until it retires
//      BYTES         for each tile of a transient tensor that it writes and does not read, the bytes
//                    of the valid elements, rounded up to 64. They are held until the pass through
//                    the tensor's scope (the innermost block around all its uses) ends, and the last
//                    task that uses the tensor in this pass has retired; and until all bytes that
//                    were taken before them are released
//      DEPENDENCIES  for dependencies that have not ended when timing, window and depths let it be
//                    issued, until it retires: 1 for all of its waits by structure, 1 for each
//                    statement in `after`, 1 for its stream, and 1 for each earlier task that it
//                    waits for by data
//      MAP           1 for each tile, if dependencies look at data, until it retires
//
// The task is issued once all rings have room for this. Until then the clock moves, and the first
// ring without room, in this order, is charged with the time. A task that can never be issued is
// STUCK, and the text names the ring. There are three causes. The task needs more than the ring's
// size; the bytes are held until the end of a scope that is still being issued; or tasks have not
// begun to start. Pipelines take nothing from rings. Example: a ring of 2 tasks, 3 lanes, and tasks
// of 9, 2 and 3 cycles. These are issued at 0, 0 and 9: the second ends at 2, but retires with the
// first.
//
// Keys are integers or bools over task variables, args, tags, slots, symbols and arrays. They are
// read as u64, and "key % n" is unsigned. If a key reads a tag that a task does not have, the tag
// is 0. So all such tasks share a lane. A tag that no key of the schedule reads is not evaluated, and
// a read in it that is outside its array is not an error.

typedef enum ptowsp_issue {
    PTOWSP_ISSUE_DATAFLOW = 0,
    PTOWSP_ISSUE_IN_ORDER,
    PWSP_FORCE_INT(PTOWSP_ISSUE)
} ptowsp_issue;

typedef enum ptowsp_dispatch {
    PTOWSP_DISPATCH_DEFAULT = 0,    // round robin, and lane_count may be 0
    PTOWSP_DISPATCH_ROUND_ROBIN,    // the n-th task of a pool goes to its lane n % lanes
    PTOWSP_DISPATCH_AFFINITY,       // key % lanes
    PTOWSP_DISPATCH_HASH,           // mix(key) % lanes; mix is the finalizer of SplitMix64
    PTOWSP_DISPATCH_CUSTOM,         // key % lanes too: the key is meant to be the lane itself
    PTOWSP_DISPATCH_WORK_STEALING,  // no fixed lane: the first free lane takes the ready task that
                                    // was issued first; in order, a task goes to the lane that is
                                    // free first, by index among equals
    PTOWSP_DISPATCH_PLAN,  // the lane that a plan has for the unit or merge of the innermost
                           // loop over one, or the lane itself in a loop over a plan's
                           // lanes; % lanes. Tasks in no such loop: dispatch_key % lanes,
                           // or lane 0 without a key
    PWSP_FORCE_INT(PTOWSP_DISPATCH)
} ptowsp_dispatch;

typedef enum ptowsp_window {
    PTOWSP_WINDOW_DEFAULT = 0,  // stall if window > 0, else none
    PTOWSP_WINDOW_STALL,        // wait for room
    PTOWSP_WINDOW_ABORT,        // a full window is an error of the run (LIMIT_EXCEEDED)
    PTOWSP_WINDOW_BENCHMARK,    // run on, and count the tasks that found it full
    PWSP_FORCE_INT(PTOWSP_WINDOW)
} ptowsp_window;

// When a task leaves the window.
typedef enum ptowsp_release {
    PTOWSP_RELEASE_COMPLETION = 0,  // when it has ended
    PTOWSP_RELEASE_IN_ORDER,        // when it and all tasks issued before it have ended
    PWSP_FORCE_INT(PTOWSP_RELEASE)
} ptowsp_release;

#define PTOWSP_RINGS(RING) /* name, text */                                                        \
    RING(TASKS, "tasks")                                                                           \
    RING(BYTES, "bytes")                                                                           \
    RING(DEPENDENCIES, "dependencies")                                                             \
    RING(MAP, "map")

// clang-format off
typedef enum ptowsp_ring {
#define PWSP_RING_ENUM(name, text) PTOWSP_RING_##name,
    PTOWSP_RINGS(PWSP_RING_ENUM)
#undef PWSP_RING_ENUM
    PTOWSP_RING_COUNT,
    PWSP_FORCE_INT(PTOWSP_RING)
} ptowsp_ring;
// clang-format on

PTOWSP_API const char *ptowsp_ring_name(ptowsp_ring ring);

// The scope of a depth: how many tasks of one stream, or of one pool, may be in flight.
#define PTOWSP_DEPTHS(DEPTH) /* name, text */                                                      \
    DEPTH(STREAM, "stream")  /* for streams by a key */                                            \
    DEPTH(POOL, "pool")

// clang-format off
typedef enum ptowsp_depth {
#define PWSP_DEPTH_ENUM(name, text) PTOWSP_DEPTH_##name,
    PTOWSP_DEPTHS(PWSP_DEPTH_ENUM)
#undef PWSP_DEPTH_ENUM
    PTOWSP_DEPTH_COUNT,
    PWSP_FORCE_INT(PTOWSP_DEPTH)
} ptowsp_depth;
// clang-format on

PTOWSP_API const char *ptowsp_depth_name(ptowsp_depth depth);

#define PTOWSP_RING_UNBOUNDED UINT64_MAX  // no limit; its high-water mark is taken

// The dependencies of tasks, beside their lanes: a set. The default is HYBRID for dataflow and
// STRUCTURE in order. Each of them adds waits: with STRUCTURE, sequential scopes are barriers whatever
// the data; without OVERLAP or EXACT, tasks of one parallel scope that share data do not wait.
enum {
    PTOWSP_DEPENDENCIES_STRUCTURE = 1,  // the tree's order
    PTOWSP_DEPENDENCIES_EXACT = 2,      // earlier tasks with the very same tile (same memory, same
                                        // valid sizes)
    PTOWSP_DEPENDENCIES_OVERLAP = 4,    // earlier tasks with a tile that has an element in common
    PTOWSP_DEPENDENCIES_EXPLICIT = 8,   // `after` of ptowsp_task_desc
    PTOWSP_DEPENDENCIES_HYBRID = 5      // structure and overlap
};

// Which of two tasks that share data wait: a set. The default is all. A writer is a last writer of
// its tile until a later task writes a tile that contains it (with exact dependencies: the same
// tile). Containment may go unnoticed between tensors that share memory with different row strides
// or with gaps between columns; readers then wait for more writers.
enum {
    PTOWSP_HAZARD_RAW = 1,  // a reader waits for the last writers of its tile
    PTOWSP_HAZARD_WAR = 2,  // a writer waits for the readers before it
    PTOWSP_HAZARD_WAW = 4   // a writer waits for the writers before it
};

typedef enum ptowsp_pools {
    PTOWSP_POOLS_ONE = 0,  // all tasks on lane_count lanes
    PTOWSP_POOLS_BY_UNIT,  // tasks of vector kernels on lanes 0 .. vector_lane_count - 1, tasks of
                           // cube kernels on the cube_lane_count lanes after them. Tasks of MIX run
                           // on cube lanes, too, each with its two vector lanes. A program with MIX
                           // needs 2 * cube_lane_count vector lanes or more
    PTOWSP_POOLS_NAMED,    // tasks of the kernels that a pool names on its lanes, all others on
                           // the lanes of the first pool
    PWSP_FORCE_INT(PTOWSP_POOLS)
} ptowsp_pools;

#define PTOWSP_SCHEDULE_POOL_MAX 16
#define PTOWSP_POOL_KERNEL_MAX   64

typedef struct ptowsp_pool {
    const char *name;     // as names of a module; unique in the schedule
    uint32_t lane_count;  // 1 or more
    uint32_t depth;       // of this pool, before depths[PTOWSP_DEPTH_POOL]; default: that
    const char *kernels[PTOWSP_POOL_KERNEL_MAX];  // of the module, up to the first NULL; each in at
                                                  // most one pool. Variants by their own names
} ptowsp_pool;

// The choice of a lane's next task. All but FIFO are for dataflow issue: in order, a task is ready
// when it is issued, and there is nothing to choose.
typedef enum ptowsp_ready {
    PTOWSP_READY_FIFO = 0,       // the lane's tasks in the order of issue, ready or not
    PTOWSP_READY_PRIORITY,       // the lane's ready task with the largest key (i64 keys compare as
                                 // signed); among equals the one issued first
    PTOWSP_READY_WORK_STEALING,  // the lane's ready task that was issued first; if it has none, the
                                 // ready task of its pool that was issued first
    PWSP_FORCE_INT(PTOWSP_READY)
} ptowsp_ready;

// The time at which tasks begin to start. Nothing completes before: a window that fills up first,
// or a slot load that needs a task's result, cannot proceed (STUCK). It is for dataflow issue, as
// in order a task may need another one's end to be issued at all. With batched or rate-limited
// timing the number of tasks must not depend on data that tasks write, unless at least
// start_threshold tasks are certain (UNSUPPORTED).
typedef enum ptowsp_start {
    PTOWSP_START_AT_ONCE = 0,
    PTOWSP_START_THRESHOLD,   // when start_threshold tasks, or all, have been issued
    PTOWSP_START_ALL_ISSUED,  // when all have been issued
    PWSP_FORCE_INT(PTOWSP_START)
} ptowsp_start;

// The time that issuing itself takes.
typedef enum ptowsp_timing {
    PTOWSP_TIMING_IMMEDIATE = 0,  // none
    PTOWSP_TIMING_BATCHED,        // timing_count tasks at a time: at the first task of a batch the
                                  // clock moves to timing_cycles after the first task of the batch
                                  // before, and until the window has room for the whole batch
    PTOWSP_TIMING_RATE_LIMITED,   // the clock moves to timing_cycles after the last issue
    PTOWSP_TIMING_INTERLEAVED,    // streams take turns: stream s may issue one task at each time
                                  // (s + k * stream_count) * timing_cycles, for k = 0, 1 and so on.
                                  // The clock stays: a task starts no earlier than the first free
                                  // turn of its stream at or after the clock. For dataflow issue
                                  // with a stream key.
    PWSP_FORCE_INT(PTOWSP_TIMING)
} ptowsp_timing;

// The runner of a program, and the time that it takes for each task beside the task itself.
typedef enum ptowsp_control_by {
    PTOWSP_CONTROL_NONE = 0,  // no time: tasks start by the rules above alone
    PTOWSP_CONTROL_HOST,      // the host launches each task as a kernel, one after another
    PTOWSP_CONTROL_AICPU,     // an AICPU thread submits tasks, and `threads` others schedule them
    PTOWSP_CONTROL_KERNELS,   // kernels that walk their own blocks: one launch, nothing for a task
    PWSP_FORCE_INT(PTOWSP_CONTROL)
} ptowsp_control_by;

// Costs of control. START_... are counted from the launch and do not decrease; between them time is
// linear: lane i of n has the time at i / (n - 1).
#define PTOWSP_CONTROL_COSTS(COST)       /* name, text */                                          \
    COST(LAUNCH, "launch")               /* once, before the first task is submitted */            \
    COST(START_FIRST, "start_first")     /* until the first core of a pool starts */               \
    COST(START_QUARTER, "start_quarter") /* until a quarter of them have started */                \
    COST(START_HALF, "start_half")       /* until half of them have */                             \
    COST(START_MOST, "start_most")       /* until three quarters have */                           \
    COST(START_LAST, "start_last")       /* until all have */                                      \
    COST(SUBMIT, "submit")               /* of the submitting thread, or of the host: each task */ \
    COST(DISPATCH, "dispatch") /* of a thread: from taking a ready task to handing it over */      \
    COST(DELIVER, "deliver")   /* until the core sees it */                                        \
    COST(SWITCH, "switch")     /* until the core starts it */                                      \
    COST(NOTICE, "notice")     /* from its end until a thread could see it */                      \
    COST(POLL, "poll")         /* of a thread: to read that it has ended */                        \
    COST(COMPLETE, "complete") /* of a thread: to release its lane and the tasks that wait */

// clang-format off
typedef enum ptowsp_control_cost {
#define PWSP_CONTROL_COST_ENUM(name, text) PTOWSP_CONTROL_##name,
    PTOWSP_CONTROL_COSTS(PWSP_CONTROL_COST_ENUM)
#undef PWSP_CONTROL_COST_ENUM
    PTOWSP_CONTROL_COST_COUNT,
    PWSP_FORCE_INT(PTOWSP_CONTROL_COST)
} ptowsp_control_cost;
// clang-format on

// The name of a cost in texts of schedules.
PTOWSP_API const char *ptowsp_control_cost_name(ptowsp_control_cost cost);

#define PTOWSP_CONTROL_THREAD_MAX 64
#define PTOWSP_CONTROL_CLOCK_MAX  (1 << 17)  // MHz
#define PTOWSP_CONTROL_CYCLES_MAX (UINT64_C(1) << 62)

// Control. It is plain data: copy and change it freely; a cost of 0 is switched off.
//
//      ptowsp_control control = ptowsp_control_make(PTOWSP_CONTROL_AICPU, PTOWSP_MODEL_910B);
//      control.threads = 2;                              // instead of 3
//      control.cost_ns[PTOWSP_CONTROL_LAUNCH] = 0;       // already running
//      schedule.control = control;
//
// The clock of issue begins after LAUNCH. It moves by SUBMIT for each task, once timing and the
// window let the task be issued; depths and rings come after that. Threads are servers:
//
//      ready task + free lane  -> dispatch -> deliver, switch -> runs -> notice -> poll, complete
//                                 a thread                                         a thread
//
// At each time free threads first take tasks that have ended, in the order in which they can be
// noticed, ties by lane. Then each takes a ready task for a free lane, chosen as lanes choose
// without control. Only when a thread has handled its end, is a task done for the tasks that wait
// for it, for slot loads, its lane, the window, depths and rings. A MIX task that has been taken
// starts when it has been delivered and its vector lanes have ended their tasks. Pipelines start
// when they are ready, without a thread. In order with work stealing, a lane takes a task when the
// lane is free; without control, lanes are chosen at issue.
//
// A host has no threads: DISPATCH, POLL and COMPLETE are 0. KERNELS have LAUNCH and START alone.
// Control is time in simulated runs, whose kernels run on the calling thread or on lanes. Devices
// have their own.
typedef struct ptowsp_control {
    ptowsp_control_by by;
    uint32_t threads;    // AICPU: 1 to PTOWSP_CONTROL_THREAD_MAX, without the one that submits
    uint32_t clock_mhz;  // cycles in a microsecond: 1 to PTOWSP_CONTROL_CLOCK_MAX
    // Rounded to cycles; their sum is at most PTOWSP_CONTROL_CYCLES_MAX.
    uint64_t cost_ns[PTOWSP_CONTROL_COST_COUNT];
} ptowsp_control;

// Measured costs, at the clock of a model; all models but the measured ones have none (clock_mhz is
// 0 and must be set). The numbers are for Ascend 910B. None are published for 950PR, which takes
// the same at its own clock and with 6 threads. src/workload/control_fitted.h has the source of
// each.
PTOWSP_API ptowsp_control ptowsp_control_make(ptowsp_control_by by, ptowsp_model model);

#define PTOWSP_SCHEDULE_LANE_MAX   65536
#define PTOWSP_SCHEDULE_STREAM_MAX 65536
#define PTOWSP_SCHEDULE_WINDOW_MAX 0x7fffffff
#define PTOWSP_SCHEDULE_RING_MAX   (UINT64_C(1) << 62)

// Memory that simulated lanes share. Without it (all zero, the default) each task takes the cycles of
// its kernel, as if each lane had a memory of its own. With it, tasks that move bytes at the same time
// slow each other down where a rate does not suffice for all:
//
//      HBM, L2     each divides its rate among the lanes that move bytes: lanes that ask for more than
//                  an equal share get that share, the others all they ask for (max-min)
//      a task      moves bytes as its kernel was measured. A tile kernel is measured at the full rate of
//                  its paths, at a half, a quarter and an eighth of it, and at the rate where
//                  transfers begin to limit it. So transfers overlap with work as in the
//                  measurement. The bytes of a C kernel (ptowsp_kernel_desc) are spread evenly over
//                  its cycles; without them it takes no bandwidth. Neither do tasks of processes
//                  and collectives
//      hits        bytes that miss L2 come from HBM, others from L2, spread evenly over the task. Hits are
//                  decided in simulated time, when tasks begin, by region: a 16th of a tensor's rows
//                  and of its columns, or 64 KiB and 128 columns if that is more. Regions are moved in passes, each of
//                  as many bytes as the region has. The first pass misses; tasks that begin together
//                  share its misses. Of a later pass all bytes hit if the bytes missed since the pass
//                  before began are at most half of l2_bytes, none if they are all of it, and between
//                  these a part, in a straight line
//      writes      stay in L2 by the same rule, applied to the bytes of their tensor
//      again       a tile kernel may read a tile several times. Later passes over the tile with most of
//                  these bytes hit by the same rule. It is applied to the bytes that running tasks
//                  have of its tensor, and to those that their other tiles move during one pass.
//                  Other bytes beyond a task's tiles hit; a task without tiles misses
//
// A task alone takes the cycles of its kernel, if its lane can have the bandwidth that it asks for.
// Time is exact in integers, and the same for any number of host threads. More bandwidth never makes
// independent tasks slower; with dependencies it may, as list scheduling has such anomalies.
//
// Rates are for all lanes together, in bytes in 100 cycles of the schedule's tasks.
// Limits   A lane is worth a 256th of a byte in 100 cycles: rates are at least lanes / 256.
typedef struct ptowsp_shared_memory {
    uint32_t hbm_rate, l2_rate;  // both or none
    uint32_t lane_rate;          // of one lane from either; default: as fast as its kernels ask
    uint64_t l2_bytes;           // 0: nothing hits, and no misses are shared
} ptowsp_shared_memory;

#if !defined(PTOWSP_NO_TILES)

// The memory that cores of a machine share, in cycles of model 910B or 950PR (1/1800 and 1/1650 us);
// all zero for other models. HBM has the public rate of a core when all read at once, times the cores;
// L2 the rate of a published GEMM that it holds (src/isa/timing_fitted.h). ptowsp_core_timing has the
// rates of a core that has memory to itself.
PTOWSP_API ptowsp_shared_memory ptowsp_shared_memory_of(ptowsp_model model);

#endif  // PTOWSP_NO_TILES

typedef struct ptowsp_schedule {
    ptowsp_issue issue;
    ptowsp_dispatch dispatch;
    ptowsp_expr dispatch_key;  // affinity, hash, custom; plan: optional
    uint32_t lane_count;       // of the one pool. 0 is for DISPATCH_DEFAULT alone, and means
                               // stream_count, or 1: nothing overlaps
    ptowsp_pools pools;
    uint32_t vector_lane_count;  // by unit
    uint32_t cube_lane_count;    // by unit
    ptowsp_window window_policy;
    uint32_t window;        // tasks in flight
    uint32_t dependencies;  // PTOWSP_DEPENDENCIES_..., or'ed
    uint32_t hazards;       // PTOWSP_HAZARD_..., or'ed
    ptowsp_ready ready;
    ptowsp_expr priority_key;  // priority
    ptowsp_start start;
    uint64_t start_threshold;  // threshold
    // With a stream key, tasks of one stream (key % stream_count) run one after another. Without a
    // key stream_count is only the default for lane_count, as in v9.
    uint32_t stream_count;
    ptowsp_expr stream_key;
    ptowsp_timing timing;
    uint32_t timing_count;        // batched
    ptowsp_cycles timing_cycles;  // batched (may be 0), rate limited, interleaved; at most 2^32
    ptowsp_release release;       // of a window
    // By ring: entries or bytes, at most PTOWSP_SCHEDULE_RING_MAX; or PTOWSP_RING_UNBOUNDED. 0 (the
    // default) means no such ring, and no mark in ptowsp_run_stats.
    uint64_t ring_sizes[PTOWSP_RING_COUNT];
    uint32_t depths[PTOWSP_DEPTH_COUNT];  // default: no limit
    // NAMED pools. Read by calls that take the schedule; a program copies them, and its
    // own schedule (ptowsp_program_schedule) has NULL here.
    const ptowsp_pool *named_pools;
    uint32_t pool_count;          // 1 to PTOWSP_SCHEDULE_POOL_MAX
    ptowsp_control control;       // default: none
    ptowsp_shared_memory shared;  // default: lanes share no memory
} ptowsp_schedule;

// The support of a schedule's directive on a target, and of what tile kernels may contain.
#define PTOWSP_SUPPORTS(SUPPORT)    /* name, text */                                               \
    SUPPORT(ENFORCED, "enforced")   /* it takes effect */                                          \
    SUPPORT(RECORDED, "recorded")   /* it can be read from the program, and changes nothing */     \
    SUPPORT(REFUSED, "refused")     /* it is an error that names it */                             \
    SUPPORT(LEGALISED, "legalised") /* it takes effect, by instructions that the machine has */

// clang-format off
typedef enum ptowsp_support {
#define PWSP_SUPPORT_ENUM(name, text) PTOWSP_SUPPORT_##name,
    PTOWSP_SUPPORTS(PWSP_SUPPORT_ENUM)
#undef PWSP_SUPPORT_ENUM
    PWSP_FORCE_INT(PTOWSP_SUPPORT)
} ptowsp_support;
// clang-format on

#define PTOWSP_TARGETS(TARGET)       /* name, text */                                              \
    TARGET(CPU_SIM, "cpu_sim")       /* kernels on the calling thread, lanes in simulated time */  \
    TARGET(THREADS, "threads")       /* kernels on lanes of a context, or on a device */           \
    TARGET(ASCEND_NPU, "ascend_npu") /* an emitted tree */

// clang-format off
typedef enum ptowsp_target {
#define PWSP_TARGET_ENUM(name, text) PTOWSP_TARGET_##name,
    PTOWSP_TARGETS(PWSP_TARGET_ENUM)
#undef PWSP_TARGET_ENUM
    PTOWSP_TARGET_COUNT,
    PWSP_FORCE_INT(PTOWSP_TARGET)
} ptowsp_target;
// clang-format on

// One line of the capability table: "dispatch", "affinity", and the support on each target. The
// lines of "kernel" are rules of machines for tile kernels:
//
//      element types     an instruction has no such type, nor f32 in its place
//      bf16 operands, i16 quotients        through f32 on A2/A3
//      places            a tile of an instruction is in another memory or layout
//      rows in UB        a tile that is loaded or stored has more than 4095
//      row sums, column sums     source and result are allocated with the same rows, columns
//      masks             compares and selects work on all columns that are allocated
//      mask gathers      sources are so wide that the elements taken fill the result
//      runs              rows are sorted in whole runs of 32, padded where they end before
//      quantising        with scratch, of a copy if the source is needed later, on A2/A3
//      results apart     reciprocals, and, or: not in place on A2/A3
//      factors           products that are factors: of whole boxes; in f32 through UB on A2/A3
//      empty products    with nothing to sum: zeros from L1
//      factors by col    right factors that are stored column by column: column views, by strides
//      wide columns      columns of wide matrices: row views of one column, by strides
//      other strides     rows whose elements do not lie together. On a device such a task ends with
//                        UNSUPPORTED; the tree's other builds execute it
//      both cores        kernels for cube and vector cores (MIX): two halves with FIFOs in global
//                        memory on A2/A3
//      direct FIFOs      the same on A5, whose cores exchange through UB and L1: executed and timed
//                        as moves of one core. Trees for a device are refused: no public document
//                        says where the slots lie, or when they are free again
//      operands          other demands of an instruction on its tiles (ptoisa_shim.h)
//      tiles, memories   tiles are aligned and written before they are read; all that live fit
//
// A kernel that breaks one is refused when it ends: the text has kernel, operation, instruction,
// element type, machine and "(rule: ...)" with one of these names.
typedef struct ptowsp_capability {
    const char *directive, *value;
    ptowsp_support support[PTOWSP_TARGET_COUNT];
} ptowsp_capability;

PTOWSP_API uint32_t ptowsp_capability_count(void);
PTOWSP_API ptowsp_capability ptowsp_capability_at(uint32_t i);  // Requires i < count
PTOWSP_API void ptowsp_capability_print(ptowsp_output output);  // the table
PTOWSP_API const char *ptowsp_target_name(ptowsp_target target);
PTOWSP_API const char *ptowsp_support_name(ptowsp_support support);

// Checks a schedule for a target, as compiling does; NULL is the default schedule. The error is in
// the module's context and names the directive.
// Errors   INVALID_PARAMS (lanes, keys or counts that are missing, superfluous, of the wrong type
//          or out of range), UNSUPPORTED (the target refuses a directive), STUCK (the schedule can
//          never proceed, as far as this is known without the program).
PTOWSP_API ptowsp_status ptowsp_schedule_check(const ptowsp_module *module,
                                               const ptowsp_schedule *schedule,
                                               ptowsp_target target);

// Writes the schedule as text, one directive per line: issue, dispatch and dependencies, and all
// directives that are not the default.
PTOWSP_API void ptowsp_schedule_print(const ptowsp_schedule *schedule, ptowsp_output output);

// -------------------------------------------------------------------------------------------------
// 19. Modules as text
// -------------------------------------------------------------------------------------------------
//
// The text that ptowsp_module_print writes can be read again: a declaration or a statement on each
// line, in scopes by indentation, two spaces for each. "#" begins a comment.
//      module decode
//      axis batch dynamic
//      kernel attend(axes 1) cube, 2000 cycles
//      workload step
//        parallel b in batch
//          task attend(b)
//
// Appendix B has the grammar.

typedef struct ptowsp_parse_kernel {
    const char *name;
    ptowsp_kernel_fn fn, cost;  // taken where the text says that the kernel has one
    void *user;
    ptowsp_kernel_source source;
    const ptowsp_pto_source *pto;  // of "a PTO-ISA source"
    // If given, it makes the kernel, and operations in the text are ignored: for tile kernels
    // without a body, as in texts of earlier versions. The kernel that it makes must have this name
    // and these parameters.
    ptowsp_kernel (*make)(ptowsp_module *module, void *user);
} ptowsp_parse_kernel;

typedef struct ptowsp_parse_desc {
    const ptowsp_parse_kernel *kernels;  // [kernel_count]
    uint32_t kernel_count;
    // If not 0, kernels to which you attach nothing are for time alone. They take the cycles in the
    // text, or these where it has none. If 0 (default), they are an error.
    ptowsp_cycles default_cycles;
} ptowsp_parse_desc;

typedef struct ptowsp_text_place {
    uint64_t line, column;  // from 1, in bytes; 0 without an error in the text
} ptowsp_text_place;

// Makes a module from its text, `length` arbitrary bytes. desc and out_place may be NULL. Printing
// the module gives the text again, if it was a print.
//
// Errors   INVALID_PARAMS (the text is not a module, or the building functions refuse it),
//          LIMIT_EXCEEDED, OUT_OF_MEMORY. The first error is the only one. The context's text
//          begins with "line:column: ", its index is the line, and *out_module is NULL.
// Limits   As for building. Parentheses and operators before operands nest 408 deep.
// Cost     O(length), and per use of a variable a walk over the scopes around it.
PTOWSP_API ptowsp_status ptowsp_module_parse(ptowsp_context *context, const char *text,
                                             size_t length, const ptowsp_parse_desc *desc,
                                             ptowsp_module **out_module,
                                             ptowsp_text_place *out_place);

// -------------------------------------------------------------------------------------------------
// 20. Programs
// -------------------------------------------------------------------------------------------------
//
// A program is a checked and compiled workload with its schedule. It is immutable and takes a few
// kilobytes, however many tasks it makes. Any number of runs may share it, on any threads.

typedef struct ptowsp_program ptowsp_program;

typedef struct ptowsp_program_desc {
    const char *workload;             // the first to run; default: the module's last workload
    const ptowsp_schedule *schedule;  // default: one lane, dataflow, hybrid dependencies
} ptowsp_program_desc;

// Compiles; desc may be NULL. The program does not need the module afterwards.
//
// Memory   From the context, until destroyed.
// Errors   The module's first error; open scopes; no workload, or an unknown one; calls of unknown
//          workloads, with wrong arguments, or in a cycle; a key without its variable; as
//          ptowsp_schedule_check; OUT_OF_MEMORY. The context has the text of each.
PTOWSP_API ptowsp_status ptowsp_program_create(ptowsp_context *context, ptowsp_module *module,
                                               const ptowsp_program_desc *desc,
                                               ptowsp_program **out_program);

// Frees a program; NULL is ignored. Requires that no run of it is left.
PTOWSP_API void ptowsp_program_destroy(ptowsp_program *program);

// Bytes of memory that the program holds.
PTOWSP_API size_t ptowsp_program_size(const ptowsp_program *program);

// The name of a kernel by the id in a ptowsp_task_record, or NULL.
PTOWSP_API const char *ptowsp_program_kernel_name(const ptowsp_program *program, uint32_t kernel);

// Writes the place of a node in the tree, by its id: "attention/parallel b/task attn".
PTOWSP_API void ptowsp_program_print_place(const ptowsp_program *program, uint32_t node,
                                           ptowsp_output output);

// Writes the program as text, the same for the same module and schedule.
PTOWSP_API void ptowsp_program_print(const ptowsp_program *program, ptowsp_output output);

// -- saved programs -------------------------------------------------------------------------------
//
// A program outlives its process as text: its module, its first workload and its schedule, after a
// line with format, length and checksum. Loading compiles it again, on a machine of any byte order.
//
//      ptowsp program 1, 1234 bytes, 0123456789abcdef
//      module decode                                       as ptowsp_module_print writes it
//      ...
//      program step                                        the first workload
//      schedule                                            as ptowsp_schedule_print writes it
//        issue dataflow
//        dispatch affinity of task.b over 4 lanes
//
// Tile kernels are in it, with their operations. Functions are not: ptowsp_program_load attaches
// kernels by name (ptowsp_parse_desc, section 19). A key reads a task's variable as task.b,
// an argument as task.args[0], a tag as task.tag(t). After a change by hand, rewrite the first
// line: the checksum is ptowsp_hash of all that follows it.

// Writes a module's program, as ptowsp_program_create would make it; desc may be NULL. The text is
// read back and compiled first, so a saved program can be loaded.
// Errors   As ptowsp_program_create. As ptowsp_module_parse, if no text can express the module (a
//          symbol hidden by a variable, the size of a plan with several axes). OUT_OF_MEMORY.
//          Nothing is written then.
// Cost     Two compilations, two prints and a load.
PTOWSP_API ptowsp_status ptowsp_program_save(ptowsp_context *context, ptowsp_module *module,
                                             const ptowsp_program_desc *desc, ptowsp_output output);

// Makes a saved program from `length` arbitrary bytes. desc and out_place may be NULL. The file may
// be freed afterwards.
// Errors   INVALID_PARAMS: not a saved program; a length or checksum that differs from its first
//          line (a byte-order mark, or lines that end in CR LF, are named). UNSUPPORTED: a format
//          that this version does not know. As ptowsp_module_parse, with the place in the text, and
//          as ptowsp_program_create.
// Cost     Reading and compiling, each linear.
PTOWSP_API ptowsp_status ptowsp_program_load(ptowsp_context *context, const void *data,
                                             size_t length, const ptowsp_parse_desc *desc,
                                             ptowsp_program **out_program,
                                             ptowsp_text_place *out_place);

// -------------------------------------------------------------------------------------------------
// 21. Runs
// -------------------------------------------------------------------------------------------------
//
// A run binds sizes, symbols, arrays and memory to a program and runs it, any number of times.
// Bindings stay until replaced. Arrays and tensors are not copied: they belong to the caller and
// must live, with their sizes unchanged, while a run executes. Kernels write to tensors only.
// Control that depends on computed data loads it into slots, and does not read it from arrays.
//
// Before any kernel is called, the whole program is checked: everything is bound, arrays are
// well-formed, every view is inside its tensor. So such errors leave all data untouched. Only parts
// that depend on slots loaded from computed data are checked later, task by task, each before its
// kernel is called. The same holds in processes for everything that depends on tokens, and
// everything inside a consume or a receive.
//
// On lanes. With lane_count in its options an execution uses that many lanes of the context. The
// thread that walks the program issues tasks, at most a window of them ahead of the oldest that is
// not done. (A ring of tasks limits it as well; the most is 4096.) Any lane runs a task as
// soon as the tasks that it waits for are done:
//
//      program order    retired | done  running  done  waits  ready | not yet issued
//                                 ^ oldest in flight                ^ the walk, a window ahead
//
// A task waits for all earlier tasks that conflict with it on the same data (read after write,
// write after read, write after write), whatever the schedule is. It also waits as the schedule's
// structure, explicit edges and streams demand. A slot is loaded when the tasks that write its
// element are done. So outputs are the same, to the bit, for any number of lanes, if kernels touch
// no data but their tiles. Kernels must protect any data that they reach through `user`. So must
// cost functions, as several lanes may call them at once. Time is simulated in program order from
// the cycles that kernels return, so it is the same, too.
//
// Tasks are handed to lanes according to their measured duration. Iterations of an innermost loop
// with one task go to a lane several at a time while each takes less than 2 us. This needs the
// default window, and a schedule without streams. While all tasks take less than 0.2 us, the
// walking thread runs them itself, since handing them over costs as much (not in programs that
// communicate). Neither happens if a key chooses the real lane, or while the wall clock of tasks is
// recorded. Results are the same.
//
// Affinity, custom, hash and plan also choose the real lane, by key modulo lanes. (While the thread
// of that lane is slow to wake, others take its tasks.) Otherwise any lane takes any task. In
// pipelines, tasks whose cycles are known before they run (tile kernels, constant cycles, or a
// cost) run on lanes, each after the task before it in its process. The walk waits for any other
// task.
//
// Meanwhile the context is busy: kernels that call its functions get BUSY.
//
// Ending early. Any thread may cancel an execution, and an execution may have a time limit. Then no
// further kernel is called. Once the kernels that have begun return, the execution returns
// CANCELLED or TIMED_OUT. Pipelines end too, also those without tasks. Executing again gives the
// results of an execution that was not cancelled, unless kernels accumulate into their own outputs.
//
// Started runs. ptowsp_run_start executes a run on a thread of its own, so that the calling thread
// prepares the next step meanwhile, with another run of the same program:
//
//      ptowsp_run_start(runs[0], &options);            // step n
//      ptowsp_run_bind_size(runs[1], "batch", 7);      // step n + 1, while step n runs
//      ptowsp_run_wait(runs[0]);                       // its results may be read from here on
//      ptowsp_run_start(runs[1], &options);
//
// From its start until it has been waited for, binding, executing or starting this run is BUSY, and
// its results must not be read. With a lane_count above 1, and on a device, the context is busy as
// long. Otherwise any number of runs of a context may be started at once.
//
// When a kernel fails, issued tasks that do not depend on it still run, except those that were
// handed to the same lane together with it. The error reported is the first in program order, as
// without lanes. Slots keep the values that the walk, which ran ahead, gave them.
//
// Memory   A run grows with the tasks in flight, that is, with the window, not with the number of
//          tasks. In order or fifo it takes 20 to 40 bytes for each task in flight. It takes some
//          65 more for each tile that dependencies look at, and 60 to 80 more where lanes choose.
//          With three tiles that is at most 264. Recording tasks takes memory for each task (see
//          section 22), and up to 48 bytes more for each task in flight. Rings and depths take 48
//          to 96 bytes more for each task that has not retired. Lanes take some 100 bytes more for
//          each task of the window, 25 for each tile, and 65 for each tile of a tensor that tasks
//          write. With three tiles, one of them written, that is again at most 256. Each lane takes
//          3 KiB, and loops with one task in them some 100 KiB. Repeating an execution allocates
//          nothing; on lanes, only if more tasks are in flight than ever before.

typedef struct ptowsp_run ptowsp_run;

// Creates a run of a program, with nothing bound and all slots 0.
PTOWSP_API ptowsp_status ptowsp_run_create(ptowsp_context *context, const ptowsp_program *program,
                                           ptowsp_run **out_run);
PTOWSP_API void ptowsp_run_destroy(ptowsp_run *run);  // NULL is ignored

// Arrays of compressed sparse rows: row i has entries indptr[i] .. indptr[i + 1] - 1 of indices.
typedef struct ptowsp_csr {
    ptowsp_dtype dtype;   // of both arrays: i32, i64, u32 or u64
    const void *indptr;   // row_count + 1 elements, from 0, not decreasing
    const void *indices;  // indptr[row_count] elements, not negative
    uint64_t row_count;
    uint64_t entry_count;  // of indices; at least indptr[row_count]
} ptowsp_csr;

// The kinds of bindings of a run, a row each. Fields that a kind does not name are not read.
// clang-format off
#define PTOWSP_BIND_KINDS(KIND) /* kind, what `name` is the name of */                             \
    KIND(SIZE, "dynamic axis")   /* value: the size */                                             \
    KIND(SYMBOL, "symbol")       /* value */                                                       \
    KIND(ARRAY, "array")         /* data: count elements of dtype */                               \
    KIND(LENGTHS, "ragged axis") /* the same: i32, i64, u32 or u64 */                              \
    KIND(CSR, "sparse axis")     /* data: a ptowsp_csr */                                          \
    KIND(TENSOR, "tensor")       /* data: a ptowsp_buffer */                                       \
    KIND(PLAN, "plan")           /* data: a ptowsp_attention_plan */                               \
    KIND(WORK, "plan")           /* data: count descriptors, ptowsp_work */                        \
    KIND(BATCH, "plan")          /* data: a ptowsp_attention_batch; config; capacity */            \
    KIND(SLOT, "")               /* slot; value: at the start of a run */                          \
    KIND(TRANSIENTS, "")         /* block: of count bytes, or NULL; see transient tensors */       \
    KIND(RANKS, "")              /* data: a ptowsp_run_ranks, or NULL */

typedef enum ptowsp_bind_kind {
#define PWSP_BIND_KIND_ENUM(kind, name_of) PTOWSP_BIND_##kind,
    PTOWSP_BIND_KINDS(PWSP_BIND_KIND_ENUM)
#undef PWSP_BIND_KIND_ENUM
    PTOWSP_BIND_KIND_COUNT,
    PWSP_FORCE_INT(PTOWSP_BIND)
} ptowsp_bind_kind;
// clang-format on

typedef struct ptowsp_binding {
    ptowsp_bind_kind kind;
    const char *name;
    uint64_t value;  // a size is an int64_t
    const void *data;
    uint64_t count;
    ptowsp_dtype dtype;
    uint32_t slot;
    const ptowsp_attention_config *config;
    const ptowsp_attention_sizes *capacity;
    void *block;
} ptowsp_binding;

// Binds all that a step brings, in one call:
//
//      const ptowsp_binding step[] = {
//          {.kind = PTOWSP_BIND_SIZE, .name = "batch", .value = 3},
//          {.kind = PTOWSP_BIND_LENGTHS, .name = "kv", .dtype = PTOWSP_I32, .data = kv, .count = 3},
//          {.kind = PTOWSP_BIND_TENSOR, .name = "q", .data = &q}};
//      ptowsp_run_bind(run, step, 3);
//
// Binds in order; the first error ends it, and earlier bindings stay. The functions below bind one
// thing each, with arguments that compilers check. A name that no statement uses may be bound, and
// need not be. Contents of used arrays are checked when executing.
// Errors   INVALID_PARAMS: a name that the module did not have as this kind when it was compiled; a
//          negative size; a NULL pointer to one or more elements; a dtype, rank or shape that
//          differs from the declared one; a misaligned pointer; strides or sizes beyond the buffer
//          or 63 bits; no such slot or kind. The old binding stays. BUSY: the run executes.
PTOWSP_API ptowsp_status ptowsp_run_bind(ptowsp_run *run, const ptowsp_binding *bindings,
                                         size_t count);

PTOWSP_INLINE ptowsp_binding pwsp_binding_of(ptowsp_bind_kind kind, const char *name) {
    const ptowsp_binding b = {kind,       name, 0,         PWSP_NULL, 0,
                              PTOWSP_F32, 0,    PWSP_NULL, PWSP_NULL, PWSP_NULL};
    return b;
}
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_size(ptowsp_run *run, const char *axis, int64_t size) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_SIZE, axis);
    b.value = PWSP_CAST(uint64_t, size);
    return ptowsp_run_bind(run, &b, 1);
}
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_symbol(ptowsp_run *run, const char *symbol,
                                                   uint64_t value) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_SYMBOL, symbol);
    b.value = value;
    return ptowsp_run_bind(run, &b, 1);
}
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_array(ptowsp_run *run, const char *array,
                                                  ptowsp_dtype dtype, const void *data,
                                                  uint64_t count) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_ARRAY, array);
    b.dtype = dtype;
    b.data = data;
    b.count = count;
    return ptowsp_run_bind(run, &b, 1);
}
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_lengths(ptowsp_run *run, const char *axis,
                                                    ptowsp_dtype dtype, const void *data,
                                                    uint64_t count) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_LENGTHS, axis);
    b.dtype = dtype;
    b.data = data;
    b.count = count;
    return ptowsp_run_bind(run, &b, 1);
}
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_csr(ptowsp_run *run, const char *axis,
                                                const ptowsp_csr *csr) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_CSR, axis);
    b.data = csr;
    return ptowsp_run_bind(run, &b, 1);
}
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_tensor(ptowsp_run *run, const char *tensor,
                                                   const ptowsp_buffer *buffer) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_TENSOR, tensor);
    b.data = buffer;
    return ptowsp_run_bind(run, &b, 1);
}

// Bind the plan of a step to the plan axes of a name; it replaces the previous plan. Counts are
// copied, the plan's arrays are not: they must live while the run executes. After planning
// into the same arrays, bind the plan again. Executing checks the lists of lanes if the program
// uses lanes; to prove the plan itself, use ptowsp_attention_check. MoE plans are bound as
// ptowsp_moe_plan_units: merge_begin may be NULL in a plan without merges and room for them.
// Errors   As above, or INVALID_PARAMS: NULL arrays with elements; counts beyond capacities or,
//          of lanes, out of range; merges of flag PTOWSP_WORK_ROWS, and units of flag
//          PTOWSP_WORK_POSITIONS; work for a program that uses slots, lanes or merges.
//          LIMIT_EXCEEDED: work of more than 2^32 - 1 units.
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_plan(ptowsp_run *run, const char *plan,
                                                 const ptowsp_attention_plan *bound) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_PLAN, plan);
    b.data = bound;
    return ptowsp_run_bind(run, &b, 1);
}
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_work(ptowsp_run *run, const char *plan,
                                                 const ptowsp_work *work, uint64_t count) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_WORK, plan);
    b.data = work;
    b.count = count;
    return ptowsp_run_bind(run, &b, 1);
}

// Bind a batch in place of a plan: each execution plans it first (ptowsp_attention_generate), and
// the plan axes iterate over that plan. Emitted trees plan on the AICPU. Batch and configuration
// are copied; the lengths, speeds and tiers that they point to are not, and are read by each
// execution.
//
// Memory belongs to the run. With `capacity`, the sizes of ptowsp_attention_bound, it is allocated
// here, once; a plan that needs more units, merges or slots is an error of the execution. Scratch
// tensors then have capacity->slot_count slots of capacity->slot_rows rows. With NULL memory grows
// when a plan does not fit. The slots of a plan are then checked against their tensor, as all views
// are; ptowsp_attention_size gives their number.
// Errors   As above; as ptowsp_attention_bound for the configuration; OUT_OF_MEMORY; INVALID_PARAMS
//          for the capacity of a different configuration, shares_merges, or arrays of positions.
//          Executing returns the status of ptowsp_attention_generate, with its text and the sequence
//          as index.
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_batch(ptowsp_run *run, const char *plan,
                                                  const ptowsp_attention_batch *batch,
                                                  const ptowsp_attention_config *config,
                                                  const ptowsp_attention_sizes *capacity) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_BATCH, plan);
    b.data = batch;
    b.config = config;
    b.capacity = capacity;
    return ptowsp_run_bind(run, &b, 1);
}

// -- transient tensors ----------------------------------------------------------------------------
//
// Before an execution walks the program, it evaluates the sizes of the program's transient tensors
// (section 14). It places them in one block, each at a multiple of PTOWSP_TRANSIENT_ALIGN bytes.
// Tensors that are never alive at the same point of the program may share bytes. The points are its
// statements in order, with parallel loops, combines and pipelines as one point each. Places depend
// on sizes alone, and are recomputed only when sizes change.
//
// Shared memory orders tasks as any reuse of memory does: a task waits for the tasks that used its
// bytes before. This always holds on lanes; in simulated time it holds if the schedule's
// dependencies look at data. So results have the same bits as with separate memory for each tensor.
// Emitted trees follow the same rules; on a device they use the device's memory.

#define PTOWSP_TRANSIENT_ALIGN 64

// The block: the caller's memory, aligned to PTOWSP_TRANSIENT_ALIGN bytes, which must live while
// the run executes; on a device, the device's memory. With NULL it is the context's, kept by the
// run and grown when an execution needs more; then size is a limit, and 0 means no limit (the
// default). Executions that need more than size end with LIMIT_EXCEEDED before anything is called.
// The error names the largest tensors at the point that needs most.
// Errors   INVALID_PARAMS (alignment), BUSY.
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_transients(ptowsp_run *run, void *block,
                                                       uint64_t size) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_TRANSIENTS, PWSP_NULL);
    b.block = block;
    b.count = size;
    return ptowsp_run_bind(run, &b, 1);
}

typedef struct ptowsp_transient_sizes {
    uint64_t peak;  // bytes of the block
    uint64_t sum;   // bytes that all would take, each with memory of its own
    uint64_t low;   // the most bytes alive at one point: no placement takes less
    uint32_t point_count;
    uint32_t point;           // the first one where that many are alive
    uint32_t lifetime_count;  // for ptowsp_run_lifetime_at
} ptowsp_transient_sizes;

// Places the transient tensors for the current bindings, without executing. Needs all sizes,
// lengths, plans and symbols that the program uses, but no other tensors.
// Errors   As executing, for these; INVALID_PARAMS: a negative size; LIMIT_EXCEEDED: more than 2^61
//          bytes; BUSY.
// Cost     Microseconds for tens of tensors, quadratic in their number; less if sizes have not
//          changed.
PTOWSP_API ptowsp_status ptowsp_run_size_transients(ptowsp_run *run,
                                                    ptowsp_transient_sizes *out_sizes);

// A lifetime, i < lifetime_count: tensors in the order of their declaration, and of a tensor that
// several calls of its workload use, a lifetime each, in order.
typedef struct ptowsp_lifetime {
    uint32_t tensor;        // of the program
    uint32_t first, last;   // points, inclusive
    uint64_t offset, size;  // bytes in the block
} ptowsp_lifetime;
PTOWSP_API ptowsp_lifetime ptowsp_run_lifetime_at(const ptowsp_run *run, uint32_t i);

// Writes the place of a point: "decode/for_each layer/parallel head". Requires that it exists.
PTOWSP_API void ptowsp_program_print_point(const ptowsp_program *program, uint32_t point,
                                           ptowsp_output output);

// bind_slot sets the value that a slot has when a run begins (default: 0). run_slot returns its
// value at the end of the last run, and requires that the module has the slot.
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_slot(ptowsp_run *run, uint32_t slot, uint64_t value) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_SLOT, PWSP_NULL);
    b.slot = slot;
    b.value = value;
    return ptowsp_run_bind(run, &b, 1);
}
PTOWSP_API uint64_t ptowsp_run_slot(const ptowsp_run *run, uint32_t slot);

typedef enum ptowsp_run_mode {
    PTOWSP_RUN_EXECUTE = 0,  // kernels run
    PTOWSP_RUN_TIME_ONLY,    // no kernel runs and no tensor is touched. Every kernel is a tile
                             // kernel or has a cost or constant cycles, and no slot is loaded from
                             // a tensor that a task writes (UNSUPPORTED otherwise)
    PWSP_FORCE_INT(PTOWSP_RUN_MODE)
} ptowsp_run_mode;

typedef struct ptowsp_run_options {
    ptowsp_run_mode mode;
    bool record_tasks;  // keep a record of each task and of each step in a pipeline, and find the
                        // critical paths
    ptowsp_cost cost;   // the cost model of tile kernels. Default: the unit model, which counts
                        // elements instead of a machine's cycles; see PTOWSP_MODELS
    // The most tokens that a channel may get each time its pipeline runs; one more is
    // LIMIT_EXCEEDED. Default: no limit. Tokens that circulate for ever then do so.
    uint64_t token_limit;
    // Lanes of the context that run kernels, at most as many as it has (INVALID_PARAMS). Default:
    // 1, the calling thread. TIME_ONLY ignores it.
    uint32_t lane_count;
    // Wall-clock time after which no kernel begins: the execution is then TIMED_OUT, once the kernels
    // that have begun return. If all kernels had begun by then, it is OK, however long they take. It
    // costs a look at the clock per task (25 ns). Default: none.
    uint64_t time_limit_ns;
} ptowsp_run_options;

// Runs the program; options may be NULL.
//
// Errors   INVALID_PARAMS and UNBOUND (something is missing, malformed or outside; the text names
//          it, the place in the tree and the variables around it). STUCK (nothing can proceed; the
//          text reports who waits for whom, and a remedy). LIMIT_EXCEEDED (time beyond
//          PTOWSP_CYCLES_MAX; a full window under abort). UNSUPPORTED (time only, see above),
//          OUT_OF_MEMORY. BUSY (called from a kernel of the same run or from a job of its context;
//          the run has been started). CANCELLED and TIMED_OUT, even if a kernel has failed before;
//          an execution that had already completed is OK. The status of a kernel that failed, with
//          the task as index. The run may be used again. Its results cover the work done until the
//          error.
// Cost     About 6 to 60 ns per task: 6 to 15 in order or fifo by structure, some 60 where
//          dependencies look at data; lanes that choose cost up to 100 more. A tile adds 10 ns.
//          Executing looks at every task twice. A tile is looked up among the tiles in flight of
//          each size that its tensor has in use. Tensors packed into one buffer (rows of Q, K and V
//          in turn) cost the same, if their strides show that they share no bytes. This does not
//          hold in programs with pipelines. Otherwise tiles are compared by the range from their
//          first to their last byte, and then exactly. A task that a depth holds up costs a look at
//          the tasks in flight.
PTOWSP_API ptowsp_status ptowsp_run_execute(ptowsp_run *run, const ptowsp_run_options *options);

// Executes a run on the workers of an engine: every worker makes this call; see
// ptowsp_context_run_worker. The options of worker 0 count.
// Errors   As ptowsp_run_execute and ptowsp_context_run_worker.
PTOWSP_API ptowsp_status ptowsp_run_execute_worker(ptowsp_run *run,
                                                   const ptowsp_run_options *options,
                                                   uint32_t worker, uint32_t worker_count);

// Cancels the current execution, started or not, also one on a device. Does nothing without one:
// before the start, after the end, or a second time.
// Threads  Any, also kernels of the run; the run must not be destroyed meanwhile.
PTOWSP_API void ptowsp_run_cancel(ptowsp_run *run);

// Executes a run on a thread that belongs to it: ptowsp_run_execute without waiting. Options are
// copied; arrays and memory that are bound stay with the run until it has been waited for. The
// thread is made by the first start and sleeps between executions. (With PTOWSP_THREADS_USER,
// run_lanes is called on it.) It uses the allocator of the context, at the same time as the calling
// thread may: an allocator of your own must allow that.
//
// Errors   INVALID_PARAMS (options), BUSY, OUT_OF_MEMORY, SYSTEM_FAILED (no thread), UNSUPPORTED
//          (PTOWSP_NO_THREADS). Nothing has been started then. Wait returns all other errors.
PTOWSP_API ptowsp_status ptowsp_run_start(ptowsp_run *run, const ptowsp_run_options *options);

// Wait until a started run is done, and return its status; the context then has its error. poll
// does not wait: BUSY while the run executes. Each start is waited for once.
//
// ptowsp_run_destroy cancels a started run and waits for it.
// Errors   As ptowsp_run_execute. INVALID_PARAMS: the run has not been started, or has been waited
//          for.
PTOWSP_API ptowsp_status ptowsp_run_wait(ptowsp_run *run);
PTOWSP_API ptowsp_status ptowsp_run_poll(ptowsp_run *run);

// The reasons why a task did not start earlier, and for the time spent waiting. A task that starts
// at 0 has NONE. Three conditions are tried in order, and the first that became true only at the
// task's start is the reason. Its dependencies were done: DEPENDENCY. The previous task of its lane
// ended: LANE. The clock of issue arrived: the reason that moved the clock last. Else it has START.
// With control (ptowsp_control), CONTROL comes before all of them: without control the task would
// have started earlier. Its cause is then the task that it waited for by that time.
#define PTOWSP_STALLS(STALL) /* name, text */                                                      \
    STALL(NONE, "none")                                                                            \
    STALL(DEPENDENCY, "dependency") /* a task that it waits for was not done */                    \
    STALL(LANE, "lane")             /* its lane was busy */                                        \
    STALL(WINDOW, "window")         /* the window was full */                                      \
    STALL(ORDER, "order")           /* in order: the clock had moved for an earlier task's data */ \
    STALL(SLOT, "slot")             /* a slot load before it had to wait */                        \
    STALL(TIMING, "timing")         /* issue was rate limited, batched or interleaved */           \
    STALL(START, "start")           /* tasks had not begun to start */                             \
    STALL(CHANNEL, "channel")       /* its process waited at a full or an empty channel */         \
    STALL(TASK_RING, "task ring")   /* a ring had no room for it: these, in the order of rings */  \
    STALL(BYTE_RING, "byte ring")                                                                  \
    STALL(DEPENDENCY_RING, "dependency ring")                                                      \
    STALL(MAP_RING, "map ring")                                                                    \
    STALL(DEPTH, "depth") /* its stream or pool had as many tasks in flight as it may */           \
    STALL(RANK, "rank")   /* it communicates, and other ranks had not begun: part of its cycles */ \
    STALL(CONTROL, "control") /* launch, submission, or an AICPU thread: see ptowsp_control */

// clang-format off
typedef enum ptowsp_stall {
#define PWSP_STALL_ENUM(name, text) PTOWSP_STALL_##name,
    PTOWSP_STALLS(PWSP_STALL_ENUM)
#undef PWSP_STALL_ENUM
    PTOWSP_STALL_COUNT,
    PWSP_FORCE_INT(PTOWSP_STALL)
} ptowsp_stall;
// clang-format on

PTOWSP_API const char *ptowsp_stall_name(ptowsp_stall stall);

typedef struct ptowsp_run_stats {
    // The end of the last task or pipeline; with control, until the end of the last task has been
    // handled.
    ptowsp_cycles makespan_cycles;
    uint64_t task_count;
    uint32_t lane_count;
    // The sum of all tasks' cycles, including tasks in processes. A task that takes a block of
    // lanes counts three times.
    ptowsp_cycles busy_cycles;
    //      WINDOW, SLOT, ..._RING, DEPTH   the cycles by which they moved the clock of issue
    //      TIMING         the same, and the sum of the tasks' waits for their turn
    //      DEPENDENCY     the sum of the tasks' waits from issue until ready; in order, the cycles
    //                     by which dependencies moved the clock
    //      LANE, START    after that, the sum of the tasks' waits for their lane and for the start
    //      CHANNEL        the sum of the processes' waits at channels
    //      RANK           the sum of waits for other ranks to begin, in time of them together
    //      CONTROL        the cycles by which launch and submission moved the clock, and the sum of
    //                     the tasks' waits for control after all of that
    //      NONE, ORDER    0
    ptowsp_cycles stall_cycles[PTOWSP_STALL_COUNT];
    uint64_t in_flight_max;  // most tasks in flight, just after an issue; 0 without a window
    uint64_t window_overflow_count;        // tasks that found the window full under benchmark
    uint64_t ring_max[PTOWSP_RING_COUNT];  // most held at once, just after an issue; 0 without it
    uint64_t slot_load_count;
    uint64_t region_max;  // most tile regions tracked at once, for dependencies
    size_t memory_bytes;  // held by the run
    // With control: the cycles in which AICPU threads work, of all threads together, and those in
    // which tasks are submitted.
    ptowsp_cycles control_cycles, submit_cycles;
    // Of memory that lanes share; 0 without. Bytes of tasks that came from HBM and from L2; the
    // cycles in which a lane wanted more of it than it got; by how much tasks took longer than alone.
    uint64_t hbm_bytes, l2_bytes;
    ptowsp_cycles hbm_limited_cycles, l2_limited_cycles;
    ptowsp_cycles slowed_cycles;
} ptowsp_run_stats;

typedef struct ptowsp_lane_stats {
    ptowsp_cycles busy_cycles;
    ptowsp_cycles idle_cycles;  // makespan - busy
    uint64_t task_count;
    ptowsp_cycles end_cycles;     // of its last task
    ptowsp_cycles slowed_cycles;  // of the busy ones: by how much its tasks took longer than alone,
                                  // where lanes share memory
} ptowsp_lane_stats;

#define PTOWSP_NO_LANE UINT32_MAX

typedef struct ptowsp_task_record {
    // issue: the clock when the task was issued. ready: the time at which all its dependencies were
    // done; dependencies done before `issue` may not be counted.
    // With control: when they ended, which an AICPU thread notices later.
    ptowsp_cycles ready, issue, start, end;
    uint64_t cause;      // index of the last task that it waited for, or PTOWSP_NO_INDEX
    ptowsp_stall stall;  // why it did not start before `start`; in a process, LANE means that the
                         // process was busy with the task before
    uint32_t lane;       // PTOWSP_NO_LANE: it ran in a process, or never, after a failure
    uint32_t kernel;     // id of its ptowsp_kernel
    uint32_t node;       // id of its ptowsp_node
} ptowsp_task_record;

// Results of the last execution; all zero before. Pointers live until the next one.
PTOWSP_API const ptowsp_run_stats *ptowsp_run_result(const ptowsp_run *run);
PTOWSP_API const ptowsp_lane_stats *ptowsp_run_lanes(const ptowsp_run *run);  // lane_count of them

// Every task, by index; NULL when they were not recorded.
PTOWSP_API const ptowsp_task_record *ptowsp_run_records(const ptowsp_run *run);

// The critical path: *out_count task indices, first to last. It goes from the task that ends last
// (the first of several) back along `cause`. NULL and 0 when tasks were not recorded. out_count may
// be NULL.
PTOWSP_API const uint64_t *ptowsp_run_critical_path(const ptowsp_run *run, uint64_t *out_count);

// Pipelines: results of each pipeline of the program, of its processes (replicas one after another)
// and of its channels, all in the order of the tree. A pipeline may run several times in one
// execution; unless stated otherwise, numbers describe its last run. Times count from the start of
// the pipeline. For each process, busy + full + empty cycles add up to the time at which it ended
// (if the pipeline ran once). For a pipeline that is stuck or has failed, numbers cover the work
// done; waits that did not end are not counted.

typedef struct ptowsp_pipeline_stats {
    const char *name;
    uint64_t run_count;             // how many times it has run
    ptowsp_cycles start_cycles;     // when it started, on the clock of the run
    ptowsp_cycles makespan_cycles;  // when its last process ended, or got stuck
    ptowsp_cycles total_cycles;     // sum of its makespans over all its runs
    uint32_t first_process, process_count;
    uint32_t first_channel, channel_count;
    // It ends, or gets stuck, with the same tokens for all times of its tasks. This holds if each
    // channel has at most one producer and one consumer (Kahn 1974), and no slot is loaded from
    // tensors that its tasks write. Otherwise different times may deadlock a pipeline that has
    // ended, or end one that was stuck: see ptowsp_run_explore.
    bool is_timing_independent;
} ptowsp_pipeline_stats;

typedef enum ptowsp_process_state {
    PTOWSP_PROCESS_ENDED = 0,  // or has not run
    PTOWSP_PROCESS_STOPPED,    // after its own failure or another one's
    PTOWSP_PROCESS_FULL,       // stuck: waits until a channel has room
    PTOWSP_PROCESS_EMPTY,      // stuck: waits until a channel has a token
    PWSP_FORCE_INT(PTOWSP_PROCESS)
} ptowsp_process_state;

typedef struct ptowsp_process_stats {
    const char *name;
    uint32_t replica, replica_count;
    ptowsp_process_state state;
    uint32_t channel;            // FULL, EMPTY: the channel, an index of ptowsp_run_channels
    uint32_t node;               // FULL, EMPTY: the place in the tree where it waits
    ptowsp_cycles end_cycles;    // when it ended, stopped or began to wait
    uint64_t task_count;         // this and the following are sums over all runs
    ptowsp_cycles busy_cycles;   // in tasks
    ptowsp_cycles full_cycles;   // waiting until a channel has room
    ptowsp_cycles empty_cycles;  // waiting for a token or the end of the stream
} ptowsp_process_stats;

typedef struct ptowsp_channel_stats {
    const char *name;
    uint32_t depth;
    ptowsp_cycles latency;
    uint64_t pending_count;      // tokens that no process has received
    uint64_t token_count;        // sent; this and the following are sums over all runs
    uint64_t pending_max;        // most tokens in it at once, the largest of all runs; depth 0: 0
    ptowsp_cycles full_cycles;   // that senders waited
    ptowsp_cycles empty_cycles;  // that receivers waited
} ptowsp_channel_stats;

// out_count may be NULL. Returns NULL and 0 without any.
PTOWSP_API const ptowsp_pipeline_stats *ptowsp_run_pipelines(const ptowsp_run *run,
                                                             uint32_t *out_count);
PTOWSP_API const ptowsp_process_stats *ptowsp_run_processes(const ptowsp_run *run,
                                                            uint32_t *out_count);
PTOWSP_API const ptowsp_channel_stats *ptowsp_run_channels(const ptowsp_run *run,
                                                           uint32_t *out_count);

typedef enum ptowsp_step_kind {
    PTOWSP_STEP_TASK = 0,
    PTOWSP_STEP_SEND,
    PTOWSP_STEP_RECEIVE,
    PTOWSP_STEP_END,    // the process saw the end of a stream
    PTOWSP_STEP_CLOSE,  // it closed a channel; with channel UINT32_MAX it ended
    PWSP_FORCE_INT(PTOWSP_STEP)
} ptowsp_step_kind;

// A step of a process. It lasts from `arrive` to `end`: in a task the process is busy, otherwise it
// waits.
typedef struct ptowsp_step_record {
    ptowsp_cycles arrive, end;
    uint64_t token;     // sent or received; TASK: the index of the task
    uint64_t previous;  // the previous step of this process, or PTOWSP_NO_INDEX
    uint64_t cause;     // the step at the other end of the channel that it had to wait for, or
                        // PTOWSP_NO_INDEX
    uint32_t process, channel;  // indices of ptowsp_run_processes, _channels; TASK: UINT32_MAX
    uint32_t node;              // its place in the tree
    ptowsp_step_kind kind;
} ptowsp_step_record;

// All steps of all pipelines in all their runs, in the order of simulation; NULL and 0 when they
// were not recorded. out_count may be NULL.
PTOWSP_API const ptowsp_step_record *ptowsp_run_steps(const ptowsp_run *run, uint64_t *out_count);

// The critical chain of a pipeline's last run: *out_count indices of steps, first to last. It goes
// from the end of the process that ended last (the first of several) back along `cause`, or
// `previous` for steps without a cause. NULL and 0 if steps were not recorded.
PTOWSP_API const uint64_t *ptowsp_run_critical_steps(const ptowsp_run *run, uint32_t pipeline,
                                                     uint64_t *out_count);

// Explains why the pipeline in which an execution was STUCK cannot proceed. It lists every waiting
// process with its channel, full or empty, since when and with which variables; then the cycle of
// waits, and how to break it. Writes nothing if the last execution was not stuck in a pipeline.
PTOWSP_API void ptowsp_run_print_stuck(const ptowsp_run *run, ptowsp_output output);

// -- deadlocks that depend on time ----------------------------------------------------------------
//
// Let two processes each take two of three tokens from one channel. They end well if one is done
// before the other begins, and get stuck if each has taken one or two. So the times of tasks
// decide.
//
//      pool: 3 tokens        left  receives, receives, works, sends, sends
//                            right the same, and a third process too
//
// ptowsp_run_explore searches all orders of sends and receives that the pipelines of a program can
// have if tasks may take any time, for the current bindings. It calls no kernel or cost function.
// Orders that differ only in independent steps are searched once (stubborn sets, Valmari 1989). So
// are equal states (the position of each process, and the tokens that decide control), and orders
// that differ only in which of two equal replicas moves. If each channel has one producer and one
// consumer, there is one order.

typedef struct ptowsp_explore_options {
    uint64_t state_limit;    // states with a choice that are kept; default: 65,536
    uint64_t step_limit;     // sends and receives of all orders together; default: 2^24
    uint64_t time_limit_ns;  // as in ptowsp_run_options
} ptowsp_explore_options;

typedef struct ptowsp_explore_stats {
    uint64_t state_count, step_count;  // which count against the limits
} ptowsp_explore_stats;

// Searches the pipelines of the program, in all their runs, for an order that gets stuck: one with
// the fewest choices. The result is deterministic. options and out_stats may be NULL.
//
// Replaces the results of the last execution. After STUCK they describe the deadlocked order, with
// step numbers as times. ptowsp_run_steps has its steps (process, send or receive, channel, place),
// and ptowsp_run_processes the waiting processes. ptowsp_run_print_stuck writes both, with the
// cycle of waits and how to break it.
//
// Errors   OK: no order gets stuck. STUCK: one does. LIMIT_EXCEEDED: a limit was reached; none of
//          the orders that were looked at gets stuck. UNSUPPORTED: sends or receives depend on a
//          slot that is loaded from a tensor that tasks write. As executing before kernels are
//          called, and errors of processes (INVALID_PARAMS: a send to a closed channel). CANCELLED
//          (ptowsp_run_cancel), TIMED_OUT, OUT_OF_MEMORY, BUSY.
// Memory   For each state, until it returns, one or a few bytes for each process, loop around it,
//          value that decides, and token in a channel.
// Cost     About 0.2 us per step and process.
PTOWSP_API ptowsp_status ptowsp_run_explore(ptowsp_run *run, const ptowsp_explore_options *options,
                                            ptowsp_explore_stats *out_stats);

// Writes the results as text: makespan, lanes, stalls, pipelines, and the critical paths if there
// are any.
PTOWSP_API void ptowsp_run_print(const ptowsp_run *run, ptowsp_output output);

// -- fingerprints ---------------------------------------------------------------------------------
//
// Five hashes of a run: program, bindings, inputs, results, time. They do not depend on addresses,
// strides, lanes, the machine or its byte order. So they show whether two runs did the same: with
// more lanes, on a device, on a different machine, last week. Elements are compared by their bits.

typedef struct ptowsp_fingerprint {
    uint64_t
        program;  // its text, with the schedule; its kernels by ptowsp_kernel_hash: of those in
                  // C the name and the source, not the machine code
    uint64_t bindings;  // sizes, symbols, slots at the start, arrays, plans, shapes of tensors
    uint64_t inputs;    // contents of tensors that are read and that no task writes
    uint64_t results;  // contents of tensors that tasks write (not of transient ones), slots at the
                       // end
    uint64_t time;     // makespan, busy cycles and number of tasks
} ptowsp_fingerprint;

// The fingerprint of a run, with its current bindings and the results of its last execution.
// results and time are 0 before the first execution and after a failure; inputs and results are 0
// in time-only mode.
// Cost     0.2 ns per byte of tensors with packed rows, 0.7 of others; the program once as
//          ptowsp_program_print.
// Errors   As executing before kernels are called, INVALID_PARAMS (NULL), BUSY.
PTOWSP_API ptowsp_status ptowsp_run_fingerprint(ptowsp_run *run,
                                                ptowsp_fingerprint *out_fingerprint);

// Makes a run strict: executions compare themselves with this fingerprint, and are DIFFERENT if a
// part differs; the text names it. If it is program, bindings or inputs, nothing has been called.
// Parts that are 0 are not compared, and cost nothing. NULL: not strict any more (default).
// Errors   BUSY.
PTOWSP_API ptowsp_status ptowsp_run_expect(ptowsp_run *run, const ptowsp_fingerprint *expected);

// Writes a line: "program 0123456789abcdef bindings ...".
PTOWSP_API void ptowsp_fingerprint_print(const ptowsp_fingerprint *fingerprint,
                                         ptowsp_output output);

// -------------------------------------------------------------------------------------------------
// 22. Seeing runs
// -------------------------------------------------------------------------------------------------
//
// Records of the tasks of a run, and pictures made from them. Choose a level before an execution:
//
//      NONE     nothing beyond ptowsp_run_result
//      TOTALS   sums over all tasks: by kernel, idle time by reason, use of lanes over time. Memory
//               is for the tasks in flight, so it suits runs of any length
//      TASKS    the same, and a record of each task with its axis values, scalars and bytes, and of
//               each step in a pipeline
//      EDGES    the same, and the edges to each task, with reasons (ptowsp_run_edges)
//
// Very long runs can keep the tasks of a window of time, or every n-th task; they have no critical
// path.
//
// Memory   TASKS: 96 bytes for each task that is kept, and 8 for each of its axis values and
//          scalars; up to twice that while tables grow. Others take as much while in flight. EDGES:
//          48 more for each task, 40 for a tile, 16 for an edge not of structure, and 64 for each
//          tile that no later task has overwritten. has_clock: 64 more for each kept task.
// Cost     NONE nothing. TOTALS and TASKS some 100 ns per task in time-only mode on a busy machine,
//          as tasks are issued one by one. EDGES compares each tile with the tiles of its
//          tensor that no later task has overwritten. has_clock reads a counter three times per
//          task.

typedef enum ptowsp_record_level {
    PTOWSP_RECORD_NONE = 0,
    PTOWSP_RECORD_TOTALS,
    PTOWSP_RECORD_TASKS,
    PTOWSP_RECORD_EDGES,
    PWSP_FORCE_INT(PTOWSP_RECORD)
} ptowsp_record_level;

typedef struct ptowsp_record_options {
    ptowsp_record_level level;
    // TASKS: keeps tasks that run at some time in [begin, end). end 0: to the end of the run.
    ptowsp_cycles begin, end;
    uint64_t every;  // TASKS: keeps tasks whose index is a multiple; 0 and 1: all
    bool has_clock;  // TASKS: when kernels really ran (ptowsp_run_clock_at)
} ptowsp_record_options;

// Sets the level for the following executions; NULL means NONE. record_tasks in the options of an
// execution implies at least TASKS.
// Errors   INVALID_PARAMS: no such level; an empty window (end not 0, and not after begin); EDGES
//          for a part of the tasks; has_clock below TASKS. BUSY.
PTOWSP_API ptowsp_status ptowsp_run_record(ptowsp_run *run, const ptowsp_record_options *options);

// A task that was kept. Pointers live until the next execution.
typedef struct ptowsp_task_trace {
    uint64_t index;
    const ptowsp_task_record *record;
    const uint64_t *args;  // axis values, then scalars
    uint32_t axis_count, scalar_count;
    uint64_t bytes_read, bytes_written;  // of its tiles; an inout tile counts in both
} ptowsp_task_trace;

// The tasks that the last execution kept, in ascending order of their indices. Requires i < count.
PTOWSP_API uint64_t ptowsp_run_trace_count(const ptowsp_run *run);
PTOWSP_API ptowsp_task_trace ptowsp_run_trace_at(const ptowsp_run *run, uint64_t i);

// The task with an index. False if it was not kept.
PTOWSP_API bool ptowsp_run_trace_find(const ptowsp_run *run, uint64_t index,
                                      ptowsp_task_trace *out_task);

// When kept task i ran by the wall clock, on lanes, on a device or on the calling thread: the same
// record in nanoseconds since the execution began. ready (and issue): from then until start the
// task waited only for a lane; lane: of the context, or the core; cause and stall have no meaning.
// A task whose kernel did not run has PTOWSP_NO_LANE. NULL: this was not recorded, or nothing was
// executed (TIME_ONLY). Requires i < ptowsp_run_trace_count.
//
// Times are taken on the lanes, from the time stamp counter on x86-64, else from the clock.
PTOWSP_API const ptowsp_task_record *ptowsp_run_clock_at(const ptowsp_run *run, uint64_t i);

// Writes the identity of a task: "attend request=3 head=1 scale=2". An axis value that is a
// variable, a symbol, a field of a plan or an element of an array has its name; any other is
// "axis0" and so on. Scalars have the names that their kernel gives them. A task whose node or
// number of values does not match the run's program is "task 7", by its index.
PTOWSP_API void ptowsp_run_print_task(const ptowsp_run *run, const ptowsp_task_trace *task,
                                      ptowsp_output output);

// Sums over all tasks of a kernel, from TOTALS on. Sums that would overflow stay at UINT64_MAX.
typedef struct ptowsp_task_sums {
    uint64_t task_count;
    ptowsp_cycles busy_cycles;
    ptowsp_cycles longest_cycles;  // of one task
    uint64_t bytes_read, bytes_written;
} ptowsp_task_sums;

// By kernel id, *out_count of them (0 has no tasks; out_count may be NULL); NULL and 0 when nothing
// was recorded.
PTOWSP_API const ptowsp_task_sums *ptowsp_run_kernels(const ptowsp_run *run, uint32_t *out_count);

// The cycles in which lanes were idle, by the stall of the task that they then got; NONE: after
// their last task. They add up to lanes * makespan - their busy cycles. PTOWSP_STALL_COUNT of them;
// NULL when nothing was recorded.
PTOWSP_API const ptowsp_cycles *ptowsp_run_idle(const ptowsp_run *run);

// The use over time: the cycles that tasks of each kernel took in each bin of time, tasks in
// processes included. Bins are as long as it takes for at most 512.
typedef struct ptowsp_usage {
    ptowsp_cycles bin_cycles;
    uint32_t bin_count, kernel_count;
    const ptowsp_cycles *busy;  // [bin][kernel]; NULL when nothing was recorded
} ptowsp_usage;

PTOWSP_API ptowsp_usage ptowsp_run_usage(const ptowsp_run *run);

// -- edges ----------------------------------------------------------------------------------------
//
// The edges to a task. Edges implied by others are left out:
//
//      STRUCTURE   the last tasks of the previous child, in a sequential scope
//      TENSOR      a tile that conflicts with a tile of an earlier task, by the schedule's kind of
//                  dependencies and hazards; not if a task between them has written over all of the
//                  earlier tile (with all hazards; a reader never waits for an overwritten write)
//      EXPLICIT    `after` of the task
//      STREAM      the previous task of its stream; of a collective, the previous one
//
// The other reasons name the task that delayed it last without a dependency: `cause` in its record.
//
//      WINDOW, LANE, ORDER, SLOT, CHANNEL, RING, DEPTH    as the stall
//
// Tasks of one pipeline have no edges of data between them; their processes order them.

#define PTOWSP_EDGES(EDGE) /* name, text */                                                        \
    EDGE(STRUCTURE, "structure")                                                                   \
    EDGE(TENSOR, "tensor")                                                                         \
    EDGE(EXPLICIT, "explicit")                                                                     \
    EDGE(STREAM, "stream")                                                                         \
    EDGE(WINDOW, "window")                                                                         \
    EDGE(LANE, "lane")                                                                             \
    EDGE(ORDER, "order")                                                                           \
    EDGE(SLOT, "slot")                                                                             \
    EDGE(CHANNEL, "channel")                                                                       \
    EDGE(RING, "ring")                                                                             \
    EDGE(DEPTH, "depth")

// clang-format off
typedef enum ptowsp_edge_reason {
#define PWSP_EDGE_ENUM(name, text) PTOWSP_EDGE_##name,
    PTOWSP_EDGES(PWSP_EDGE_ENUM)
#undef PWSP_EDGE_ENUM
    PTOWSP_EDGE_COUNT,
    PWSP_FORCE_INT(PTOWSP_EDGE)
} ptowsp_edge_reason;
// clang-format on

PTOWSP_API const char *ptowsp_edge_reason_name(ptowsp_edge_reason reason);

// A tile: rows x cols from (row, col) of the matrix that begins `lead` elements after the tensor's
// first one.
typedef struct ptowsp_edge_tile {
    uint32_t tensor;  // id of its ptowsp_tensor
    uint32_t rows, cols;
    int64_t lead, row, col;
} ptowsp_edge_tile;

typedef struct ptowsp_edge {
    uint64_t from, to;  // tasks
    ptowsp_edge_reason reason;
    uint32_t hazards;                 // TENSOR: between the tiles, PTOWSP_HAZARD_..., or'ed
    ptowsp_edge_tile earlier, later;  // TENSOR: of `from` and of `to`
} ptowsp_edge;

// Gets an edge; false: no more.
typedef bool (*ptowsp_edge_fn)(void *user, const ptowsp_edge *edge);

// Visits the edges to a task or, with PTOWSP_NO_INDEX, to all tasks in ascending order. A pair of
// tasks may have several edges, one for each reason and pair of tiles. Visits nothing if edges were
// not recorded or the task does not exist. Returns whether all were visited.
PTOWSP_API bool ptowsp_run_edges(const ptowsp_run *run, uint64_t task, ptowsp_edge_fn visit,
                                 void *user);

// -- exports --------------------------------------------------------------------------------------
//
//      PERFETTO   protobuf for ui.perfetto.dev: a track per lane and process, a slice per task, the
//                 lanes busy over time as a counter, arrows along the critical path
//      CHROME     the same as JSON, for the same viewers; ten times as large
//      SVG        a timeline to read in a browser or a README: lanes, kernels by colour and
//                 pattern, why lanes were idle, the critical path, a time axis and a legend. Tasks
//                 narrower than half a pixel are drawn together. Lanes without tasks are left out
//                 where all tasks ran in processes
//      CSV        a row per task; values and scalars in one column, as the bars have them
//      TABLE      the same as text in columns, with fewer of them
//      USAGE_CSV  the use over time, a row per bin with a column per kernel: for runs of any
//                 length, as it needs TOTALS only; so does a PERFETTO or CHROME export without
//                 tasks
//      EDGES      the edges to each task, as text; needs edges (EDGES)
//      DOT        the same for Graphviz; edges that are not dependences are dashed
//
// Times are simulated, or wall-clock times if the execution recorded them; PERFETTO and CHROME can
// show both side by side. (USAGE_CSV, EDGES and DOT have simulated time only.)
//
//      DEPS, SWIMLANE, NAMES
//                  deps.json, chip_swimlane_records.json and name_map.json of PTO Runtime, for tools
//                  that read its dumps (section 31): of whole runs that have ended well and have no
//                  pipelines. DEPS needs edges. Lanes are cores; by unit, cube lanes are "aic".
//                  Dependencies by structure go through barriers, which are tasks of ring 1
//
// Bars are labelled "attend request=3 head=1". A cycle is a nanosecond unless clock_mhz is set.
// Tasks of one lane or process may overlap, as passes of a pipeline in a parallel loop do. PERFETTO
// and CHROME draw slices that nest inside each other, and give slices that cross further tracks:
// "lane 0 (2)". An SVG gives each bar that overlaps another one a row of its own.
//
// Times in JSON are microseconds with a fraction; readers that take them as doubles round them from
// 2^53 ns on. Up to there no slice ends after the next one begins, with ends as ts + dur in doubles:
// a dur has more than three digits where it needs them.
//
// Bytes of titles, names and labels that are not UTF-8 are written as U+FFFD.

typedef enum ptowsp_export_format {
    PTOWSP_EXPORT_PERFETTO = 0,
    PTOWSP_EXPORT_CHROME,
    PTOWSP_EXPORT_SVG,
    PTOWSP_EXPORT_CSV,
    PTOWSP_EXPORT_TABLE,
    PTOWSP_EXPORT_USAGE_CSV,
    PTOWSP_EXPORT_EDGES,
    PTOWSP_EXPORT_DOT,
    PTOWSP_EXPORT_DEPS,
    PTOWSP_EXPORT_SWIMLANE,
    PTOWSP_EXPORT_NAMES,
    PWSP_FORCE_INT(PTOWSP_EXPORT)
} ptowsp_export_format;

typedef enum ptowsp_theme {
    PTOWSP_THEME_AUTO = 0,  // as the reader's browser prefers
    PTOWSP_THEME_LIGHT,
    PTOWSP_THEME_DARK,
    PWSP_FORCE_INT(PTOWSP_THEME)
} ptowsp_theme;

typedef enum ptowsp_export_time {
    PTOWSP_TIME_SIMULATED = 0,
    PTOWSP_TIME_WALL,
    PTOWSP_TIME_BOTH,
    PWSP_FORCE_INT(PTOWSP_TIME)
} ptowsp_export_time;

// Edges of groups of tasks instead of tasks, with their numbers.
typedef enum ptowsp_fold {
    PTOWSP_FOLD_NONE = 0,
    PTOWSP_FOLD_KERNELS,  // tasks of a kernel
    PTOWSP_FOLD_LOOPS,    // tasks that have the same loop as their innermost one
    PWSP_FORCE_INT(PTOWSP_FOLD)
} ptowsp_fold;

#define PTOWSP_EXPORT_LANE_MAX 4096

// Zero fields are the defaults.
typedef struct ptowsp_export_options {
    const char *title;   // any text; default: the module's name, or the workload's without one
    ptowsp_fold fold;    // EDGES, DOT: for large runs
    bool is_short;       // bars have the kernel's name only: smaller files
    uint32_t clock_mhz;  // PERFETTO, CHROME: cycles per microsecond; default: 1000
    // SVG: draws [begin, end) of the run; end 0: to its end. Pixels; default 960, 320 to 10000.
    ptowsp_cycles begin, end;
    uint32_t width;
    uint32_t lane_max;  // SVG: rows at most; default 64, at most EXPORT_LANE_MAX
    ptowsp_theme theme;
    ptowsp_export_time time;  // WALL: times are in nanoseconds, also in CSV, TABLE and the window
} ptowsp_export_options;

// Writes the records of the last execution; options may be NULL. After a failure they cover the
// work done until the error; tasks that were issued but never started appear in tables only, on
// lane "-".
//
// Memory   Freed on return. For each kept task: 16 bytes where lanes choose among ready tasks, 8
//          for SVG, 4 more with pipelines, 4 more for PERFETTO, and 12 more where tasks of a lane
//          overlap. Otherwise a few kilobytes, and memory for places and lanes.
// Cost     Linear in the tasks; where tasks overlap, in the tasks times the rows of their lane.
// Errors   INVALID_PARAMS: no such format or theme; no function; a width out of range; the window
//          is empty or begins after the run's end; nothing was recorded, or no tasks for a format
//          that draws them, or no edges. LIMIT_EXCEEDED: more rows than lane_max. SYSTEM_FAILED:
//          the output failed; the text says after how many bytes. OUT_OF_MEMORY.
PTOWSP_API ptowsp_status ptowsp_run_export(const ptowsp_run *run, ptowsp_export_format format,
                                           const ptowsp_export_options *options,
                                           ptowsp_output output);

// Writes the memory of a run's transient tensors, as last placed (section 21): lifetimes by point
// and offset as TABLE, CSV or SVG (points from left to right, bytes upwards). Of the options,
// title, width and theme count.
// Errors   INVALID_PARAMS: another format, no function, a width out of range, nothing was placed.
//          SYSTEM_FAILED: the output failed.
PTOWSP_API ptowsp_status ptowsp_run_export_transients(const ptowsp_run *run,
                                                      ptowsp_export_format format,
                                                      const ptowsp_export_options *options,
                                                      ptowsp_output output);

// An arrow from a span to one that waits for it, as from a sender to its receiver.
typedef struct ptowsp_span_arrow {
    uint64_t from, to;  // indices of spans
} ptowsp_span_arrow;

// Spans, with their names, labels and arrows.
typedef struct ptowsp_span_set {
    const char *title;
    const ptowsp_span *spans;
    uint64_t count;
    const char *const *names;  // of kinds
    uint32_t name_count;
    // Writes further identification of span i after its name, such as "sequence=3 chunk=1"; or
    // NULL.
    void (*label)(void *user, uint64_t i, ptowsp_output output);
    void *user;
    // Of several ranks: rank r has the lanes from r * rank_lanes on; at most 2^18 - 1. 0: no ranks.
    uint32_t rank_lanes;
    const char *const *lane_names;  // rank_lanes of them; NULL: "lane 0" and so on
    const ptowsp_span_arrow *arrows;
    uint64_t arrow_count;
    bool has_cycles;  // times are simulated cycles, drawn from 0 on, not nanoseconds
} ptowsp_span_set;

// Writes spans as PERFETTO, CHROME, SVG, CSV or TABLE, in nanoseconds from the earliest begin on.
// Spans that did not run are left out of pictures. Options are as above, except `time`.
//
// Each rank is a process of its own in PERFETTO and CHROME. Arrows are flows there, at most 128 from
// and 128 to a span in PERFETTO, and lines in an SVG with at most 1000. A span that begins before
// another one with an arrow to it has waited for that one: the time between is drawn as `rank`
// (PTOWSP_STALL_RANK).
//
// Memory   Freed on return: 64 bytes per span, and as above; with arrows 16 more, and 16 per arrow.
// Errors   As ptowsp_run_export. INVALID_PARAMS also: another format; a span that ends before it
//          begins, or of a kind without a name (the index is its own); names of lanes that are
//          NULL or too long; an arrow that is not between spans that ran (the index of the arrow).
PTOWSP_API ptowsp_status ptowsp_spans_export(ptowsp_context *context, const ptowsp_span_set *set,
                                             ptowsp_export_format format,
                                             const ptowsp_export_options *options,
                                             ptowsp_output output);

// -- bounds, what-ifs and reports -----------------------------------------------------------------

// Lower bounds of the makespan. No schedule of the same tasks on the same lanes, under the same
// dependencies and control, takes less than the largest of them. The bounds other than control's
// hold under any control. In the path, tasks of one pipeline count as independent of each other.
typedef struct ptowsp_run_bounds {
    ptowsp_cycles makespan_cycles;
    bool has_path;              // edges were recorded
    ptowsp_cycles path_cycles;  // the longest chain of STRUCTURE, TENSOR, EXPLICIT, STREAM edges
    uint32_t pool_count;
    // "" of the one pool; as long as the run's program. NULL in results of a search.
    const char *pool_names[PTOWSP_SCHEDULE_POOL_MAX];
    uint32_t pool_lanes[PTOWSP_SCHEDULE_POOL_MAX];
    // Of a pool: its tasks' cycles / its lanes, rounded up.
    ptowsp_cycles work_cycles[PTOWSP_SCHEDULE_POOL_MAX];
    ptowsp_cycles link_cycles;  // of collectives, one after another
    // Of pipelines, the largest in one run of one. A process runs one task at a time, so the bound
    // is the sum of its tasks. A token waits until the token `depth` before it has arrived, so a
    // channel needs its latency once for each `depth` of the tokens that it passed on. (Depth 0:
    // each sender has one on its way.) `process` and `channel` are indices of
    // ptowsp_run_processes and _channels, or UINT32_MAX where the bound is 0.
    ptowsp_cycles process_cycles, channel_cycles;
    uint32_t process, channel;
    ptowsp_cycles largest_cycles;  // of all these bounds
    // With control: the work of AICPU threads / threads, and the submission of all tasks, each after
    // the launch.
    ptowsp_cycles control_cycles, submit_cycles;
    // Of memory that lanes share, or 0: all bytes from HBM and from L2, at their rates.
    ptowsp_cycles hbm_cycles, l2_cycles;
} ptowsp_run_bounds;

// Errors   INVALID_PARAMS: nothing was recorded. OUT_OF_MEMORY.
PTOWSP_API ptowsp_status ptowsp_run_find_bounds(const ptowsp_run *run,
                                                ptowsp_run_bounds *out_bounds);

// What if tasks of a kernel took `percent` of their cycles, rounded down? Or memory that lanes share
// had memory_percent of its rates (200: twice the bandwidth)? Or both. Executes in time-only
// mode, which replaces the results of the last execution, and records nothing. With a communicator
// (ptowsp_run_bind_ranks) it is the time of this rank alone.
// Errors   INVALID_PARAMS: no such kernel; percent over 1000; memory_percent without shared memory.
//          As an execution in this mode.
typedef struct ptowsp_what_if {
    uint32_t kernel;  // its id; 0: no kernel, only memory_percent
    uint32_t percent;
    ptowsp_cycles makespan_cycles;  // out
    uint32_t memory_percent;        // default: 100
} ptowsp_what_if;

PTOWSP_API ptowsp_status ptowsp_run_what_if(ptowsp_run *run, const ptowsp_run_options *options,
                                            ptowsp_what_if *what_if);

typedef enum ptowsp_report_format {
    PTOWSP_REPORT_TEXT = 0,
    PTOWSP_REPORT_JSON,
    PTOWSP_REPORT_HTML,  // one page that needs no other file, with the timeline (SVG) if tasks were
                         // recorded and its lanes are at most lane_max
    PWSP_FORCE_INT(PTOWSP_REPORT)
} ptowsp_report_format;

// Writes the makespan with the cost model of tile kernels, a verdict, then the lower bounds of the
// makespan, idle time by reason, the kernels with their tasks and cycles on the critical path,
// high-water marks, and the answers to what_if_count questions. (Ask them first, then execute
// again.) Options as in ptowsp_run_export: the title, and the options of the timeline.
//
// The verdict is a few sentences, each with its numbers. They name the limit: a lower bound of at
// least 90 % of the makespan, or the reason why lanes idle; memory, where none idles. They say how
// much a better schedule or more lanes gain at most, and which change would help. They point out
// likely mistakes: dispatch by plan without a dispatch_key for tasks outside the plan, lanes
// without tasks, a long tail, barriers on the critical path that no data needs (with EDGES), and
// parallel loops whose iterations all write the same tile. In JSON, "limit" is "lanes", "chain",
// "links", "process", "channel", "control", "memory", "waiting", or "" if nothing took time;
// "verdict" has the sentences. "model" is null where no tile kernel is used, and "in_flight_max"
// without a window.
//
// Errors   As ptowsp_run_export. INVALID_PARAMS: a question about an unknown kernel.
PTOWSP_API ptowsp_status ptowsp_run_report(const ptowsp_run *run, ptowsp_report_format format,
                                           const ptowsp_export_options *options,
                                           const ptowsp_what_if *what_ifs, uint32_t what_if_count,
                                           ptowsp_output output);

// -- decisions ------------------------------------------------------------------------------------
//
// The library's decisions for a run, with reasons. They cover how kernels are executed, which loops
// evaluate expressions in blocks, where transient tensors lie, and the size of plans. They also
// cover parallel loops whose iterations conflict, the threads or lanes on which tasks ran, and
// features that targets do not support. They are computed on request, at no cost to a run before.

typedef struct ptowsp_decision {
    const char *stage;    // "compile", "bind", "execute" (the last execution), "target"
    const char *subject;  // "kernel attend", "loop step/parallel r", "tensor x", "schedule"
    const char *chosen;   // "on 4 lanes", "refused by ascend_npu"
    const char *reason;   // "it has no source"; "" if `chosen` says it all
    int32_t permille;     // kernels and targets: the share of the tasks' cycles that it concerns,
                          // if sums were recorded (ptowsp_run_record); else -1
} ptowsp_decision;

// Gets a decision, whose texts live during the call. Returns whether it wants more.
typedef bool (*ptowsp_decision_fn)(void *user, const ptowsp_decision *decision);

// Visits all decisions, in the order of stages. Target "threads" marks features without effect on
// lanes, and "ascend_npu" features that prevent emission, each with the work that depends on it.
// Returns whether all were visited.
PTOWSP_API bool ptowsp_run_decisions(const ptowsp_run *run, ptowsp_decision_fn visit, void *user);

// Writes them as TEXT, one to a line, or as JSON, an array of objects.
// Errors   INVALID_PARAMS: another format, no function. SYSTEM_FAILED: the output failed.
PTOWSP_API ptowsp_status ptowsp_run_export_decisions(const ptowsp_run *run,
                                                     ptowsp_report_format format,
                                                     ptowsp_output output);

// -- schedule search ------------------------------------------------------------------------------
//
// Which schedule suits a workload and its sizes? A search compiles the workload under each of a
// space of schedules, executes it in time-only mode, and ranks them:
//
//      const uint32_t lanes[] = {24, 20}, windows[] = {0, 64, 256};
//      ptowsp_search_desc search = {.base = {.dispatch_key = key}, .bind = bind, .user = &step};
//      search.lane_counts = lanes, search.lane_count_count = 2;
//      search.windows = windows, search.window_count = 3;
//      ptowsp_schedule_search(context, module, &search, results, 8, &summary);
//      ptowsp_search_print(results, &summary, output);
//
// The space is the product of six lists. An empty list has the value of `base`; an empty list of
// dispatches or orders has all that the keys of `base` allow, and PLAN if the module has plan axes.
// Everything else is as in `base`. Keys are used by policies that take one; window 0 means no
// window. All schedules have the dependencies of `base`, or HYBRID. Schedules refused by the target
// (ptowsp_schedule_check), or by the workload because a task lacks the key, are left out.
//
// Budget. The search takes at most `evaluation_max` executions. It begins with the first element of
// each list. It then tries all elements of one list after another, each time keeping the best,
// until a round finds nothing better. The rest of the budget goes to the rest of the space, in
// order: thread counts change fastest, then lane counts, windows, orders, dispatches, issues. So a
// space within the budget is searched whole (is_complete), and its first result is the best there
// is.
//
// Ranking. By makespan, then fewer lanes, then the order of the space. Results depend on the inputs
// alone, never on a clock. A schedule under which an execution is STUCK or exceeds a limit comes
// last, with its status. A search that ends early, by its time limit or as it is cancelled, ranks the
// schedules that it has executed by then.

#define PTOWSP_SEARCH_SPACE_MAX          (1 << 20)
#define PTOWSP_SEARCH_EVALUATION_DEFAULT 256

typedef struct ptowsp_search_desc {
    const char *workload;  // default: the module's last workload
    ptowsp_schedule base;
    ptowsp_target target;  // that schedules are for; default: cpu_sim
    ptowsp_cost cost;      // of tile kernels, as in ptowsp_run_options
    const ptowsp_issue *issues;
    uint32_t issue_count;
    const ptowsp_dispatch *dispatches;
    uint32_t dispatch_count;
    const ptowsp_ready *orders;
    uint32_t order_count;
    const uint32_t *windows;
    uint32_t window_count;
    const uint32_t *lane_counts;  // of one pool
    uint32_t lane_count_count;
    uint64_t evaluation_max;  // default: PTOWSP_SEARCH_EVALUATION_DEFAULT
    uint64_t token_limit;     // of each execution, as in ptowsp_run_options
    uint64_t time_limit_ns;   // of the whole search, in wall-clock time; default: none
    bool has_path;            // bounds with the longest chain: one execution records edges
    uint32_t at_once;         // executions at the same time (Threads); default: 1
    // Binds sizes, plans and tensors to a fresh run of each program, for its lanes
    // (ptowsp_program_lane_count of ptowsp_run_program); an error ends the search. NULL: nothing to
    // bind. Bound memory must live until the next call on this thread.
    ptowsp_status (*bind)(void *user, ptowsp_run *run);
    void *user;
    const uint32_t *thread_counts;  // of AICPUs, if they are in control of `base`
    uint32_t thread_count_count;
} ptowsp_search_desc;

typedef struct ptowsp_search_result {
    ptowsp_schedule schedule;
    ptowsp_status status;  // of the execution; other fields are 0 unless OK
    ptowsp_cycles makespan_cycles;
    ptowsp_run_bounds bounds;  // largest_cycles: no order of these tasks takes less on these lanes
    ptowsp_cycles idle_cycles[PTOWSP_STALL_COUNT];  // as ptowsp_run_idle
    uint64_t in_flight_max;                         // 0 without a window
    uint32_t lane_count;                            // as in ptowsp_run_stats
    uint64_t place;                                 // in the space, from 0
} ptowsp_search_result;

typedef struct ptowsp_search_summary {
    uint64_t space_count;       // schedules in the space
    uint64_t refused_count;     // schedules that were looked at and left out
    uint64_t evaluation_count;  // executions, and how many of them failed:
    uint64_t failed_count;
    uint32_t result_count;
    bool is_complete;  // the whole space was looked at
    bool is_cut;       // cancelled, or at its time limit
} ptowsp_search_summary;

// Searches; fills in at most `capacity` results, the best first.
//
// Memory   A program and a run at a time, or with at_once above 1 four programs and a run for each
//          lane; 8 bytes for each schedule of the space. All is freed.
// Threads  With at_once above 1, executions run on as many lanes of the context, at most on all it
//          has. Results and summary are the same as with at_once 1. `bind`, cost functions of
//          kernels and `cost` are then called on several threads at the same time, each for its own
//          runs; they must not use the search's context. The allocator's hook is called by one
//          thread at a time. If an execution fails, some that come after it may have begun.
// Errors   INVALID_PARAMS: no results, a NULL list with elements, lane counts with two pools, thread
//          counts without AICPUs in control.
//          LIMIT_EXCEEDED: a space over PTOWSP_SEARCH_SPACE_MAX. OUT_OF_MEMORY; errors of `bind`,
//          and of an execution that would fail under any schedule. If all executions fail, the
//          first one's; if all schedules are refused, the first one's refusal. With at_once above 1
//          BUSY and SYSTEM_FAILED, as ptowsp_parallel_for. CANCELLED and TIMED_OUT: results and
//          summary cover the executions that had ended.
PTOWSP_API ptowsp_status ptowsp_schedule_search(ptowsp_context *context, ptowsp_module *module,
                                                const ptowsp_search_desc *desc,
                                                ptowsp_search_result *results, uint32_t capacity,
                                                ptowsp_search_summary *out_summary);

// Cancels the current search of a context, and its current execution; does nothing without a
// search.
// Threads  Any, also cost functions of the search; the context must not be destroyed meanwhile.
PTOWSP_API void ptowsp_schedule_search_cancel(ptowsp_context *context);

// Writes results as a table: makespan, its quotient with the largest lower bound, the share of time
// in which lanes were idle with the reasons, and the schedule.
PTOWSP_API void ptowsp_search_print(const ptowsp_search_result *results,
                                    const ptowsp_search_summary *summary, ptowsp_output output);

// -------------------------------------------------------------------------------------------------
// 23. Graphs
// -------------------------------------------------------------------------------------------------
//
// A graph runs tasks on the lanes of a context, in real time. Tasks are C functions; edges order
// them. A graph is built once and run any number of times:
//
//      ptowsp_graph *graph;
//      ptowsp_graph_create(context, NULL, &graph);
//      ptowsp_graph_task_desc task = {.fn = factor, .user = &matrix};
//      ptowsp_graph_task_make(graph, &task, &a);          // tasks are numbered from 0
//      ptowsp_graph_task_make(graph, &task, &b);
//      ptowsp_graph_edge_make(graph, a, b);               // a runs before b
//      while (has_next_step(&matrix)) {
//          status = ptowsp_graph_run(graph);
//      }
//
// A graph keeps its first error. After it building, sealing and running do nothing and return that
// error, until the graph is cleared. So a program may check once. (BUSY is not kept.)
//
// A lane continues with a task that it has just made ready. It keeps other tasks that it makes
// ready, newest first, and lanes without work take from them. The lane of a task, and the order in
// which ready tasks start, are not defined. A task sees all data written by the tasks before it,
// through any chain of edges. If edges order all tasks that share data, results are the same for
// any number of lanes.
//
// Tasks may add tasks while the graph runs, within a bound: see ptowsp_graph_add.
//
// Building, sealing, running and destroying belong to one thread at a time, like everything of a
// context. Only ptowsp_graph_cancel may be called by any thread, and by tasks.
//
// Memory   Once sealed, 37 bytes for a task (41 if no task is before it) and 12 for an edge; up to
//          twice that during building. 100 more for a kernel, with its arguments and tiles. 3 KiB
//          for a lane. With an added_task_max 60 more for a task, 130 for each that may be added,
//          and 4 for an edge. Running allocates nothing.
// Limits   2^32 - 1 tasks and as many edges; names of tasks up to PTOWSP_NAME_MAX.

typedef struct ptowsp_graph ptowsp_graph;

// Does a task. Zero and positive values are success. If it returns a negative value the task has
// failed, and tasks that depend on it do not run. It must not call functions of the graph, except
// ptowsp_graph_cancel and ptowsp_graph_add, or of its context.
typedef ptowsp_status (*ptowsp_graph_fn)(void *user, uint64_t task, uint32_t lane);

// Does items [begin, end) of a range task. If ranges fail, the task has the status of the failed
// range with the lowest begin; the other ranges run all the same.
typedef ptowsp_status (*ptowsp_graph_range_fn)(void *user, uint64_t begin, uint64_t end,
                                               uint32_t lane);

#define PTOWSP_GRAPH_PRIORITY_MAX 3

typedef struct ptowsp_graph_desc {
    // The number of lanes, the last ones, that take only tasks of PTOWSP_UNIT_CUBE and MIX, each on
    // one lane; the others then take only vector tasks. A number too large counts as all lanes but
    // one. While no lane of a unit takes part in a run (threads may come late), the others do its
    // tasks. Default: 0, every lane takes every task.
    uint32_t cube_lane_count;
    // How many tasks, and edges between them, all tasks together may add in a run. The memory is
    // reserved when the graph is sealed. Default: 0, none.
    uint64_t added_task_max, added_edge_max;
} ptowsp_graph_desc;

// A kernel (section 15) as a task, with its arguments and tiles. These are copied; the data of
// tiles is not. The kernel_name that it sees is the name of the task, or "kernel".
typedef struct ptowsp_graph_call {
    ptowsp_kernel_fn fn;
    const uint64_t *args;      // as in ptowsp_task: axes, rows and cols of each tile, scalars
    uint32_t user_axis_count;  // at most PTOWSP_TASK_AXIS_MAX
    const ptowsp_tile *tiles;
    uint32_t tile_count;    // at most PTOWSP_TASK_TILE_MAX
    uint32_t scalar_count;  // at most PTOWSP_TASK_SCALAR_MAX
} ptowsp_graph_call;

// A task with neither fn, range nor kernel does nothing. Edges can meet in it, n + m instead of
// n * m.
typedef struct ptowsp_graph_task_desc {
    ptowsp_graph_fn fn;
    ptowsp_graph_range_fn range;      // instead of fn: item_count independent items, on all lanes
                                      // (of its unit)
    uint64_t item_count;              // range only; 0 is valid
    uint64_t grain;                   // range only, as in ptowsp_parallel_for; default: chosen
    const ptowsp_graph_call *kernel;  // instead of fn
    void *user;                       // handed to fn, range or the kernel
    const char *name;                 // for error texts; copied, need not be unique; default: none
    uint32_t priority;  // 0 to PTOWSP_GRAPH_PRIORITY_MAX: of the ready tasks that a lane may
                        // take, it takes one with the highest priority
    ptowsp_unit unit;   // default: PTOWSP_UNIT_VECTOR
} ptowsp_graph_task_desc;

// Creates an empty graph; desc may be NULL.
// Errors   INVALID_PARAMS (out_graph NULL), LIMIT_EXCEEDED (added_task_max or added_edge_max of
//          2^32 - 1 or more), OUT_OF_MEMORY.
PTOWSP_API ptowsp_status ptowsp_graph_create(ptowsp_context *context, const ptowsp_graph_desc *desc,
                                             ptowsp_graph **out_graph);
PTOWSP_API void ptowsp_graph_destroy(ptowsp_graph *graph);  // NULL is ignored

// Removes all tasks, edges and the error, and keeps the memory: building a graph of the same size
// again allocates nothing. Does nothing while the graph runs.
PTOWSP_API void ptowsp_graph_clear(ptowsp_graph *graph);

// Adds a task; also allowed after a run. out_task may be NULL.
//
// Errors   INVALID_PARAMS (more than one of fn, range and kernel; items or grain without range; a
//          bad name, priority or unit; a kernel without fn, with too many arguments, or with NULL
//          where a count is above 0). LIMIT_EXCEEDED, OUT_OF_MEMORY, BUSY (the graph is running).
//          *out_task is PTOWSP_NO_INDEX then.
// Cost     5 ns. Graphs with priorities or units are slower: all their lanes share one queue.
PTOWSP_API ptowsp_status ptowsp_graph_task_make(ptowsp_graph *graph,
                                                const ptowsp_graph_task_desc *task,
                                                uint64_t *out_task);

// Adds an edge: `before` is done before `after` starts. The same edge may be added again; it counts
// as another edge and changes nothing.
//
// Errors   INVALID_PARAMS (no such task; both are the same), LIMIT_EXCEEDED, OUT_OF_MEMORY, BUSY.
// Cost     3 ns.
PTOWSP_API ptowsp_status ptowsp_graph_edge_make(ptowsp_graph *graph, uint64_t before,
                                                uint64_t after);

// Prepares the tasks and edges added since the last call for running. ptowsp_graph_run does this
// itself if necessary.
//
// Errors   The first error of building. INVALID_PARAMS: tasks wait for each other in a cycle; the
//          text gives one cycle, with names, and the index is its lowest task. LIMIT_EXCEEDED: with
//          those that may be added, there are too many tasks or edges. OUT_OF_MEMORY (the call may
//          be repeated). BUSY.
// Cost     2 ns per task and per edge; 20 more where edges lead to lower numbers.
PTOWSP_API ptowsp_status ptowsp_graph_seal(ptowsp_graph *graph);

// Runs all tasks and returns when they are done.
//
// Errors   The status of the failed task with the lowest number, which is the index. All tasks that
//          do not depend on failed ones have run.
//          CANCELLED: see below. LIMIT_EXCEEDED and INVALID_PARAMS: see ptowsp_graph_add.
//          SYSTEM_FAILED (USER: run_lanes broke its contract; the work is
//          done). BUSY (the context is running something, perhaps this graph, if one of its tasks
//          makes the call; nothing is done). As ptowsp_graph_seal.
// Cost     Per task with its edges, for empty tasks on one lane: 3 to 6 ns if they are in the order
//          of memory, 25 with four edges from random tasks. Tasks so short that lanes would hinder
//          each other run on one lane alone. A graph that takes no longer than waking threads runs
//          on the calling thread, as lane 0, without them (and without run_lanes). The duration of
//          tasks is measured while they run, and kept for the next run.
PTOWSP_API ptowsp_status ptowsp_graph_run(ptowsp_graph *graph);

// Runs the graph on workers of an engine: each of them makes this call; see ptowsp_context_run_worker.
// Errors   As ptowsp_graph_run and ptowsp_context_run_worker.
PTOWSP_API ptowsp_status ptowsp_graph_run_worker(ptowsp_graph *graph, uint32_t worker,
                                                 uint32_t worker_count);

// From the next run on, each run writes when and where its tasks ran to spans[task], of tasks below
// capacity; the array is the caller's. kind is the task's unit. A range task has the time from its
// first range to its last, on one of its lanes. NULL stops it.
// Cost     Two looks at the time stamp counter per task, and all lanes take part in each run.
// Errors   BUSY (the graph is running). INVALID_PARAMS (NULL with a capacity).
PTOWSP_API ptowsp_status ptowsp_graph_record(ptowsp_graph *graph, ptowsp_span *spans,
                                             uint64_t capacity);

// Cancels the current run: no further task or range starts. The run returns CANCELLED once the
// started ones are done, even if a task has failed as well. Does nothing if the graph is not
// running. Devices run graphs that may be cancelled as well.
// Threads  Any, also from tasks; the graph must not be destroyed meanwhile.
PTOWSP_API void ptowsp_graph_cancel(ptowsp_graph *graph);

// Sets the wall-clock time after which no task or range of a run starts, from the next run on, on
// lanes or a device. The run then ends as if it had been cancelled, but with TIMED_OUT. If all had
// started by then, it ends as without a limit. 0 means no limit.
// Cost     A look at the clock per task and range (25 ns), and all lanes take part in each run.
// Errors   BUSY (the graph is running).
PTOWSP_API ptowsp_status ptowsp_graph_limit(ptowsp_graph *graph, uint64_t time_limit_ns);

// ptowsp_graph_run without waiting, on a thread that belongs to the graph: see ptowsp_run_start.
// The context is busy, and the graph running, until wait or poll returns its status.
//
// ptowsp_graph_destroy cancels a started graph and waits for it.
// Errors   Start: as ptowsp_graph_seal, BUSY, OUT_OF_MEMORY, SYSTEM_FAILED, UNSUPPORTED. The
//          others: as ptowsp_graph_run; poll is BUSY while the graph runs; INVALID_PARAMS: it has
//          not been started, or has been waited for.
PTOWSP_API ptowsp_status ptowsp_graph_start(ptowsp_graph *graph);
PTOWSP_API ptowsp_status ptowsp_graph_wait(ptowsp_graph *graph);
PTOWSP_API ptowsp_status ptowsp_graph_poll(ptowsp_graph *graph);

// Tasks that a running task adds, with edges between them: {before, after} by their numbers in the
// part, from 0; edges lead to higher numbers.
typedef struct ptowsp_graph_part {
    const ptowsp_graph_task_desc
        *tasks;           // with fn, or doing nothing; no range or kernel. user, and
                          // name, which is not copied, must stay until the run ends
    uint64_t task_count;  // 0 is valid
    const uint32_t (*edges)[2];
    uint64_t edge_count;
} ptowsp_graph_part;

// Adds a part to the current run, for a task whose function is running and makes the call. The
// added tasks start after that function has returned. The task completes when they have completed:
// its successors wait for them. Added tasks may add tasks in turn. For example, task fib(n) adds
// fib(n - 1), fib(n - 2), a sum of both, and two edges to the sum. Several parts of a task are
// independent of each other. The next run begins without added tasks.
//
// Added tasks are numbered from *out_first on (may be NULL), after the graph's own tasks; on
// several lanes their order is undefined. Spans and task_status use these numbers until tasks are
// made or the graph runs again. Done, failed and skipped tasks include them.
//
// If an added task fails, so does the task that added it, with the same status; of several it is the
// first in the order of adding. If a task fails that has added tasks, these are skipped. So the
// statuses of the graph's own tasks, and the error of the run, do not depend on lanes.
//
// Errors   INVALID_PARAMS: a wrong part, which is not added. The task then fails, whatever its
//          function returns, and the run's error says why. Faults: a desc as in
//          ptowsp_graph_task_make; a range or a kernel; a priority, if none of the graph's own
//          tasks has one and lanes have no units; a unit without a core on the device; an edge
//          that does not lead to a later task of the part; NULL. INVALID_PARAMS also: the task is
//          not running (a range never is), and the run fails with it as the index; or the graph is
//          not running.
//          LIMIT_EXCEEDED: the tasks of the run add more than added_task_max or added_edge_max
//          (with both 0: any part but an empty one). The run then ends as if it had been cancelled,
//          but with LIMIT_EXCEEDED and no index. A run has this error if and only if all its parts
//          together exceed the bound.
// Threads  The thread that runs the task's function: on lanes and on devices, not after a core that
//          was STUCK.
// Cost     Some 20 ns per part and 20 per task. No lane runs alone in graphs with an added_task_max.
PTOWSP_API ptowsp_status ptowsp_graph_add(ptowsp_graph *graph, uint64_t task,
                                          const ptowsp_graph_part *part, uint64_t *out_first);

// The status of a task in the last run: OK, its own negative status, or SKIPPED. *out_cause (may be
// NULL) is, for a failed task, the task itself, and for a skipped one the lowest failed task before
// it. It is PTOWSP_NO_INDEX if the task is done, or SKIPPED because the run was cancelled or the
// task was made after the last run. Requires task < task_count, or one that was added in the last
// run, and that the graph is not running.
PTOWSP_API ptowsp_status ptowsp_graph_task_status(const ptowsp_graph *graph, uint64_t task,
                                                  uint64_t *out_cause);

// The cycles that a kernel task returned in the last run; 0 if it did not run or failed, and for
// other tasks. Requires task < task_count, and that the graph is not running.
PTOWSP_API ptowsp_cycles ptowsp_graph_task_cycles(const ptowsp_graph *graph, uint64_t task);

typedef struct ptowsp_graph_stats {
    uint64_t task_count, edge_count;                   // so far
    uint64_t added_count;                              // tasks that tasks added in the last run
    uint64_t done_count, failed_count, skipped_count;  // in the last run
    uint32_t lane_count;
    size_t memory_bytes;  // held by the graph
} ptowsp_graph_stats;

typedef struct ptowsp_graph_lane_stats {
    uint64_t task_count;   // done, failed or skipped by this lane
    uint64_t steal_count;  // tasks that it took from other lanes
    uint64_t range_count;  // ranges of range tasks that it did
} ptowsp_graph_lane_stats;

// Numbers of the graph and of its last run. ptowsp_graph_lanes returns lane_count elements, which
// live until the next run.
PTOWSP_API ptowsp_graph_stats ptowsp_graph_result(const ptowsp_graph *graph);
PTOWSP_API const ptowsp_graph_lane_stats *ptowsp_graph_lanes(const ptowsp_graph *graph);

// -------------------------------------------------------------------------------------------------
// 24. Tile kernels
// -------------------------------------------------------------------------------------------------
//
// A kernel can be written as operations on tiles. It is checked, lowered to PTO-ISA instructions,
// and given on-chip addresses and the waits between a core's pipes. The same list of instructions
// runs on the CPU, is counted in cycles, and is emitted.
//
//      ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "softmax"});
//      ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 64, 128);
//      ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 64, 128);
//      ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(x, ptowsp_tile_rowmax(x)));
//      ptowsp_tile_store(y, ptowsp_tile_div(e, ptowsp_tile_rowsum(e)));
//      ptowsp_kernel softmax = ptowsp_kernel_end(k);
//
// A body keeps its first error, with the operation's name. After it every call does nothing and
// returns the zero value; ptowsp_kernel_end hands the error to the module. Values belong to their
// body and live until it ends.
//
// Sizes here are sizes of full tiles. At the edge of a tensor a task has fewer valid rows or
// columns, and the kernel computes and stores only those. Two parameters that an operation combines
// must have the same valid sizes, or the task fails with INVALID_PARAMS.
//
// Memory   The on-chip memory of a task is planned here. It has to fit the machine's memories.
// Limits   Parameters as of a task (PTOWSP_TASK_TILE_MAX, ..._SCALAR_MAX); tiles of at most
//          PTOWSP_TILE_SIZE_MAX rows or columns; PTOWSP_BODY_OP_MAX operations. A kernel has at
//          most PTOWSP_LOOP_MAX loops, nested at most PTOWSP_LOOP_DEPTH_MAX deep, with
//          PTOWSP_LOOP_CARRY_MAX carried values each; a task executes at most PTOWSP_TASK_INSN_MAX
//          instructions.

#define PTOWSP_TILE_SIZE_MAX  16384
#define PTOWSP_LOOP_MAX       8
#define PTOWSP_LOOP_DEPTH_MAX 4
#define PTOWSP_LOOP_CARRY_MAX 32
#define PTOWSP_PRELOAD_MAX    8
#define PTOWSP_TASK_INSN_MAX  1048576
#define PTOWSP_BODY_OP_MAX    10000

// Memories of an accelerator core.
#define PTOWSP_MEMORIES(MEMORY) /* name, text */                                                   \
    MEMORY(UB, "UB")            /* unified buffer: vector instructions */                          \
    MEMORY(L1, "L1")            /* staging of the cube unit's operands */                          \
    MEMORY(L0A, "L0A")          /* left operands of matrix products */                             \
    MEMORY(L0B, "L0B")          /* right operands */                                               \
    MEMORY(L0C, "L0C")          /* their results */                                                \
    MEMORY(BIAS, "bias table")                                                                     \
    MEMORY(SCALING, "fixpipe buffer")

// Pipes of a core. Each runs its instructions in order, concurrently with the others.
#define PTOWSP_PIPES(PIPE) /* name */                                                              \
    PIPE(S)                /* scalar */                                                            \
    PIPE(V)                /* vector */                                                            \
    PIPE(M)                /* cube: matrix products */                                             \
    PIPE(MTE1)             /* L1 to L0 */                                                          \
    PIPE(MTE2)             /* global memory to L1, UB */                                           \
    PIPE(MTE3)             /* UB to global memory, L1 */                                           \
    PIPE(FIX)              /* L0C to anywhere */

// clang-format off
typedef enum ptowsp_memory {
#define PWSP_MEMORY_ENUM(name, text) PTOWSP_MEMORY_##name,
    PTOWSP_MEMORIES(PWSP_MEMORY_ENUM)
#undef PWSP_MEMORY_ENUM
    PTOWSP_MEMORY_COUNT,
    PWSP_FORCE_INT(PTOWSP_MEMORY)
} ptowsp_memory;

typedef enum ptowsp_pipe {
#define PWSP_PIPE_ENUM(name) PTOWSP_PIPE_##name,
    PTOWSP_PIPES(PWSP_PIPE_ENUM)
#undef PWSP_PIPE_ENUM
    PTOWSP_PIPE_COUNT,
    PWSP_FORCE_INT(PTOWSP_PIPE)
} ptowsp_pipe;
// clang-format on

#if !defined(PTOWSP_NO_TILES)

PTOWSP_API const char *ptowsp_memory_name(ptowsp_memory memory);  // "UB"; "none"
PTOWSP_API const char *ptowsp_pipe_name(ptowsp_pipe pipe);        // "MTE2"; "none"

#endif  // PTOWSP_NO_TILES

// The paths of data between memories (GM is global memory).
typedef enum ptowsp_path {
    PTOWSP_PATH_GM_TO_UB = 0,
    PTOWSP_PATH_GM_TO_L1,
    PTOWSP_PATH_UB_TO_GM,
    PTOWSP_PATH_UB_TO_L1,
    PTOWSP_PATH_UB_TO_UB,
    PTOWSP_PATH_L1_TO_GM,
    PTOWSP_PATH_L1_TO_L0A,
    PTOWSP_PATH_L1_TO_L0B,
    PTOWSP_PATH_L1_TO_OTHER,  // bias table, fixpipe buffer
    PTOWSP_PATH_L0C_TO_GM,
    PTOWSP_PATH_L0C_TO_L1,
    PTOWSP_PATH_L0C_TO_UB,
    PTOWSP_PATH_COUNT,
    PWSP_FORCE_INT(PTOWSP_PATH)
} ptowsp_path;

// A machine, for planning memory and counting cycles. It is plain data: copy and change it freely.
typedef struct ptowsp_machine {
    char name[16];  // printable ASCII without quotes and backslash
    ptowsp_family family;
    uint32_t cube_count, vector_count;  // cores
    uint32_t aicpu_count;               // threads that a runtime may use
    uint32_t clock_mhz;
    // Bytes of each memory of a core that kernels may use, up to 64 MiB; on A2/A3 the last 8 KiB of
    // UB are scratch of instructions. L2 and HBM are shared by all cores.
    uint32_t memory_bytes[PTOWSP_MEMORY_COUNT];
    uint64_t l2_bytes, hbm_bytes;
    uint32_t rates[PTOWSP_PATH_COUNT];  // of one core, in 1/100 GiB/s
    // Control latencies, in ns: host to AICPU; AICPU register store and load; until an AICore sees
    // a task; until the AICPU sees its completion.
    uint32_t launch_ns, store_ns, load_ns, dispatch_ns, completion_ns;
} ptowsp_machine;

#if !defined(PTOWSP_NO_TILES)

PTOWSP_API ptowsp_machine ptowsp_machine_910b(void);   // Ascend 910B (A2/A3); a 910C is two
PTOWSP_API ptowsp_machine ptowsp_machine_950pr(void);  // Ascend 950PR (A5); control as 910B

#endif  // PTOWSP_NO_TILES

// The shape of attention, for its cost. Zero fields mean the defaults; dim is required.
typedef struct ptowsp_attention_shape {
    uint32_t dim;           // elements of a query and of a key
    uint32_t value_dim;     // of a value and of an output row; default: dim
    ptowsp_dtype kv_dtype;  // default: f16
    uint32_t
        kv_token_bytes;  // of one KV token of one head; default: a key and a value of kv_dtype.
                         // MLA, whose values are a part of its keys: the keys alone
    double kv_bytes_per_cycle;  // that a core reads; default: the machine's GM to L1, which a core
                                // has if it reads alone. When all cores read at once it is 32 on
                                // 910B and 27 on 950PR
} ptowsp_attention_shape;

// The cost of attention on a machine in cycles of a core, for ptowsp_attention_config (section 9).
// The costs of a plan (cost_max, lane_costs) are then its predicted cycles, without a program.
//
//      per_token       kv_token_bytes / kv_bytes_per_cycle
//      per_row_token   (dim + value_dim) multiply-adds / the cube's in a cycle: blocks of 16
//                      rows, 16 columns and 32 bytes of K, two cycles each in f32. Rows of a tile
//                      that are not a multiple of 16 take as long as the next one
//      per_unit        store_ns + dispatch_ns + completion_ns: for a unit that an AICPU hands out.
//                      A lane that walks its own list has less: set it to the cost of a unit there
//      per_merged_row  value_dim + 2 floats from UB to GM and back
//
// Softmax and the reading of queries overlap with the reading of KV, and are not counted. A kernel
// that reads and multiplies one after the other takes the sum of per_token and rows *
// per_row_token. A kernel that overlaps the two takes the larger, which is at least half of the
// sum.
//
// Errors   INVALID_PARAMS: a NULL; dim 0; a kv_dtype without a size; a rate below 0 or not finite;
//          a machine without clock or without the rates that are used. *out_cost is zero then.
PTOWSP_API ptowsp_status ptowsp_attention_cost_of(const ptowsp_machine *machine,
                                                  const ptowsp_attention_shape *shape,
                                                  ptowsp_attention_cost *out_cost);

typedef struct ptowsp_body ptowsp_body;

#if !defined(PTOWSP_NO_TILES)

// The result of an operation: a tile or a scalar. Zero means none.
typedef struct ptowsp_value {
    ptowsp_body *body;
    uint32_t id;
} ptowsp_value;

typedef struct ptowsp_body_desc {
    const char *name;               // copied; unique among the module's kernels
    uint32_t axis_count;            // axis arguments of each task
    const ptowsp_machine *machine;  // default: 910B
    // Fuses operations for which the hardware has one instruction: matmul + bias, matmul + relu +
    // store, matmul + conversion + store or another matmul. Hand-written kernels do so: set it to
    // compare cycles with theirs, and for fast emitted trees. The default counts each operation by
    // itself, as PTO-WSP does.
    bool is_fused;
} ptowsp_body_desc;

// Begins a kernel; NULL when the module has an error. Errors are the module's.
PTOWSP_API ptowsp_body *ptowsp_kernel_begin(ptowsp_module *module, const ptowsp_body_desc *desc);

// Ends a kernel: cleans up, lowers, plans memory and waits. With assertions it also proves the result, as
// ptowsp_program_prove does.
// Errors   The body's first error; nothing is stored; a tile that does not fit (the text says
//          which, by how much, and where).
PTOWSP_API ptowsp_kernel ptowsp_kernel_end(ptowsp_body *body);

// Parameters, in the order of a task's arguments. `in` is read, `out` is stored to, once or in parts
// (store_at), and `inout` is both: it reads as it was when the task began.
PTOWSP_API ptowsp_value ptowsp_tile_in(ptowsp_body *body, const char *name, ptowsp_dtype dtype,
                                       int64_t rows, int64_t cols);
PTOWSP_API ptowsp_value ptowsp_tile_out(ptowsp_body *body, const char *name, ptowsp_dtype dtype,
                                        int64_t rows, int64_t cols);
PTOWSP_API ptowsp_value ptowsp_tile_inout(ptowsp_body *body, const char *name, ptowsp_dtype dtype,
                                          int64_t rows, int64_t cols);

// A scalar parameter. For i64, u64 and bool the task's argument is the number; for f32 and f64 it
// is a u64 that holds the bits.
PTOWSP_API ptowsp_value ptowsp_tile_scalar(ptowsp_body *body, const char *name, ptowsp_dtype dtype);

// A constant. It takes the type of the other operand; integers are truncated towards zero.
PTOWSP_API ptowsp_value ptowsp_tile_const(ptowsp_body *body, double value);

// A tile filled with one number; and 1 x cols of start, start + 1, ... (i16, i32, u16, u32).
PTOWSP_API ptowsp_value ptowsp_tile_full(ptowsp_body *body, ptowsp_dtype dtype, int64_t rows,
                                         int64_t cols, double value);
PTOWSP_API ptowsp_value ptowsp_tile_iota(ptowsp_body *body, ptowsp_dtype dtype, int64_t cols,
                                         double start);

// Loads a parameter again. Operands are loaded automatically; use this only to model a second load.
PTOWSP_API ptowsp_value ptowsp_tile_load(ptowsp_value param);

// Stores to an out or inout parameter, each once. The value has the parameter's type. In addition,
// f32 is converted to f16 or bf16 (to nearest even), and u32 and i32 are stored as each other
// without a change of bits.
PTOWSP_API void ptowsp_tile_store(ptowsp_value param, ptowsp_value value);

// Adds to the stored values, atomically on a device: f16, f32, i16, i32.
PTOWSP_API void ptowsp_tile_store_add(ptowsp_value param, ptowsp_value value);

// x op y, element by element; the result has the shape and type of x. y may be
//
//      a tile of x's shape
//      a scalar: a constant, or a parameter (x may be a constant as well, y then a tile)
//      a vector with a value per row: rows x 1 or 1 x rows
//      a vector with a value per column: 1 x cols or cols x 1
//
// On a square tile, rows x rows, the last two have the same shapes. A vector is then a value per
// row, also as 1 x rows, as in PTO-WSP; use col_broadcast for a value per column.
//
// For add, mul, max and min, x may be the vector. Types: f16, bf16, f32, i16, i32. Division of
// integers gives 0 where y is 0. max and min of NaN are NaN.
//
// Operations that a machine lacks are legalised when the kernel ends, or refused with UNSUPPORTED.
// On A2/A3 (910B, the default) bf16 arithmetic goes through f32, to the same bits; so does division
// of i16 tiles, where division by 0 gives an unspecified number. Division of i32 tiles is refused.
// src/kernel/legal.h has the table.
//
// Matrix products run on a cube core, all else on vector cores. A kernel with both is mixed on
// A2/A3: it is cut into two halves, and tiles pass between them through FIFOs in global memory.
// Values keep their type and bits. In the a2a3 model the halves overlap as far as two slots of each
// FIFO allow, and the way through global memory is counted. The unit model counts one move, as
// PTO-WSP does. A cube core's two vector cores share the rows of the vector half if it works row by
// row. It may then use elements, rows with a column or a sum of each, columns, loads and stores,
// and each core has its part of every tile. Otherwise one core does all, as with transposed tiles,
// sorts, masks, gathers, and a row that all others need. Both halves may use a parameter that one
// of them stores to. If no tile that passes between them orders these accesses, the vector half
// does the loads and stores of that parameter. On A5 the cores exchange through UB and L1. There
// nothing is cut: kernels run and are timed as if one core had both units, and a tree for a device
// is refused ("direct FIFOs" of the capability table).
PTOWSP_API ptowsp_value ptowsp_tile_add(ptowsp_value x, ptowsp_value y);
PTOWSP_API ptowsp_value ptowsp_tile_sub(ptowsp_value x, ptowsp_value y);
PTOWSP_API ptowsp_value ptowsp_tile_mul(ptowsp_value x, ptowsp_value y);
PTOWSP_API ptowsp_value ptowsp_tile_div(ptowsp_value x, ptowsp_value y);
PTOWSP_API ptowsp_value ptowsp_tile_max(ptowsp_value x, ptowsp_value y);
PTOWSP_API ptowsp_value ptowsp_tile_min(ptowsp_value x, ptowsp_value y);

// Types: f16, bf16, f32; neg and relu also i32. tanh, sigmoid, gelu (its tanh form) and silu are
// computed from exp; sin and cos are polynomials, for |x| up to 10,000. Errors are within 4e-7,
// relative where the result is above 1 in magnitude.
PTOWSP_API ptowsp_value ptowsp_tile_exp(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_log(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_sqrt(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_rsqrt(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_recip(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_tanh(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_sigmoid(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_sin(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_cos(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_relu(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_gelu(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_silu(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_neg(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_abs(ptowsp_value x);

// Reductions. Along rows they give rows x 1, along columns 1 x cols, of x's type; but rows of bf16
// and means give f32. Sums of f16 are rounded to f16 once. rowsum_f32 is rowsum with f16 converted
// to f32 first, for sums that f16 cannot hold (above 65504) or should not be rounded to.
PTOWSP_API ptowsp_value ptowsp_tile_rowsum(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_rowsum_f32(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_rowmax(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_rowmin(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_rowmean(ptowsp_value x);  // of the valid columns
PTOWSP_API ptowsp_value ptowsp_tile_colsum(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_colmax(ptowsp_value x);
PTOWSP_API ptowsp_value ptowsp_tile_colmin(ptowsp_value x);

// Expands a vector to a tile of x's shape: a value per row (rows x 1 or 1 x rows), or per column.
PTOWSP_API ptowsp_value ptowsp_tile_row_broadcast(ptowsp_value x, ptowsp_value vector);
PTOWSP_API ptowsp_value ptowsp_tile_col_broadcast(ptowsp_value x, ptowsp_value vector);

// Matrix products, rows(a) x cols(b). f16, bf16 and f32 operands give f32, i8 operands give i32,
// and sums are in the result's type. acc is an earlier value of that type to add to; bias is a 1 x
// cols vector of it.
PTOWSP_API ptowsp_value ptowsp_tile_matmul(ptowsp_value a, ptowsp_value b);
PTOWSP_API ptowsp_value ptowsp_tile_matmul_acc(ptowsp_value acc, ptowsp_value a, ptowsp_value b);
PTOWSP_API ptowsp_value ptowsp_tile_matmul_bias(ptowsp_value a, ptowsp_value b, ptowsp_value bias);

typedef enum ptowsp_round {
    PTOWSP_ROUND_NEAREST = 0,  // ties to even
    PTOWSP_ROUND_AWAY,         // to nearest, ties away from zero
    PTOWSP_ROUND_FLOOR,
    PTOWSP_ROUND_CEIL,
    PTOWSP_ROUND_TRUNC,
    PWSP_FORCE_INT(PTOWSP_ROUND)
} ptowsp_round;

// Converts to another type. The rounding mode applies to floats to integers; these saturate, and
// NaN gives 0. PTO-ISA's CPU simulator clamps first to the range of both types: there an f16
// infinity becomes 65504 in f32, and NaN becomes 127 in i8. Do not compare infinities, NaN and
// values out of range.
PTOWSP_API ptowsp_value ptowsp_tile_cvt(ptowsp_value x, ptowsp_dtype dtype, ptowsp_round round);

// Quantizing gives clamp(round(x * scale), -128, 127) as i8. Dequantizing gives (x - offset) *
// scale as f32. scale and offset are f32 vectors with a value per row; the scale of quantize is 1 /
// step. x has two columns or more.
PTOWSP_API ptowsp_value ptowsp_tile_quantize(ptowsp_value x, ptowsp_value scale);
PTOWSP_API ptowsp_value ptowsp_tile_dequantize(ptowsp_value x, ptowsp_value scale,
                                               ptowsp_value offset);

PTOWSP_API ptowsp_value ptowsp_tile_transpose(ptowsp_value x);

typedef enum ptowsp_compare {
    PTOWSP_EQ = 0,
    PTOWSP_NE,
    PTOWSP_LT,
    PTOWSP_LE,
    PTOWSP_GT,
    PTOWSP_GE,
    PWSP_FORCE_INT(PTOWSP_COMPARE)
} ptowsp_compare;

// compare makes a mask of the elements for which x op y holds. With NaN only NE holds. y is a tile
// of x's shape or a scalar. select takes x where the mask holds and y, a tile or a scalar,
// elsewhere. Types: f16, f32; i32 with EQ.
PTOWSP_API ptowsp_value ptowsp_tile_compare(ptowsp_value x, ptowsp_compare op, ptowsp_value y);
PTOWSP_API ptowsp_value ptowsp_tile_select(ptowsp_value mask, ptowsp_value x, ptowsp_value y);

// Sorting. sort32 sorts every 32 columns of each row of f32 or f16 scores in descending order; ties
// keep their order, and NaN counts as the largest. The result holds pairs of score and u32 index;
// `index` is 1 x cols or of x's shape. A pair has 8 bytes: 2 columns of f32, or 4 columns of f16,
// which hold the score, an undefined element and the index. A row has at most 8,192 scores of f32
// or 4,096 of f16. merge_sort merges runs of `run` pairs by four (or the last two or three) in one
// row. top-k takes the first k values (in the type of the scores), or indices (u32), of each row's
// pairs. A row may have fewer valid columns than the tile, and fewer than k. It is padded with
// pairs of -inf and PTOWSP_TOPK_NONE, which sort after all other pairs, even after scores of -inf.
// So the last of k values may be -inf, and the last of k indices PTOWSP_TOPK_NONE, which gather
// treats as 0. PTO-ISA's CPU simulator pads f16 rows with 0, so compare only full rows there.
// Storing pairs stores the pairs of valid columns; storing deinterleaved f32 scores stores all.
#define PTOWSP_TOPK_NONE UINT32_MAX
PTOWSP_API ptowsp_value ptowsp_tile_sort32(ptowsp_value x, ptowsp_value index);
PTOWSP_API ptowsp_value ptowsp_tile_merge_sort(ptowsp_value pairs, int64_t run);
PTOWSP_API ptowsp_value ptowsp_tile_topk_values(ptowsp_value pairs, int64_t k);
PTOWSP_API ptowsp_value ptowsp_tile_topk_indices(ptowsp_value pairs, int64_t k);

// Gathers elements of x by index (i32 or u32): row * cols + column of the full tile, even where
// fewer columns are valid. The result has the shape of `index`. An index outside of x gives 0.
PTOWSP_API ptowsp_value ptowsp_tile_gather(ptowsp_value x, ptowsp_value index);

// A part of a tile: rows x cols elements from (row, col). Only this part of a parameter is loaded. A
// part of a part that only products use is taken from L1 if row and col are multiples of 16 and of
// the number of elements in 32 bytes (panels, below). Otherwise it goes through UB.
PTOWSP_API ptowsp_value ptowsp_tile_slice(ptowsp_value x, int64_t row, int64_t col, int64_t rows,
                                          int64_t cols);

// interleave gives x0 y0 x1 y1 ... in each row (A5 only: A2/A3 has no instruction for it).
// deinterleave gives the even (part 0) or odd (part 1) columns of x.
PTOWSP_API ptowsp_value ptowsp_tile_interleave(ptowsp_value x, ptowsp_value y);
PTOWSP_API ptowsp_value ptowsp_tile_deinterleave(ptowsp_value x, uint32_t part);

// Loops. A kernel may walk over a parameter in chunks, as matmul does over its inner size and
// attention over keys and values: one task for all chunks, however many there are.
//
//      ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, 64, 64, 0);
//      ptowsp_value none = {NULL, 0}, sum = none;
//      PTOWSP_TILE_LOOP(k, i, ptowsp_tile_const(k, 0), ptowsp_tile_cols(a), 128) {
//          ptowsp_value left = ptowsp_tile_slice_at(a, none, i, 64, 128);
//          ptowsp_value right = ptowsp_tile_slice_at(b, i, none, 128, 64);
//          sum = ptowsp_tile_carry(zero);
//          ptowsp_tile_next(sum, ptowsp_tile_matmul_acc(sum, left, right));
//      }
//      ptowsp_tile_store(c, sum);
//
// loop_begin opens a loop and returns its index: begin, begin + step, ... below end. The bounds are
// constants, scalar parameters of i64 or u64, or valid sizes of a tile parameter (rows, cols), as
// each task has them. They may be equal: then the body does not run. loop_end closes the innermost
// loop. Values that are made in a loop are used in it only.
//
// carry is a value carried between iterations: `initial`, made before the loop, in the first one;
// afterwards the value given to `next` in the previous iteration. Each has one `next`, of the same
// type and shape, made in the loop or before it. After the loop the carried value is the last one.
// It has the valid sizes of `initial`; elements that a next value lacks are kept. (ptowsp_tile_full
// is full: if a task may have fewer queries, begin with q * 0.)
//
// slice_at is a part of a parameter, rows x cols from (row, col), each a constant or the index of
// an open loop ({NULL, 0} is 0). It ends where the parameter ends, and in the direction of an index
// also where the loop ends: the last chunk may have fewer valid rows or columns, or none. So a loop
// over a KV cache reads only up to its end. store_at stores to such a part in each iteration and
// leaves the rest. Several may store to parts of one parameter, in a loop or without one; where
// they overlap, the last one wins. If a loop both slices and stores to a parameter, it reads the
// current contents.
//
// While an iteration computes, the next one's parts are loaded into a second buffer, where both
// fit. Values from outside that are factors of products are moved to L1 once. A sum stays in L0C if
// it begins as a product or a tile full of 0, and only matmul_acc of the loop adds to it. That may
// be one call or a chain of calls.
//
// Products of whole matrices, as they are written by hand: loops over output tiles around the loop
// over k, and panels in L1. A panel is a slice of an input that only products use, also through its
// slices and transposes. It is loaded once, where it is made, and its pieces go from L1 to L0. A
// product whose factors are larger than L0 cuts them along k by itself. A right factor that is
// stored [n][k] is the transpose of a slice, which costs nothing.
//
//      ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, 128, 256, 0), sum = zero;
//      ptowsp_value start = ptowsp_tile_const(k, 0);
//      PTOWSP_TILE_LOOP(k, i, start, ptowsp_tile_rows(a), 128) {
//          PTOWSP_TILE_LOOP(k, j, start, ptowsp_tile_rows(b), 256) {      // b is [n][k]
//              PTOWSP_TILE_LOOP(k, at, start, ptowsp_tile_cols(a), 256) {
//                  ptowsp_value left = ptowsp_tile_slice_at(a, i, at, 128, 256);
//                  ptowsp_value right = ptowsp_tile_slice_at(b, j, at, 256, 256);
//                  sum = ptowsp_tile_carry(zero);
//                  right = ptowsp_tile_transpose(right);
//                  ptowsp_tile_next(sum, ptowsp_tile_matmul_acc(sum, left, right));
//              }
//              ptowsp_tile_store_at(c, i, j, sum);
//          }
//      }
//
// Iterations of all loops of such a nest overlap: loads for the next tile of c begin while this one
// is multiplied and stored. Pieces of k alternate between two places in L0 where these fit. If the
// inner loop runs in every task, and only stores use the sum, the first product begins the sum, and
// no tile is filled with 0. A store must then have as many rows and columns as the product, or the
// task fails with INVALID_PARAMS.
//
// Software pipelining. In attention, a core multiplies queries by keys, waits for the probabilities
// that another core makes of the scores, and multiplies these by values. Call preload in a loop,
// with the loop's index: the cube core then begins 1 to PTOWSP_PRELOAD_MAX iterations ahead. In
// each turn it does the first product of a later chunk, then the second product of this chunk.
//
//      PTOWSP_TILE_LOOP(k, key, ptowsp_tile_const(k, 0), ptowsp_tile_rows(v), 64) {
//          ptowsp_tile_preload(key, 2);
//          acc = ptowsp_tile_carry(zero);
//          ptowsp_value keys = ptowsp_tile_slice_at(kt, none, key, 64, 64);
//          ptowsp_value weights = ptowsp_tile_exp(ptowsp_tile_matmul(q, keys));
//          ptowsp_value values = ptowsp_tile_slice_at(v, key, none, 64, 64);
//          ptowsp_value part = ptowsp_tile_matmul(weights, values);            // late
//          ptowsp_tile_next(acc, ptowsp_tile_add(acc, part));                  // late
//      }
//
// Products whose left or right factor was computed by vector cores in the same iteration are late, and
// so is everything that depends on them. The rest of the body is early. Results do not change. A
// carried value must be used by one half only. Values that the early half computes and the late half
// reads are buffered, once for each iteration in flight. Each late product takes 2 (iterations + 1)
// slots of a FIFO, which has at most 32. Kernels that are not mixed ignore a preload: those that use
// one kind of core, and all kernels of A5.
//
// Limits of loops. A bound is the same in all iterations of the loops around it: it cannot be an
// index of these, or a number in a tile. So all trip counts are known, and checked, before a task
// touches data, and the proof of waits holds for any trip count. For a triangle of chunks, loop
// over all of them and mask with select, or give a task to each row of chunks with its end as a
// scalar. A part begins at one index, not at a sum of two: choose begin and step of the loop so
// that the index is where its parts begin. Sorted pairs and tiles of instructions are not carried.
//
// Errors   ptowsp_kernel_end: a carried value without next; a loop that is not closed. UNSUPPORTED
//          for a preload if the loop contains another loop, if the early half needs a late result,
//          or if both halves use a carried value. LIMIT_EXCEEDED if a FIFO has too few slots. A
//          loop that preloads counts as two of PTOWSP_LOOP_MAX. A task fails with INVALID_PARAMS
//          before it touches data if bounds are below 0, above 2^30 or in the wrong order, or if it
//          would execute more than PTOWSP_TASK_INSN_MAX instructions; the error names task and
//          kernel.
// Cost     The cost of all iterations, as their pipes overlap. ptowsp_kernel_measure, which has no
//          task, takes sizes as full, and scalars that are bounds as one step more than begin.
PTOWSP_API ptowsp_value ptowsp_tile_loop_begin(ptowsp_body *body, ptowsp_value begin,
                                               ptowsp_value end, int64_t step);
PTOWSP_API void ptowsp_tile_loop_end(ptowsp_body *body);
PTOWSP_API void ptowsp_tile_preload(ptowsp_value index, int64_t iterations);
PTOWSP_API ptowsp_value ptowsp_tile_carry(ptowsp_value initial);
PTOWSP_API void ptowsp_tile_next(ptowsp_value carried, ptowsp_value next);
PTOWSP_API ptowsp_value ptowsp_tile_rows(ptowsp_value param);
PTOWSP_API ptowsp_value ptowsp_tile_cols(ptowsp_value param);
PTOWSP_API ptowsp_value ptowsp_tile_slice_at(ptowsp_value param, ptowsp_value row, ptowsp_value col,
                                             int64_t rows, int64_t cols);
PTOWSP_API void ptowsp_tile_store_at(ptowsp_value param, ptowsp_value row, ptowsp_value col,
                                     ptowsp_value value);

// The two calls around a block. It must not be left by break, return or goto.
// clang-format off
#define PTOWSP_TILE_LOOP(k, i, begin, end, step)                                                   \
    for (ptowsp_value i = ptowsp_tile_loop_begin(k, begin, end, step); i.body;                     \
         ptowsp_tile_loop_end(k), i.body = NULL)
// clang-format on

// Instructions of PTO-ISA, one call each, where the operations above do not suffice. Operands are
// tiles made by ptowsp_tile_alloc, which instructions may write any number of times, or values,
// which they only read. ptoisa_shim.h describes each instruction and its operands under its name.
//
//      ptowsp_value t = ptowsp_tile_alloc(k, &(ptowsp_alloc_desc){.dtype = PTOWSP_F32, .like = x});
//      ptowsp_instruction(k, &(ptowsp_instruction_desc){.name = "TMULS", .dst = {t}, .src = {x},
//                                                       .scalar = ptowsp_tile_const(k, 0.5)});

#endif  // PTOWSP_NO_TILES

typedef enum ptowsp_layout {
    PTOWSP_LAYOUT_ROW_MAJOR = 0,
    PTOWSP_LAYOUT_COL_MAJOR,
    PTOWSP_LAYOUT_NZ,  // boxes of 16 rows x 32 bytes, column by column; in L0C of 16 x 16 elements
    PTOWSP_LAYOUT_ZN,  // boxes of 32 bytes x 16 columns, row by row
    PTOWSP_LAYOUT_ZZ,
    PTOWSP_LAYOUT_NN,
    PTOWSP_LAYOUT_COUNT,
    PWSP_FORCE_INT(PTOWSP_LAYOUT)
} ptowsp_layout;

#if !defined(PTOWSP_NO_TILES)

typedef struct ptowsp_alloc_desc {
    ptowsp_memory memory;  // default: UB
    ptowsp_dtype dtype;
    ptowsp_layout layout;  // default: row-major
    int64_t rows, cols;    // allocated; default: the sizes that fit `like`
    ptowsp_value like;     // a value with the same valid sizes; default: all is valid
} ptowsp_alloc_desc;

typedef struct ptowsp_instruction_desc {
    const char *name;  // "TADD"
    ptowsp_value dst[2], src[4], tmp;
    ptowsp_value scalar;  // a constant or a scalar parameter
    uint32_t row, col;    // TEXTRACT, TINSERT; col: block length of TMRGSORT, diagonal of TTRI
    // A ptowsp_round (TCVT, which wraps values out of range), a ptowsp_compare (TCMP, TCMPS), or a
    // mask pattern (TGATHERMASK: P0101 is 0, P1010, P0001, P0010, P0100, P1000, P1111). 1 means:
    // TCI counts down, TTRI is the upper triangle, TSTORE adds.
    uint32_t mode;
} ptowsp_instruction_desc;

PTOWSP_API ptowsp_value ptowsp_tile_alloc(ptowsp_body *body, const ptowsp_alloc_desc *desc);
PTOWSP_API void ptowsp_instruction(ptowsp_body *body, const ptowsp_instruction_desc *desc);

#endif  // PTOWSP_NO_TILES

// One instruction and the sizes that it works on.
typedef struct ptowsp_insn {
    const char *name;  // "TADD"
    ptowsp_pipe pipe;
    ptowsp_memory memory;  // of its destination; for a store, of its source
    ptowsp_dtype dtype;
    uint32_t rows, cols;  // valid sizes of the destination; for a store, of the source
    uint32_t depth;       // of a matrix product: its k
} ptowsp_insn;

// The mechanisms of measured machines. Each can be switched off; the instructions that it describes
// then take the cycles of the ideal model.
// clang-format off
#define PTOWSP_MECHANISMS(MECHANISM)                                                               \
    MECHANISM(LATENCY)    /* data arrives late; a pipe with more to do hides it */                 \
    MECHANISM(BURSTS)     /* a transfer has a setup, and each of its rows a cost */                \
    MECHANISM(FIX)        /* L0C is drained by bytes of the destination */                         \
    MECHANISM(TRANSPOSE)  /* L1 to L0 has a setup, and transposing is slower */                    \
    MECHANISM(BLOCKS)     /* UB to UB moves a block of 32 bytes a cycle */                         \
    MECHANISM(ROWS)       /* dynamic valid sizes: row by row, even without gaps */                 \
    MECHANISM(ENDS)       /* start and end of vector instructions, by kind of element */           \
    MECHANISM(COLUMNS)    /* columns are reduced row by row, each waiting for the last */          \
    MECHANISM(RUNS)       /* merges are slower where runs are longer than 32 pairs */              \
    MECHANISM(REGISTERS)  /* A5: measured loops over registers */                                  \
    MECHANISM(CLOCK)      /* global memory does not follow the core's clock */                     \
    MECHANISM(GROUPS)     /* rows of 8,192 f32 in all are reduced in groups of 8 */

typedef enum ptowsp_mechanism {
#define PWSP_MECHANISM_ENUM(name) PTOWSP_MECHANISM_##name,
    PTOWSP_MECHANISMS(PWSP_MECHANISM_ENUM)
#undef PWSP_MECHANISM_ENUM
    PTOWSP_MECHANISM_COUNT,
    PWSP_FORCE_INT(PTOWSP_MECHANISM)
} ptowsp_mechanism;
// clang-format on

// A path between memories: its pipe takes setup + burst * rows + bytes / rate cycles, and the data
// is there `latency` cycles later. Latency and setup are at most 2^20, burst is at most 2^10.
typedef struct ptowsp_path_timing {
    uint32_t latency, setup, burst;  // cycles
    uint32_t rate;                   // bytes in 100 cycles; > 0
} ptowsp_path_timing;

// The times of a measured machine. It is plain data: copy and change it freely.
//
//      ptowsp_core_timing b4 = ptowsp_core_timing_of(PTOWSP_MODEL_910B);  // 910B4; 910B1 has 1,850 MHz
//      b4.clock_mhz = 1500;
//      ptowsp_cost cost = {.model = PTOWSP_MODEL_910B, .timing = &b4};
//
// Vector instructions keep the built-in times of the model.
typedef struct ptowsp_core_timing {
    char name[16];
    ptowsp_family family;      // as the model's
    uint32_t clock_mhz;        // of the cores: 1 to 2^17
    uint32_t memory_mhz;       // the clock at which paths of global memory take their cycles; more
                               // than a 64th of clock_mhz
    uint32_t without;          // bit m switches ptowsp_mechanism m off
    uint32_t transposed_rate;  // L1 to L0B where fractals are transposed, bytes in 100 cycles
    ptowsp_path_timing paths[PTOWSP_PATH_COUNT];
} ptowsp_core_timing;

#if !defined(PTOWSP_NO_TILES)

// The times of 910B or 950PR; all zero for models that are not measured.
PTOWSP_API ptowsp_core_timing ptowsp_core_timing_of(ptowsp_model model);

// Checks a cost, as all functions do that take one; NULL is the unit model.
// Errors   INVALID_PARAMS: an unknown model, or one without its function; times that do not belong
//          to the model, or are out of range. The text names the field.
PTOWSP_API ptowsp_status ptowsp_cost_check(ptowsp_context *context, const ptowsp_cost *cost);

typedef struct ptowsp_kernel_stats {
    ptowsp_cycles cycles;                          // of a task with full tiles
    ptowsp_cycles busy_cycles[PTOWSP_PIPE_COUNT];  // in which each pipe works; with cube and vector
                                                   // cores (MIX), of the cube core and the busier
                                                   // vector core together; unit model: of all three
    uint32_t memory_bytes[PTOWSP_MEMORY_COUNT];    // the most that is used at once
    uint32_t insn_count;                           // flags and barriers included
} ptowsp_kernel_stats;

// Measures a tile kernel; cost NULL is the unit model. Of a kernel that has failed, the text in the
// context has the module's error.
// Errors   INVALID_PARAMS (not a tile kernel; a model without its function; a timing with a rate or
//          clock of 0, or out of range). LIMIT_EXCEEDED (the function returned too many cycles;
//          more than PTOWSP_TASK_INSN_MAX instructions in loops). OUT_OF_MEMORY.
PTOWSP_API ptowsp_status ptowsp_kernel_measure(const ptowsp_module *module, ptowsp_kernel kernel,
                                               const ptowsp_cost *cost,
                                               ptowsp_kernel_stats *out_stats);

// The instructions of a tile kernel with full tiles, and the cycles of each in the unit model
// (out_unit_cycles may be NULL).
PTOWSP_API uint32_t ptowsp_kernel_insn_count(const ptowsp_module *module, ptowsp_kernel kernel);
PTOWSP_API ptowsp_insn ptowsp_kernel_insn_at(const ptowsp_module *module, ptowsp_kernel kernel,
                                             uint32_t i, ptowsp_cycles *out_unit_cycles);

// Writes a tile kernel as text: its operations, then its instructions with addresses, waits and
// cycles. Cycles are under a cost model, with full tiles, in all iterations of loops, on one vector
// core. Pipes overlap, so their sum exceeds the kernel's cycles, which the text has too. cost NULL:
// the unit model, each instruction once. Nothing is written where ptowsp_kernel_measure fails.
PTOWSP_API void ptowsp_kernel_print(const ptowsp_module *module, ptowsp_kernel kernel,
                                    const ptowsp_cost *cost, ptowsp_output output);

#endif  // PTOWSP_NO_TILES

// -------------------------------------------------------------------------------------------------
// 25. Pipelines
// -------------------------------------------------------------------------------------------------
//
// A pipeline is a statement of a workload: processes that run concurrently, each with a time of its
// own, and meet in channels (communicating sequential processes, Hoare 1978).
//
//      PTOWSP_PIPELINE(m, "double_buffer") {
//          ptowsp_channel_desc desc = {.name = "loaded", .depth = 2, .latency = 50};
//          ptowsp_channel loaded = ptowsp_channel_make(m, &desc);
//          PTOWSP_PROCESS(m, "load") {
//              ptowsp_produces(m, loaded);
//              PTOWSP_FOR_EACH(m, i, tiles) {
//                  load.axes[0] = i;
//                  ptowsp_send_task_make(m, loaded, &load);
//              }
//          }
//          PTOWSP_REPLICATE(m, w, workers, "compute") {
//              ptowsp_consumes(m, loaded);
//              PTOWSP_CONSUME(m, t, loaded) {
//                  compute.axes[0] = t;
//                  ptowsp_task_make(m, &compute);
//              }
//          }
//      }
//
//      load --[ 2 tokens, 50 cycles ]--> compute 0, compute 1, ...
//
// Time. Every process begins at 0, the start of the pipeline. A task of c cycles moves its process
// from t to t + c; control, expressions and slots take no time. Processes need no lanes: each is a
// unit of its own that does one thing at a time, so parallel loops and scopes in it run one after
// another too. A channel of depth d and latency L holds up to d tokens, from send to receive. For
// the k-th token, s is the time of its send and r the time of its receive:
//
//               sender arrives       s = max(sender arrives, r of token k - d)     continues at s
//      sender   -------+.............+----------------------------------------------------------->
//                        (full)       .
//                                        .   L
//                                           .
//      receiver ---+..........................+-------------------------------------------------->
//             receiver arrives  (empty)       r = max(receiver arrives, s + L)     continues at r
//
//      depth 0: a rendezvous. r = max(receiver arrives, sender arrives + L), and both continue at r.
//
// A channel closes when its last producer has ended or closed it. When it is closed and empty, a
// receiver sees the end of the stream, at max(receiver arrives, time of the last close). So a
// consumer that reads to the end waits for producers that continue with other work, unless they
// call ptowsp_close_make.
//
// Tokens name data, they do not hold it. While the receiver works on the place of token k, the
// sender may fill the place of token k + d + 1, but no later one. A ring of places for depth d
// therefore needs d + 2 places. With several receivers tokens are not finished in order; then free
// places have to be sent back.
//
// Order. Several processes may produce or consume one channel. The result is deterministic: of all
// processes that can proceed, the one with the smallest time moves first. Ties follow the order of
// the tree, then the replica. A waiting process keeps the time at which it arrived. So tokens are
// in the order in which senders arrive, and receivers get them in the order in which they arrive.
// Kernels are called and slots are loaded in the same order of time: a process that has received a
// token sees all data written before the token was sent. A load after a receive happens at the time
// of the receive. Among tasks that start at that very time, it sees the writes of tasks in earlier
// processes of the tree only. On lanes (section 21) this holds for tiles of tensors. When only time
// is measured, cost functions are called in any order. (These are the rules of PTO-WSP v9, except
// that there the end of a stream takes no time and ties are left to threads.)
//
// Slots. Each process begins with a copy of the slots as they are when the pipeline starts, and
// sets only its copy. Processes share tensors and channels, nothing else. After the pipeline the
// slots are as they were before it.
//
// Surroundings. A pipeline is issued like a task that takes no lane, no place in the window and no
// turn. It starts at its ready time, but not before the clock, and ends with its last process. For
// the tasks around it, it reads and writes the whole of each tensor that its tasks read and write
// (all bytes from the first element to the last). This holds whatever the views are, and under
// exact dependencies as well. A slot load in a process counts as a read of the whole tensor. In
// dataflow issue the pipeline waits for the tasks that have written the tensors that its processes
// load slots from, whatever the dependencies are. The schedule does not apply to the tasks in it:
// they have no keys, pools or streams.
//
// Deadlocks are detected. Compiling reports those that the structure shows: a channel that no
// process sends to, or that none receives from. The others are reported as STUCK when they happen:
// the blocked processes, where and since when they wait, the cycle of waits, and how to break it
// (ptowsp_run_print_stuck). Where several processes produce or consume a channel, a pipeline that
// ends may get stuck with other times of tasks; ptowsp_run_explore finds out.
//
// Cost     Some ns per send and per receive, see README.
// Memory   16 bytes for each token that a channel may hold (its depth, rounded up to a power of
//          two). Some 350 bytes for each process (replica) and each channel. 8 more for each
//          variable of a replica and each slot that processes set. 56 for each operation of the
//          program.

#define PTOWSP_CHANNEL_DEPTH_MAX 1048576
#define PTOWSP_PROCESS_MAX       1048576  // processes of one program, each replica counted

typedef struct ptowsp_channel {
    uint32_t id;
} ptowsp_channel;

typedef struct ptowsp_channel_desc {
    const char *name;
    uint32_t depth;                // tokens that it holds; 0: a rendezvous
    ptowsp_cycles latency;         // from send to receive
    ptowsp_expr depth_at_start;    // u64; if given, replaces depth when the pipeline starts
    ptowsp_expr latency_at_start;  // u64; the same for latency
} ptowsp_channel_desc;

#define PTOWSP_CHANNEL_LATENCY_SYMBOL "__pto_wsp_channel_latency_cycles"

// Scopes, as in section 17. A pipeline contains channels, events and processes, and nothing else.
// (Names of pipelines appear in texts only; two pipelines may share one.)
//
//      PTOWSP_PIPELINE(m, "name") {}               channels and events first, then processes
//      PTOWSP_PROCESS(m, "name") {}                one process
//      PTOWSP_REPLICATE(m, i, axis, "name") {}     one for each i of a dense or dynamic axis, or of
//                                                  the lanes of a plan; at least one
//      PTOWSP_CONSUME(m, t, channel) {}            receives tokens until the end of the stream;
//                                                  runs its body for each
//      PTOWSP_RECEIVE(m, t, channel) {}            receives one token and runs its body for it; at
//                                                  the end of the stream the body does not run
//
// t is the token, an i64 (cast to u64, the bits stay). A consume may contain another consume; if
// both have the same channel, the inner one drains it.
// clang-format off
#define PTOWSP_PIPELINE(m, name)      PWSP_SCOPE(m, ptowsp_pipeline_begin(m, name, NULL, 0))
#define PTOWSP_PROCESS(m, name)       PWSP_SCOPE(m, ptowsp_process_begin(m, name))
#define PTOWSP_REPLICATE(m, i, axis, name)                                                         \
    PWSP_SCOPE_LOOP(m, i, ptowsp_replicate_begin(m, #i, axis, name))
#define PTOWSP_CONSUME(m, t, channel) PWSP_SCOPE_LOOP(m, t, ptowsp_consume_begin(m, #t, channel))
#define PTOWSP_RECEIVE(m, t, channel) PWSP_SCOPE_LOOP(m, t, ptowsp_receive_begin(m, #t, channel))
// clang-format on

// The functions that the macros call; ptowsp_scope_end closes each scope. A pipeline may be `after`
// tasks and other pipelines, and a task `after` a pipeline, as in ptowsp_task_desc.
// Errors   A process outside a pipeline; a pipeline in a process (also by a call); a statement
//          between processes; two channels or two processes of one name in a pipeline; a channel
//          after a process; an axis that is ragged or sparse, or has size 0; a channel of another
//          pipeline, or one that the process does not consume (produce).
PTOWSP_API ptowsp_node ptowsp_pipeline_begin(ptowsp_module *module, const char *name,
                                             const ptowsp_node *after, uint32_t after_count);
PTOWSP_API void ptowsp_process_begin(ptowsp_module *module, const char *name);
PTOWSP_API ptowsp_expr ptowsp_replicate_begin(ptowsp_module *module, const char *variable,
                                              ptowsp_axis axis, const char *name);
PTOWSP_API ptowsp_expr ptowsp_consume_begin(ptowsp_module *module, const char *variable,
                                            ptowsp_channel channel);
PTOWSP_API ptowsp_expr ptowsp_receive_begin(ptowsp_module *module, const char *variable,
                                            ptowsp_channel channel);

// Declares a channel of the pipeline under construction. The symbol PTOWSP_CHANNEL_LATENCY_SYMBOL
// overrides the latency of all channels and events. Every module with a pipeline has this symbol;
// it need not be bound.
// Errors   A call that is not directly in a pipeline, before its processes; the name of another
//          channel of the pipeline; a depth over PTOWSP_CHANNEL_DEPTH_MAX; a negative latency, that
//          is, over PTOWSP_CYCLES_MAX. depth_at_start and latency_at_start are checked when the
//          pipeline starts.
PTOWSP_API ptowsp_channel ptowsp_channel_make(ptowsp_module *module,
                                              const ptowsp_channel_desc *desc);

// Declare the channels that the process under construction receives from and sends to, before its
// statements. A process may do both with one channel.
// Errors   A call that is not directly in a process, or after a statement; no channel, or one of
//          another pipeline; a channel declared twice.
PTOWSP_API void ptowsp_consumes(ptowsp_module *module, ptowsp_channel channel);
PTOWSP_API void ptowsp_produces(ptowsp_module *module, ptowsp_channel channel);

// Sends a token: the 64 bits of an expression of any type.
// Errors   Outside a process; a channel that it does not produce. At run time, after the process
//          has closed the channel.
PTOWSP_API void ptowsp_send_make(ptowsp_module *module, ptowsp_channel channel, ptowsp_expr token);

// Adds a task, as ptowsp_task_make, and sends its first axis argument when it is done. A kernel
// without axis arguments is an error. (To send another token, use ptowsp_task_make and
// ptowsp_send_make.)
PTOWSP_API ptowsp_node ptowsp_send_task_make(ptowsp_module *module, ptowsp_channel channel,
                                             const ptowsp_task_desc *desc);

// Closes a channel or event on this process' side before the process ends. Closing twice does
// nothing.
PTOWSP_API void ptowsp_close_make(ptowsp_module *module, ptowsp_channel channel);

// Events: channels of depth 0 whose tokens carry no value, with latency 0 unless the symbol
// overrides it. Each record meets one wait, and both proceed at the same time. A wait is STUCK when
// all processes that record the event have ended. A process declares that it records an event with
// ptowsp_produces, and that it waits with ptowsp_consumes.
PTOWSP_API ptowsp_channel ptowsp_event_make(ptowsp_module *module, const char *name);
PTOWSP_API void ptowsp_record_make(ptowsp_module *module, ptowsp_channel event);
PTOWSP_API void ptowsp_wait_make(ptowsp_module *module, ptowsp_channel event);

// -------------------------------------------------------------------------------------------------
// 26. Ranks
// -------------------------------------------------------------------------------------------------
//
// Collectives between ranks: as lists of steps, as simulated time, and run over a transport.
//
//      desc + rank --ptowsp_collective_plan--> steps of that rank          (pure)
//      desc + links --ptowsp_collective_time--> picoseconds                (pure)
//      ptowsp_ranks over a transport --ptowsp_ranks_run--> data            (communicates)
//
// Workloads have collectives as tasks, beside others: see ptowsp_kernel_collective below.
//
// The members of a collective are the ranks first, first + stride, ...: all ranks, or those that
// differ in one coordinate of a mesh. `count` elements are cut into one part for each member; the
// first count % members parts have one element more. With in and out in elements, for member i:
//
//      ALL_REDUCE      in count                      out count, the reduction of all
//      REDUCE_SCATTER  in count                      out part i of the reduction
//      ALL_GATHER      in part i                     out count, all parts
//      ALL_TO_ALL      in count: a part for each     out part i of each member, by member
//      BROADCAST       in count (of the root alone)  out count
//      SEND            in count (of the root alone)  out count (of target alone)
//      SLICE           in count                      out part i of its own: nothing is sent
//
// ALL_TO_ALL with `counts` is ragged: counts[s * members + d] elements go from s to d; in holds the
// row of a member, out the column. All members give all counts.
//
// Algorithms, for p members, and the order of the reduction of an element in part c:
//
//      DIRECT        a message to each, at once. ((x0 + x1) + x2) + ..., the order of ranks
//      RING          p - 1 rounds to the next rank; twice for ALL_REDUCE and BROADCAST (whose
//                    first round scatters from the root). ((x(c+1) + x(c+2)) + ...) + x(c)
//      DOUBLING      rounds with partners at distances 1, 2, 4, ...: ALL_REDUCE, ALL_GATHER,
//                    BROADCAST; REDUCE_SCATTER halves distances. With q the largest power of two
//                    not above p, of the first 2 (p - q) members each odd one gives its summand to
//                    the even one before it, and gets its result from there. All others and the
//                    even ones are numbered 0 to q - 1. ALL_REDUCE adds neighbours, then pairs of
//                    these: ((x0 + x1) + (x2 + x3)); REDUCE_SCATTER the farthest first:
//                    ((x0 + x2) + (x1 + x3)). ALL_GATHER is Bruck's, for any p
//      HIERARCHICAL  rings within nodes of node_size members, then between members of the same
//                    place in nodes; gathers the other way round. With c = node * node_size +
//                    place, the ring's order: over places from place + 1 on, and these sums over
//                    nodes from node + 1 on
//
// So the order depends on the description alone. All members get the same bits, in each run and
// over each transport. The left operand is always the one written on the left. f16 and bf16 are
// added in f32 and rounded at each addition. Integers wrap. MAX and MIN of NaN are NaN.
//
// Exceptions: SEND and SLICE are always DIRECT. ALL_TO_ALL is DIRECT or RING (a round for each
// distance).

#define PTOWSP_RANK_COUNT_MAX 16384
#define PTOWSP_MESH_AXIS_MAX  4

#define PTOWSP_COLLECTIVES(COLLECTIVE) /* name, text */                                            \
    COLLECTIVE(ALL_REDUCE, "all_reduce")                                                           \
    COLLECTIVE(REDUCE_SCATTER, "reduce_scatter")                                                   \
    COLLECTIVE(ALL_GATHER, "all_gather")                                                           \
    COLLECTIVE(ALL_TO_ALL, "all_to_all")                                                           \
    COLLECTIVE(BROADCAST, "broadcast")                                                             \
    COLLECTIVE(SEND, "send")                                                                       \
    COLLECTIVE(SLICE, "slice")

// clang-format off
typedef enum ptowsp_collective_kind {
#define PWSP_COLLECTIVE_ENUM(name, text) PTOWSP_##name,
    PTOWSP_COLLECTIVES(PWSP_COLLECTIVE_ENUM)
#undef PWSP_COLLECTIVE_ENUM
    PWSP_FORCE_INT(PTOWSP_COLLECTIVE_KIND)
} ptowsp_collective_kind;
// clang-format on

#define PTOWSP_ALGORITHMS(ALGORITHM) /* name, text */                                              \
    ALGORITHM(AUTO, "auto")          /* the cheapest on the links: see ptowsp_collective_choose */ \
    ALGORITHM(DIRECT, "direct")                                                                    \
    ALGORITHM(DOUBLING, "doubling")                                                                \
    ALGORITHM(HIERARCHICAL, "hierarchical")                                                        \
    ALGORITHM(RING, "ring")

// clang-format off
typedef enum ptowsp_algorithm {
#define PWSP_ALGORITHM_ENUM(name, text) PTOWSP_ALGORITHM_##name,
    PTOWSP_ALGORITHMS(PWSP_ALGORITHM_ENUM)
#undef PWSP_ALGORITHM_ENUM
    PWSP_FORCE_INT(PTOWSP_ALGORITHM)
} ptowsp_algorithm;
// clang-format on

#define PTOWSP_REDUCTIONS(REDUCTION) /* name, text */                                              \
    REDUCTION(SUM, "sum")                                                                          \
    REDUCTION(MAX, "max")                                                                          \
    REDUCTION(MIN, "min")

// clang-format off
typedef enum ptowsp_reduction {
#define PWSP_REDUCTION_ENUM(name, text) PTOWSP_REDUCTION_##name,
    PTOWSP_REDUCTIONS(PWSP_REDUCTION_ENUM)
#undef PWSP_REDUCTION_ENUM
    PWSP_FORCE_INT(PTOWSP_REDUCTION)
} ptowsp_reduction;
// clang-format on

typedef struct ptowsp_collective {
    ptowsp_collective_kind kind;
    ptowsp_algorithm algorithm;
    ptowsp_reduction reduction;  // ALL_REDUCE, REDUCE_SCATTER
    ptowsp_dtype dtype;          // not bool, where it reduces
    uint64_t count;              // elements of the whole, as above; 0 with counts
    const uint64_t *counts;      // [members * members], ragged ALL_TO_ALL alone; else NULL
    uint32_t members;            // 1 to PTOWSP_RANK_COUNT_MAX
    uint32_t first, stride;      // the ranks of the members; stride 0 is 1
    uint32_t node_size;          // HIERARCHICAL: members of a node, which divides members; 0 is 1
    uint32_t root, target;       // members: the root of BROADCAST and SEND, the target of SEND
} ptowsp_collective;

// "all_reduce", "ring", ...; "none" for other values.
PTOWSP_API const char *ptowsp_collective_name(ptowsp_collective_kind kind);
PTOWSP_API const char *ptowsp_algorithm_name(ptowsp_algorithm algorithm);

typedef enum ptowsp_collective_step_kind {
    PTOWSP_MOVE_SEND = 0,  // from[from_at, from_at + count) to peer
    PTOWSP_MOVE_RECEIVE,   // to[to_at, to_at + count) from peer
    PTOWSP_MOVE_COPY,      // to = from
    PTOWSP_MOVE_REDUCE,    // to = from + to: the other summand is on the left
    PTOWSP_MOVE_ADD,       // to = to + from: it is on the right
    PWSP_FORCE_INT(PTOWSP_MOVE)
} ptowsp_collective_step_kind;

typedef enum ptowsp_collective_space {
    PTOWSP_SPACE_IN = 0,   // read only
    PTOWSP_SPACE_OUT,      // the result
    PTOWSP_SPACE_SCRATCH,  // of the rank's own
    PWSP_FORCE_INT(PTOWSP_SPACE)
} ptowsp_collective_space;

// A step of one rank. Rounds follow one another. Within a round all messages are under way at once,
// messages between two ranks in order; then the local steps are done, in order. A rank starts a
// round when it has ended the one before: no rank waits for all others.
typedef struct ptowsp_collective_step {
    ptowsp_collective_step_kind kind;
    uint32_t round;
    uint32_t peer;  // the rank of a message; 0 of local steps
    ptowsp_collective_space from, to;
    uint64_t from_at, to_at, count;  // elements
} ptowsp_collective_step;

typedef struct ptowsp_collective_size {
    uint64_t step_count;
    uint64_t in_count, out_count, scratch_count;  // elements of the three spaces
    uint64_t send_count;                          // elements that the rank sends
    uint32_t round_count;
} ptowsp_collective_size;

// Writes the steps of a member, at most step_capacity of them; counts them all. With steps NULL and
// step_capacity 0 it only counts. Parts without elements have no steps, but messages of a ragged
// ALL_TO_ALL.
//
// Errors   INVALID_PARAMS (an unknown value; bool or no dtype; no members; a member, root or target
//          that does not exist; AUTO; counts without ALL_TO_ALL, or with count). UNSUPPORTED (an
//          algorithm that the kind does not have). UNSUPPORTED_SIZE (a node_size that does not
//          divide). LIMIT_EXCEEDED (ranks beyond PTOWSP_RANK_COUNT_MAX; bytes beyond 63 bits).
//          BUFFER_OVERFLOW (more steps than capacity; out_size is written).
// Cost     The steps of the member.
PTOWSP_API ptowsp_status ptowsp_collective_plan(ptowsp_context *context,
                                                const ptowsp_collective *collective,
                                                uint32_t member, ptowsp_collective_step *steps,
                                                uint64_t step_capacity,
                                                ptowsp_collective_size *out_size);

// Prints a line for each step of a member. Requires a collective that can be planned.
PTOWSP_API void ptowsp_collective_print(const ptowsp_collective *collective, uint32_t member,
                                        ptowsp_output output);

// -- time -----------------------------------------------------------------------------------------
//
// A message of b bytes that starts at t takes its link until t + b / bandwidth, and arrives latency
// later. It starts when its round has started at the sender and all its links are free. A link
// serves messages first come, first served, by those times; ties in the order of ranks, then of
// steps (as in LogGOPSim, Hoefler and others, 2010):
//
//      PORT   one link out of and one into each rank: all its messages share them
//      PAIR   a link from each rank to each other
//      NODE   one link out of and one into each node, which its ranks share
//
// Links within a node may have a cap for each rank beside their own rates. A rank then passes the
// bytes of its messages in the order in which these start; sending and receiving are separate. A
// message ends when its link and both ranks have passed it. k messages of b bytes that start
// together at a rank, on k links, end after max(b / bandwidth, k b / cap).
//
// So a ring all-reduce of n bytes, p dividing n, takes 2 (p - 1) (latency + n / p / bandwidth).
// Receivers have room: a message may come before its round. Collectives of different groups share
// links fairly while they are under way at once. k messages of b bytes on one link, from any
// groups, have passed it k b / bandwidth after the first began.
//
// Instead of nodes, links may run along the axes of a mesh. A message takes the link of the first
// axis along which its two ranks differ. A NODE then has the ranks that differ along later axes
// only (for the last axis: along it only). So nodes of 8 are a mesh (.., 8).

typedef enum ptowsp_link_sharing {
    PTOWSP_LINK_PORT = 0,
    PTOWSP_LINK_PAIR,
    PTOWSP_LINK_NODE,
    PWSP_FORCE_INT(PTOWSP_LINK)
} ptowsp_link_sharing;

typedef struct ptowsp_link {
    uint64_t latency_ps;
    uint64_t bytes_per_us;  // in each direction; 1 GB/s is 1000. 0: without limit
    ptowsp_link_sharing sharing;
} ptowsp_link;

typedef struct ptowsp_links {
    const char *name;    // for texts; not copied
    uint32_t node_size;  // ranks in a node: rank / node_size is the node; 0: all are in one
    ptowsp_link inside, between;   // within a node, and between nodes
    uint64_t reduce_bytes_per_us;  // of a rank's additions, by bytes of one operand. 0: free
    // A mesh, the last axis fastest; 0 axes: nodes. Along the first axis are as many as there are
    // ranks for: its size does not change times.
    uint32_t axis_count;
    uint32_t axis_sizes[PTOWSP_MESH_AXIS_MAX];
    ptowsp_link axes[PTOWSP_MESH_AXIS_MAX];
    // Of a rank, over all its links within the node (of a mesh: along the last axis), out of it and
    // into it. 0: no cap beside the links' own.
    uint64_t rank_bytes_per_us;
} ptowsp_links;

// Links of machines, for a first idea: bandwidths in one direction and latencies are round numbers
// assumed by this library. Only the bandwidths of 910B_CORES were measured. Measure yours.
//
//      ASCEND_910B    nodes of 8: HCCS, each pair 28 GB/s, 2 us; RoCE, 25 GB/s a rank, 5 us
//      ETHERNET_100G  nodes of 1: 12.5 GB/s a rank, 20 us
//      ETHERNET_10G   nodes of 1: 1.25 GB/s a rank, 30 us
//      ASCEND_910B_CORES  as ASCEND_910B, where vector cores copy: each pair 14.5 GB/s, a rank 67.7
//                     in all (so a pair of 8 has 9.7 when all copy), as in published kernels
typedef enum ptowsp_links_of {
    PTOWSP_LINKS_ASCEND_910B = 0,
    PTOWSP_LINKS_ETHERNET_100G,
    PTOWSP_LINKS_ETHERNET_10G,
    PTOWSP_LINKS_ASCEND_910B_CORES,
    PWSP_FORCE_INT(PTOWSP_LINKS)
} ptowsp_links_of;

// Zeroes for other values.
PTOWSP_API ptowsp_links ptowsp_links_make(ptowsp_links_of machine);

typedef struct ptowsp_collective_cost {
    uint64_t time_ps;        // until the last rank has ended
    uint64_t message_count;  // of all ranks
    uint64_t sent_bytes;     // of all ranks
    uint64_t between_bytes;  // of these, between nodes
    uint32_t round_count;
} ptowsp_collective_cost;

// Simulates a collective on links. The result depends on the arguments alone.
//
// Symmetry  Ranks that do the same, at the same times, are simulated once: of a RING or HIERARCHICAL
//          reduction or gathering whose members divide count, one node stands for all.
// Memory   From the context while it runs. Of the ranks that are simulated: 24 bytes for each rank
//          and round, and 24 for each message. 8 for each end of a link, and for each pair of ranks
//          that a PAIR may join: 2 GB for 16384 ranks in one node.
// Errors   As ptowsp_collective_plan. INVALID_PARAMS (links), LIMIT_EXCEEDED (a time that does not
//          fit 64 bits), OUT_OF_MEMORY.
// Cost     All steps of all members, by a logarithm of members.
PTOWSP_API ptowsp_status ptowsp_collective_time(ptowsp_context *context,
                                                const ptowsp_collective *collective,
                                                const ptowsp_links *links,
                                                ptowsp_collective_cost *out_cost);

// The algorithm with the least simulated time; of equal ones the first by name. node_size is set to
// the number of members that links put into a node, if it divides; else HIERARCHICAL is left out.
// DIRECT is left out beyond 1024 members, except for ALL_TO_ALL, BROADCAST and SEND.
// Prints "all_reduce of 8 ranks, 4096 bytes, on ascend_910b: ring 28.29 us, ..." into `text`, the
// cheapest first, unless it has no function.
PTOWSP_API ptowsp_status ptowsp_collective_choose(ptowsp_context *context,
                                                  ptowsp_collective *collective,
                                                  const ptowsp_links *links, ptowsp_output output);

// -- transports -----------------------------------------------------------------------------------
//
// A transport carries messages between ranks. Messages from one rank to another arrive whole, once
// and in order; the library checks that they do. At a time each pair has one send and one receive
// under way. No function waits. All are called on the thread that calls the communicator.

typedef struct ptowsp_transport {
    void *user;
    // Starts sending. The data stays until the send is done or cancelled. The tag is delivered.
    ptowsp_status (*send)(void *user, uint32_t peer, uint64_t tag, const void *data, uint64_t size);
    // Starts receiving the next message of a peer.
    ptowsp_status (*receive)(void *user, uint32_t peer, void *data, uint64_t capacity);
    // Makes progress, and reports whether the send to, or receive from, a peer has completed. If
    // so, *out_tag and *out_size describe the message, which may be shorter than capacity. An
    // error: the peer has ended, the system failed, or the message is longer (BUFFER_OVERFLOW).
    ptowsp_status (*test)(void *user, uint32_t peer, bool is_send, bool *out_is_done,
                          uint64_t *out_tag, uint64_t *out_size);
    // Gives up the send to or receive from a peer, if one is under way: its memory is not touched
    // afterwards.
    void (*cancel)(void *user, uint32_t peer, bool is_send);
    // The last call. has_failed: others should end, too.
    void (*close)(void *user, bool has_failed);
} ptowsp_transport;

// A hub: memory with a ring of bytes for each pair of ranks. In-process ranks are threads. A hub
// that is shared is memory of the system that children of fork() have in common: create it, fork,
// and take the rank's transport in the child. No file is involved. A child that is killed is
// noticed within some 20 ms by the ranks that wait for it, if the system has /proc.
typedef struct ptowsp_hub ptowsp_hub;

typedef struct ptowsp_hub_desc {
    uint32_t rank_count;  // 1 to PTOWSP_HUB_RANK_MAX
    uint32_t ring_bytes;  // a power of two from 64 to 2^30; default: 65536. Messages may be longer
    bool is_shared;       // between processes
} ptowsp_hub_desc;

#define PTOWSP_HUB_RANK_MAX 256

// Memory   rank_count^2 * (ring_bytes + 512), from the context or, if shared, from the system.
// Threads  One thread takes all transports, or each process its own; then each is used by one.
// Errors   INVALID_PARAMS, OUT_OF_MEMORY, SYSTEM_FAILED (no shared memory), UNSUPPORTED.
PTOWSP_API ptowsp_status ptowsp_hub_create(ptowsp_context *context, const ptowsp_hub_desc *desc,
                                           ptowsp_hub **out_hub);

// Requires that its transports are not used any more. Each process destroys its own.
PTOWSP_API void ptowsp_hub_destroy(ptowsp_hub *hub);

// The transport of a rank; requires that the rank exists. Its close() ends the rank: others get
// RANK_FAILED when they wait for it, or at once if it has failed.
PTOWSP_API ptowsp_transport ptowsp_hub_transport(ptowsp_hub *hub, uint32_t rank);

// -- communicators --------------------------------------------------------------------------------

typedef struct ptowsp_ranks ptowsp_ranks;

typedef struct ptowsp_ranks_desc {
    uint32_t rank, rank_count;   // 1 to PTOWSP_RANK_COUNT_MAX
    ptowsp_transport transport;  // the communicator closes it, also when its creation fails, but
                                 // not after INVALID_PARAMS
    uint64_t fingerprint;        // of your program and its sizes: equal on all ranks
    uint64_t time_limit_ns;      // of creation and of each collective; default: 60 s
    ptowsp_links links;          // for AUTO; all zero: PTOWSP_LINKS_ASCEND_910B
} ptowsp_ranks_desc;

// Creates a communicator when all ranks do. Compares the library's version, fingerprint, count of
// ranks and links of all: ranks that differ are RANK_FAILED on all, and the text names the lowest
// that differs from rank 0.
//
// Threads  A communicator, like its context, belongs to one thread at a time.
// Errors   INVALID_PARAMS, OUT_OF_MEMORY, RANK_FAILED (another rank failed, ended or differs; the
//          index is the rank), TIMED_OUT (a rank did not answer; the index is the rank).
PTOWSP_API ptowsp_status ptowsp_ranks_create(ptowsp_context *context, const ptowsp_ranks_desc *desc,
                                             ptowsp_ranks **out_ranks);

// Closes the transport; NULL is ignored. A collective under way is given up, and others get errors.
PTOWSP_API void ptowsp_ranks_destroy(ptowsp_ranks *ranks);

PTOWSP_API uint32_t ptowsp_ranks_rank(const ptowsp_ranks *ranks);
PTOWSP_API uint32_t ptowsp_ranks_count(const ptowsp_ranks *ranks);

// Runs a collective, which all its members call with equal descriptions, each rank its collectives
// in one order. `in` and `out` hold the elements of the table above, aligned to their type;
// NULL if they have none. They do not overlap, but may be equal in ALL_REDUCE and BROADCAST.
//
// Memory   Steps and scratch of the communicator, which grow and are kept: the same collective
//          again allocates nothing.
// Errors   As ptowsp_collective_plan. INVALID_PARAMS (NULL, overlap, not a member), BUSY (one was
//          started), OUT_OF_MEMORY. RANK_FAILED (a rank failed, ended, or calls a different
//          collective; a message was short, long, lost, or came twice), TIMED_OUT. After any error
//          that is not of the arguments, the transport is closed as failed, so that others end at
//          once; all later calls are RANK_FAILED. The contents of `out` are undefined.
PTOWSP_API ptowsp_status ptowsp_ranks_run(ptowsp_ranks *ranks, const ptowsp_collective *collective,
                                          const void *in, void *out);

// The same in parts, so that no lane is held: start; poll until it is done, or wait. Messages move
// in poll and wait alone. `counts`, `in` and `out` stay until then. One collective at a time.
PTOWSP_API ptowsp_status ptowsp_ranks_start(ptowsp_ranks *ranks,
                                            const ptowsp_collective *collective, const void *in,
                                            void *out);
PTOWSP_API ptowsp_status ptowsp_ranks_poll(ptowsp_ranks *ranks, bool *out_is_done);
PTOWSP_API ptowsp_status ptowsp_ranks_wait(ptowsp_ranks *ranks);

// -- collectives as kernels -----------------------------------------------------------------------
//
// A kernel whose tasks communicate: each task is a collective that all its members run, each in a
// program of its own, in the same order. Its tasks are like other tasks: they wait for the tasks
// that wrote their tiles, and tasks that read their results wait for their end.
//
//      ptowsp_kernel sum = ptowsp_kernel_collective(m, &(ptowsp_collective_desc){
//          .name = "sum", .kind = PTOWSP_ALL_REDUCE, .dtype = PTOWSP_F32});
//      ptowsp_task_desc task = {.kernel = sum, .views = {{.tensor = partial}}};
//
// Its parameters follow from the kind. Tiles have the size of their views, `count` is rows * cols:
//
//      ALL_REDUCE      inout data: the summand, then the reduction; is_apart: in, out
//      BROADCAST       inout data: of the root to all;  root i64
//      SEND            inout data: of the root to the target, both i64. Other ranks do nothing
//      REDUCE_SCATTER  in, out: part of `in`
//      SLICE           in, out: part of `in`, which the rank has
//      ALL_GATHER      in: part of `out`, out
//      ALL_TO_ALL      in, out: a part of each member
//      ragged          the same; counts[s * members + d] rows go from s to d. The array `counts` is
//                      i64 and bound on all ranks alike. in and out are as wide as each other, and
//                      have room for the rows; nothing is written after these
//
// Tiles are cut row by row, so equal parts are blocks of rows. With in_columns or out_columns the
// parts of that tile are equal blocks of columns.
//
// Members are the ranks of the run, or groups of `members` ranks that are `stride` apart: those
// that differ in one coordinate of a mesh. root and target are members.
//
// Links    Tasks that communicate have a lane of their own, the last one, and the unit LINK: they
//          take no lane from others. One follows the other, in program order, on all ranks. In real
//          time they hold no lane either: lanes that look for work move them on, and run other
//          tasks meanwhile. On one lane, where tasks run in program order, it waits for them.
// Time     ptowsp_collective_time on the links that are bound (ptowsp_run_bind_ranks), in cycles.
// Not there: in processes of pipelines, in choices, on devices, in emitted trees.
//
// Errors   A bad or clashing name; a value that the kind does not have (a reduction of bool, counts
//          without ALL_TO_ALL, an algorithm, columns of a tile that it does not cut); more members
//          than PTOWSP_RANK_COUNT_MAX.
typedef struct ptowsp_collective_desc {
    const char *name;  // of the kernel; copied
    ptowsp_collective_kind kind;
    ptowsp_algorithm algorithm;  // default: the cheapest on the links of the run
    ptowsp_reduction reduction;
    ptowsp_dtype dtype;
    uint32_t members;    // of a group; default: all ranks
    uint32_t stride;     // default: 1
    const char *counts;  // the name of an i64 array, for a ragged ALL_TO_ALL; NULL: it is not
    bool is_apart;       // ALL_REDUCE: tiles in and out, instead of data
    bool in_columns;     // REDUCE_SCATTER, ALL_TO_ALL, SLICE: `in` is cut by columns
    bool out_columns;    // ALL_GATHER, ALL_TO_ALL: `out` is cut by columns
} ptowsp_collective_desc;

PTOWSP_API ptowsp_kernel ptowsp_kernel_collective(ptowsp_module *module,
                                                  const ptowsp_collective_desc *desc);

// -- ranks of a run -------------------------------------------------------------------------------

// The transport of the collectives of a run, and the links that determine their time.
// All ranks execute programs with the same collectives in the same order.
//
//      ranks, executing    data moves. Time is this rank's alone
//      ranks, time only    nothing moves; ranks tell each other when they can begin, and find the
//                          time of all of them together: waits for a late rank, stages of a
//                          pipeline. A collective is alone on the links
//      no ranks            time of this rank alone, as if all ranks did the same and began when it
//                          does. Groups share links. For any number of ranks, in one process
//      a group of runs     time of ranks that differ, in one process, on links that all share
//                          (ranks together, below)
//
// A collective begins when its rank is ready and lasts until the rank is done with it. Waiting for
// other ranks is part of its cycles, and is counted as PTOWSP_STALL_RANK.
typedef struct ptowsp_run_ranks {
    ptowsp_ranks *ranks;        // stays until the run is destroyed; NULL: for time alone
    uint32_t rank, rank_count;  // ignored if `ranks` is set, as are the links: its own ones count
    ptowsp_links links;         // default: ASCEND_910B
    uint64_t cycles_per_us;     // of the kernels' cycles; default: 1850, a 910B's
} ptowsp_run_ranks;

// Binds ranks; NULL: none. The communicator may be of the run's context, or of another one that no
// other thread uses meanwhile.
//
// Threads  Several lanes take turns at calling the transport. On their threads, memory for messages
//          comes from the communicator's context, and memory for tiles whose elements do not lie
//          together from the run's context. Allocators of your own must allow that.
// Errors   INVALID_PARAMS (a rank that does not exist, links, over 10^6 cycles each us). Executing:
//          as ptowsp_ranks_run; INVALID_PARAMS (no ranks are bound; a root, target or count out of
//          range; counts that are not members * members), UNSUPPORTED_SIZE (groups that do not
//          divide the ranks; tiles too small for a collective). A run that fails closes the
//          communicator as failed, so that other ranks end, too.
PTOWSP_INLINE ptowsp_status ptowsp_run_bind_ranks(ptowsp_run *run, const ptowsp_run_ranks *ranks) {
    ptowsp_binding b = pwsp_binding_of(PTOWSP_BIND_RANKS, PWSP_NULL);
    b.data = ranks;
    return ptowsp_run_bind(run, &b, 1);
}

// -- ranks together -------------------------------------------------------------------------------
//
// Runs that are the ranks of one simulation. Programs, schedules, sizes and counts may differ; the
// order of the collectives that they share may not. Each run has all its bindings, except ranks.
typedef struct ptowsp_run_group {
    ptowsp_run *const *runs;  // by rank; all different
    uint32_t rank_count;      // 1 to PTOWSP_RANK_COUNT_MAX
    ptowsp_links links;       // as above
    uint64_t cycles_per_us;
} ptowsp_run_group;

typedef struct ptowsp_run_group_result {
    ptowsp_cycles makespan_cycles;  // of the rank that ends last, of these the lowest
    uint32_t last_rank;
    uint64_t collective_count;  // of all groups; a SEND counts as one
    uint64_t message_count, sent_bytes, between_bytes;
    ptowsp_cycles wait_cycles;  // PTOWSP_STALL_RANK of all ranks
    uint64_t memory_bytes;      // of all runs
} ptowsp_run_group_result;

// Simulates the runs together, on one clock that begins at 0: executes each in time-only mode, with
// these options but mode. Then each has its results and records. All messages under way share the
// links by the rules above, so the result depends on the inputs alone: a link serves first
// come, first served, ties by rank. out_result may be NULL.
//
// Collectives of a group are matched in their order on each rank, and must be equal. AUTO chooses as
// for one alone.
//
// Memory   From the context: about 330 bytes for each rank, and links and each collective under way
//          as ptowsp_collective_time has them, without symmetry. A run takes
//          ptowsp_run_stats.memory_bytes.
// Threads  Runs may have different contexts, which no other thread uses meanwhile.
// Errors   INVALID_PARAMS (no ranks, a rank without run, links, cycles), BUSY (a run executes, or
//          is there twice). As ptowsp_run_execute in time-only mode; the text begins with the rank,
//          which is the index. LIMIT_EXCEEDED (time beyond 2^64 / 10^6 cycles). RANK_FAILED (ranks
//          call different collectives, or one ends without calling the others' collectives). STUCK
//          (ranks wait for each other in different orders), OUT_OF_MEMORY. No run has results then.
// Cost     The runs, and the messages, by a logarithm of ranks.
PTOWSP_API ptowsp_status ptowsp_run_group_simulate(ptowsp_context *context,
                                                   const ptowsp_run_group *group,
                                                   const ptowsp_run_options *options,
                                                   ptowsp_run_group_result *out_result);

// The rank that a communicating task has waited for: the root of a BROADCAST or SEND, otherwise the
// last member that began. A task that receives a SEND has one even if it did not wait.
typedef struct ptowsp_rank_wait {
    uint64_t task;         // of this run
    uint64_t from_task;    // of the other; PTOWSP_NO_INDEX between processes
    ptowsp_cycles cycles;  // from its start until the other began
    uint32_t from_rank;
} ptowsp_rank_wait;

// The waits of a run's last time of all ranks together, by task, if it recorded tasks or totals.
// out_count may be NULL.
PTOWSP_API const ptowsp_rank_wait *ptowsp_run_rank_waits(const ptowsp_run *run,
                                                         uint64_t *out_count);

// The same for all ranks of a group that has been simulated with records: lanes of all,
// the links as the last lane of each, and arrows by ptowsp_run_rank_waits. Tasks in processes of
// pipelines are left out.
//
// Memory   Freed on return: 100 bytes per task.
// Errors   INVALID_PARAMS also: the group; a run that has recorded no tasks (the index is its rank).
PTOWSP_API ptowsp_status ptowsp_run_group_export(ptowsp_context *context,
                                                 const ptowsp_run_group *group,
                                                 ptowsp_export_format format,
                                                 const ptowsp_export_options *options,
                                                 ptowsp_output output);

// -------------------------------------------------------------------------------------------------
// 27. Layouts
// -------------------------------------------------------------------------------------------------
//
// How a tensor is spread over ranks, as values and pure functions: nothing is allocated or sent.
// Ranks form a mesh of up to four named axes. Ranks are numbered with the last axis fastest. Along
// each axis of the mesh a tensor is spread in one way:
//
//      REPLICATED    all ranks along the axis hold the same
//      SHARDED       each holds one piece of a dimension, in the order of coordinates
//      PARTIAL_SUM   each holds a summand of all of it; the tensor is their sum
//      PARTIAL_MAX   the same, of a maximum
//
// Several axes may shard one dimension: a later axis then cuts the pieces of an earlier one.
//
// Errors   Functions with a context may be called with NULL; then errors have no text. Texts name
//          the tensor, the dimension and the axis. Texts about two tensors have both layouts, as
//          "w[64 x 128] {dp: replicated, tp: dim 1}".
// Threads  Calls with different contexts, or with NULL, are independent.

#define PTOWSP_MESH_RANK_MAX 65536

typedef struct ptowsp_mesh {
    uint32_t axis_count;                      // 1 to PTOWSP_MESH_AXIS_MAX
    const char *names[PTOWSP_MESH_AXIS_MAX];  // printable, different
    uint32_t sizes[PTOWSP_MESH_AXIS_MAX];     // at least 1; the product is the number of ranks
} ptowsp_mesh;

typedef enum ptowsp_spread_kind {
    PTOWSP_REPLICATED = 0,
    PTOWSP_SHARDED,
    PTOWSP_PARTIAL_SUM,
    PTOWSP_PARTIAL_MAX,
    PWSP_FORCE_INT(PTOWSP_SPREAD_KIND)
} ptowsp_spread_kind;

// How a tensor is spread along one axis of the mesh.
typedef struct ptowsp_spread {
    ptowsp_spread_kind kind;
    uint32_t dim;         // SHARDED: the dimension
    const int64_t *cuts;  // SHARDED: [size of the axis + 1], from 0 to the size of the dimension,
                          // not falling; the dimension is then sharded by this axis alone.
                          // NULL: equal pieces, whose number must divide the size. Not copied
} ptowsp_spread;

typedef struct ptowsp_mesh_layout {
    const char *name;  // of the tensor, for errors; not copied
    uint32_t element_bytes;
    uint32_t rank;                                // 0 to PTOWSP_TENSOR_RANK_MAX
    int64_t shape[PTOWSP_TENSOR_RANK_MAX];        // of the whole tensor, outermost first
    ptowsp_spread spreads[PTOWSP_MESH_AXIS_MAX];  // by axis of the mesh
} ptowsp_mesh_layout;

// The number of ranks; out_rank_count may be NULL.
// Errors   INVALID_PARAMS (no axis or too many, a size of 0, a bad name, a name used twice),
//          LIMIT_EXCEEDED (more than PTOWSP_MESH_RANK_MAX ranks).
PTOWSP_API ptowsp_status ptowsp_mesh_check(ptowsp_context *context, const ptowsp_mesh *mesh,
                                           uint32_t *out_rank_count);

// The coordinate of a rank along an axis. Requires a valid mesh, a rank and an axis of it.
PTOWSP_API uint32_t ptowsp_mesh_coordinate(const ptowsp_mesh *mesh, uint32_t rank, uint32_t axis);

// Checks a layout, and its mesh.
// Errors   As the mesh. INVALID_PARAMS (name NULL, rank, element_bytes 0, sizes below 0; a kind or
//          dimension that does not exist; cuts that fall, do not cover the dimension or are not
//          alone; sums along one axis and maxima along another). UNSUPPORTED_SIZE (equal pieces
//          that do not divide the dimension). LIMIT_EXCEEDED (the tensor's bytes do not fit 63
//          bits).
PTOWSP_API ptowsp_status ptowsp_mesh_layout_check(ptowsp_context *context, const ptowsp_mesh *mesh,
                                                  const ptowsp_mesh_layout *layout);

// The piece of a rank: [offsets, offsets + sizes) of each dimension. A piece may be empty.
typedef struct ptowsp_mesh_layout_part {
    int64_t offsets[PTOWSP_TENSOR_RANK_MAX];
    int64_t sizes[PTOWSP_TENSOR_RANK_MAX];
    uint64_t bytes;
} ptowsp_mesh_layout_part;

// Errors   As ptowsp_mesh_layout_check; INVALID_PARAMS (no such rank).
PTOWSP_API ptowsp_status ptowsp_mesh_layout_part_of(ptowsp_context *context,
                                                    const ptowsp_mesh *mesh,
                                                    const ptowsp_mesh_layout *layout, uint32_t rank,
                                                    ptowsp_mesh_layout_part *out_part);

// Prints "w[64 x 128] {dp: replicated, tp: dim 1}". Requires a layout that is valid on the mesh.
PTOWSP_API void ptowsp_mesh_layout_print(const ptowsp_mesh *mesh, const ptowsp_mesh_layout *layout,
                                         ptowsp_output output);

// Operations on two layouts. Each rank computes on its own pieces; nothing is sent.
typedef enum ptowsp_join {
    PTOWSP_JOIN_ADD = 0,   // a + b, of equal shapes
    PTOWSP_JOIN_MULTIPLY,  // a * b, by element, of equal shapes
    PTOWSP_JOIN_MAX,       // the maximum, of equal shapes
    PTOWSP_JOIN_MATMUL,    // a[.., m, k] b[.., k, n], of equal ranks of 2 or more
    PWSP_FORCE_INT(PTOWSP_JOIN)
} ptowsp_join;

// The layout of the result, by axis of the mesh. Pairs that are not here are errors; "dim" means
// the same dimension with the same pieces in both.
//
//      ADD         repl + repl = repl    dim + dim = dim      sum + sum = sum
//      MULTIPLY    repl * repl = repl    dim * dim = dim      sum * repl = sum     repl * sum = sum
//      MAX         repl, repl  = repl    dim, dim  = dim      max, max   = max
//                  max, repl   = max     repl, max = max
//      MATMUL      repl . repl = repl    m . repl  = m        repl . n   = n       k . k = sum
//                  sum . repl  = sum     repl . sum = sum     dim . dim  = dim (an outer dimension)
//
// The result has the name, shape and cuts of the operands, and element_bytes of a.
// Errors   As ptowsp_mesh_layout_check for both; INVALID_PARAMS (an unknown operation, shapes that
//          do not fit, a pair without a rule: the index is the axis).
PTOWSP_API ptowsp_status ptowsp_mesh_layout_join(ptowsp_context *context, const ptowsp_mesh *mesh,
                                                 ptowsp_join join, const ptowsp_mesh_layout *a,
                                                 const ptowsp_mesh_layout *b, const char *name,
                                                 ptowsp_mesh_layout *out_layout);

typedef enum ptowsp_relayout_kind {
    PTOWSP_RELAYOUT_SLICE = 0,       // each keeps a piece of its part; nothing is sent
    PTOWSP_RELAYOUT_REDUCE_SCATTER,  // partial to sharded
    PTOWSP_RELAYOUT_ALL_TO_ALL,      // sharded to sharded otherwise
    PTOWSP_RELAYOUT_ALL_REDUCE,      // partial to replicated
    PTOWSP_RELAYOUT_ALL_GATHER,      // sharded to replicated
    PWSP_FORCE_INT(PTOWSP_RELAYOUT_KIND)
} ptowsp_relayout_kind;

// One step: ranks that differ in the coordinate of one axis alone work together.
typedef struct ptowsp_relayout_step {
    ptowsp_relayout_kind kind;
    uint32_t axis;
    ptowsp_spread before, after;  // along the axis
    uint64_t bytes;  // the most that a rank moves: receives (gather, all-to-all) or sends (the
                     // others; an all-reduce as a ring of chunks that differ by one element)
} ptowsp_relayout_step;

#define PTOWSP_RELAYOUT_STEP_MAX (2 * PTOWSP_MESH_AXIS_MAX)

typedef struct ptowsp_relayout {
    uint32_t step_count;
    ptowsp_relayout_step steps[PTOWSP_RELAYOUT_STEP_MAX];
    uint64_t bytes;  // of all steps
} ptowsp_relayout;

// The steps from one layout of a tensor to another: slices as early as possible, then the steps
// that make parts smaller, then gathers. An axis takes one step, or two where it cuts the pieces of
// an earlier axis that changes: these are gathered first and cut again.
//
// Errors   As ptowsp_mesh_layout_check for both; INVALID_PARAMS (shapes or elements that differ; an
//          axis that becomes partial, or partial in a different way).
// Cost     The number of ranks, for each step.
PTOWSP_API ptowsp_status ptowsp_mesh_layout_relayout(ptowsp_context *context,
                                                     const ptowsp_mesh *mesh,
                                                     const ptowsp_mesh_layout *from,
                                                     const ptowsp_mesh_layout *to,
                                                     ptowsp_relayout *out_relayout);

// A linear layout: a map from the bits of one index to the bits of another, as a matrix over F2
// (Zhou et al., "Linear Layouts", 2025). Bit i of the input adds columns[i] by exclusive or.
// Columns from in_bits on are 0, and so are bits from out_bits on.
typedef struct ptowsp_linear {
    uint32_t in_bits, out_bits;  // 0 to 64
    uint64_t columns[64];
} ptowsp_linear;

// Constructors of linear layouts, and operations on them.
//
//      identity   y = x
//      strided    y = x << shift
//      blocked    x = (position, owner above it): elements go to 2^owner_bits owners in blocks of
//                 2^block_bits, round and round; y is the element. block_bits 0 is cyclic
//      swizzle    x = (column, row above it): bit i of the column is changed by bit i + shift of
//                 the row, for i < count
//      compose    outer(inner(x)); in_bits of outer is out_bits of inner
//      transpose  rows as columns
//      inverse    of one that is square and of full rank
//
// Errors   INVALID_PARAMS (NULL; a matrix that breaks its form; sizes that do not fit each other),
//          UNSUPPORTED_SIZE (more than 64 bits). inverse: STUCK (the matrix is singular). Nothing
//          is written then; results may alias operands.
PTOWSP_API ptowsp_status ptowsp_linear_identity(uint32_t bits, ptowsp_linear *out_linear);
PTOWSP_API ptowsp_status ptowsp_linear_strided(uint32_t bits, uint32_t shift,
                                               ptowsp_linear *out_linear);
PTOWSP_API ptowsp_status ptowsp_linear_blocked(uint32_t bits, uint32_t owner_bits,
                                               uint32_t block_bits, ptowsp_linear *out_linear);
PTOWSP_API ptowsp_status ptowsp_linear_swizzle(uint32_t column_bits, uint32_t row_bits,
                                               uint32_t shift, uint32_t count,
                                               ptowsp_linear *out_linear);
PTOWSP_API ptowsp_status ptowsp_linear_compose(const ptowsp_linear *outer,
                                               const ptowsp_linear *inner,
                                               ptowsp_linear *out_linear);
PTOWSP_API ptowsp_status ptowsp_linear_transpose(const ptowsp_linear *linear,
                                                 ptowsp_linear *out_linear);
PTOWSP_API ptowsp_status ptowsp_linear_inverse(const ptowsp_linear *linear,
                                               ptowsp_linear *out_linear);

// The image of an index, whose bits from in_bits on are ignored; and the rank of the matrix. It is
// injective if the rank is in_bits. Both require a valid matrix.
PTOWSP_API uint64_t ptowsp_linear_apply(const ptowsp_linear *linear, uint64_t index);
PTOWSP_API uint32_t ptowsp_linear_rank(const ptowsp_linear *linear);

// How many times the fullest bank is accessed when all 2^in_bits lanes access the words that the
// layout gives them, at once. The bank is bank_bits bits of the address from first_bit on; lanes at
// one word count once. 1 is free of conflicts.
// Errors   INVALID_PARAMS (NULL, a matrix that breaks its form, bank bits beyond bit 64),
//          LIMIT_EXCEEDED (2^64 accesses).
PTOWSP_API ptowsp_status ptowsp_linear_conflicts(const ptowsp_linear *linear, uint32_t first_bit,
                                                 uint32_t bank_bits, uint64_t *out_accesses);

// -- layouts of a module --------------------------------------------------------------------------
//
// A module may have a mesh of ranks, and describe how its tensors are spread over it. The library
// then inserts the relayouts that tasks need: "rules of kernels" below. All ranks build the same
// module.
//
//      const ptowsp_mesh mesh = {.axis_count = 1, .names = {"tp"}, .sizes = {4}};
//      const ptowsp_spread columns[] = {{.kind = PTOWSP_SHARDED, .dim = 1}};
//      ptowsp_module_mesh(m, &mesh, PTOWSP_ALGORITHM_AUTO);
//      const ptowsp_tensor_desc desc = {.name = "w", .dtype = PTOWSP_F32, .rank = 2,
//                                       .shape = {64, 128}, .location = PTOWSP_LOCATION_GLOBAL};
//      ptowsp_tensor w = ptowsp_tensor_make(m, &desc);
//      ptowsp_tensor_spread(m, w, columns);  // a rank has 64 x 32 of it

// Gives the module its mesh. `algorithm` computes the sums and maxima that are placed; AUTO, or
// one for HIERARCHICAL, depends on the links of the run, and with it the order of sums.
// Errors   As ptowsp_mesh_check; a second mesh, or a mesh after a workload; an unknown algorithm;
//          more than PTOWSP_RANK_COUNT_MAX ranks.
PTOWSP_API void ptowsp_module_mesh(ptowsp_module *module, const ptowsp_mesh *mesh,
                                   ptowsp_algorithm algorithm);

// Spreads a tensor, which was declared with the shape of the whole: spreads[i] along axis i of the
// mesh. From here on the tensor is a rank's piece: views, bound memory and kernels see that piece
// alone, and PTOWSP_DYNAMIC sizes, also of transient tensors, are the piece's. Other tensors are
// replicated.
// Errors   As ptowsp_mesh_layout_check; a module without mesh; a tensor that is spread already, or
//          used by a task; cuts (UNSUPPORTED).
PTOWSP_API void ptowsp_tensor_spread(ptowsp_module *module, ptowsp_tensor tensor,
                                     const ptowsp_spread *spreads);

// The layout of a tensor over the module's mesh, for ptowsp_mesh_layout_part_of: its name is the
// module's. Dynamic sizes stay PTOWSP_DYNAMIC.
// Errors   INVALID_PARAMS (NULL, no such tensor).
PTOWSP_API ptowsp_status ptowsp_tensor_layout(const ptowsp_module *module, ptowsp_tensor tensor,
                                              ptowsp_mesh_layout *out_layout);

// -- rules of kernels -----------------------------------------------------------------------------
//
// A rule describes how a kernel works on tensors that are spread over the mesh of its module. It
// has one word per tile, with a letter for the rows and one for the columns. A letter is a
// dimension of the work. A letter that occurs in no written tile is summed over. A dot is a
// dimension that a task needs whole, for a softmax or a norm.
//
//      ptowsp_kernel_rule(m, matmul, "*mk *kn mn");
//      ptowsp_kernel_rule(m, norm, "m. m.");
//      ptowsp_kernel_rule(m, attend, "mh .h .h mh");      // q, k, v; h: heads, one after another
//
// Leading dimensions, which views index, have letters of their own: the first of one tile is the
// first of all tiles that have it. Without a rule, each rank needs all of every tile.
//
// A mark in front of a word says how the kernel treats partial tensors: '+' terms of a sum (x + y),
// '*' factors of a product, '^' operands of a maximum. Along each axis of the mesh, the tile that
// is written decides which layouts the tiles that are read need:
//
//      written         read
//      replicated      all replicated
//      by letter x     by x those that have x, the others replicated
//      partial sum     one of three; the first operand that is spread in such a way decides:
//                        by k, that is summed over: those that have k by k, the others replicated
//                        a '*' partial sum: this one stays so, the others replicated
//                        else, without '*' and letters summed over: all '+' partial sums
//                      in the first two, '+' are partial sums too
//      partial max     '^' that are partial maxima stay so, the others replicated
//
// When a workload is closed, relayouts are inserted for operands whose layout differs from the
// layout needed. The steps of ptowsp_mesh_layout_relayout become tasks of collective kernels
// ("all_reduce.tp.f32"), each into a transient tensor ("s.1"), and the task reads the last of
// these. From then on they are ordinary tasks, kernels and tensors, in texts, programs, records and
// pictures. Reading such a text inserts nothing more. The text of a program states the bytes that a
// rank moves, as in ptowsp_relayout_step. Sums are in the order of ptowsp_ranks_relayout with the
// mesh's algorithm.
//
// A value is converted once, before the outermost loop around the task that neither changes the
// view nor writes the tensor. All later tasks in that scope with the same view use it, until the
// tensor is written. Relayouts depend on data, like all tasks. If the schedule ignores dependencies
// by data, order them by a sequence.
//
// Views are of parts: their rows and columns count in the rank's piece. Where a dimension is cut
// again, the view has all of it, from its start.
//
// Errors   All name the task, the tensor, the dimension and both layouts. A result whose layout no
//          layout of the operands gives; a tile that is read and written, and is partial without
//          '+' or '^', or not as the result needs; a result cut along a dot; tiles of one letter
//          with different sizes; sizes that do not divide; a slot loaded from a tensor that is not
//          replicated. UNSUPPORTED: a relayout of an indexed dimension, of a part of a dimension,
//          in a process, or of a bound tensor with dynamic sizes. Runs: a number of ranks that
//          differs from the mesh. Your own collectives have no rule and take tensors as they are.

// Gives a kernel its rule; of a choice, its variants have them.
// Errors   No kernel; a malformed word; more or fewer words than tiles; a second rule; a collective.
PTOWSP_API void ptowsp_kernel_rule(ptowsp_module *module, ptowsp_kernel kernel, const char *rule);

// -- relayouts over a transport -------------------------------------------------------------------

// Brings a tensor from one layout over a mesh of all ranks to another: the steps of
// ptowsp_mesh_layout_relayout as collectives, with the cheapest algorithm. All ranks call it with
// equal arguments. `in` is the rank's piece under `from`, row by row, and `out` receives its piece
// under `to`; they do not overlap. dtype has the element_bytes of the layouts.
//
// Sums follow ALL_REDUCE or REDUCE_SCATTER along an axis, one partial axis after another in the
// order of the steps. Pieces by cuts are summed by ALL_REDUCE and gathered by ALL_TO_ALL, which
// sends more than ptowsp_relayout_step.bytes.
//
// Memory   From the context: the bytes sent and received in a step, and the piece between steps.
// Errors   As ptowsp_mesh_layout_relayout and ptowsp_ranks_run; INVALID_PARAMS (a mesh with a
//          different number of ranks, a different size of elements, NULL), OUT_OF_MEMORY.
PTOWSP_API ptowsp_status ptowsp_ranks_relayout(ptowsp_ranks *ranks, const ptowsp_mesh *mesh,
                                               const ptowsp_mesh_layout *from,
                                               const ptowsp_mesh_layout *to, ptowsp_dtype dtype,
                                               const void *in, void *out);

// -------------------------------------------------------------------------------------------------
// 28. Devices
// -------------------------------------------------------------------------------------------------
//
// A device made of threads, modelled on an Ascend NPU's runtime. Scheduler threads (AICPU) give
// tasks to cores (AICore), which poll for them. Device memory is separate from the host's, and
// programs may use no other. Its addresses are ordinary pointers: it is not checked that kernels of
// graphs and launches touch nothing else, or that the host only copies.
//
//      host                        AICPU threads                   cores, cube and vector
//      alloc, copy in
//      run a graph, a program,  -> give a ready task to a       -> kernel(task)
//      launch a kernel             free core of its unit
//                                  release the tasks after it   <- status, cycles
//      copy out, free, close
//
// A task of MIX runs on a cube core, while the two vector cores of its block have no other task.
// The device has two vector cores or more for each cube core then. A free cube core takes the task,
// and begins when both vector cores are free; meanwhile these get nothing else.
//
// An AICPU thread and a core talk through one line of 64 bytes, the handshake. Each field has one
// writer at a time:
//
//      field        written by   when                                         order
//      aicpu_ready  AICPU        at open: the line may be used                release
//      aicore_done  core         then: its number + 1, it polls               release
//      task         AICPU        a task is given; task_status is IDLE         relaxed
//      task_status  AICPU        then: ASSIGNED                               release
//                   core         the task is done: DONE                       release
//                   AICPU        its result has been read: IDLE               release
//      control      AICPU        at close, task_status is IDLE: QUIT          release
//
// The other side reads each field with acquire (task after task_status).
//
// Threads  A device has threads of its own, whatever its context has. They sleep while nothing
//          runs. All calls belong to the thread of the context; memory comes from its allocator.
// Stuck    A core that has not returned in time still runs its task, or may yet begin it. So the
//          graph, run, program, arrays of the launch, kernels and data of the task must stay until
//          the device is closed. A run must neither be bound nor executed.
// Cost     A third of a microsecond for an empty task while threads are awake. Waking them costs
//          system time: some microseconds if there are more threads than processors.

typedef struct ptowsp_device ptowsp_device;

#define PTOWSP_DEVICE_SCHEDULER_MAX 16
#define PTOWSP_DEVICE_CORE_MAX      256  // cube and vector together
#define PTOWSP_DEVICE_ALIGNMENT     64   // of its memory, in bytes

typedef struct ptowsp_device_desc {
    uint32_t scheduler_count;  // AICPU threads; default: 1
    uint32_t cube_count;       // cores; default of both: 1 vector core
    uint32_t vector_count;
    uint64_t memory_bytes;  // a limit; memory is taken when it is allocated; default: 1 GiB
    // The limit for one task, in wall-clock time. This includes all that the system does meanwhile,
    // so choose much more than a time slice of its scheduler. A core that takes longer is stuck.
    // Default: no limit.
    uint64_t time_limit_ns;
} ptowsp_device_desc;

// Starts the threads of a device and waits until all cores poll; desc may be NULL.
//
// Errors   INVALID_PARAMS (more threads or cores than the maxima; out_device NULL), OUT_OF_MEMORY,
//          SYSTEM_FAILED (a thread could not be started), UNSUPPORTED (PTOWSP_NO_THREADS), BUSY.
PTOWSP_API ptowsp_status ptowsp_device_open(ptowsp_context *context, const ptowsp_device_desc *desc,
                                            ptowsp_device **out_device);

// Stops the threads and frees the device; NULL is ignored.
//
// Errors   LEAKED: memory was still allocated. The text names the oldest pieces with their sizes,
//          and the index is the number of pieces. The device is closed all the same.
//          STUCK: a core still has not returned (it gets the time limit once more). The device is
//          not closed; the call may be repeated. BUSY.
PTOWSP_API ptowsp_status ptowsp_device_close(ptowsp_device *device);

// Allocates device memory. Kernels use its addresses; the host only copies. The name (NULL:
// "memory") is copied and appears in texts. The contents are not defined.
//
// Errors   INVALID_PARAMS (size 0; a bad name; out_memory NULL), OUT_OF_MEMORY (of the device or of
//          the allocator), BUSY, STUCK (after a core was stuck).
PTOWSP_API ptowsp_status ptowsp_device_alloc(ptowsp_device *device, const char *name, uint64_t size,
                                             void **out_memory);
// Frees device memory; NULL is ignored.
// Errors   INVALID_PARAMS: not the start of an allocated piece. If the piece is known to be freed
//          twice, the text says so. BUSY, STUCK.
PTOWSP_API ptowsp_status ptowsp_device_free(ptowsp_device *device, void *memory);

// Copy size bytes in from the host, or out to it. The device's side lies within one piece.
// Errors   INVALID_PARAMS (not memory of the device; beyond the end of a piece, which the text
//          names with the excess; a pointer NULL with a size above 0), BUSY, STUCK (copying in
//          only).
PTOWSP_API ptowsp_status ptowsp_device_copy_in(ptowsp_device *device, void *to, const void *from,
                                               uint64_t size);
PTOWSP_API ptowsp_status ptowsp_device_copy_out(ptowsp_device *device, void *to, const void *from,
                                                uint64_t size);

// Runs a graph. AICPU threads count edges down; tasks run on cores of their unit. A range task runs
// as one range for each such core, whatever its grain. `lane` is the core: cube cores come after
// vector cores. Priorities hold. Results are read from the graph as after ptowsp_graph_run, with a
// lane for each core. (Empty and skipped tasks need no core and count for none.)
//
// Errors   As ptowsp_graph_run. INVALID_PARAMS: the device has no core of a task's unit, or
//          no blocks for a task of MIX, or the graph has another context. STUCK: a core has not
//          returned in time; the text names core and task. Tasks that have not been started do not
//          run, and the device is lost: all calls return STUCK, except copying out and closing.
PTOWSP_API ptowsp_status ptowsp_device_run_graph(ptowsp_device *device, ptowsp_graph *graph);

// Runs a program like ptowsp_run_execute, with kernels on cores of their unit. Outputs and times
// are the same. The calling thread walks the program. Dispatch by affinity, hash or custom chooses
// the core. options may be NULL; its lane_count is not used.
//
// Errors   As ptowsp_run_execute and ptowsp_device_run_graph. INVALID_PARAMS: TIME_ONLY; a
//          used tensor that does not lie in one piece of the device's memory (the text names it);
//          no core of a kernel's unit; a run of another context.
PTOWSP_API ptowsp_status ptowsp_device_run(ptowsp_device *device, ptowsp_run *run,
                                           const ptowsp_run_options *options);

// ptowsp_device_run without waiting: see ptowsp_run_start. The run is then polled, waited for and
// cancelled like any other. Until it has been waited for, all calls of the device are BUSY.
PTOWSP_API ptowsp_status ptowsp_device_start(ptowsp_device *device, ptowsp_run *run,
                                             const ptowsp_run_options *options);

// Independent instances of kernels, each with its index: one on each core of a unit (SPMD), or more
// or fewer. All run the same kernel, or each one of a table, by id (MPMD). A kernel sees the task
// of ptowsp_graph_call: its axes are the instance's index and the number of instances, then come
// the scalars.
typedef struct ptowsp_launch {
    const ptowsp_kernel_fn *kernels;  // by id
    uint32_t kernel_count;
    const uint32_t *ids;      // by instance; default: 0 for all
    uint32_t instance_count;  // default: one on each core of the unit; MIX: in each block
    ptowsp_unit unit;
    const uint64_t *scalars;
    uint32_t scalar_count;  // at most PTOWSP_TASK_SCALAR_MAX
    void *user;
    ptowsp_cycles *out_cycles;  // by instance, 0 where it failed; may be NULL
    uint64_t time_limit_ns;     // of the whole launch, in wall-clock time; default: no limit
} ptowsp_launch;

// Runs all instances and returns when they are done.
// Errors   INVALID_PARAMS (no kernel, an id outside of the table, no core of the unit, ...); the
//          status of the failed instance with the lowest index, which is the index; BUSY, STUCK.
//          CANCELLED and TIMED_OUT: no further instance was begun; those that had begun are done.
PTOWSP_API ptowsp_status ptowsp_device_launch(ptowsp_device *device, const ptowsp_launch *launch);

// Cancels the current launch; does nothing without one. (Runs and graphs on a device are cancelled
// by functions of their own.)
// Threads  Any, also kernels of the launch; the device must not be closed meanwhile.
PTOWSP_API void ptowsp_device_cancel(ptowsp_device *device);

typedef struct ptowsp_device_stats {
    uint32_t scheduler_count, cube_count, vector_count;
    uint64_t task_count;  // given to cores since it was opened
    uint64_t memory_bytes, used_bytes, used_bytes_max;
    uint64_t piece_count;  // allocated pieces
} ptowsp_device_stats;

PTOWSP_API ptowsp_device_stats ptowsp_device_result(const ptowsp_device *device);

// The number of tasks given to a core since the device was opened; vector cores come first.
// Requires core < vector_count + cube_count.
PTOWSP_API uint64_t ptowsp_device_core_tasks(const ptowsp_device *device, uint32_t core);

// -------------------------------------------------------------------------------------------------
// 29. Tuning
// -------------------------------------------------------------------------------------------------
//
// Records of measured times of kernels, in a text file that processes share; measuring; and rails,
// which switch between variants while a service runs. The library measures only when you ask.
//
//      ptowsp_tuning *tuning;
//      ptowsp_tuning_create(context, "tuning.txt", &tuning);            // reads the file, if any
//      ptowsp_tuning_key key = {.kernel = ptowsp_kernel_hash(module, attend), .machine = "910b3",
//                               .sizes = {ptowsp_tuning_bucket(batch), ptowsp_tuning_bucket(kv)}};
//      if (!ptowsp_tuning_find(tuning, &key, &value)) {
//          ptowsp_measure(context, &(ptowsp_measure_desc){.fn = step, .user = &it}, &measured);
//          ptowsp_tuning_add(tuning, &key, measured.median, "attend");  // appends a line
//          ptowsp_tuning_find(tuning, &key, &value);
//      }
//
// A line is one measurement: version of the line, kernel, machine, bucket of sizes ("-": none),
// value, unit, label ("-": none), and the FNV-1a-64 hash of all that is before it:
//
//      tune1 5d1f0e83ac21b94c 910b3 64x4096 18250.125 ns attend 3b0c64f1d2a7e985
//
// Lines stand alone, so files can be concatenated, sorted and merged. Lines that are not records
// are skipped and counted, and so are good lines of a later version, which compacting keeps.
//
// Processes. Any number may add, read and compact at the same time, on a file system with flock. An
// addition is one write() at the end of the file, under an exclusive lock. A writer that is killed
// leaves at worst an unfinished last line; the next writer ends it first, so nothing else is
// damaged. Compacting writes a new file and renames it, under the same lock. A writer that waited
// for the lock sees that the file has been replaced, and goes to the new one.
//
// Files are opened for each call; one descriptor stays open to recognise the file. Additions are
// not flushed to the disk: a crash of the system may lose the newest ones.

typedef enum ptowsp_tuning_unit {
    PTOWSP_TUNING_NS = 0,
    PTOWSP_TUNING_CYCLES,
    PTOWSP_TUNING_UNIT_COUNT,
    PWSP_FORCE_INT(PTOWSP_TUNING_UNIT)
} ptowsp_tuning_unit;

#define PTOWSP_TUNING_SIZE_MAX   6
#define PTOWSP_TUNING_VALUE_MAX  1e15  // in ns: eleven days
#define PTOWSP_TUNING_RECENT_MAX 15

// The key of a measurement. Two keys are equal if all fields are.
typedef struct ptowsp_tuning_key {
    uint64_t kernel;      // ptowsp_kernel_hash, or a hash of your own: ptowsp_hash
    const char *machine;  // 1 to PTOWSP_NAME_MAX printable ASCII characters, no spaces
    uint64_t sizes[PTOWSP_TUNING_SIZE_MAX];  // the bucket, by your rule; 0 where there are fewer
    ptowsp_tuning_unit unit;
} ptowsp_tuning_key;

// The bucket of a size: the largest power of two that is not above it; 0 for 0. So 5 to 7 are in
// bucket 4.
PTOWSP_API uint64_t ptowsp_tuning_bucket(uint64_t size);

typedef struct ptowsp_tuning ptowsp_tuning;

// Creates a table of records and reads the file. A missing file is empty, and the first addition
// creates it. path NULL: a table without a file. A device such as /dev/null can be written to and
// has no records.
//
// Memory   66 KiB, 16 bytes for a record, 112 for a key and 8 to 16 for finding it; up to twice
//          that after growing.
// Cost     100,000 records with keys of their own some 45 ms of one core.
// Errors   INVALID_PARAMS: a NULL pointer; a path that is empty, longer than 4,000 bytes, or not a
//          file, such as a directory. SYSTEM_FAILED: the file cannot be opened, locked or read, or
//          another process holds its lock for 10 s; the text has the reason. OUT_OF_MEMORY.
//          LIMIT_EXCEEDED: more than 2^32 - 2 records.
PTOWSP_API ptowsp_status ptowsp_tuning_create(ptowsp_context *context, const char *path,
                                              ptowsp_tuning **out_tuning);
PTOWSP_API void ptowsp_tuning_destroy(ptowsp_tuning *tuning);  // NULL is ignored

// Reads the records that any process has appended since. The table is cleared and read again if the
// path now has a different file (it was compacted or recreated), or the file is shorter. It is
// empty if the file was deleted.
// Errors   As ptowsp_tuning_create. The records read so far stay, and the next call continues from
//          there.
PTOWSP_API ptowsp_status ptowsp_tuning_refresh(ptowsp_tuning *tuning);

// Adds a measurement: a line at the end of the file, and a record in the table. First it reads what
// other processes have added. Values are kept in thousandths, rounded. `label` is for readers of
// the file (NULL: none), under the rule of machines; the table does not keep it.
//
// Cost     5 to 10 us with a file, most of it in the system.
// Errors   INVALID_PARAMS: a bad key or label; a value that is negative, NaN, infinite, or above
//          PTOWSP_TUNING_VALUE_MAX. SYSTEM_FAILED: as above, or the line cannot be written (disk
//          full). Then a part of it may be there, which is a damaged line. OUT_OF_MEMORY: the line
//          may be there; the next call reads it.
PTOWSP_API ptowsp_status ptowsp_tuning_add(ptowsp_tuning *tuning, const ptowsp_tuning_key *key,
                                           double value, const char *label);

// The measurement of a key.
typedef struct ptowsp_tuning_value {
    uint64_t count;      // of measurements
    double median;       // of the newest PTOWSP_TUNING_RECENT_MAX; the lower of two in the middle
    double least, most;  // of all
    double newest;
} ptowsp_tuning_value;

// False, and zeros, without a measurement: then simulated cycles may decide (sections 21, 24). Uses
// the table alone. Requires a key with a machine.
// Cost     Two waits for memory: under 100 ns while the keys in use are cached.
PTOWSP_API bool ptowsp_tuning_find(ptowsp_tuning *tuning, const ptowsp_tuning_key *key,
                                   ptowsp_tuning_value *out_value);

// A measurement. `key.machine` belongs to the table, and lives until it is refreshed, added to,
// compacted or destroyed.
typedef struct ptowsp_tuning_record {
    ptowsp_tuning_key key;
    double value;
} ptowsp_tuning_record;

typedef struct ptowsp_tuning_stats {
    uint64_t record_count, key_count;
    uint64_t damaged_count;  // lines that are not records
    uint64_t foreign_count;  // good lines of later versions
    uint64_t byte_count;     // of the lines that were read
    uint64_t tail_bytes;     // of an unfinished last line
} ptowsp_tuning_stats;

PTOWSP_API ptowsp_tuning_stats ptowsp_tuning_count(const ptowsp_tuning *tuning);

// Record i of the table, in the order of the file. Requires that there is one.
PTOWSP_API ptowsp_tuning_record ptowsp_tuning_record_at(const ptowsp_tuning *tuning, uint64_t i);

// Removes damaged lines from the file, and all but the newest keep_max measurements of each key (0:
// keeps all). The others stay as they are, in order. The file is replaced at once, or not at all: a
// failure leaves it as it was. The new file is written beside it, as <path>.compact; one that a
// killed process left is overwritten.
// Errors   As ptowsp_tuning_add. INVALID_PARAMS: the table has no file; the file has lines without
//          a single record, so it is not a tuning file. UNSUPPORTED: the path is a symbolic link, a
//          device, or a file with other links, which a new file would not replace. After
//          OUT_OF_MEMORY the file may be compacted, and the next call reads it.
PTOWSP_API ptowsp_status ptowsp_tuning_compact(ptowsp_tuning *tuning, uint64_t keep_max);

// Measuring
//
// fn is called warm_up times without measuring, then repeats times with the clock read before and
// after each. MAD is the median of |x - median|. A sample x is an outlier if |x - median| * 0.6745
// > 3.5 * MAD (Iglewicz and Hoaglin 1993); with MAD 0 no sample is an outlier. Statistics leave
// outliers out. A short fn should do its work several times (`calls`): reading the clock takes 25
// ns.

#define PTOWSP_MEASURE_SAMPLE_MAX 1000

typedef struct ptowsp_measure_desc {
    ptowsp_status (*fn)(void *user);  // a negative status ends the measuring
    void *user;                       // handed to fn and clock
    uint32_t warm_up;                 // default: 0, none
    uint32_t repeats;                 // default: 21; at most PTOWSP_MEASURE_SAMPLE_MAX
    uint32_t calls;                   // how often fn does its work; values are for one; default: 1
    uint64_t (*clock)(void *user);    // ns or cycles; default: ptowsp_clock_ns
} ptowsp_measure_desc;

typedef struct ptowsp_measurement {
    double median;  // of two in the middle their mean
    double least, most;
    double deviation;       // MAD of all samples
    uint32_t sample_count;  // without outliers
    uint32_t outlier_count;
} ptowsp_measurement;

// Measures on the calling thread.
// Errors   INVALID_PARAMS: NULL pointers, too many repeats, a clock that goes back. The error of
//          fn, with the number of the call, from 0, as index. *out_measurement is then 0.
PTOWSP_API ptowsp_status ptowsp_measure(ptowsp_context *context, const ptowsp_measure_desc *desc,
                                        ptowsp_measurement *out_measurement);

// The same statistics of samples that you have, of `calls` calls each (0 is 1).
// Errors   INVALID_PARAMS: NULL, none, or more than PTOWSP_MEASURE_SAMPLE_MAX. *out_measurement is
//          then 0.
PTOWSP_API ptowsp_status ptowsp_measure_samples(const uint64_t *samples, uint32_t count,
                                                uint32_t calls,
                                                ptowsp_measurement *out_measurement);

// Rails
//
// A controller over variants of a kernel, or schedules, that are tried in service. It decides which
// one runs; you report how long that took, and the current time. It decides on windows of samples:
//
//                   propose, or explore_time has passed
//      +--------+ -----------------------------------------> +-------+
//      | steady |                                            | trial |  runs another variant
//      +--------+ <----------------------------------------- +-------+
//                   promote: dwell_time has passed, better than the reference by `gain`
//                   roll back: REGRESSION, NO_GAIN, TIMEOUT, FAILED; then cooldown_time without it
//
// `safe` is the variant of the steady state; its last window before a trial is the reference. The
// value of a window is the median of window_count samples (the lower of two in the middle); the
// first skip_count after each switch are left out, as caches are cold. In a trial each window is
// judged as it ends, in this order:
//
//      window * 1000 > reference * (1000 + regression_permille)   roll back: REGRESSION, at once
//      the trial is younger than dwell_time                       continue
//      window * 1000 > reference * (1000 - gain_permille)         roll back: NO_GAIN
//      else                                                       promote: it is safe now
//
// Windows of the steady state only move the reference, as the load may have changed: a safe variant
// that becomes slower is left by the next trial that is promoted. Its windows are in the decisions.
//
// A machine of states and integers alone: no clock, no memory but the struct, no randomness. The
// same calls give the same decisions everywhere. The struct is yours; read its fields, but leave
// them to these functions. It may be copied.

#define PTOWSP_RAILS_VARIANT_MAX 32
#define PTOWSP_RAILS_WINDOW_MAX  63
#define PTOWSP_RAILS_VALUE_MAX   (UINT64_C(1) << 50)

typedef struct ptowsp_rails_desc {
    uint32_t variant_count;
    uint32_t baseline;             // the variant that is safe at first
    uint32_t window_count;         // samples of a window; default: 9
    uint32_t skip_count;           // samples left out after a switch; default: 0, none
    uint32_t regression_permille;  // default: 50; at most 10,000
    uint32_t gain_permille;        // default: 0, no worse; at most 1,000
    // In your unit of time. 0 means none, except that trial_time_max and explore_time 0 mean never.
    uint64_t dwell_time;      // from a switch or promotion to the next trial; also the shortest
                              // trial, except after REGRESSION and FAILED
    uint64_t cooldown_time;   // from a roll-back to the next trial of the variant
    uint64_t trial_time_max;  // a trial that is not decided by then is rolled back: TIMEOUT
    uint64_t explore_time;    // after so long in a steady state the next variant is tried
} ptowsp_rails_desc;

#define PTOWSP_RAILS_ACTIONS(ACTION) /* name, text */                                              \
    ACTION(KEEP, "keep")             /* nothing changes */                                         \
    ACTION(TRY, "try")               /* a trial begins */                                          \
    ACTION(PROMOTE, "promote")       /* the variant on trial is safe now */                        \
    ACTION(ROLL_BACK, "roll back")   /* the safe variant runs again */                             \
    ACTION(REFUSE, "refuse")         /* a proposal was not taken */

// clang-format off
typedef enum ptowsp_rails_action {
#define PWSP_ACTION_ENUM(name, text) PTOWSP_RAILS_##name,
    PTOWSP_RAILS_ACTIONS(PWSP_ACTION_ENUM)
#undef PWSP_ACTION_ENUM
    PWSP_FORCE_INT(PTOWSP_RAILS)
} ptowsp_rails_action;
// clang-format on

#define PTOWSP_RAILS_REASONS(REASON) /* name, text */                                              \
    REASON(NONE, "none")                                                                           \
    REASON(PROPOSED, "proposed")                                                                   \
    REASON(EXPLORING, "time to explore")                                                           \
    REASON(GAIN, "as good as asked, or better")                                                    \
    REASON(REGRESSION, "a window is worse than the limit")                                         \
    REASON(NO_GAIN, "the gain is too small")                                                       \
    REASON(TIMEOUT, "the trial was not decided in time")                                           \
    REASON(FAILED, "the variant failed")                                                           \
    REASON(SAME, "it is safe already")                                                             \
    REASON(ON_TRIAL, "another trial is under way")                                                 \
    REASON(DWELLING, "the last switch is too recent")                                              \
    REASON(COOLING, "it was rolled back recently")                                                 \
    REASON(NO_REFERENCE, "the safe variant has no window yet")                                     \
    REASON(NO_FALLBACK, "the safe variant failed")

// clang-format off
typedef enum ptowsp_rails_reason {
#define PWSP_RAILS_ENUM(name, text) PTOWSP_REASON_##name,
    PTOWSP_RAILS_REASONS(PWSP_RAILS_ENUM)
#undef PWSP_RAILS_ENUM
    PTOWSP_REASON_COUNT,
    PWSP_FORCE_INT(PTOWSP_REASON)
} ptowsp_rails_reason;
// clang-format on

typedef struct ptowsp_rails_decision {
    ptowsp_rails_action action;
    ptowsp_rails_reason reason;
    uint32_t from, to;           // the variants before and now; REFUSE: to is the proposed one
    uint64_t time;               // of the call
    uint64_t window, reference;  // both sides of the comparison; 0 if none
    uint64_t limit;              // the largest window that would have passed; 0 likewise
    uint64_t until;              // DWELLING, COOLING, ROLL_BACK: when that is over
} ptowsp_rails_decision;

typedef struct ptowsp_rails {
    ptowsp_rails_desc desc;  // with its defaults
    uint32_t current, safe;  // different in a trial
    uint32_t next;           // to be explored
    uint32_t skip_left;      // samples
    uint32_t sample_count;   // of the window that is being filled
    uint64_t time;           // of the last call
    uint64_t switched;       // when `current` last changed; at first the time of the begin
    uint64_t reference;      // 0: none
    bool has_switched;
    uint64_t cool_until[PTOWSP_RAILS_VARIANT_MAX];
    uint64_t samples[PTOWSP_RAILS_WINDOW_MAX];
} ptowsp_rails;

// Begins with the baseline. The next functions take times that never go back.
// Errors   INVALID_PARAMS: NULL; no variants, or more than PTOWSP_RAILS_VARIANT_MAX; no such
//          baseline; a window, regression or gain above its maximum; a trial_time_max that is not 0
//          and below dwell_time.
PTOWSP_API ptowsp_status ptowsp_rails_init(const ptowsp_rails_desc *desc, uint64_t time,
                                           ptowsp_rails *out_rails);

// A sample of the variant that runs (rails->current): its time, at least 1. Then run decision.to.
// Errors   INVALID_PARAMS: NULL; a time earlier than the last call's; a sample of 0 or above
//          PTOWSP_RAILS_VALUE_MAX. Nothing has changed then.
PTOWSP_API ptowsp_status ptowsp_rails_sample(ptowsp_rails *rails, uint64_t time, uint64_t sample,
                                             ptowsp_rails_decision *out_decision);

// Reports the time without a sample: ends trials without samples, and explores. Errors as above.
PTOWSP_API ptowsp_status ptowsp_rails_tick(ptowsp_rails *rails, uint64_t time,
                                           ptowsp_rails_decision *out_decision);

// Proposes a trial. A refusal is a decision, not an error. Errors as above; or no such variant.
PTOWSP_API ptowsp_status ptowsp_rails_propose(ptowsp_rails *rails, uint64_t time, uint32_t variant,
                                              ptowsp_rails_decision *out_decision);

// Reports that the running variant has failed. A trial is rolled back. The safe variant is kept,
// with reason NO_FALLBACK: you have to act. Errors as above.
PTOWSP_API ptowsp_status ptowsp_rails_fail(ptowsp_rails *rails, uint64_t time,
                                           ptowsp_rails_decision *out_decision);

PTOWSP_API const char *ptowsp_rails_reason_text(ptowsp_rails_reason reason);  // "unknown"

// Writes a decision as a line: "4200: roll back 2 -> 0: a window is worse than the limit (window
// 131, reference 100, limit 105, not before 9200)". names may be NULL.
PTOWSP_API void ptowsp_rails_print(const ptowsp_rails_decision *decision, const char *const *names,
                                   ptowsp_output output);

#if !defined(PTOWSP_NO_TILES)

// -------------------------------------------------------------------------------------------------
// 30. Emitting
// -------------------------------------------------------------------------------------------------
//
// The emitter writes a program as a source tree for an Ascend NPU. The tree also runs on any other
// machine. These functions are in ptowsp_npu_emit.c, an optional third file that uses this header
// alone: compile it beside ptowsp.c.
//
//      host/       binds sizes, data and memory; starts the device, or threads in its place
//      aicpu/      expand.cpp: the program's loops, which make tasks from the bindings; scheduler
//      aicore/     one source per kernel, dispatch by kernel id, the loop of a core
//      include/    what these three share: declarations, and the library's own runtime
//      shim/       PTO-ISA instructions on a CPU
//
// The loops, the kernels and the tables are written for the program. The other sources are the same
// in every tree of a version, and begin with a comment that says so.
//
// A batch that is bound in place of a plan (ptowsp_run_bind_batch; in host/, wsp_runner_bind_batch)
// goes to the device as lengths. The AICPU plans it before it walks the program, in memory that it
// takes then; the host waits for nothing.
//
// One tree builds in three ways. README.md in the tree gives the commands.
//
//      with a C++17 compiler alone     tasks run on threads in place of the device, with the same
//                                      outputs and cycles as ptowsp_run_execute
//      -DPTO_ISA_ROOT=DIR              against a PTO-ISA checkout: its CPU simulator, C++20
//      -DPTOWSP_ASCEND=ON              with CANN, for the device; with -DWSP_AICPU=OFF for a run
//                                      that the host drives (ptowsp_npu_driver) alone
//
// The first way is tested. The other two are written from public headers and documents of PTO-ISA
// and CANN, and have not run.
//
// A task of MIX is taken by a block: a cube core and its two vector cores. A mixed tile kernel is
// two functions, one for each half, which meet in FIFOs in global memory, 768 KiB for a block. Both
// vector cores call theirs: where they share rows (is_split), each for its own, by TILE_UP_DOWN;
// else the first does all, and the second frees and fills slots. On threads each of the three cores
// is a thread, and one of these runs at a time; kernels of MIX without halves are executed by the
// cube core. For a device the cores are started as blocks, and the scheduler gives the task to all
// three. PTO-ISA's simulator has a thread for each half, and its vector half is not split.
//
// Kernels that are C functions carry their source (ptowsp_kernel_source), which is compiled as
// C++17 with ptowsp.h; `user` is NULL there. PTO-ISA sources (ptowsp_pto_source) are passed
// through; their files are read here. Directives that the device side does not support are
// refused: see column ascend_npu of ptowsp_capability_print.

// The runtime that runs a tree's tasks. OWN: the scheduler in the tree. SIMPLER: PTO Runtime (simpler),
// for whose users the tree is a scene test:
//
//      orchestration/PROGRAM.cpp   submits the tasks, from orchestration/tree/expand.cpp
//      kernels/KERNEL.cpp          one for each kernel: its text, and its entry
//      test_PROGRAM.py             python test_PROGRAM.py -p a2a3sim
//      recording/                  a run to check it with, if the description has one
//
// expand.cpp and the text of kernels are the same as in an OWN tree, byte for byte. Dependences are explicit
// task ids in MANUAL scopes, so the runtime's own map of tensors, which has no write-after-read, is not
// used. Transient tensors are one allocation. A task of MIX is one submit for a cube core and two vector
// cores, with a FIFO of its own. Children of a parallel scope that differ only by constant steps are
// one submit with a count of blocks. A `when` that compares a slot around tasks alone becomes their
// predicate, if a task computes the element. Streams are dependences; the runtime chooses cores. On a device
// two tasks that may run together must not write into the same 64 bytes of memory, as one may
// overwrite the other's data. This is not checked here; dumps note it (section 31).
typedef enum ptowsp_npu_runtime { PTOWSP_NPU_OWN = 0, PTOWSP_NPU_SIMPLER } ptowsp_npu_runtime;

typedef struct ptowsp_npu_desc {
    const char *directory;  // of the tree; its parent exists
    bool is_replacing;      // replaces an existing emitted tree or empty directory as a whole, with
                            // everything in it; otherwise the directory must not exist
    bool is_for_host;       // for threads and simulators alone: see UNSUPPORTED; the test of a tree
                            // for SIMPLER then names no device
    ptowsp_npu_runtime runtime;
    // SIMPLER. The task window of the runtime's ring, a power of two from 16 to 65536; default: the
    // least that holds the schedule's window, 65535 at most, or 1024. A scope ends after a fourth of it.
    uint32_t task_window;
    uint32_t block_max;  // SIMPLER: the most tasks of a submit; default: 24; 1: each is one. No
                         // upper limit, as the runtime's documents name none
    ptowsp_run *run;     // SIMPLER: of the program; executed and recorded into the tree; or NULL
} ptowsp_npu_desc;

// Writes the tree of a program. It is written beside the directory and then renamed, so the
// directory never has half a tree. The same program gives the same bytes.
//
// Errors   UNSUPPORTED: a directive that ascend_npu refuses, a kernel without source (or a cost
//          without source), a PTO-ISA source without its entry, or an instruction that the machine
//          does not have. Without is_for_host also a kernel of MIX, except tile kernels of 910B:
//          others have no halves that a device's cores could start. Without is_for_host also a
//          kernel that moves a transient tensor by columns, which a device cannot, and mixed kernels
//          whose FIFOs differ in their numbers of slots, as after different preloads. The text names
//          the cause. Strides of bound tensors are checked in a run: see the README of the tree. For
//          SIMPLER also pipelines, collectives, kernels that are not tile kernels or that preload,
//          tensors of f64, dispatch by a key or a plan, named pools, issue in order and priorities.
//          For SIMPLER, also with is_for_host, a kernel of MIX without halves.
//          LIMIT_EXCEEDED: more than 65535 statements, or other parts. For SIMPLER a tensor of 2^32
//          elements or more, a schedule's window of 65536 tasks or more without task_window, or more
//          than 255 bound tensors and arrays: a CSR is 2, a plan 4. INVALID_PARAMS: no directory;
//          it exists, and is_replacing is false or it cannot be replaced; an unknown runtime, a wrong
//          task window, or a run of another program. With a run, as ptowsp_npu_record. SYSTEM_FAILED:
//          the text has the system's message and the path. OUT_OF_MEMORY. On errors no files remain.
// Cost     Some milliseconds, most of them in the system, for writing files.
PTOWSP_NPU_API ptowsp_status ptowsp_npu_emit(ptowsp_context *context, const ptowsp_program *program,
                                             const ptowsp_npu_desc *desc);

// Passes the files of is_for_host one by one to a callback, in a fixed order, with paths in the
// tree like "aicpu/expand.cpp". A callback that returns anything but OK ends the call with that
// status.
typedef ptowsp_status (*ptowsp_npu_file_fn)(void *user, const char *path, const char *text,
                                            size_t size);
PTOWSP_NPU_API ptowsp_status ptowsp_npu_emit_files(ptowsp_context *context,
                                                   const ptowsp_program *program,
                                                   ptowsp_npu_file_fn file, void *user);

// Executes a run, and records it in a new directory: its bindings, the memory of its tensors
// before, the written tensors and the slots after, and the makespan. A tree of the program compares
// itself with the record by run --check DIRECTORY, whether it was built for this machine, with
// PTO-ISA's simulator or for a device. Trees record their own runs in this form by run --record
// DIRECTORY. The run needs data, and a cost model that trees have; options may be NULL.
// Errors   As ptowsp_run_execute and ptowsp_npu_emit. INVALID_PARAMS: no run or directory,
//          TIME_ONLY, a cost model of the user, or the directory exists. UNSUPPORTED: a name with
//          "=" or a line end. On errors no files remain.
PTOWSP_NPU_API ptowsp_status ptowsp_npu_record(ptowsp_context *context, ptowsp_run *run,
                                               const ptowsp_run_options *options,
                                               const char *directory);

// Building and running a tree from a program. The tree is compiled into a shared object, which is
// loaded. A cache keeps it under a hash of everything that determines it (tree, compiler, options,
// the environment that compilers read), and a tree in the cache is not compiled again. Code in the
// cache runs as the user, so no other user may be able to write to it or to replace its directory.
typedef struct ptowsp_npu_build_desc {
    const char *cache_directory;  // default: $XDG_CACHE_HOME/ptowsp, or $HOME/.cache/ptowsp;
                                  // created for its owner alone (0700)
    const char *compiler;         // default: $CXX, or c++
    const char *options;          // default: -O1
} ptowsp_npu_build_desc;

typedef struct ptowsp_npu ptowsp_npu;

// Builds the tree of a program, or finds it in the cache. The program and the context must live
// until the result is destroyed. desc may be NULL.
// Errors   As emit. SYSTEM_FAILED: no compiler; the compiler's first error, and the text names a
//          file with all its messages; no cache directory, or one that other users can write to or
//          replace. (They can if a directory or link on its path is theirs, or is writable for them
//          without the sticky bit.) UNSUPPORTED: the process has a different user's rights
//          (set-user-ID) while its environment chooses the compiler.
PTOWSP_NPU_API ptowsp_status ptowsp_npu_build(ptowsp_context *context,
                                              const ptowsp_program *program,
                                              const ptowsp_npu_build_desc *desc,
                                              ptowsp_npu **out_npu);
PTOWSP_NPU_API void ptowsp_npu_destroy(ptowsp_npu *npu);  // NULL is ignored
PTOWSP_NPU_API bool ptowsp_npu_was_cached(const ptowsp_npu *npu);
// The directory of its entry in the cache.
PTOWSP_NPU_API const char *ptowsp_npu_directory(const ptowsp_npu *npu);

// The driver that launches a tree's tasks on cores. Every tree has both; outputs and cycles are the
// same.
//
// With AICPU, cores run for the whole of a run, and take tasks from the AICPU, which expands the
// program. With HOST, the host expands it and schedules on one thread. It launches a kernel for the
// tasks of it that are ready, at most one for each core: kernel<<<blocks, nullptr, stream>>> on a
// device, with a stream for each unit. Tasks of MIX are blocks of three cores. That needs no AICPU
// loader, and costs a launch and a wait for each such wave. On a device, elements that slots are
// loaded from are copied to the host when they are needed.
typedef enum ptowsp_npu_driver { PTOWSP_DRIVER_AICPU = 0, PTOWSP_DRIVER_HOST } ptowsp_npu_driver;

typedef struct ptowsp_npu_options {
    uint32_t aicpu_count;  // scheduler threads; default: 1; at most 16
    // Cores of each unit that the program has; default: its lanes, at most 72. With tasks of MIX at
    // most 36 cube cores, and two vector cores or more for each.
    uint32_t core_count;
    uint32_t ring_size;  // tasks in flight, at most; default: 4096; at most 65536
    ptowsp_cost cost;    // UNIT, A2A3 or A5
    // When and on which core tasks ran, by index, of those below span_capacity; kind: the id of
    // their kernel (ptowsp_program_kernel_name). Others are left as they are. NULL: none.
    ptowsp_span *spans;
    uint64_t span_capacity;
    ptowsp_npu_driver driver;  // default: AICPU. HOST: aicpu_count is 1; a span is a wave
} ptowsp_npu_options;

typedef struct ptowsp_npu_result {
    ptowsp_cycles makespan_cycles;  // as in ptowsp_run_stats
    uint64_t task_count;
    uint32_t in_flight_max;  // most tasks in the ring at once
} ptowsp_npu_result;

// Runs a built tree with the bindings of a run of the same program; that run is not executed. The
// slots at the end go to slots[slot_count], if slots is not NULL. options and out_result may be NULL.
// Errors   As ptowsp_run_execute. Here tasks before the wrong one have run, as views are checked
//          when the walk reaches them. INVALID_PARAMS: a run of another program, counts beyond
//          their limits, another cost, HOST with aicpu_count above 1. SYSTEM_FAILED: a thread could
//          not be started.
PTOWSP_NPU_API ptowsp_status ptowsp_npu_execute(ptowsp_npu *npu, const ptowsp_run *run,
                                                const ptowsp_npu_options *options, uint64_t *slots,
                                                uint32_t slot_count, ptowsp_npu_result *out_result);

// Builds a tree or finds it in the cache, executes it and destroys the handle. build, options and
// out_result may be NULL.
PTOWSP_NPU_API ptowsp_status ptowsp_npu_build_run(ptowsp_context *context, const ptowsp_run *run,
                                                  const ptowsp_npu_build_desc *build,
                                                  const ptowsp_npu_options *options,
                                                  ptowsp_npu_result *out_result);

// Executes one task of a kernel of a built tree on the calling thread, and measures it. The kernel
// is a tile kernel or a PTO-ISA source, whose cycles are so predicted before it runs on a device.
// It runs on a core of the shim; a kernel of MIX on a block of a cube core and two vector cores. A
// source that executes the instructions of a tile kernel takes the cycles of ptowsp_kernel_measure
// for that kernel.
//
//      static float x[64 * 128], z[64 * 128];             // of a kernel with two tiles of 64 x 128
//      const ptowsp_tile tiles[] = {{.data = x, .row_stride = 128, .col_stride = 1},
//                                   {.data = z, .row_stride = 128, .col_stride = 1}};
//      const uint64_t args[] = {64, 128, 64, 128};        // rows and columns of both
//      const ptowsp_task task = {.args = args, .arg_count = 4, .axis_arg_count = 4,
//                                .tile_count = 2, .tiles = tiles};
//      ptowsp_cost cost = {.model = PTOWSP_MODEL_910B};
//      ptowsp_npu_measure(npu, "add", &task, &cost, &stats);
//      desc.cycles = stats.cycles;                        // runs without the source take as many
//
// The tiles have data, as the kernel reads and writes them. Of the task, index, kernel_name and lane
// are not read. cost NULL is the unit model; `timing` may be given. Cycles that a kernel was given
// (ptowsp_kernel_desc) are not used. memory_bytes and insn_count are 0. `build/ptowsp_tool measure` does
// all of it for a file with a source.
// Errors   INVALID_PARAMS: no such kernel in the tree; counts of arguments or tiles that differ
//          from the kernel's; a tile without data or without valid elements, or larger than its
//          parameter; a cost that ptowsp_cost_check refuses. UNSUPPORTED: the kernel is a C
//          function; the model is USER. KERNEL_FAILED: the text has the fault of the shim.
// Cost     Some nanoseconds for each instruction, and its arithmetic.
PTOWSP_NPU_API ptowsp_status ptowsp_npu_measure(ptowsp_npu *npu, const char *kernel,
                                                const ptowsp_task *task, const ptowsp_cost *cost,
                                                ptowsp_kernel_stats *out_stats);

#endif  // PTOWSP_NO_TILES

// -------------------------------------------------------------------------------------------------
// 31. Dumps of PTO Runtime
// -------------------------------------------------------------------------------------------------
//
// PTO Runtime (simpler) records its runs: each task with the regions of its tensors, each edge with
// its reason, the times of all cores, its scopes. These functions read and check such records. They
// need neither the runtime nor a device. They are in ptowsp_dump.c, an optional file that uses this
// header alone: compile it beside ptowsp.c.
//
//      ptowsp_dump_open(context, &desc, &dump);            // desc.directory = "outputs/..."
//      ptowsp_dump_check(dump, &report);                   // report.is_clean
//      ptowsp_dump_print(dump, PTOWSP_DUMP_TEXT, output);    // the findings
//      ptowsp_dump_explain(dump, task_id, output);           // why a task started when it did
//      ptowsp_dump_rings_least(dump, &rings);              // sizes with which the program passes
//      ptowsp_dump_replay_run(dump, &how, &replayed);      // its tasks again, in simulated time
//      ptowsp_dump_close(dump);
//
// Files    deps.json, chip_swimlane_records.json, scope_stats.jsonl (also in scope_stats/) and
//          name_map*.json, of both runtimes. Each may be missing; at least one of the first three
//          is there.
// Limits   PTOWSP_DUMP_TASK_MAX tasks; 2^25 edges; 2^24 arguments, and rows of times. Tensors have up
//          to 5 dimensions.
// Cost     100,000 tasks with 1,000,000 edges, random ones as well, take about 2 s and 200 MB. The worst
//          case is tasks * edges / 128 steps of a 64-bit word: edges and accesses that reach far back.

#define PTOWSP_DUMP_TASK_MAX    2000000
#define PTOWSP_DUMP_FINDING_MAX 10000  // of each kind that are kept; all are counted

typedef struct ptowsp_dump ptowsp_dump;

// The text of a file; NULL: no such file.
typedef struct ptowsp_dump_file {
    const char *text;
    size_t size;
} ptowsp_dump_file;

typedef struct ptowsp_dump_desc {
    const char *directory;  // NULL: the texts are given here
    ptowsp_dump_file deps, swimlane, scopes, names;
} ptowsp_dump_desc;

// Kinds of findings; the first two make a program wrong, the others are notes.
//
//      RACE            two tasks share bytes, one of them writes these, and no edges order them; an edge
//                      whose flags lack "wait" only retains memory
//      OUTSIDE         an argument has bytes outside the buffer of its tensor
//      FALSE_SHARING   two tasks that may run together write into one line of 64 bytes
//      REDUNDANT       an edge between tasks that other edges order as well
//      NO_DATA         an edge between tasks with kernels: neither writes bytes that the other uses
//      FAN_IN          a task waits for more tasks than its descriptor holds (64)
//      FAN_OUT         more than 64 tasks wait for one
#define PTOWSP_DUMP_KINDS(KIND)                                                                    \
    KIND(RACE, "race")                                                                             \
    KIND(OUTSIDE, "outside its buffer")                                                            \
    KIND(FALSE_SHARING, "false sharing")                                                           \
    KIND(REDUNDANT, "redundant edge")                                                              \
    KIND(NO_DATA, "edge without data")                                                             \
    KIND(FAN_IN, "large fan-in")                                                                   \
    KIND(FAN_OUT, "large fan-out")

// clang-format off
typedef enum ptowsp_dump_kind {
#define PWSP_DUMP_ENUM(name, text) PTOWSP_DUMP_##name,
    PTOWSP_DUMP_KINDS(PWSP_DUMP_ENUM)
#undef PWSP_DUMP_ENUM
    PTOWSP_DUMP_KIND_COUNT,
    PWSP_FORCE_INT(PTOWSP_DUMP_KIND)
} ptowsp_dump_kind;
// clang-format on

#define PTOWSP_DUMP_RAW 1u  // hazards: the later task reads a result of the earlier one
#define PTOWSP_DUMP_WAW 2u
#define PTOWSP_DUMP_WAR 4u

// Tasks have the runtime's identities: ring << 32 | number.
typedef struct ptowsp_dump_finding {
    ptowsp_dump_kind kind;
    uint32_t hazards;        // RACE: all of the pair
    uint64_t before, after;  // two tasks, in order of submission; both the same for a single one
    uint32_t before_arg, after_arg;  // of the first hazard; UINT32_MAX: none
    bool
        is_implied;  // RACE: edges that earlier findings add order these, too. Otherwise the edge to
                     // add leads from before to after
    uint64_t count;  // FAN_IN, FAN_OUT: the edges
} ptowsp_dump_finding;

typedef struct ptowsp_dump_report {
    const ptowsp_dump_finding *findings;  // those kept, by kind; they live as long as the dump
    uint64_t finding_count;
    uint64_t counts[PTOWSP_DUMP_KIND_COUNT];  // of all; beyond FINDING_MAX races, only those with
                                              // the latest accesses
    uint64_t task_count, edge_count;
    uint64_t unchecked_count;  // arguments of a type or an element type that is not known here
    uint64_t assumed_count;  // pairs of regions too intricate to compare, which are taken to share
    bool is_clean;           // no RACE and no OUTSIDE
} ptowsp_dump_report;

typedef enum ptowsp_dump_format {
    PTOWSP_DUMP_TEXT,
    PTOWSP_DUMP_JSON,
    PTOWSP_DUMP_HTML,
    PWSP_FORCE_INT(PTOWSP_DUMP_FORMAT)
} ptowsp_dump_format;

// Reads a dump. Texts may be freed afterwards; the context must live until the dump is closed.
// Errors   INVALID_PARAMS: no files, or a file whose contents do not match its name; the text has
//          the file, and the byte for files on disk. DIFFERENT: the times are of a different run.
//          LIMIT_EXCEEDED, OUT_OF_MEMORY. SYSTEM_FAILED: a directory that cannot be read.
PTOWSP_NPU_API ptowsp_status ptowsp_dump_open(ptowsp_context *context, const ptowsp_dump_desc *desc,
                                              ptowsp_dump **out_dump);
PTOWSP_NPU_API void ptowsp_dump_close(ptowsp_dump *dump);  // NULL is ignored

// Checks the order of tasks by deps.json. A race is found wherever two regions share a byte, also
// if they are strided, or belong to different tensors in one buffer. Arguments of NO_DEP are not
// checked. A created output begins a new lifetime of its memory.
// Errors   UNBOUND: the dump has no deps.json. LIMIT_EXCEEDED, OUT_OF_MEMORY.
PTOWSP_NPU_API ptowsp_status ptowsp_dump_check(ptowsp_dump *dump, ptowsp_dump_report *out_report);

// Prints what ptowsp_dump_check finds: the counts, and the findings with tasks, kernels, arguments and
// regions.
// Errors   As ptowsp_dump_check. INVALID_PARAMS: an unknown format.
PTOWSP_NPU_API ptowsp_status ptowsp_dump_print(ptowsp_dump *dump, ptowsp_dump_format format,
                                               ptowsp_output output);

// Explains a task. Prints its dependencies, with the source and the tensor of each edge, and the
// tasks that it held up. Then its chain to the end: from each task to the one that waited last for
// it alone.
// Errors   INVALID_PARAMS: an unknown task. OUT_OF_MEMORY.
PTOWSP_NPU_API ptowsp_status ptowsp_dump_explain(ptowsp_dump *dump, uint64_t task,
                                                 ptowsp_output output);

// Sizes of the runtime's rings, by the depth of a scope.
typedef struct ptowsp_dump_rings {
    uint64_t task_window[4];  // powers of 2, from 4 on
    uint64_t heap[4];         // bytes, from 1024 on
    uint64_t dep_pool[4];     // from 4 on
} ptowsp_dump_rings;

// The runtime's numbers of its errors.
typedef enum ptowsp_dump_ring_error {
    PTOWSP_DUMP_RINGS_PASS = 0,
    PTOWSP_DUMP_SCOPE_DEADLOCK = 1,         // the tasks of the innermost scope fill the task window
    PTOWSP_DUMP_HEAP_DEADLOCK = 2,          // live outputs leave too little memory
    PTOWSP_DUMP_FLOW_CONTROL_DEADLOCK = 3,  // outer scopes hold some of the task window
    PTOWSP_DUMP_DEP_POOL_OVERFLOW = 4,      // edges of tasks in open scopes fill the pool
    PTOWSP_DUMP_TENSORMAP_OVERFLOW = 11,
    PWSP_FORCE_INT(PTOWSP_DUMP_RING_ERROR)
} ptowsp_dump_ring_error;

typedef struct ptowsp_dump_rings_result {
    ptowsp_dump_ring_error error;
    uint32_t ring;
    uint64_t task;     // the submission that fails
    uint64_t holder;   // the task at the end of the ring, whose scope is open
    uint32_t depth;    // of that scope
    const char *site;  // where it begins, as far as the dump has it; it lives as long as the dump
} ptowsp_dump_rings_result;

// The smallest sizes with which the program passes whenever its tasks end, if each edge takes an
// entry of the pool. Larger task windows and pools pass, too. The heap is the smallest one into which
// the order of allocations fits. Without scope_stats.jsonl all tasks of a ring are in one scope. For
// tasks that deps.json leaves out, scope_stats.jsonl gives the memory of each scope as a whole.
// Errors   UNBOUND: no deps.json. INVALID_PARAMS: tasks in a ring that does not exist. DIFFERENT: more
//          tasks than scope_stats.jsonl counts. LIMIT_EXCEEDED: numbers of tasks, or memory, beyond all
//          limits. OUT_OF_MEMORY.
PTOWSP_NPU_API ptowsp_status ptowsp_dump_rings_least(ptowsp_dump *dump,
                                                     ptowsp_dump_rings *out_rings);

// Tries given sizes: the result is the runtime's first error, or PTOWSP_DUMP_RINGS_PASS.
// Errors   As above. INVALID_PARAMS: a size that the runtime does not take.
PTOWSP_NPU_API ptowsp_status ptowsp_dump_rings_try(ptowsp_dump *dump,
                                                   const ptowsp_dump_rings *rings,
                                                   ptowsp_dump_rings_result *out_result);

// -- replay ---------------------------------------------------------------------------------------
//
// Runs the tasks and edges of a dump in simulated time, with their measured times, as a list of
// tasks (section 17). It shows the time without the runtime's own work, or with given costs of it,
// and answers what-ifs. An instance of a task is a row of the swimlane; a task with rows on cube
// and vector cores is of MIX. Tasks without rows (allocations, dummies, predicates that were false)
// take no time.
//
// OBSERVED takes each instance on its own core, in the order in which that core ran them. Only waits
// for edges and cores remain. A run of this library that was exported (PTOWSP_EXPORT_DEPS,
// PTOWSP_EXPORT_SWIMLANE) gets its makespan again, to the cycle, if it waited for nothing else.

typedef enum ptowsp_dump_order {
    PTOWSP_DUMP_ORDER_OBSERVED = 0,
    PTOWSP_DUMP_ORDER_SUBMITTED,  // the first free core takes the ready task that was submitted first
    PTOWSP_DUMP_ORDER_CRITICAL,  // the ready task that begins the longest chain
    PTOWSP_DUMP_ORDER_COUNT,
    PWSP_FORCE_INT(PTOWSP_DUMP_ORDER)
} ptowsp_dump_order;

// Zero fields mean as observed. OBSERVED reads only drops, kernel, percent and control.
typedef struct ptowsp_dump_replay {
    ptowsp_dump_order order;
    uint32_t cube_cores, vector_cores;
    uint32_t task_window;  // tasks that have been submitted and not retired, in order, as in a ring
    uint32_t dep_pool;     // edges of these to tasks that had not ended when they were submitted
    bool drops_redundant;  // edges that others imply: they cost entries of the pool, not order
    bool drops_no_data;    // edges between tasks with kernels that share no data
    int64_t kernel;        // an id, whose tasks take `percent` of their time
    uint32_t percent;      // 1 to 1000; 0: as observed
    // A runner to try: tasks keep the time that they took on their cores, and control comes in
    // addition. clock_mhz 0: the clock of the swimlane (clock_freq_hz, a whole number). For all orders.
    ptowsp_control control;
} ptowsp_dump_replay;

typedef struct ptowsp_dump_replayed {
    ptowsp_cycles observed_cycles;  // from the first start to the last end
    ptowsp_cycles makespan_cycles;
    ptowsp_cycles
        path_cycles;  // the longest chain of tasks and edges: no number of cores is faster
    ptowsp_cycles busy_cycles;                      // of all cores
    ptowsp_cycles idle_cycles[PTOWSP_STALL_COUNT];  // of all cores, as ptowsp_run_idle
    uint32_t cube_cores, vector_cores;
    uint64_t instance_count;  // rows; the rows of a task of MIX count once
    uint64_t untimed_count;   // tasks with a kernel and without a row
    uint64_t edge_count, dropped_count;
    ptowsp_cycles control_cycles;  // in which AICPU threads work, of all of them together
    uint32_t threads;              // AICPU threads of the replay's control
} ptowsp_dump_replayed;

// Replays a dump. how NULL: as observed.
// Errors   UNBOUND: no deps.json, or no chip_swimlane_records.json. INVALID_PARAMS: a core that its
//          metadata does not name; an unknown order, percentage or kernel; MIX without two vector
//          cores for each cube core; control without a clock, or that a schedule refuses; a task
//          of 2^63 cycles or more. STUCK: a pool that is smaller than the edges of one task.
//          LIMIT_EXCEEDED: over 4096 kernels, PTOWSP_LIST_TASK_MAX instances,
//          PTOWSP_SCHEDULE_LANE_MAX cores. OUT_OF_MEMORY.
PTOWSP_NPU_API ptowsp_status ptowsp_dump_replay_run(ptowsp_dump *dump,
                                                    const ptowsp_dump_replay *how,
                                                    ptowsp_dump_replayed *out_replayed);

// Prints a replay beside the observed run; how NULL: a table of the usual questions. The page of
// HTML has the picture as well.
// Errors   As above. INVALID_PARAMS: an unknown format.
PTOWSP_NPU_API ptowsp_status ptowsp_dump_replay_print(ptowsp_dump *dump,
                                                      const ptowsp_dump_replay *how,
                                                      ptowsp_dump_format format,
                                                      ptowsp_output output);

// Draws the observed and the replayed cores, one below the other, as ptowsp_spans_export does.
PTOWSP_NPU_API ptowsp_status ptowsp_dump_replay_export(ptowsp_dump *dump,
                                                       const ptowsp_dump_replay *how,
                                                       ptowsp_export_format format,
                                                       const ptowsp_export_options *options,
                                                       ptowsp_output output);

#endif  // PTOWSP_ONLY_PLAN

// -------------------------------------------------------------------------------------------------
// 32. Spaces
// -------------------------------------------------------------------------------------------------
//
// An iteration space is a list of named dimensions. Each has a static size or is PTOWSP_DYNAMIC:
// set at run time. Declare a space at file scope, from a list macro:
//
//      #define DECODE_DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(head, 8) DIM(chunk, PTOWSP_DYNAMIC)
//      PTOWSP_DEFINE_SPACE(decode_space, DECODE_DIMS)
//
// This defines, all inline:
//
//      decode_space                                      a struct, with the dynamic dimensions
//      decode_space_coord                                a struct, with all dimensions
//      decode_space_rank                                 3
//      decode_space_head_size, decode_space_batch_size   8, PTOWSP_DYNAMIC: constant expressions
//      decode_space_head_dynamic                         0 or 1: a constant expression
//      int64_t decode_space_get_batch(&s)                for every dimension; statics fold
//      ptowsp_status decode_space_set_batch(&s, n)       negative n is INVALID_PARAMS; on a static
//                                                        dimension it does not compile
//      uint64_t decode_space_total(&s)                   product of the sizes, at most UINT64_MAX
//      uint64_t decode_space_index(&s, coord)            linear index; dimension 0 varies fastest
//      decode_space_coord decode_space_at(&s, index)     the inverse
//      ptowsp_space decode_space_runtime(&s)             the same as a run-time space
//
// In a zeroed struct all dynamic sizes are 0. Static sizes take no storage. (A space without any
// dynamic dimension still has one byte, as C requires of a struct.)
//
// Requires  index: every coordinate inside its size; at: index < total. Run-time spaces assert it.
// Limits    PTOWSP_SPACE_RANK_MAX dimensions. A size is a constant up to INT_MAX that does not
//           begin with an operator: 8, HEADS, (2 * HEADS), PTOWSP_DYNAMIC.

enum { PTOWSP_DYNAMIC = -1 };  // not a macro: the list macros recognise it by its name
#define PTOWSP_SPACE_RANK_MAX 8

// A space whose rank and sizes are known only at run time.
typedef struct ptowsp_space {
    uint32_t rank;
    int64_t sizes[PTOWSP_SPACE_RANK_MAX];  // sizes from `rank` on are ignored
} ptowsp_space;

// Makes a space of `rank` dimensions, 0 to PTOWSP_SPACE_RANK_MAX. A rank of 0 has one point.
// Errors   INVALID_PARAMS (out_space NULL, rank too large, sizes NULL, a negative size).
PTOWSP_API PTOWSP_AICPU ptowsp_status ptowsp_space_make(const int64_t *sizes, uint32_t rank,
                                                        ptowsp_space *out_space);

// Like the functions of a static space; coordinates are arrays of `rank` values.
PTOWSP_API PTOWSP_AICPU uint64_t ptowsp_space_total(const ptowsp_space *space);
PTOWSP_API PTOWSP_AICPU uint64_t ptowsp_space_index(const ptowsp_space *space,
                                                    const int64_t *coord);
PTOWSP_API PTOWSP_AICPU void ptowsp_space_at(const ptowsp_space *space, uint64_t index,
                                             int64_t *out_coord);

// The two spaces of serving: attention over KV chunks, and mixture of experts. Appendix C declares
// them as ptowsp_attention_space and ptowsp_moe_space.
#define PTOWSP_ATTENTION_DIMS(DIM)                                                                 \
    DIM(batch, PTOWSP_DYNAMIC) DIM(head, PTOWSP_DYNAMIC) DIM(chunk, PTOWSP_DYNAMIC)
#define PTOWSP_MOE_DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(expert, PTOWSP_DYNAMIC)

// -------------------------------------------------------------------------------------------------
// 33. Utilities
// -------------------------------------------------------------------------------------------------

// FNV-1a, 64 bits (Fowler, Noll, Vo). To hash a concatenation, start the second part with the hash
// of the first instead of PTOWSP_HASH_START.
#define PTOWSP_HASH_START UINT64_C(0xcbf29ce484222325)
PTOWSP_API uint64_t ptowsp_hash(uint64_t start, const void *data, size_t size);

// Nanoseconds of a clock that never goes back; differences are meaningful, values are not.
PTOWSP_API uint64_t ptowsp_clock_ns(void);

#if !defined(PTOWSP_ONLY_PLAN)

// -------------------------------------------------------------------------------------------------
// Appendix A. Reading programs
// -------------------------------------------------------------------------------------------------
//
// Read access to a compiled program, for emitters, viewers and other runtimes. A program is a list
// of statements in program order. A statement that contains others is followed by these, and then
// by an END:
//
//      0  WORKLOAD attention                          end 6
//      1      LOOP b over batch, parallel             end 5
//      2          WHEN kv_len[b] <= 2048              end 4
//      3              TASK attend
//      4          END of 2
//      5      END of 1
//      6  END of 0
//
// The first statement is the workload that the program begins with; called workloads follow it.
// Compiling removes scopes that add no order, and "parallel" in processes, which are sequential.
//
// ptowsp_program_read returns all of it as tables, in one struct (at the end of this appendix):
//
//      const ptowsp_program_tables *t = ptowsp_program_read(program);
//      for (uint32_t i = 0; i < t->statement_count; i++) {
//          if (t->statements[i].kind == PTOWSP_STATEMENT_TASK) {
//              const ptowsp_task_info *task = &t->tasks[t->statements[i].task];
//              printf("%s\n", t->kernels[task->kernel].name);
//          }
//      }
//
// Everything is identified by its index in a table. Axes, arrays, symbols, tensors, variables,
// expressions and kernels have entries 1 .. count - 1, as in a module, and 0 stands for a missing
// one. The others have entries 0 .. count - 1.

#define PTOWSP_VIEW_LEAD_MAX (PTOWSP_TENSOR_RANK_MAX - 2)

typedef enum ptowsp_expr_kind {
    PTOWSP_EXPR_NONE = 0,
    PTOWSP_EXPR_CONST,     // value
    PTOWSP_EXPR_VARIABLE,  // id: a variable
    PTOWSP_EXPR_ENTRY,     // id: the variable of a sparse loop; its position in the indices
    PTOWSP_EXPR_SIZE,      // id: an axis
    PTOWSP_EXPR_SYMBOL,    // id
    PTOWSP_EXPR_ARRAY,     // id: an array; a: the index
    PTOWSP_EXPR_SLOT,      // id: the slot; read as the expression's type
    PTOWSP_EXPR_TASK_ARG,  // in keys: args[id] of the task, i64, 0 when it has fewer
    PTOWSP_EXPR_ADD,       // a, b; like the functions of section 16
    PTOWSP_EXPR_SUB,
    PTOWSP_EXPR_MUL,
    PTOWSP_EXPR_DIV,
    PTOWSP_EXPR_REM,
    PTOWSP_EXPR_MIN,
    PTOWSP_EXPR_MAX,
    PTOWSP_EXPR_BITAND,
    PTOWSP_EXPR_BITXOR,
    PTOWSP_EXPR_BITOR,
    PTOWSP_EXPR_SHL,
    PTOWSP_EXPR_SHR,
    PTOWSP_EXPR_EQ,
    PTOWSP_EXPR_NE,
    PTOWSP_EXPR_LT,
    PTOWSP_EXPR_LE,
    PTOWSP_EXPR_GT,
    PTOWSP_EXPR_GE,
    PTOWSP_EXPR_AND,
    PTOWSP_EXPR_OR,
    PTOWSP_EXPR_NEG,  // a
    PTOWSP_EXPR_BITNOT,
    PTOWSP_EXPR_NOT,
    PTOWSP_EXPR_TO_I64,
    PTOWSP_EXPR_TO_U64,
    PTOWSP_EXPR_TO_BOOL,
    PTOWSP_EXPR_SELECT,  // a ? b : c
    PTOWSP_EXPR_KIND_COUNT,
    PWSP_FORCE_INT(PTOWSP_EXPR_KIND)
} ptowsp_expr_kind;

// A node of an expression. Operands are expressions of the program, with smaller indices.
typedef struct ptowsp_expr_info {
    ptowsp_expr_kind kind;
    ptowsp_type type;
    uint32_t a, b, c;
    uint32_t id;
    uint64_t value;
} ptowsp_expr_info;

// Declarations. Arrays include the lengths of ragged axes and the fields of plans. A row of an axis
// (ptowsp_axis_row) is not an axis of its own here. Only declarations with is_used have to be
// bound.
typedef enum ptowsp_axis_kind {
    PTOWSP_AXIS_DENSE = 0,
    PTOWSP_AXIS_DYNAMIC,
    PTOWSP_AXIS_RAGGED,
    PTOWSP_AXIS_SPARSE,
    PTOWSP_AXIS_PLAN,  // the units of a plan
    PTOWSP_AXIS_PLAN_MERGES,
    PTOWSP_AXIS_PLAN_LANES,
    PWSP_FORCE_INT(PTOWSP_AXIS_KIND)
} ptowsp_axis_kind;

typedef struct ptowsp_axis_info {
    const char *name;
    ptowsp_axis_kind kind;
    int64_t size;    // dense
    uint32_t array;  // ragged: its lengths; units or merges: their flags, followed by the lanes
    bool is_used;
} ptowsp_axis_info;

typedef struct ptowsp_array_info {
    const char *name;
    ptowsp_dtype dtype;  // as declared; NONE: lengths of any integer type
    bool is_lengths;
    bool is_used;
    uint32_t plan_axis;       // not 0: it is a field of this axis' units or merges, and is bound
                              // with the plan; its name, "kv.request", may be another array's, too
    ptowsp_plan_field field;  // LANE: element i is the lane that has i
} ptowsp_array_info;

typedef struct ptowsp_symbol_info {
    const char *name;
    bool is_used;
} ptowsp_symbol_info;

typedef struct ptowsp_tensor_info {
    ptowsp_tensor_desc desc;
    bool is_used;
    bool is_written;  // by a task
    bool is_loaded;   // a slot is loaded from it
    bool is_transient;
} ptowsp_tensor_info;

// A transient tensor. Its lifetimes are in order, and follow the lifetimes of the tensor before it.
// A lifetime is from one point to another (ptowsp_program_print_point).
typedef struct ptowsp_transient_info {
    uint32_t tensor;
    const uint32_t *sizes;  // by dimension: expressions; 0: as desc.shape says
    uint32_t first_lifetime, lifetime_count;
} ptowsp_transient_info;

typedef struct ptowsp_lifetime_info {
    uint32_t first, last;  // points
} ptowsp_lifetime_info;

typedef struct ptowsp_variable_info {
    const char *name;  // not unique
    ptowsp_type type;  // i64, except for parameters of workloads
} ptowsp_variable_info;

// Statements.
typedef enum ptowsp_statement_kind {
    PTOWSP_STATEMENT_NONE = 0,
    PTOWSP_STATEMENT_WORKLOAD,   // name, variables (its parameters); is called, or begins
    PTOWSP_STATEMENT_SCOPE,      // scope
    PTOWSP_STATEMENT_LOOP,       // variable, axis, row, scope
    PTOWSP_STATEMENT_WHEN,       // value; its end is its OTHERWISE, if there is one
    PTOWSP_STATEMENT_OTHERWISE,  // follows the statements of its WHEN instead of an END
    PTOWSP_STATEMENT_CALL,       // target: a WORKLOAD; values: arguments; scope
    PTOWSP_STATEMENT_TASK,       // task
    PTOWSP_STATEMENT_SLOT_SET,   // slot, value
    PTOWSP_STATEMENT_SLOT_LOAD,  // slot, load
    PTOWSP_STATEMENT_RESET,      // explicit edges that forget their tasks as an iteration begins
    PTOWSP_STATEMENT_PIPELINE,   // name, channels; its PROCESSes follow. task: its edges, and a
                                 // view of each whole tensor
    PTOWSP_STATEMENT_PROCESS,    // name, ports; replicas: variable, axis
    PTOWSP_STATEMENT_CONSUME,    // variable, channel: for each token until the end of the stream
    PTOWSP_STATEMENT_RECEIVE,    // variable, channel: for one token; not at the end of the stream
    PTOWSP_STATEMENT_SEND,       // channel, value
    PTOWSP_STATEMENT_CLOSE,      // channel
    PTOWSP_STATEMENT_RECORD,     // channel: an event
    PTOWSP_STATEMENT_WAIT,       // channel: an event
    PTOWSP_STATEMENT_END,        // of the statement `begin`
    PTOWSP_STATEMENT_LIST,       // count: its entries, which are not statements
    PTOWSP_STATEMENT_KIND_COUNT,
    PWSP_FORCE_INT(PTOWSP_STATEMENT_KIND)
} ptowsp_statement_kind;

// The scope that a loop, scope or call opens (section 17). NONE: its statements count as children
// of the scope around it.
typedef enum ptowsp_scope {
    PTOWSP_SCOPE_NONE = 0,
    PTOWSP_SCOPE_PARALLEL,
    PTOWSP_SCOPE_SEQUENTIAL,
    PWSP_FORCE_INT(PTOWSP_SCOPE)
} ptowsp_scope;

typedef struct ptowsp_statement {
    ptowsp_statement_kind kind;
    uint32_t node;   // for ptowsp_program_print_place
    uint32_t begin;  // END, OTHERWISE: the statement that it belongs to
    uint32_t end;    // a statement that contains others: its END; WHEN: its OTHERWISE, or END
    const char *name;
    ptowsp_scope scope;
    uint32_t axis, variable;
    uint32_t row, value;  // expressions
    uint32_t slot;
    uint32_t channel;
    uint32_t target;
    uint32_t task, load;  // in the tables of tasks and loads
    // first .. first + count - 1 are entries of `values` (CALL), `params` (WORKLOAD), `channels`
    // (PIPELINE), `ports` (PROCESS), or `edges` (RESET).
    uint32_t first, count;
} ptowsp_statement;

// A view. Indices, row and col are expressions; row and col 0: from the start.
typedef struct ptowsp_view_info {
    uint32_t tensor;
    uint32_t lead_count;  // indices before rows and columns
    uint32_t lead[PTOWSP_VIEW_LEAD_MAX];
    uint32_t row, col;
    int64_t rows, cols;             // of the tile; 0: up to the tensor's edge
    uint32_t row_count, col_count;  // expressions: at most so many; 0: no limit
    bool is_read, is_written;
} ptowsp_view_info;

// A task, or a pipeline as one. The tile_count of a pipeline is not limited, and its views are whole
// tensors: lead_count 0, rows and cols 0. Tasks of lists (section 17) have no tiles here: each task
// of a list has its own.
typedef struct ptowsp_task_info {
    uint32_t kernel;
    uint32_t axis_count, tile_count, scalar_count;
    const uint32_t *axes, *scalars;  // expressions; so are the keys
    const ptowsp_view_info *tiles;
    uint32_t dispatch_key, priority_key, stream_key;  // of the schedule, for this task; or 0
    const uint32_t *in, *out;                         // edges from earlier, to later tasks:
    uint32_t in_count, out_count;                     // 0 .. edge_count - 1
} ptowsp_task_info;

// The view of a SLOT_LOAD, and the element of its tile (expressions; 0: the first).
typedef struct ptowsp_load_info {
    ptowsp_view_info view;
    uint32_t row, col;
} ptowsp_load_info;

// Channels, numbered from 0 over all pipelines, and the ports of processes: first the channels that
// a process consumes, then those it produces, each in the order of its declarations.
typedef struct ptowsp_channel_info {
    const char *name;
    uint32_t depth;
    ptowsp_cycles latency;
    uint32_t depth_at_start, latency_at_start;  // expressions, or 0
    bool is_event;
} ptowsp_channel_info;

typedef struct ptowsp_port_info {
    uint32_t channel;
    bool is_produced;      // else consumed
    bool is_closed_early;  // there is a CLOSE
} ptowsp_port_info;

// A FIFO between the halves of a mixed kernel, in global memory.
typedef struct ptowsp_fifo {
    uint32_t slot_bytes;  // 0: no FIFO in this direction
    uint32_t slot_count;
    uint32_t flag;  // the first of its two flags between the cores; these have 16
} ptowsp_fifo;

// A size that depends on the task: clamp((mul * valid + add) >> shift, 0, max). `valid` is the
// number of valid rows (axis 0) or columns (axis 1) of tile parameter `param`. In a loop (not 0) it
// is the rest of them, from the loop's index to its end: min(valid, end) - index. If param is
// UINT32_MAX, the size is max.
typedef struct ptowsp_extent {
    uint32_t param, axis, shift;
    int32_t mul, add;
    uint32_t max;
    uint32_t loop;
} ptowsp_extent;

// A loop of a tile kernel: for (index = begin; index < end; index += step),
// between its instructions LOOP and END. A bound is a constant, the scalar parameter `scalar`, or a
// valid size of tile parameter `tile`.
typedef struct ptowsp_loop_bound {
    uint32_t scalar, tile;  // PTOWSP_NO_PARAM: not this
    uint32_t axis;          // of a tile: 0 rows, 1 columns
    int64_t value;          // if it is neither
} ptowsp_loop_bound;

typedef struct ptowsp_loop_info {
    ptowsp_loop_bound begin, end;
    int64_t step;
    uint32_t parent;      // the loop around it; 0: none
    uint32_t insn_count;  // instructions of its own in each turn, END included
    // A loop of n > 0 iterations runs n + preload turns. In turn t, early instructions execute iteration
    // t and late ones iteration t - preload; an instruction is skipped if its iteration does not exist.
    // Late instructions have a loop number of their own, whose late_of is this loop. It has no LOOP and
    // no END.
    uint32_t preload, late_of;
} ptowsp_loop_info;

// A tile on chip. Tiles may share bytes.
typedef struct ptowsp_tile_object {
    ptowsp_dtype dtype;
    ptowsp_memory memory;
    ptowsp_layout layout;
    uint32_t pad;         // 0 none, 1 zero, 2 max, 3 min
    uint32_t rows, cols;  // allocated
    uint32_t own_rows;    // split kernels, tiles in UB: rows that each vector core has room for
                          // (columns, if the tile is a column viewed as a row); 0: all
    ptowsp_extent valid_rows, valid_cols;
    uint32_t address;  // in its memory
    uint32_t root;     // the tile that owns these bytes; itself, unless it is a view
    // In turn t of this loop it is (t + is_late) % places * step bytes further; 0: never.
    uint32_t loop;
    uint32_t step, places;
    bool is_late;
} ptowsp_tile_object;

// The form of an instruction, beside its opcode.
typedef enum ptowsp_form {
    PTOWSP_FORM_PLAIN = 0,
    PTOWSP_FORM_RELU,        // TSTORE through a relu
    PTOWSP_FORM_ADD,         // TSTORE, atomic add
    PTOWSP_FORM_QUANT,       // TSTORE with a scale
    PTOWSP_FORM_QUANT_RELU,  //
    PTOWSP_FORM_DESCENDING,  // TCI
    PTOWSP_FORM_UPPER,       // TTRI
    PTOWSP_FORM_SATURATE,    // TCVT
    PTOWSP_FORM_ASYMMETRIC,  // TQUANT
    PTOWSP_FORM_INPLACE,     // TFILLPAD
    PTOWSP_FORM_EXPAND,      // TFILLPAD
    PTOWSP_FORM_LISTS,       // TMRGSORT of separate lists
    PTOWSP_FORM_BINARY,      // TCOLSUM as a tree
    PWSP_FORCE_INT(PTOWSP_FORM)
} ptowsp_form;

#define PTOWSP_NO_PARAM UINT32_MAX

// The halves of a mixed kernel. Instructions are listed in an order that both cores can follow;
// each core executes its own, with its own pipes and flags, and both go through all loops. TPUSH
// src[0] waits for a free slot of a FIFO and fills it with the tile's valid elements, row after
// row, valid_cols.max elements apart. TPOP dst[0] waits for the next filled slot, loads it and
// frees it. So the n-th TPOP of a FIFO gets the tile of the n-th TPUSH.
typedef enum ptowsp_side {
    PTOWSP_SIDE_ANY = 0,  // of kernels that are not mixed; LOOP and END
    PTOWSP_SIDE_CUBE,
    PTOWSP_SIDE_VECTOR,
    PWSP_FORCE_INT(PTOWSP_SIDE)
} ptowsp_side;

// The instructions: PTO-ISA's, then the marks of loops, and the FIFOs between halves.
// clang-format off
#define PTOWSP_OPCODES(OP)                                                                         \
    OP(TLOAD) OP(TSTORE) OP(TMOV) OP(TEXTRACT) OP(TINSERT) OP(TCVT) OP(TTRANS) OP(TEXPANDS)        \
    OP(TFILLPAD) OP(TCONCAT) OP(TINTERLEAVE) OP(TDEINTERLEAVE) OP(TCI) OP(TTRI) OP(TADD)           \
    OP(TSUB) OP(TMUL) OP(TDIV) OP(TMAX) OP(TMIN) OP(TAND) OP(TOR) OP(TXOR) OP(TSHL) OP(TSHR)       \
    OP(TREM) OP(TFMOD) OP(TPOW) OP(TPARTADD) OP(TPARTMUL) OP(TPARTMAX) OP(TPARTMIN) OP(TADDS)      \
    OP(TSUBS) OP(TMULS) OP(TDIVS) OP(TSDIV) OP(TMAXS) OP(TMINS) OP(TANDS) OP(TORS) OP(TXORS)       \
    OP(TSHLS) OP(TSHRS) OP(TREMS) OP(TFMODS) OP(TPOWS) OP(TEXP) OP(TLOG) OP(TSQRT) OP(TRSQRT)      \
    OP(TRECIP) OP(TABS) OP(TNEG) OP(TRELU) OP(TNOT) OP(TLRELU) OP(TPRELU) OP(TAXPY) OP(TADDC)      \
    OP(TSUBC) OP(TADDSC) OP(TSUBSC) OP(TFUSEDMULADD) OP(TMULADDDST) OP(TFUSEDMULADDRELU)           \
    OP(TSUBRELU) OP(TROWSUM) OP(TROWMAX) OP(TROWMIN) OP(TROWPROD) OP(TROWARGMAX) OP(TROWARGMIN)    \
    OP(TCOLARGMAX) OP(TCOLARGMIN) OP(TPAIRREDUCESUM) OP(TCOLSUM) OP(TCOLMAX) OP(TCOLMIN)           \
    OP(TCOLPROD) OP(TROWEXPAND) OP(TROWEXPANDADD) OP(TROWEXPANDSUB) OP(TROWEXPANDMUL)              \
    OP(TROWEXPANDDIV) OP(TROWEXPANDMAX) OP(TROWEXPANDMIN) OP(TROWEXPANDEXPDIF) OP(TCOLEXPAND)      \
    OP(TCOLEXPANDADD) OP(TCOLEXPANDSUB) OP(TCOLEXPANDMUL) OP(TCOLEXPANDDIV) OP(TCOLEXPANDMAX)      \
    OP(TCOLEXPANDMIN) OP(TCOLEXPANDEXPDIF) OP(TCMP) OP(TCMPS) OP(TSEL) OP(TSELS) OP(TSORT32)       \
    OP(TMRGSORT) OP(TGATHER) OP(TGATHERMASK) OP(TGATHERB) OP(TSCATTER) OP(MGATHER) OP(MSCATTER)    \
    OP(TMATMUL) OP(TMATMUL_ACC) OP(TMATMUL_BIAS) OP(TGEMV) OP(TGEMV_ACC) OP(TGEMV_BIAS)            \
    OP(TQUANT) OP(TDEQUANT) OP(SET_FLAG) OP(WAIT_FLAG) OP(PIPE_BARRIER) OP(LOOP) OP(END)           \
    OP(TPUSH) OP(TPOP)

typedef enum ptowsp_opcode {
    PTOWSP_OP_NONE = 0,
#define PWSP_OPCODE_ENUM(name) PTOWSP_OP_##name,
    PTOWSP_OPCODES(PWSP_OPCODE_ENUM)
#undef PWSP_OPCODE_ENUM
    PTOWSP_OP_COUNT,
    PWSP_FORCE_INT(PTOWSP_OP)
} ptowsp_opcode;
// clang-format on

// "TADD"; "NONE" for an unknown value.
PTOWSP_API const char *ptowsp_opcode_name(ptowsp_opcode op);

// One instruction with its operands.
typedef struct ptowsp_insn_info {
    ptowsp_opcode op;
    ptowsp_side side;
    uint32_t fifo;     // of TPUSH and TPOP: which of the kernel's FIFOs
    ptowsp_pipe pipe;  // runs it
    ptowsp_form form;
    uint32_t mode;  // a ptowsp_round, ptowsp_compare or mask pattern: ptowsp_instruction_desc
    ptowsp_pipe src_pipe, dst_pipe;  // of flags; src_pipe of a barrier, PTOWSP_PIPE_COUNT: all
    uint32_t event;
    bool is_dst_read;  // dst[0] is read as well
    bool is_implied;   // PTO-WSP does not count it: no cycles in the unit model
    uint32_t param;    // TLOAD, TSTORE, MGATHER, MSCATTER: the tile parameter, or NO_PARAM
    uint32_t dst[2], src[4], tmp;  // tiles; 0: not used
    uint32_t row, col;  // TEXTRACT, TINSERT; block length of TMRGSORT; offsets of TLOAD, TSTORE
    // A scalar operand: the parameter, or with NO_PARAM the valid columns of tile cols_of, or with
    // cols_of 0 the constant.
    uint32_t scalar_param;
    uint32_t cols_of;
    double scalar;
    // The loop: of LOOP and END; of a flag that takes event + 1 in iterations 1, 3, ...; whose
    // index is added to row and col. 0: no loop.
    uint32_t loop, row_loop, col_loop;
    // Of TMATMUL_ACC: in the first iteration of this loop it is a TMATMUL, without src[0]; 0: in none.
    uint32_t begins;
    uint32_t phase;  // in a loop that preloads: the loop, or its late loop; flags and barriers: 0
} ptowsp_insn_info;

// Two sizes that must be equal in a task; if only b depends on the task, b >= a suffices.
typedef struct ptowsp_size_check {
    ptowsp_extent a, b;
    const char *operation;
    uint32_t axis;  // 0 rows, 1 columns
} ptowsp_size_check;

typedef struct ptowsp_kernel_info {
    const char *name;
    bool is_used;  // a task calls it
    bool is_tile_kernel;
    ptowsp_unit unit;
    uint32_t axis_count, tile_count, scalar_count;
    const ptowsp_tile_param *tiles;
    const ptowsp_scalar_param *scalars;
    bool has_fn, has_cost;
    ptowsp_cycles cycles;          // constant, or 0
    ptowsp_kernel_source source;   // of a kernel that is a C function
    const ptowsp_pto_source *pto;  // of a kernel that is a PTO-ISA source, with defaults filled in;
                                   // else NULL
    // Of a tile kernel:
    const ptowsp_insn_info *insns;
    const ptowsp_tile_object *objects;  // 1 .. tile_object_count - 1
    const ptowsp_size_check *checks;
    const ptowsp_loop_info *loops;  // 1 .. loop_count
    uint32_t insn_count, tile_object_count, check_count, loop_count;
    uint32_t scalar_dtypes[PTOWSP_TASK_SCALAR_MAX];  // ptowsp_dtype of their bits
    uint32_t memory_bytes[PTOWSP_MEMORY_COUNT];
    ptowsp_family family;
    ptowsp_machine machine;  // its target: name, family, clock, memories, rates
    bool has_products;       // uses the cube unit
    bool is_mixed;           // it has a half for a cube core and one for a vector core, below
    bool is_split;         // of a mixed kernel: both vector cores do the vector half, the first for
                           // the rows below ceil(rows / 2) of its tiles, the second for the rest.
                           // Else the first does all of it
    uint32_t split_tile;   // if it is split: the tile object whose valid rows these `rows` are
    ptowsp_fifo fifos[2];  // of mixed kernels: to the vector core, to the cube core
} ptowsp_kernel_info;

// All tables of a program. Only declarations with is_used have to be bound.
typedef struct ptowsp_program_tables {
    const char *name;          // of its module
    ptowsp_schedule schedule;  // with its defaults filled in; its keys are not set: tasks have them
    bool is_priority_signed;
    bool has_streams;     // by a key
    uint32_t lane_count;  // ptowsp_program_lane_count
    uint32_t slot_count;
    uint32_t latency_symbol;  // overrides the latency of channels; 0 in programs without pipelines
    uint32_t point_count;     // points between which tensors live
    uint32_t pipeline_count;
    uint32_t scope_depth;  // the most scopes that are open at once, with the outermost
    uint32_t edge_count;   // of edges; `edges` are lists of them
    uint32_t axis_count, array_count, symbol_count, tensor_count, variable_count, expr_count,
        kernel_count;              // entries 1 .. count - 1
    const ptowsp_axis_info *axes;  // has gaps, with name NULL
    const ptowsp_array_info *arrays;
    const ptowsp_symbol_info *symbols;
    const ptowsp_tensor_info *tensors;
    const ptowsp_variable_info *variables;
    const ptowsp_expr_info *exprs;
    const ptowsp_kernel_info *kernels;
    uint32_t statement_count, task_count, load_count, channel_count, port_count, transient_count,
        lifetime_count;  // entries 0 .. count - 1
    const ptowsp_statement *statements;
    const ptowsp_task_info *tasks;
    const ptowsp_load_info *loads;
    const ptowsp_channel_info *channels;
    const ptowsp_port_info *ports;
    const ptowsp_transient_info *transients;
    const ptowsp_lifetime_info *lifetimes;
    const uint32_t *values, *params, *edges;  // expressions, variables, edges: see `first`
} ptowsp_program_tables;

// The tables of a program, which owns them; NULL when memory is out.
// Threads  The first call makes the tables, with memory of the program's context: make it on that
//          context's thread. Later calls, and reading, are free on any thread.
PTOWSP_API const ptowsp_program_tables *ptowsp_program_read(const ptowsp_program *program);

// The total number of lanes of a program's schedule, without the lane of collectives.
PTOWSP_API uint32_t ptowsp_program_lane_count(const ptowsp_program *program);

// Writes a program's schedule, with its defaults.
PTOWSP_API void ptowsp_program_print_schedule(const ptowsp_program *program, ptowsp_output output);

// Checks that a target supports the program's schedule and tensors. UNSUPPORTED if it refuses a
// directive, which the context's error names.
PTOWSP_API ptowsp_status ptowsp_program_check(ptowsp_context *context,
                                              const ptowsp_program *program, ptowsp_target target);

#if !defined(PTOWSP_NO_TILES)

// Proves the tile kernels of a program, without trusting how they were made. Tiles lie inside their
// memory, and do not overlap a tile in use. Data is written before it is read. Flags pair. At all
// speeds of the pipes, each access comes after the earlier ones that conflict with it. Emission
// does this first. ptowsp_kernel_end does it for kernels of cube and vector cores, and for all in
// builds with assertions.
// Errors   INVALID_PARAMS: a kernel is wrong; the index is the kernel's.
//          LIMIT_EXCEEDED; OUT_OF_MEMORY.
// Cost     About a fourth of making the kernels without it.
PTOWSP_API ptowsp_status ptowsp_program_prove(ptowsp_context *context,
                                              const ptowsp_program *program);

#endif  // PTOWSP_NO_TILES

// The bindings of a run, for other ways to run its program. False means not bound. Axes, arrays,
// symbols and tensors are given by index. The size of a dense axis is the declared one; the size of
// a plan axis is bound with its plan. Fields of plans count as not bound: they are in the plan,
// whose lane_count is 0 if it was bound as work. The plan of a batch comes from the last execution,
// and is not bound before; out_capacity->lane_count is 0 if the batch has no capacity. A tensor's
// buffer has all fields filled in; its size is the number of bytes that it spans (0 where elements
// lie before the first one). Transient tensors are not bound. Where the context owns their block,
// it is NULL here, and its size a limit or 0.
PTOWSP_API const ptowsp_program *ptowsp_run_program(const ptowsp_run *run);
PTOWSP_API bool ptowsp_run_bound_size(const ptowsp_run *run, uint32_t axis, int64_t *out_size);
PTOWSP_API bool ptowsp_run_bound_symbol(const ptowsp_run *run, uint32_t symbol,
                                        uint64_t *out_value);
PTOWSP_API bool ptowsp_run_bound_array(const ptowsp_run *run, uint32_t array,
                                       ptowsp_dtype *out_dtype, const void **out_data,
                                       uint64_t *out_count);
PTOWSP_API bool ptowsp_run_bound_csr(const ptowsp_run *run, uint32_t axis, ptowsp_csr *out_csr);
PTOWSP_API bool ptowsp_run_bound_plan(const ptowsp_run *run, uint32_t axis,
                                      ptowsp_attention_plan *out_plan);
PTOWSP_API bool ptowsp_run_bound_batch(const ptowsp_run *run, uint32_t axis,
                                       ptowsp_attention_batch *out_batch,
                                       ptowsp_attention_config *out_config,
                                       ptowsp_attention_sizes *out_capacity);
PTOWSP_API bool ptowsp_run_bound_tensor(const ptowsp_run *run, uint32_t tensor,
                                        ptowsp_buffer *out_buffer);
PTOWSP_API void ptowsp_run_bound_transients(const ptowsp_run *run, void **out_block,
                                            uint64_t *out_size);
PTOWSP_API uint64_t ptowsp_run_bound_slot(const ptowsp_run *run, uint32_t slot);

// -------------------------------------------------------------------------------------------------
// Appendix B. The grammar of modules as text
// -------------------------------------------------------------------------------------------------
//
//      module      = "module" name [ "slots" int ] { declaration } { workload }
//      declaration = "axis" name ( int | "dynamic" | "ragged" [ dtype ] | "sparse"
//                                | "plan" [ "," "its" ( "merges" | "lanes" ) ] )
//                  | "symbol" name | "array" name dtype
//                  | "tensor" name dtype "[" [ size { "," size } ] "]" location [ "transient" ]
//                    [ "spread" spread { "," spread } ]
//                  | "kernel" name "(" "axes" int { "," parameter } ")" unit [ time ] [ bytes ]
//                    [ source ] [ body ]
//                  | "kernel" name "(" "axes" int { "," parameter } ")" "link" "," collective
//                    { "," option }
//                  | "mesh" name int { "," name int } [ "by" algorithm ] | "rule" name name
//      size        = int | "?" | expr, of a transient tensor
//      parameter   = ( "in" | "out" | "inout" ) name dtype size "x" size | name type
//      time        = "," ( int ( "cycles" | "instructions" ) | "cycles by a cost function" )
//      bytes       = "," ( int "bytes" | "bytes of its tiles" )
//      source      = "," ( "time only" | "a PTO-ISA source" )
//      spread      = name ( "dim" int | "sum" | "max" )        an axis of the mesh
//      option      = "sum" | "max" | "min" | "by" algorithm | "members" int | "stride" int
//                  | "counts" name | ( "in" | "out" ) "columns"
//      workload    = "workload" name [ "(" name type { "," name type } ")" ]
//      statement   = ( "parallel" | "for_each" | "select" ) name "in" axis
//                  | "when" expr | "otherwise" | "combine" | "sequence"
//                  | "task" name exprs { name "=" view } { name "=" expr } { "tag" name "=" expr }
//                    after
//                  | "call" name exprs | "slot_set" int "=" expr
//                  | "slot_load" int "=" view [ "element" pair ]
//                  | "pipeline" name after | "event" name
//                  | "channel" name "depth" ( int | expr ) "latency" ( int | expr )
//                  | "process" name [ "replicas" name "in" axis ]
//                    [ "consumes" name { "," name } ] [ "produces" name { "," name } ]
//                  | ( "consume" | "receive" ) name "from" name
//                  | "send" name "(" expr ")" | ( "close" | "record" | "wait" ) name
//      axis        = [ ( "merges" | "lanes" ) "of" ] name [ "[" expr "]" ]
//      exprs       = "(" [ expr { "," expr } ] ")"
//      pair        = "(" expr "," expr ")"
//      view        = name [ "[" expr { "," expr } "]" ] [ "at" pair ] [ "up to" expr "rows" ]
//                    [ "up to" expr "columns" ] [ "of" extent "x" extent ]
//      extent      = int | "edge"
//      after       = [ "after" node { "," node } ] [ "as" node ]
//      node        = "node" int
//      expr        = operators as in C, min(a, b), max(a, b), casts i64(a), u64(a), bool(a), over
//                    int | int "u" | "true" | "false" | name | name "[" expr "]"
//                  | "size" "(" axis ")" | "entry" "(" name ")"
//                  | ( "slot_u64" | "slot_i64" | "slot_bool" ) "[" int "]"
//      name        = letters, digits, "_" and "."; or any name in double quotes
//
// In a pair, a bare 0 means not given, and (0) the number. The words kv.slot and "kv".slot are the
// field of plan kv; an array of that name is read in quotes: "kv.slot". A symbol hidden by a
// variable, and the size of a plan with several axes, are refused. The text has no functions of
// kernels: they are attached by the kernel's name. Nor has it choices: their tasks are branches. A
// kernel of the unit link has the parameters of its collective (section 26); for its words see
// PTOWSP_COLLECTIVES and PTOWSP_ALGORITHMS.
//
// A tile kernel has its operations below its line, in the order in which they were built (section
// 24), indented by two spaces, and by two more inside a loop. Reading calls the same functions
// again.
//
//      kernel twice(axes 1, in x f32 64 x 128, out y f32 64 x 128) vector, 9 instructions
//        machine "910B"
//        %1 = parameter x
//        %2 = parameter y
//        %3 = const 2
//        %4 = mul %1, %3 : f32 64 x 128
//        store %2, %4
//
//      body        = [ machine ] { [ value "=" ] operation }
//      machine     = "machine" name [ "of" ( "a2a3" | "a5" ) "," int "MHz" "," "memories" 7 ints
//                    "," "rates" 12 ints ] [ "," "fused" ]
//      operation   = "parameter" name | "scalar" name ":" dtype
//                  | "const" number | ( "full" | "iota" ) number ":" type
//                  | "store" value "," value [ window ] | "store_add" value "," value
//                  | "slice" value window ":" type | "size" value "," ( "rows" | "cols" )
//                  | "cvt" value [ "away" | "floor" | "ceil" | "trunc" ] ":" type
//                  | "compare" value ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) value ":" type
//                  | ( "merge_sort" | "deinterleave" ) value "," int ":" type
//                  | "loop" value "," value "," int | "next" value "," value
//                  | "alloc" memory layout [ "like" value ] ":" type
//                  | "instruction" name "(" values ")" "(" values ")" [ "tmp" value ]
//                    [ "scalar" value ] [ "at" "(" int "," int ")" ] [ "mode" int ]
//                  | word value { "," value } ":" type     any other, ptowsp_tile_<word>
//      window      = "at" "(" ( int | value ) "," ( int | value ) ")"
//      type        = ( dtype | "mask" ) ( int | "?" ) "x" ( int | "?" )
//      value       = "%" int                               ascending, with gaps or without
//      number      = [ "-" ] ( decimal | "inf" ) | "nan" [ "(" bits as int ")" ]
//
// Windows of stores, and those with a value, have values or 0. The type is an argument of scalar,
// full, iota, slice, cvt, topk_... and alloc ("?": as many as fit), and makes rowsum of f16 give
// f32. Elsewhere it may be left out; where it stands, it must be the result's. Memories are UB, L1,
// L0A, L0B, L0C, BIAS, SCALING; layouts row_major, col_major, NZ, ZN, ZZ, NN. The number of
// instructions is not compared and may be 0; unit and parameters must match the body. Under
// PTOWSP_NO_TILES bodies are skipped, and the kernels are attached by name.

#endif  // PTOWSP_ONLY_PLAN

// -------------------------------------------------------------------------------------------------
// Appendix C. Macros
// -------------------------------------------------------------------------------------------------
//
// The helpers of PTOWSP_DEFINE_SPACE (section 32), PTOWSP_DEFINE_TIERS (section 7) and the scopes
// of sections 17 and 25. Programs use only these macros from this appendix.

// a * b, or UINT64_MAX where that does not fit.
PTOWSP_INLINE uint64_t ptowsp_space_multiply(uint64_t a, uint64_t b) {
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

// Spaces (section 32). LIST(PWSP_LIST_ITEM) turns a list macro into ", (batch, PTOWSP_DYNAMIC),
// (head, 8)", and PWSP_LIST_EACH applies a macro to each item, with a name and the position. A size
// is recognised as dynamic by pasting it to PWSP_SPACE_IS_. (Parenthesised sizes, which cannot be
// pasted, are handled before.) So a static dimension has no member. In place of a setter it has an
// object that cannot be called, of the incomplete type ptowsp_error_dimension_is_static.

// clang-format off
#define PWSP_LIST_ITEM(...)        , (__VA_ARGS__)
#define PWSP_LIST_OPEN(...)        __VA_ARGS__
#define PWSP_LIST_CALL(F, ...)     F(__VA_ARGS__)
#define PWSP_LIST_CAT(a, b)        PWSP_LIST_CAT_(a, b)
#define PWSP_LIST_CAT_(a, b)       a##b
#define PWSP_LIST_ONE(F, s, i, item) PWSP_LIST_CALL(F, s, i, PWSP_LIST_OPEN item)
#define PWSP_LIST_COUNT(...)                                                                       \
    PWSP_LIST_COUNT_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, ~)
#define PWSP_LIST_COUNT_(s, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
#define PWSP_LIST_EACH(F, s, LIST) PWSP_LIST_EACH_(F, s LIST(PWSP_LIST_ITEM))
#define PWSP_LIST_EACH_(F, ...)                                                                    \
    PWSP_LIST_FROM(PWSP_LIST_CAT(PWSP_LIST_EACH_, PWSP_LIST_COUNT(__VA_ARGS__)), F, __VA_ARGS__)
#define PWSP_LIST_FROM(EACH, F, s, ...) EACH(F, s, 0, __VA_ARGS__)
#define PWSP_LIST_EACH_1(F, s, i, a)    PWSP_LIST_ONE(F, s, i, a)
#define PWSP_LIST_EACH_2(F, s, i, a, ...)                                                          \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_1(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_3(F, s, i, a, ...)                                                          \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_2(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_4(F, s, i, a, ...)                                                          \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_3(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_5(F, s, i, a, ...)                                                          \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_4(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_6(F, s, i, a, ...)                                                          \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_5(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_7(F, s, i, a, ...)                                                          \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_6(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_8(F, s, i, a, ...)                                                          \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_7(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_9(F, s, i, a, ...)                                                          \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_8(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_10(F, s, i, a, ...)                                                         \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_9(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_11(F, s, i, a, ...)                                                         \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_10(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_12(F, s, i, a, ...)                                                         \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_11(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_13(F, s, i, a, ...)                                                         \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_12(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_14(F, s, i, a, ...)                                                         \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_13(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_15(F, s, i, a, ...)                                                         \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_14(F, s, i + 1, __VA_ARGS__)
#define PWSP_LIST_EACH_16(F, s, i, a, ...)                                                         \
    PWSP_LIST_ONE(F, s, i, a) PWSP_LIST_EACH_15(F, s, i + 1, __VA_ARGS__)

#define PWSP_SPACE_KIND(size)                                                                      \
    PWSP_LIST_CAT(PWSP_SPACE_KIND_OF_, PWSP_SPACE_SECOND(PWSP_SPACE_PROBE size, NAME, ~))(size)
#define PWSP_SPACE_PROBE(...)               ~, PARENTHESES, ~
#define PWSP_SPACE_KIND_OF_PARENTHESES(size) STATIC
#define PWSP_SPACE_KIND_OF_NAME(size)       PWSP_SPACE_SECOND(PWSP_SPACE_IS_##size, STATIC, ~)
#define PWSP_SPACE_IS_PTOWSP_DYNAMIC        ~, DYNAMIC
#define PWSP_SPACE_SECOND(...)              PWSP_SPACE_SECOND_(__VA_ARGS__)
#define PWSP_SPACE_SECOND_(a, b, ...)       b
#define PWSP_SPACE_BY(PART, size) PWSP_LIST_CAT(PWSP_SPACE_##PART##_, PWSP_SPACE_KIND(size))

#define PWSP_SPACE_CONSTANTS(s, i, name, size)                                                     \
    s##_##name##_size = (size), s##_##name##_dynamic = PWSP_SPACE_BY(FLAG, size),
#define PWSP_SPACE_FLAG_DYNAMIC 1
#define PWSP_SPACE_FLAG_STATIC  0
#define PWSP_SPACE_PLUS_ONE(s, i, name, size)       + 1
#define PWSP_SPACE_CHECK(s, i, name, size)                                                         \
    PTOWSP_STATIC_ASSERT(PWSP_SPACE_BY(FLAG, size) || PWSP_CAST(int64_t, size) >= 0,               \
                         #s ": the size of " #name " is negative");

#define PWSP_SPACE_MEMBER(s, i, name, size)         PWSP_SPACE_BY(MEMBER, size)(name)
#define PWSP_SPACE_MEMBER_DYNAMIC(name)             int64_t name;
#define PWSP_SPACE_MEMBER_STATIC(name)
#define PWSP_SPACE_COMMA(s, i, name, size)          PWSP_SPACE_BY(COMMA, size)
#define PWSP_SPACE_COMMA_DYNAMIC                    ,
#define PWSP_SPACE_COMMA_STATIC
#define PWSP_SPACE_FILLER(s, DIMS)                                                                 \
    PWSP_SPACE_FILLER_(PWSP_LIST_EACH(PWSP_SPACE_COMMA, s, DIMS),                                  \
                       , , , , , , , , , , , , , , , , char no_dynamic_dimension;, ~)
#define PWSP_SPACE_FILLER_(...)                     PWSP_SPACE_FILLER_PICK(__VA_ARGS__)
#define PWSP_SPACE_FILLER_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, pick, ...) pick

#define PWSP_SPACE_GET(s, i, name, size)                                                           \
    PTOWSP_INLINE int64_t s##_get_##name(const s *space) {                                         \
        (void)space;                                                                               \
        return PWSP_SPACE_BY(GET, size)(name, size);                                               \
    }
#define PWSP_SPACE_GET_DYNAMIC(name, size)          space->name
#define PWSP_SPACE_GET_STATIC(name, size)           (size)

#define PWSP_SPACE_SET(s, i, name, size)            PWSP_SPACE_BY(SET, size)(s, name)
#define PWSP_SPACE_SET_DYNAMIC(s, name)                                                            \
    PTOWSP_INLINE ptowsp_status s##_set_##name(s *space, int64_t size) {                           \
        if (size < 0) {                                                                            \
            return PTOWSP_INVALID_PARAMS;                                                          \
        }                                                                                          \
        space->name = size;                                                                        \
        return PTOWSP_OK;                                                                          \
    }
#define PWSP_SPACE_SET_STATIC(s, name)                                                             \
    extern struct ptowsp_error_dimension_is_static s##_set_##name;

#define PWSP_SPACE_TOTAL_STEP(s, i, name, size)                                                    \
    total = ptowsp_space_multiply(total, PWSP_CAST(uint64_t, s##_get_##name(space)));
#define PWSP_SPACE_INDEX_STEP(s, i, name, size)                                                    \
    index += PWSP_CAST(uint64_t, coord.name) * stride;                                             \
    stride *= PWSP_CAST(uint64_t, s##_get_##name(space));
#define PWSP_SPACE_AT_STEP(s, i, name, size)                                                       \
    coord.name = PWSP_CAST(int64_t, index % PWSP_CAST(uint64_t, s##_get_##name(space)));           \
    index /= PWSP_CAST(uint64_t, s##_get_##name(space));
#define PWSP_SPACE_COORD(s, i, name, size)          int64_t name;
#define PWSP_SPACE_RUNTIME_STEP(s, i, name, size)   space_runtime.sizes[i] = s##_get_##name(space);

#define PTOWSP_DEFINE_SPACE(s, DIMS)                                                               \
    enum {                                                                                         \
        PWSP_LIST_EACH(PWSP_SPACE_CONSTANTS, s, DIMS)                                              \
        s##_rank = 0 PWSP_LIST_EACH(PWSP_SPACE_PLUS_ONE, s, DIMS)                                  \
    };                                                                                             \
    PTOWSP_STATIC_ASSERT(s##_rank <= PTOWSP_SPACE_RANK_MAX, #s ": too many dimensions");           \
    PWSP_LIST_EACH(PWSP_SPACE_CHECK, s, DIMS)                                                      \
    typedef struct s {                                                                             \
        PWSP_LIST_EACH(PWSP_SPACE_MEMBER, s, DIMS) PWSP_SPACE_FILLER(s, DIMS)                      \
    } s;                                                                                           \
    typedef struct s##_coord {                                                                     \
        PWSP_LIST_EACH(PWSP_SPACE_COORD, s, DIMS)                                                  \
    } s##_coord;                                                                                   \
    PWSP_LIST_EACH(PWSP_SPACE_GET, s, DIMS)                                                        \
    PWSP_LIST_EACH(PWSP_SPACE_SET, s, DIMS)                                                        \
    PTOWSP_INLINE uint64_t s##_total(const s *space) {                                             \
        uint64_t total = 1;                                                                        \
        PWSP_LIST_EACH(PWSP_SPACE_TOTAL_STEP, s, DIMS)                                             \
        return total;                                                                              \
    }                                                                                              \
    PTOWSP_INLINE uint64_t s##_index(const s *space, s##_coord coord) {                            \
        uint64_t index = 0, stride = 1;                                                            \
        PWSP_LIST_EACH(PWSP_SPACE_INDEX_STEP, s, DIMS)                                             \
        (void)stride;                                                                              \
        return index;                                                                              \
    }                                                                                              \
    PTOWSP_INLINE s##_coord s##_at(const s *space, uint64_t index) {                               \
        s##_coord coord;                                                                           \
        PWSP_LIST_EACH(PWSP_SPACE_AT_STEP, s, DIMS)                                                \
        (void)index;                                                                               \
        return coord;                                                                              \
    }                                                                                              \
    PTOWSP_INLINE ptowsp_space s##_runtime(const s *space) {                                       \
        ptowsp_space space_runtime = {s##_rank, {0, 0, 0, 0, 0, 0, 0, 0}};                         \
        PWSP_LIST_EACH(PWSP_SPACE_RUNTIME_STEP, s, DIMS)                                           \
        return space_runtime;                                                                      \
    }                                                                                              \
    PTOWSP_STATIC_ASSERT(s##_rank > 0, #s ": no dimensions");
// clang-format on

PTOWSP_DEFINE_SPACE(ptowsp_attention_space, PTOWSP_ATTENTION_DIMS)
PTOWSP_DEFINE_SPACE(ptowsp_moe_space, PTOWSP_MOE_DIMS)

// Tiers (section 7): a kernel, a table entry and a case for each, from the list of tiers.
// clang-format off
#define PWSP_TIERS_CHECK(pair, i, id, length_min, length_max)                                      \
    PTOWSP_STATIC_ASSERT((id) == (i), "tier ids count from 0, in order");
#define PWSP_TIERS_NAME(name, body) name
#define PWSP_TIERS_BODY(name, body) body
#define PWSP_TIERS_KERNEL(pair, i, id, length_min, length_max)                                     \
    PWSP_TIERS_KERNEL_OF(PWSP_TIERS_NAME pair, PWSP_TIERS_BODY pair, id)
#define PWSP_TIERS_KERNEL_OF(name, body, id) PWSP_TIERS_KERNEL_AS(name, body, id)
#define PWSP_TIERS_KERNEL_AS(name, body, id)                                                        \
    PWSP_UNUSED static PTOWSP_AICORE void name##_tier_##id(                                        \
        const PTOWSP_GM ptowsp_work *work, uint32_t lane, void *user) {                            \
        body(work, lane, user, id);                                                                \
    }
#define PWSP_TIERS_ENTRY(pair, i, id, length_min, length_max)                                      \
    PWSP_LIST_CAT(PWSP_LIST_CAT(PWSP_TIERS_NAME pair, _tier_), id),
#define PWSP_TIERS_RANGE(pair, i, id, length_min, length_max) {id, length_min, length_max},
#define PWSP_TIERS_PLUS_ONE(pair, i, id, length_min, length_max) + 1
#define PWSP_TIERS_CASE(pair, i, id, length_min, length_max)                                       \
    case id: PWSP_TIERS_BODY pair(work, lane, user, id); break;

#define PTOWSP_DEFINE_TIERS(name, TIERS, body)                                                     \
    PWSP_LIST_EACH(PWSP_TIERS_CHECK, (name, body), TIERS)                                          \
    PWSP_LIST_EACH(PWSP_TIERS_KERNEL, (name, body), TIERS)                                         \
    enum { name##_tier_count = 0 PWSP_LIST_EACH(PWSP_TIERS_PLUS_ONE, (name, body), TIERS) };       \
    PWSP_UNUSED static const ptowsp_tier name##_tiers[] = {                                        \
        PWSP_LIST_EACH(PWSP_TIERS_RANGE, (name, body), TIERS)};                                    \
    PWSP_UNUSED static const ptowsp_work_fn name##_table[] = {                                     \
        PWSP_LIST_EACH(PWSP_TIERS_ENTRY, (name, body), TIERS)};                                    \
    PWSP_UNUSED static inline PTOWSP_AICORE void name##_dispatch(                                  \
        const PTOWSP_GM ptowsp_work *work, uint32_t lane, void *user) {                            \
        switch (work->tier) {                                                                      \
            PWSP_LIST_EACH(PWSP_TIERS_CASE, (name, body), TIERS)                                   \
        default: break;                                                                            \
        }                                                                                          \
    }                                                                                              \
    PTOWSP_STATIC_ASSERT(name##_tier_count <= 16, #name ": too many tiers");
// clang-format on

#if !defined(PTOWSP_ONLY_PLAN)

// Scopes (sections 17 and 25): a loop that runs its body once, then closes the scope.
// clang-format off
#define PWSP_SCOPE_NAME(line)  PWSP_LIST_CAT(pwsp_scope_, line)
#define PWSP_SCOPE(m, begin)                                                                       \
    for (bool PWSP_SCOPE_NAME(__LINE__) = (begin, true); PWSP_SCOPE_NAME(__LINE__);                \
         ptowsp_scope_end(m), PWSP_SCOPE_NAME(__LINE__) = false)
#define PWSP_SCOPE_LOOP(m, i, begin)                                                               \
    for (ptowsp_expr i = (begin), *pwsp_scope_of_##i = &i; pwsp_scope_of_##i;                      \
         ptowsp_scope_end(m), pwsp_scope_of_##i = NULL)
// clang-format on

#endif  // PTOWSP_ONLY_PLAN

// -------------------------------------------------------------------------------------------------
// Appendix D. Index of functions
// -------------------------------------------------------------------------------------------------
//
//      ptowsp_              add 3590, algorithm_name 6968, and 3614, array_at 3560,
//                           bf16_from_f32 2967, bitand 3597, bitnot 3603, bitor 3598, bitxor 3599,
//                           bool 3551, call_make 3804, cast 3623, channel_make 6818, clock_ns 8751,
//                           close_make 6841, combine_begin 3696, consume_begin 6806, consumes 6825,
//                           convert 2975, core_timing_of 6625, cost_check 6630, decode_tiers 870,
//                           depth_name 4055, div 3593, edge_reason_name 5358, eq 3606,
//                           event_make 6847, f16_from_f32 2965, fingerprint_print 5208,
//                           for_each_begin 3690, ge 3611, gt 3610, hash 8748, i64 3549,
//                           instruction 6557, le 3609, links_make 7094, location_name 2959,
//                           lt 3608, max 3596, memory_name 6097, min 3595, mul 3592, ne 3607,
//                           neg 3602, not 3616, opcode_name 9125, or 3615, otherwise_begin 3695,
//                           pipe_name 6098, pipeline_begin 6801, process_begin 6803,
//                           processor_count 628, produces 6826, receive_begin 6808,
//                           record_make 6848, rem 3594, replicate_begin 6804, ring_name 4038,
//                           scope_end 3698, search_print 5762, sequence_begin 3697,
//                           shared_memory_of 4270, shl 3600, shr 3601, spans_export 5536,
//                           stall_name 4953, sub 3591, support_name 4380, symbol 3555,
//                           target_name 4379, tier_find 861, u64 3550, unit_name 3304, version 442,
//                           wait_make 6849, when_begin 3694
//      ptowsp_attend_       bytes 2134, check 2054, compute 2122, convert 2129, join 2092,
//                           merge 2088, place 2042, run 2075, run_worker 2068, size 2035,
//                           unit_of 2111, unit_rows 2115, variant 2137, work 2084
//      ptowsp_attention_    accs 1758, bound 1632, check 1687, cost_of 6175, export 1739,
//                           generate 1665, is_invariant 1695, job_check 1830, lane_merges 1704,
//                           lane_units 1699, merge_row 1763, place 1650, print 1743,
//                           progress_size 1806, run 1842, run_serial 1834, run_worker 1822,
//                           see 1678, size 1639, states 1754, unit_rows 1712
//      ptowsp_axis_         dense 3092, dynamic 3093, plan 3143, plan_lanes 3145, plan_merges 3144,
//                           ragged 3094, row 3100, size 3565, sparse 3095
//      ptowsp_capability_   at 4377, count 4376, print 4378
//      ptowsp_collective_   choose 7124, name 6967, plan 7014, print 7021, time 7114
//      ptowsp_context_      create 605, destroy 611, error 614, fail 618, lane_count 621,
//                           run_worker 678
//      ptowsp_control_      cost_name 4178, make 4220
//      ptowsp_device_       alloc 7791, cancel 7859, close 7784, copy_in 7802, copy_out 7804,
//                           core_tasks 7872, free 7796, launch 7854, open 7775, result 7868,
//                           run 7825, run_graph 7816, start 7830
//      ptowsp_dispatch_     mpmd 1279, serial 1248, spmd 1259
//      ptowsp_dtype_        name 2956, size 2955
//      ptowsp_dump_         check 8546, close 8540, explain 8558, open 8538, print 8551,
//                           replay_export 8674, replay_print 8668, replay_run 8661,
//                           rings_least 8595, rings_try 8600
//      ptowsp_expr_         print 3629, type 3626
//      ptowsp_f32_          from_bf16 2968, from_f16 2966
//      ptowsp_graph_        add 5985, cancel 5926, clear 5863, create 5857, destroy 5859,
//                           edge_make 5881, lanes 6017, limit 5933, poll 5944, record 5919,
//                           result 6016, run 5907, run_worker 5911, seal 5892, start 5942,
//                           task_cycles 5998, task_make 5872, task_status 5993, wait 5943
//      ptowsp_hub_          create 7169, destroy 7173, transport 7177
//      ptowsp_kernel_       begin 6201, choice 3780, collective 7283, end 6207, explain 3792,
//                           hash 3485, insn_at 6653, insn_count 6652, make 3478, measure 6646,
//                           print 6660, rule 7691
//      ptowsp_linear_       apply 7590, blocked 7575, compose 7580, conflicts 7598, identity 7572,
//                           inverse 7585, rank 7591, strided 7573, swizzle 7577, transpose 7583
//      ptowsp_loop_         entry 3569, field 3575
//      ptowsp_machine_      910b 6139, 950pr 6140
//      ptowsp_measure_      (itself) 8041, samples 8047
//      ptowsp_merge_        add 1313, clear 1310, finish 1319, partials 1329
//      ptowsp_mesh_         check 7451, coordinate 7455, layout_check 7463, layout_join 7505,
//                           layout_part_of 7474, layout_print 7480, layout_relayout 7543
//      ptowsp_module_       create 3064, destroy 3069, error 3073, mesh 7619, parse 4442,
//                           print 3080
//      ptowsp_moe_          bound 2367, check 2399, column_begin 2408, column_end 2415,
//                           combine 2276, generate 2391, history_add 2461, index 2554, look 2452,
//                           move 2545, place 2381, plan_units 2434, print 2430, rebalance 2520,
//                           routes_generate 2616, row_bound 2244, scratch_bytes 2511, share 2564,
//                           size 2373, sort 2252, sort_parallel 2262, unit_rows 2422
//      ptowsp_npu_          build 8342, build_run 8394, destroy 8346, directory 8349, emit 8298,
//                           emit_files 8306, execute 8388, measure 8424, record 8318,
//                           was_cached 8347
//      ptowsp_output_       to_buffer 714, to_file 717
//      ptowsp_parallel_     begin 3688, for 642
//      ptowsp_plan_         chunk_size 1149, explain 1212, generate 1172, generate_parallel 1190,
//                           generate_range 1180, is_invariant 1696, total_work 1157,
//                           work_bound 1206
//      ptowsp_prefix_       add 2830, bound 2841, build 2813, build_given 2821, check 2879,
//                           generate 2868, join_row 2904, place 2858, print 2886,
//                           progress_size 2910, remove 2833, size 2848, tree_bytes 2803,
//                           tree_place 2804, unit_tokens 2892
//      ptowsp_program_      check 9241, create 4467, destroy 4472, kernel_name 4478,
//                           lane_count 9234, load 4521, print 4485, print_place 4481,
//                           print_point 4828, print_schedule 9237, prove 9254, read 9231,
//                           save 4511, size 4475
//      ptowsp_rails_        fail 8188, init 8169, print 8195, propose 8183, reason_text 8191,
//                           sample 8175, tick 8179
//      ptowsp_ranks_        count 7206, create 7199, destroy 7203, poll 7227, rank 7205,
//                           relayout 7707, run 7219, start 7224, wait 7228
//      ptowsp_run_          bind 4673, bind_array 4692, bind_batch 4760, bind_csr 4710,
//                           bind_lengths 4701, bind_plan 4732, bind_ranks 7320, bind_size 4681,
//                           bind_slot 4833, bind_symbol 4686, bind_tensor 4716,
//                           bind_transients 4792, bind_work 4738, bound_array 9271,
//                           bound_batch 9277, bound_csr 9274, bound_plan 9275, bound_size 9268,
//                           bound_slot 9285, bound_symbol 9269, bound_tensor 9281,
//                           bound_transients 9283, cancel 4898, channels 5086, clock_at 5282,
//                           create 4607, critical_path 5025, critical_steps 5118, decisions 5643,
//                           destroy 4609, edges 5381, execute 4886, execute_worker 4891,
//                           expect 5205, explore 5168, export 5486, export_decisions 5647,
//                           export_transients 5495, find_bounds 5573, fingerprint 5198,
//                           group_export 7389, group_simulate 7364, idle 5306, kernels 5301,
//                           lanes 5017, lifetime_at 4825, pipelines 5082, poll 4917, print 5173,
//                           print_stuck 5124, print_task 5288, processes 5084, program 9267,
//                           rank_waits 7380, record 5256, records 5020, report 5616, result 5016,
//                           size_transients 4815, slot 4839, start 4908, steps 5113, trace_at 5269,
//                           trace_count 5268, trace_find 5272, usage 5316, wait 4916, what_if 5589
//      ptowsp_schedule_     check 4387, print 4393, search 5750, search_cancel 5758
//      ptowsp_select_       (itself) 3619, begin 3692
//      ptowsp_send_         make 6831, task_make 6836
//      ptowsp_slot_         (itself) 3579, load_make 3814, set_make 3808
//      ptowsp_space_        at 8732, index 8730, make 8725, multiply 9393, total 8729
//      ptowsp_status_       name 507, text 508
//      ptowsp_task_         arg 3586, axis 3256, cols 3262, fail 3273, list_make 3898, make 3737,
//                           rows 3259, scalar 3265, tag 3587, variable 3585
//      ptowsp_tensor_       layout 7634, make 3183, spread 7628, transient 3210
//      ptowsp_tile_         abs 6295, add 6272, alloc 6556, carry 6498, col_broadcast 6311,
//                           colmax 6306, colmin 6307, cols 6501, colsum 6305, compare 6357,
//                           const 6223, cos 6290, cvt 6333, deinterleave 6390, dequantize 6339,
//                           div 6275, exp 6282, full 6226, gather 6379, gelu 6292, in 6211,
//                           inout 6215, interleave 6389, iota 6228, load 6232, log 6283,
//                           loop_begin 6494, loop_end 6496, matmul 6316, matmul_acc 6317,
//                           matmul_bias 6318, max 6276, merge_sort 6373, min 6277, mul 6274,
//                           neg 6294, next 6499, out 6213, preload 6497, quantize 6338, recip 6286,
//                           relu 6291, row_broadcast 6310, rowmax 6302, rowmean 6304, rowmin 6303,
//                           rows 6500, rowsum 6300, rowsum_f32 6301, rsqrt 6285, scalar 6220,
//                           select 6358, sigmoid 6288, silu 6293, sin 6289, slice 6384,
//                           slice_at 6502, sort32 6372, sqrt 6284, store 6237, store_add 6240,
//                           store_at 6504, sub 6273, tanh 6287, topk_indices 6375,
//                           topk_values 6374, transpose 6342
//      ptowsp_tuning_       add 7964, bucket 7929, compact 8009, count 7996, create 7944,
//                           destroy 7946, find 7978, record_at 7999, refresh 7953
//      ptowsp_work_         batch 778, column_part 796, create 846, destroy 850, expert 781,
//                           head 766, is_first 823, is_last 826, is_valid 816, is_whole 819,
//                           kv_end 775, kv_len 772, kv_start 769, merge_rows 810, of 832,
//                           print 841, request 763, slot 799, slot_count 805, slot_first 802,
//                           tile 793, token_count 787, token_end 790, token_start 784
//      ptowsp_workload_     begin 3687, param 3797

#ifdef __cplusplus
}
#endif

#endif  // PTOWSP_H

#if defined(PTOWSP_IMPLEMENTATION) && !defined(PTOWSP_C)
#include "ptowsp.c"
#endif
