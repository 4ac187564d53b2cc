// Rules of kernels: the layouts that a task's tiles need, derived from the layouts of its results.

#ifndef PWSP_LAYOUT_RULE_H
#define PWSP_LAYOUT_RULE_H

#include "layout.h"

typedef struct pwsp_rule_word {
    char mark;     // '+', '*', '^' or 0
    char dims[2];  // of rows and columns: a letter, or '.'
} pwsp_rule_word;

typedef struct pwsp_rule {
    uint32_t count;  // 0: every rank needs all of every tile
    pwsp_rule_word words[PTOWSP_TASK_TILE_MAX];
} pwsp_rule;

// A tile of a task: the layout that its tensor has, and then the one that the rule wants.
typedef struct pwsp_rule_tile {
    bool is_read, is_written;
    ptowsp_mesh_layout have, need;
} pwsp_rule_tile;

typedef struct pwsp_rule_fault {
    uint32_t tile, axis;
    uint32_t dim;  // PWSP_RULE_NO_DIM: none
    const char *why;
} pwsp_rule_fault;

#define PWSP_RULE_NO_DIM UINT32_MAX

// Reads "mk kn mn"; returns NULL, or the error.
PWSP_INTERNAL const char *pwsp_rule_read(const char *text, pwsp_rule *out_rule);

// Finds the layouts that all tiles need. False with the reason if one is impossible; `need` of the
// tile is then the layout asked for.
PWSP_INTERNAL bool pwsp_rule_needs(const pwsp_rule *rule, const ptowsp_mesh *mesh,
                                   pwsp_rule_tile *tiles, uint32_t count, pwsp_rule_fault *fault);

#endif
