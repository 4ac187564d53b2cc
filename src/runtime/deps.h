// Dependences by data: a map of the tile regions that tasks in flight access.

#ifndef PWSP_DEPS_H
#define PWSP_DEPS_H

#include "arrival.h"

// One access of a tile by a task in flight: the bytes,
typedef struct pwsp_access {
    uint32_t place[2];    // of a plain tensor: its leading indices' matrix; else its first element
    uint32_t row, col;    // of a plain tensor
    uint32_t rows, cols;  // rows 0: the whole tensor
    uint32_t tensor;
} pwsp_access;

// and its state. In a grid an access is its state alone.
typedef struct pwsp_access_state {
    union {
        uint32_t token;  // if tokens are small: the task
        uint32_t cell;   // else: the hash of its cell; in a grid, its slot
        uint32_t next;   // of one that is free: the next that is
    };
    uint16_t level;  // 0: it is in the list of those without a cell
    uint16_t flags;  // PWSP_ACCESS_...; not bytes, as stores to bytes may alias anything
} pwsp_access_state;

#define PWSP_ACCESS_READ    PWSP_TILE_READ
#define PWSP_ACCESS_WRITTEN PWSP_TILE_WRITTEN
#define PWSP_ACCESS_GONE    4u    // its token has been dropped
#define PWSP_ACCESS_HIDDEN  8u    // a later write covers it: it is written for slot loads only
#define PWSP_ACCESS_OWN     16u   // of the task being added; of several that have merged, the last
#define PWSP_ACCESS_LINKED  32u   // in a list
#define PWSP_ACCESS_FREE    64u   // in the list of free ones
#define PWSP_ACCESS_GRID    128u  // linked, in a cell of a grid

// Accesses of a group of similar size: cells of 2^row_shift x 2^col_shift or, for tensors that are
// not plain, blocks of 2^row_shift bytes. Each access is in the list of the cell in which it
// begins. Cells are numbered row by row, then matrix by matrix.
typedef struct pwsp_deps_level {
    uint32_t next;   // of the group; 0: the last
    uint32_t count;  // accesses
    uint8_t row_shift, col_shift;
    bool row_over, col_over;  // some run over into the next cell
    uint8_t place_shift;      // the number of a matrix's first cell: (place >> place_shift) *
    uint64_t place_factor;    // place_factor
    uint64_t row_cells;       // the cells of a row
    uint64_t first;           // the number of the first cell
} pwsp_deps_level;

// Tensors that tasks access in tiles of one size: grid.h. A page has the accesses of neighbours.
#define PWSP_DEPS_PAGE 16u

typedef struct pwsp_deps_page {
    uint64_t number;  // the keys of its tiles / PWSP_DEPS_PAGE; UINT64_MAX: it is free
    uint32_t next;    // of the same hash, or free
    uint32_t count;   // accesses
} pwsp_deps_page;

typedef struct pwsp_deps_grid {
    uint32_t rows, cols;                // of a tile
    uint64_t row_inverse, col_inverse;  // of these: 2^32 / n, rounded up
    uint64_t row_tiles, col_tiles;      // of a matrix
    uint64_t matrix_rows, matrix_cols;
    uint64_t matrix_count, matrix_step;  // matrices, 0 without a grid; the distance to the next
    uint64_t place_factor;  // 1 / matrix_step = place_factor / 2^place_shift, modulo 2^64
    uint8_t place_shift;
} pwsp_deps_grid;

// Where the accesses of a tensor are: not known before the first, in a grid, in lists, or there since
// its grid ended.
enum { PWSP_DEPS_UNSEEN, PWSP_DEPS_GRID, PWSP_DEPS_LISTS, PWSP_DEPS_LISTS_SINCE };

// The facts about a tensor, besides its place.
typedef struct pwsp_deps_tensor {
    uint32_t group;  // the lowest tensor that may share memory with it; itself if none does
    bool is_plain;   // alone in its group, and different indices are different elements
    bool is_tracked;
    bool is_written;       // by a task, through this tensor or another one of the group
    bool is_loaded;        // by a slot, where a write does not wait for the writes that it covers
    uint8_t form;          // PWSP_DEPS_...
    uint32_t levels;       // of a group: the first; 0: it has none
    uint32_t wides;        // of a group: accesses of whole tensors, and others that have no cell
    uint64_t low, high;    // bytes [low, high) hold all its elements
    uint64_t origin;       // of a group: the lowest of these
    uint64_t key, window;  // while groups are found
} pwsp_deps_tensor;

#define PWSP_DEPS_HAZARDS (PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW)

// A query for one tile. Until the task is added it is kept for that.
typedef struct pwsp_deps_query_state {
    pwsp_access at;
    // The cell in which the tile begins, of the newest level of its group.
    uint32_t cell;   // its hash
    uint32_t level;  // 0: none
    uint8_t row_shift, col_shift;
    bool is_fit;              // tiles of this size go there
    bool row_over, col_over;  // it runs over into the next cell
    bool is_cell;             // this cell is all that there is to look at, unless exact
    bool is_grid;             // it is in a grid, which needs the two below and same alone
    uint64_t key;             // of the tile: grid.h
    uint32_t page;            // where its page was when last looked for
    bool is_load;             // of a slot
    bool is_read, is_written;
    bool is_plain;
    bool is_exact;            // only the identical tile counts
    bool supersedes;          // older accesses within the tile are dropped
    const pwsp_token *token;  // of the task that is being added, or NULL
    uint32_t same;            // an access of the identical tile, + 1
} pwsp_deps_query_state;

typedef struct pwsp_deps {
    const pwsp_memory *memory;
    const pwsp_bound_tensor *bound;  // by tensor
    pwsp_deps_tensor *tensors;       // by tensor
    uint32_t *order;                 // tensors by where they begin; then room for as many
    uint32_t tensor_count;
    bool is_exact, is_overlap;  // the hazards a task waits for; slot loads always look at overlap
    bool keeps_readers;         // a covered reader may still be waited for
    bool is_one_pass;           // covered accesses are replaced by queries, not by adding
    uint32_t hazards;
    pwsp_token_ops ops;
    uint64_t clock;
    pwsp_token latest;     // without ops: of it as it was set and the tokens visited since
    uint64_t visit_count;  // without ops
    // With is_counted, accesses of several tasks do not merge, and queries list the tokens that they
    // visit, each once, by task. The owner empties the list.
    bool is_counted;
    bool is_list_lost;  // no memory for it, or for lists after a grid
    pwsp_token *visited;
    uint64_t visited_count, visited_capacity;
    bool has_tasks;  // unset: tasks of times are not needed
    pwsp_access *accesses;
    pwsp_access_state *states;  // by access
    uint32_t *nexts;            // by access, once there are lists: their links
    uint64_t *times;            // by access, unless tokens are small
    uint64_t *tasks;            // by access, unless tokens are small or without tasks
    uint64_t access_count;
    uint64_t access_capacity, state_capacity, next_capacity, time_capacity, task_capacity;
    uint64_t room;  // the least of those that are in use, once one of them has grown
    uint32_t free_first, free_last, free_count;  // places that can be taken: a list
    uint32_t hand;                               // the access that is next checked for being dead
    bool wants_sweep;                            // most are dead
    bool is_fixed;                               // takes no more memory
    pwsp_deps_level *levels;                     // from 1
    uint64_t level_count, level_capacity;
    pwsp_deps_grid *grids;  // by tensor, if there are any
    pwsp_deps_page *pages;  // from 1
    uint32_t *slots;        // of each page: grid.h
    uint64_t page_count, page_capacity, slot_capacity;
    uint64_t pages_used;
    uint32_t free_page;
    uint32_t *heads;         // pages by hash
    uint64_t head_capacity;  // a power of two, or 0
    uint32_t *buckets;       // lists of cells by hash
    uint64_t bucket_count;   // the buckets of whole runs of cells are in use
    uint32_t index_mask;     // of a link: the bits for the access; the others are of the hash
    uint64_t access_max;     // high-water mark of accesses
    uint32_t *same;          // from query to add, by tile: an access to take over, + 1
    uint32_t same_count;     // tiles, at most, that are queried and added at once
    pwsp_deps_query_state *queries;  // the same, unless there are more tiles
    uint32_t query_count;
} pwsp_deps;

PWSP_INTERNAL bool pwsp_deps_init(pwsp_deps *deps, const pwsp_memory *memory,
                                  uint32_t tensor_count);

// Makes room for more tiles that are queried and added at once than a task, or a pipeline, has. False when
// memory is out.
PWSP_INTERNAL bool pwsp_deps_reserve_tiles(pwsp_deps *deps, uint32_t tile_count);

// Forgets all accesses, and learns which tensors share memory in the current bindings.
PWSP_INTERNAL void pwsp_deps_begin(pwsp_deps *deps, const pwsp_timed *timed,
                                   const pwsp_bound_tensor *bound);

// As above, for the order that data needs under every schedule: all hazards of overlapping tiles,
// and only of tensors that tasks write.
PWSP_INTERNAL void pwsp_deps_begin_data(pwsp_deps *deps, const pwsp_timed *timed,
                                        const pwsp_bound_tensor *bound);

// Makes room for the usual number of accesses; ops must be set. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_reserve(pwsp_deps *deps);

// Makes room for a number of accesses, and takes no more memory from then on. Before each task
// there must be room for its tiles. If there is not, and sweeping out dead accesses does not help,
// the tasks in flight must finish; then everything can be cleared.
PWSP_INTERNAL bool pwsp_deps_fix(pwsp_deps *deps, uint32_t access_count);
PWSP_INTERNAL bool pwsp_deps_has_room(pwsp_deps *deps, uint32_t count);
PWSP_INTERNAL void pwsp_deps_clear(pwsp_deps *deps);

// The part of pwsp_deps_begin that inspects tensors; read-only tensors may be left out.
PWSP_INTERNAL void pwsp_deps_find_tensors(pwsp_deps *deps, const pwsp_timed *timed, bool is_data);

// Visits the dependences of a task's tiles. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_query(pwsp_deps *deps, const pwsp_tile_at *tiles, uint32_t count);

// Adds the accesses of the task last queried. False when memory is out.
PWSP_INTERNAL bool pwsp_deps_add(pwsp_deps *deps, const pwsp_tile_at *tiles, uint32_t count,
                                 const pwsp_token *token);

// Visits the writers of a slot load's element; and of the tensors that a pipeline loads slots from.
PWSP_INTERNAL void pwsp_deps_query_load(pwsp_deps *deps, const pwsp_tile_at *tile);
PWSP_INTERNAL void pwsp_deps_query_loads(pwsp_deps *deps, const pwsp_tile_at *tiles,
                                         uint32_t count);

#endif
