// Tasks of a lane or process that overlap, on rows that viewers can draw.
//
// Slices of one row nest, or one ends before the other begins: viewers keep a stack for each row. A
// lane may hold others: a pipeline in a parallel loop overlaps itself, and so may spans of yours.
//
//      given           0123456789        rows, nested      0123456789      rows, flat
//      a  0 to 6       [    ]            lane 0            [ a  ]          a, then d
//      b  1 to 4        [ ]                                 [b]
//      c  3 to 8          [   ]          lane 0 (2)           [ c ]        b, and c below
//      d  6 to 9             [ ]         lane 0                  [d]
//
// In the order of their begins, each slice goes to the first row of its lane where it fits: inside
// of the slice that is open there, or where none is. A wait (pwsp_picture_wait) is a slice too, at
// the begin of its own: what begins in a wait ends in it.
//
// Cost: as many steps as tasks times the rows of their lane.

#include "picture.h"

// Closes the slices of a row that have ended; returns the one that is open, + 1, or 0.
static uint64_t pwsp_tracks_open(const pwsp_picture *picture, uint64_t top, uint64_t time) {
    while (top && pwsp_picture_record(picture, top - 1)->end <= time) {
        top = picture->outers[top - 1];
    }
    return top;
}

// Does a slice fit inside of one that begins no later and is still open?
static bool pwsp_tracks_fits(const pwsp_picture *picture, uint64_t outer,
                             const ptowsp_task_record *record) {
    const ptowsp_task_record *around = pwsp_picture_record(picture, outer);
    uint64_t waits_for, until = around->start + pwsp_picture_wait(picture, outer, &waits_for);
    return record->end <= (record->start < until ? until : around->end);
}

// Gives the tasks of a track their rows, from `first` on; returns how many. tops: room for a row of
// each task.
static uint32_t pwsp_tracks_place(pwsp_picture *picture, uint32_t track, uint32_t first, bool nests,
                                  uint64_t *tops) {
    uint32_t count = 0;
    for (uint64_t i = picture->firsts[track]; i < picture->firsts[track + 1]; i++) {
        const uint64_t slot = picture->order[i];
        const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
        uint32_t row = 0;
        for (; row < count; row++) {
            tops[row] = pwsp_tracks_open(picture, tops[row], record->start);
            if (!tops[row] || (nests && pwsp_tracks_fits(picture, tops[row] - 1, record))) {
                break;
            }
        }
        picture->outers[slot] = row < count ? tops[row] : 0;
        picture->rows[slot] = first + row;
        tops[row] = slot + 1;
        count = row == count ? count + 1 : count;
    }
    return count ? count : 1;
}

PWSP_INTERNAL bool pwsp_picture_make_rows(pwsp_picture *picture, bool nests, uint64_t *room) {
    const pwsp_memory *memory = &picture->memory;
    const size_t count = (size_t)picture->count, tracks = (size_t)picture->track_count;
    if (!PWSP_ALLOC(memory, picture->rows, count) || !PWSP_ALLOC(memory, picture->outers, count) ||
        !PWSP_ALLOC(memory, picture->first_rows, tracks + 1)) {
        return false;
    }
    uint32_t *firsts = picture->first_rows;
    for (uint32_t i = 0; i < tracks; i++) {
        firsts[i + 1] = firsts[i] + pwsp_tracks_place(picture, i, firsts[i], nests, room);
    }
    picture->row_count = firsts[tracks];
    for (uint64_t i = picture->firsts[tracks]; i < picture->count; i++) {
        picture->rows[picture->order[i]] = picture->row_count;
    }
    return true;
}
