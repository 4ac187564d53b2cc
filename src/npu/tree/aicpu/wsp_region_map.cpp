// Groups of tensors, and the lists of the map: see wsp_region_map.h.

#include "wsp_region_map.h"

#include <algorithm>

namespace wsp {

namespace {

constexpr uint32_t DIMENSION_COUNT = PTOWSP_VIEW_LEAD_MAX + 2;

uint64_t distance(int64_t stride) {
    return stride < 0 ? 0 - static_cast<uint64_t>(stride) : static_cast<uint64_t>(stride);
}

uint64_t hash(uint64_t x) {
    x = (x ^ (x >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ (x >> 29);
}

}  // namespace

// The bytes that a tensor spans; true if each of its indices has memory of its own, as each stride
// is larger than what all smaller ones reach. Spans have been checked when it was bound.
bool RegionMap::find_layout(const pwsp_bound_tensor &tensor, uint64_t *out_low,
                            uint64_t *out_high) {
    struct Dimension {
        uint64_t stride, last;
    } dimensions[DIMENSION_COUNT];  // by rising stride
    uint64_t below = 0, above = 0;
    uint32_t count = 0;
    *out_low = *out_high = tensor.base;
    for (uint32_t i = 0; i < DIMENSION_COUNT; i++) {
        const uint32_t lead = PTOWSP_VIEW_LEAD_MAX;
        const int64_t size = i < lead    ? tensor.lead_shape[i]
                             : i == lead ? tensor.rows
                                         : tensor.cols;
        const int64_t stride = i < lead    ? tensor.lead_strides[i]
                               : i == lead ? tensor.row_stride
                                           : tensor.col_stride;
        if (size <= 0) {
            return true;
        }
        const Dimension dimension = {distance(stride), static_cast<uint64_t>(size) - 1};
        (stride < 0 ? below : above) += dimension.stride * dimension.last;
        uint32_t at = size > 1 ? count++ : 0;
        for (; size > 1 && at > 0 && dimensions[at - 1].stride > dimension.stride; at--) {
            dimensions[at] = dimensions[at - 1];
        }
        if (size > 1) {
            dimensions[at] = dimension;
        }
    }
    *out_low -= below * tensor.element_size;
    *out_high += (above + 1) * tensor.element_size;
    uint64_t reach = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (dimensions[i].stride <= reach) {
            return false;
        }
        reach += dimensions[i].stride * dimensions[i].last;
    }
    return true;
}

// Tensors sorted by their first byte: who begins before an earlier one ends is in its group.
void RegionMap::find_groups(const wsp_program &program) {
    std::vector<uint32_t> order;
    for (uint32_t i = 1; i < program.tensor_count; i++) {
        if (infos_[i].low < infos_[i].high) {
            order.push_back(i);
        }
    }
    std::sort(order.begin(), order.end(),
              [this](uint32_t a, uint32_t b) { return infos_[a].low < infos_[b].low; });
    uint64_t high = 0;
    uint32_t first = 0;
    for (uint32_t i : order) {
        if (first == 0 || infos_[i].low >= high) {
            first = i;
        } else {
            infos_[first].is_plain = infos_[i].is_plain = false;
        }
        infos_[i].group = first;
        groups_[first].is_tracked |= program.tensors[i].is_written != 0;
        high = std::max(high, infos_[i].high);
    }
}

void RegionMap::begin(const wsp_program &program, const pwsp_bound_tensor *tensors,
                      uint64_t tile_max) {
    tensors_ = tensors;
    infos_.assign(program.tensor_count + 1, TensorInfo());
    groups_.assign(program.tensor_count + 1, Group());
    levels_.assign(1, Level());
    items_.assign(1, Item());
    free_.clear();
    size_t cell_count = 64;
    while (cell_count < 2 * tile_max && cell_count < 65536) {
        cell_count *= 2;
    }
    cells_.assign(cell_count, 0);
    for (uint32_t i = 1; i < program.tensor_count; i++) {
        infos_[i].group = i;
        if (tensors[i].is_bound) {
            infos_[i].is_plain = find_layout(tensors[i], &infos_[i].low, &infos_[i].high);
            groups_[i].low = infos_[i].low;
        }
    }
    find_groups(program);
}

RegionMap::Box RegionMap::box_of(const Region &region) const {
    const TensorInfo &info = infos_[region.tensor];
    const uint64_t row_count = uint64_t{region.rows} - 1, col_count = uint64_t{region.cols} - 1;
    if (info.is_plain) {
        const uint64_t row = static_cast<uint64_t>(region.row),
                       col = static_cast<uint64_t>(region.col);
        return {region.lead, {row, row + row_count}, {col, col + col_count}};
    }
    const pwsp_bound_tensor &tensor = tensors_[region.tensor];
    const uint64_t rows = row_count * distance(tensor.row_stride);
    const uint64_t cols = col_count * distance(tensor.col_stride);
    const int64_t offset =
        region.lead + region.row * tensor.row_stride + region.col * tensor.col_stride;
    uint64_t low = tensor.base - groups_[info.group].low;
    low += static_cast<uint64_t>(offset) * tensor.element_size;
    low -= (tensor.row_stride < 0 ? rows : 0) * tensor.element_size;
    low -= (tensor.col_stride < 0 ? cols : 0) * tensor.element_size;
    return {0, {0, 0}, {low, low + (rows + cols + 1) * tensor.element_size - 1}};
}

// The least shift with 1 << shift >= size.
uint32_t RegionMap::shift_of(uint64_t size) {
    uint32_t shift = 0;
    while (shift < 63 && (UINT64_C(1) << shift) < size) {
        shift++;
    }
    return shift;
}

uint32_t RegionMap::cell_of(uint32_t level, int64_t lead, uint64_t row, uint64_t col) const {
    const uint64_t matrix = hash(static_cast<uint64_t>(lead) + (uint64_t{level} << 48));
    return static_cast<uint32_t>(hash(hash(matrix + row) + col) & (cells_.size() - 1));
}

// The level of a box's size, made if there is none yet. A run has few of them.
uint32_t RegionMap::level_for(uint32_t group, const Box &box, bool is_written) {
    const uint32_t row_shift = shift_of(box.rows[1] - box.rows[0] + 1);
    const uint32_t col_shift = shift_of(box.cols[1] - box.cols[0] + 1);
    for (uint32_t at = groups_[group].levels; at; at = levels_[at].next) {
        if (levels_[at].row_shift == row_shift && levels_[at].col_shift == col_shift &&
            levels_[at].is_written == is_written) {
            return at;
        }
    }
    levels_.push_back(
        {row_shift, col_shift, is_written, false, false, group, 0, groups_[group].levels, 0});
    return groups_[group].levels = static_cast<uint32_t>(levels_.size() - 1);
}

void RegionMap::link(uint32_t *head, uint32_t list, uint32_t number) {
    items_[number].before[list] = 0;
    items_[number].next[list] = *head;
    if (*head) {
        items_[*head].before[list] = number;
    }
    *head = number;
}

void RegionMap::unlink(uint32_t *head, uint32_t list, uint32_t number) {
    const uint32_t next = items_[number].next[list], before = items_[number].before[list];
    if (next) {
        items_[next].before[list] = before;
    }
    (before ? items_[before].next[list] : *head) = next;
}

uint32_t RegionMap::add(const Region &region, uint32_t owner) {
    const uint32_t group = infos_[region.tensor].group;
    if (!groups_[group].is_tracked) {
        return 0;
    }
    uint32_t number = static_cast<uint32_t>(items_.size());
    if (free_.empty()) {
        items_.emplace_back();
    } else {
        number = free_.back();
        free_.pop_back();
    }
    Item &item = items_[number];
    item.box = box_of(region);
    item.owner = owner;
    item.access = region.access;
    item.level = level_for(group, item.box, (region.access & WRITE) != 0);
    Level &level = levels_[item.level];
    const uint64_t row = item.box.rows[0] >> level.row_shift;
    const uint64_t col = item.box.cols[0] >> level.col_shift;
    level.rows_run_over = level.rows_run_over || item.box.rows[1] >> level.row_shift != row;
    level.cols_run_over = level.cols_run_over || item.box.cols[1] >> level.col_shift != col;
    level.count++;
    item.cell = cell_of(item.level, item.box.lead, row, col);
    link(&cells_[item.cell], OF_CELL, number);
    link(&level.first, OF_LEVEL, number);
    return number;
}

void RegionMap::remove(uint32_t number, uint32_t owner) {
    Item &item = items_[number];
    if (item.level == 0 || item.owner != owner) {  // by now it may be another one's
        return;
    }
    Level &level = levels_[item.level];
    unlink(&cells_[item.cell], OF_CELL, number);
    unlink(&level.first, OF_LEVEL, number);
    level.count--;
    item.level = 0;
    free_.push_back(number);
}

}  // namespace wsp
