// The keys of tiles, of those of a stretch at once, for time whose map of regions has their tensors in grids.

#ifndef PWSP_KEYS_H
#define PWSP_KEYS_H

#include "../runtime/deps.h"
#include "../workload/stretch.h"

// Are all tensors of a stretch in grids, and its tiles of their sizes?
PWSP_INTERNAL bool pwsp_keys_are_in_grids(const pwsp_deps *deps, const pwsp_stretch *stretch);

// If so, the keys of the tiles of tasks [begin, begin + count), task by task, and how each task accesses
// them. False if some tile does not begin at a multiple of its size.
PWSP_INTERNAL bool pwsp_keys_find(const pwsp_deps *deps, const pwsp_stretch *stretch,
                                  uint64_t begin, uint32_t count, uint64_t *keys,
                                  uint8_t *accesses);

// The same for tiles that are known. False if one is in no grid, or does not fit.
PWSP_INTERNAL bool pwsp_keys_of_tiles(const pwsp_deps *deps, const pwsp_tile_at *tiles,
                                      uint32_t count, uint64_t *keys);

#endif
