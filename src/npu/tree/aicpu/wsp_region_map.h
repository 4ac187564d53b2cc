// Which tasks in flight touch overlapping memory.
//
// Tensors whose bytes may overlap are a group. A tensor that is alone in its group, and whose
// indices all have memory of their own, is plain: two of its tiles overlap exactly when they are in
// one matrix (that at the same leading indices) and their windows of rows and columns intersect.
// In other groups a tile is all bytes from its first to its last, which is more than it touches,
// and so makes tasks wait for too much and never for too little.
//
//      plain   rows x cols in matrix `lead` of the tensor
//      else    1 x bytes of the group's memory, as one matrix
//
// There is a grid over the matrices of a group for each size of tiles in use, rounded up to powers
// of two: a level; one for tiles that are only read, and one for the others. A tile is in the list
// of one cell of its level, that in which it begins. Tiles of the usual tiling are cells; whoever
// looks for them looks at one list for each level in use, who only reads at none of those that are
// only read: so it takes no time that many read one tile. A level one of whose tiles has run over
// into the next cell is looked at one cell earlier, too; a query that covers more cells than there
// are tiles looks at all tiles.
//
// A write hides what it covers: who comes later waits for it, and it has waited. So the map holds
// what tasks in flight touch, at most.

#ifndef WSP_REGION_MAP_H
#define WSP_REGION_MAP_H

#include "wsp_core.h"

#include <vector>

#include "wsp_abi.h"

namespace wsp {

enum Access { READ = 1, WRITE = 2, READ_WRITE = 3 };

// A tile of a tensor: `lead` elements from its start is the matrix that row and col are in.
struct Region {
    uint32_t tensor, access;
    uint32_t rows, cols;
    int64_t lead, row, col;
};

class RegionMap {
  public:
    // Forgets everything. tile_max is how many regions are in the map at once, usually.
    void begin(const wsp_program &program, const pwsp_bound_tensor *tensors, uint64_t tile_max);

    // Calls wait(owner) for each region in the map that a task which does `region` waits for, maybe
    // several times for one owner. What it covers and writes is taken out.
    template <typename Wait> void meet(const Region &region, Wait wait);

    // Adds a region and returns its number, or 0 if nobody will ever wait for it.
    uint32_t add(const Region &region, uint32_t owner);
    // Takes it out, unless something that covers it has.
    void remove(uint32_t number, uint32_t owner);

  private:
    struct Box {  // first and last row and column
        int64_t lead;
        uint64_t rows[2], cols[2];
    };

    struct Group {
        bool is_tracked;  // some task writes it
        uint64_t low;     // its first byte
        uint32_t levels;  // the first of a list
    };

    struct TensorInfo {
        uint32_t group;
        bool is_plain;
        uint64_t low, high;  // its bytes: [low, high)
    };

    struct Level {
        uint32_t row_shift, col_shift;
        bool is_written, rows_run_over, cols_run_over;
        uint32_t group, count, next;
        uint32_t first;  // of all its tiles
    };

    enum { OF_CELL, OF_LEVEL, LIST_COUNT };

    struct Item {
        Box box;
        uint32_t owner, level;  // level 0: it is not in the map
        uint32_t access;
        uint32_t cell;  // whose list it is in
        uint32_t next[LIST_COUNT], before[LIST_COUNT];
    };

    static bool find_layout(const pwsp_bound_tensor &tensor, uint64_t *out_low, uint64_t *out_high);
    static uint32_t shift_of(uint64_t size);
    static bool is_overlap(const Box &a, const Box &b);
    static bool is_within(const Box &outer, const Box &inner);
    void find_groups(const wsp_program &program);
    Box box_of(const Region &region) const;
    uint32_t cell_of(uint32_t level, int64_t lead, uint64_t row, uint64_t col) const;
    uint32_t level_for(uint32_t group, const Box &box, bool is_written);
    void link(uint32_t *head, uint32_t list, uint32_t number);
    void unlink(uint32_t *head, uint32_t list, uint32_t number);
    template <typename Wait> void meet_one(const Region &, const Box &, uint32_t number, Wait);

    const pwsp_bound_tensor *tensors_ = nullptr;
    std::vector<TensorInfo> infos_;
    std::vector<Group> groups_;  // by the first of its tensors
    std::vector<Level> levels_;  // from 1, as the following
    std::vector<Item> items_;
    std::vector<uint32_t> free_;   // items that are not in use
    std::vector<uint32_t> cells_;  // a hash table: the first item of each list
};

inline bool RegionMap::is_overlap(const Box &a, const Box &b) {
    return a.lead == b.lead && a.rows[0] <= b.rows[1] && b.rows[0] <= a.rows[1] &&
           a.cols[0] <= b.cols[1] && b.cols[0] <= a.cols[1];
}

inline bool RegionMap::is_within(const Box &outer, const Box &inner) {
    return outer.rows[0] <= inner.rows[0] && inner.rows[1] <= outer.rows[1] &&
           outer.cols[0] <= inner.cols[0] && inner.cols[1] <= outer.cols[1];
}

template <typename Wait>
void RegionMap::meet_one(const Region &region, const Box &box, uint32_t number, Wait wait) {
    const Item &item = items_[number];
    if (levels_[item.level].group != infos_[region.tensor].group || !is_overlap(box, item.box) ||
        !((region.access | item.access) & WRITE)) {
        return;
    }
    wait(item.owner);
    if ((region.access & WRITE) && is_within(box, item.box)) {
        remove(number, item.owner);
    }
}

template <typename Wait> void RegionMap::meet(const Region &region, Wait wait) {
    const Group &group = groups_[infos_[region.tensor].group];
    if (!group.is_tracked) {
        return;
    }
    const Box box = box_of(region);
    for (uint32_t at = group.levels; at; at = levels_[at].next) {
        const Level &level = levels_[at];
        if (level.count == 0 || !(level.is_written || (region.access & WRITE))) {
            continue;
        }
        uint64_t row = box.rows[0] >> level.row_shift, last_row = box.rows[1] >> level.row_shift;
        uint64_t col = box.cols[0] >> level.col_shift, last_col = box.cols[1] >> level.col_shift;
        row -= level.rows_run_over && row > 0 ? 1 : 0;
        col -= level.cols_run_over && col > 0 ? 1 : 0;
        uint64_t row_count = last_row - row + 1, col_count = last_col - col + 1;
        if (row_count > level.count || col_count > level.count ||
            row_count * col_count > level.count) {
            for (uint32_t i = level.first, next; i; i = next) {
                next = items_[i].next[OF_LEVEL];
                meet_one(region, box, i, wait);
            }
            continue;
        }
        for (uint64_t cell = 0; cell < row_count * col_count; cell++) {
            uint32_t i =
                cells_[cell_of(at, box.lead, row + cell / col_count, col + cell % col_count)];
            for (uint32_t next; i; i = next) {
                next = items_[i].next[OF_CELL];
                meet_one(region, box, i, wait);
            }
        }
    }
}

}  // namespace wsp

#endif
