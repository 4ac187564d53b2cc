// ptowsp: plans dynamic LLM workloads, describes them once, runs them, and computes beforehand how
// many cycles of an accelerator they take. Two files, C11 or C++17, MIT licence.
//
// THIS IS A PART of it, for engines: sections 1 to 12, 32 and 33, without pthreads. Section 9 plans
// attention, section 10 computes it on CPUs.
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
//
// HOW TO ADD IT
//
// Copy ptowsp.h and ptowsp.c into your project. Then either compile ptowsp.c like any other file,
// or write, in exactly one C or C++ file,
//
//      #define PTOWSP_IMPLEMENTATION
//      #include "ptowsp.h"
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
// A PROGRAM
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
// CONTENTS
//
//    1. Build configuration                 154     8. Merging                            1087
//    2. Status and errors                   261     9. Attention plans                    1136
//    3. Contexts and threads                327    10. Attention kernels                  1648
//    4. Sinks                               493    11. MoE plans                          1942
//    5. Work and tiers                      522    12. Prefix trees                       2374
//    6. Chunk plans                         675    32. Spaces                             2661
//    7. Dispatch                           1017    33. Utilities                          2720
//
//   Appendix C. Macros                             2732
//   Appendix D. Index of functions                 2940
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
//      merge         parts of one softmax to the whole, by their maxima and sums
//      cost          of a plan: any unit that is the same for all work, such as cycles or KV tokens
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

#ifndef PTOWSP_ONLY_PLAN
#define PTOWSP_ONLY_PLAN  // this is a part of ptowsp
#endif

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

// -------------------------------------------------------------------------------------------------
// Appendix D. Index of functions
// -------------------------------------------------------------------------------------------------
//
//      ptowsp_              clock_ns 2729, decode_tiers 672, hash 2726, parallel_for 444,
//                           processor_count 430, tier_find 663, version 244
//      ptowsp_attend_       bytes 1936, check 1856, compute 1924, convert 1931, join 1894,
//                           merge 1890, place 1844, run 1877, run_worker 1870, size 1837,
//                           unit_of 1913, unit_rows 1917, variant 1939, work 1886
//      ptowsp_attention_    accs 1560, bound 1434, check 1489, export 1541, generate 1467,
//                           is_invariant 1497, job_check 1632, lane_merges 1506, lane_units 1501,
//                           merge_row 1565, place 1452, print 1545, progress_size 1608, run 1644,
//                           run_serial 1636, run_worker 1624, see 1480, size 1441, states 1556,
//                           unit_rows 1514
//      ptowsp_context_      create 407, destroy 413, error 416, fail 420, lane_count 423,
//                           run_worker 480
//      ptowsp_dispatch_     mpmd 1081, serial 1050, spmd 1061
//      ptowsp_merge_        add 1115, clear 1112, finish 1121, partials 1131
//      ptowsp_moe_          bound 2169, check 2201, column_begin 2210, column_end 2217,
//                           combine 2078, generate 2193, history_add 2263, index 2356, look 2254,
//                           move 2347, place 2183, plan_units 2236, print 2232, rebalance 2322,
//                           row_bound 2046, scratch_bytes 2313, share 2366, size 2175, sort 2054,
//                           sort_parallel 2064, unit_rows 2224
//      ptowsp_output_       to_buffer 516, to_file 519
//      ptowsp_plan_         chunk_size 951, explain 1014, generate 974, generate_parallel 992,
//                           generate_range 982, is_invariant 1498, total_work 959, work_bound 1008
//      ptowsp_prefix_       add 2578, bound 2589, build 2561, build_given 2569, check 2627,
//                           generate 2616, join_row 2652, place 2606, print 2634,
//                           progress_size 2658, remove 2581, size 2596, tree_bytes 2551,
//                           tree_place 2552, unit_tokens 2640
//      ptowsp_space_        at 2710, index 2708, make 2703, multiply 2739, total 2707
//      ptowsp_status_       name 309, text 310
//      ptowsp_work_         batch 580, column_part 598, create 648, destroy 652, expert 583,
//                           head 568, is_first 625, is_last 628, is_valid 618, is_whole 621,
//                           kv_end 577, kv_len 574, kv_start 571, merge_rows 612, of 634,
//                           print 643, request 565, slot 601, slot_count 607, slot_first 604,
//                           tile 595, token_count 589, token_end 592, token_start 586

#ifdef __cplusplus
}
#endif

#endif  // PTOWSP_H

#if defined(PTOWSP_IMPLEMENTATION) && !defined(PTOWSP_C)
#include "ptowsp.c"
#endif
