// Which tasks before touch the same data: a map of the tile regions that tasks in flight access.

#ifndef PWSP_DEPS_H
#define PWSP_DEPS_H

#include "../data/region.h"
#include "../workload/expand.h"

// What stands for a task's completion: for lanes its end and index, for flow a node.
typedef struct pwsp_token {
    uint64_t time;
    uint64_t task;
} pwsp_token;

// How tokens are handled. With is_dead NULL a token is a time: dead when it is before the map's
// clock, and two merge to the later one.
typedef struct pwsp_token_ops {
    bool (*is_dead)(void *user, const pwsp_token *token);
    void (*visit)(void *user, const pwsp_token *token);  // the task being looked at waits for it
    void (*keep)(void *user, const pwsp_token *token);   // the map holds it once more
    void (*drop)(void *user, const pwsp_token *token);   // the map holds it no more
    void (*merge)(void *user, pwsp_token *into, const pwsp_token *other);
    void *user;
} pwsp_token_ops;

// One access of a tile by a task in flight.
typedef struct pwsp_access {
    pwsp_tile_at at;
    bool is_read, is_written;
    bool is_gone;    // waits to be swept out
    bool is_hidden;  // a later write covers it: only slot loads still look at it
    pwsp_token token;
    uint64_t owner;  // whose it is; of several that have merged, whose came last
} pwsp_access;

typedef struct pwsp_access_link {
    uint32_t access, next;
} pwsp_access_link;

// What is known about a tensor, beside where it is.
typedef struct pwsp_deps_tensor {
    uint32_t group;  // the lowest tensor that shares memory with it; itself if none does
    bool is_plain;   // alone in its group, and different indices are different elements
    bool is_tracked;
    bool is_written;  // by a task, through this tensor or another one of the group
    bool is_loaded;   // by a slot, where a write does not wait for the writes that it covers
    bool has_cells;   // of a group: the cells are known, from the first access
    uint8_t row_shift, col_shift;  // log2 of the size of its cells
    uint64_t low, high;            // bytes [low, high) hold all its elements
    uint32_t wide;                 // of a group: links to accesses that are in no cell; 0 is none
} pwsp_deps_tensor;

typedef struct pwsp_deps {
    const pwsp_memory *memory;
    const pwsp_bound_tensor *bound;  // by tensor
    pwsp_deps_tensor *tensors;       // by tensor
    uint32_t *order;                 // tensors by where they begin
    uint32_t tensor_count;
    bool is_exact, is_overlap;  // what tasks wait for; slot loads always look at overlap
    uint32_t hazards;
    pwsp_token_ops ops;
    uint64_t clock;
    pwsp_token latest;     // without ops: of it as it was set and the tokens visited since
    uint64_t visit_count;  // without ops
    pwsp_access *accesses;
    uint64_t access_count, access_capacity;
    uint64_t sweep_at;  // accesses at which the dead are swept out
    pwsp_access_link *links;
    uint64_t link_count, link_capacity;
    uint32_t *buckets;
    uint64_t bucket_count;  // a power of two, or 0
    uint64_t access_max;    // high-water mark of accesses
    uint64_t owner;         // of the last that were added: they are counted, from 1
    uint32_t *same;         // from query to add, by tile: an access to take over, + 1
    uint32_t same_count;
} pwsp_deps;

PWSP_INTERNAL bool pwsp_deps_init(pwsp_deps *deps, const pwsp_memory *memory,
                                  uint32_t tensor_count);

// Forgets all accesses, and learns which tensors share memory as they are bound now.
PWSP_INTERNAL void pwsp_deps_begin(pwsp_deps *deps, const ptowsp_program *program,
                                   const pwsp_bound_tensor *bound);

// As above, for the order that data needs in any case: of tiles that overlap, all hazards, and only
// tensors that tasks write.
PWSP_INTERNAL void pwsp_deps_begin_data(pwsp_deps *deps, const ptowsp_program *program,
                                        const pwsp_bound_tensor *bound);
PWSP_INTERNAL void pwsp_deps_free(pwsp_deps *deps);
PWSP_INTERNAL size_t pwsp_deps_bytes(const pwsp_deps *deps);

// Visits what a task's tiles wait for. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_query(pwsp_deps *deps, const pwsp_tile_view *views,
                                   const pwsp_tile_at *tiles, uint32_t count);

// Adds the accesses of the task that was just queried. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_add(pwsp_deps *deps, const pwsp_tile_view *views,
                                 const pwsp_tile_at *tiles, uint32_t count,
                                 const pwsp_token *token);

// Visits the tasks that write what a slot load reads; what those in a pipeline read.
PWSP_INTERNAL void pwsp_deps_query_load(pwsp_deps *deps, const pwsp_tile_at *tile);
PWSP_INTERNAL void pwsp_deps_query_loads(pwsp_deps *deps, const pwsp_tile_view *views,
                                         const pwsp_tile_at *tiles, uint32_t count);

#endif
