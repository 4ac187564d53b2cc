// Perfetto's protobuf: packets of track slices.
//
//      trace      packet*                                 field 1, length-delimited
//      packet     time, sequence, flags, one of: track descriptor, track event; interned names
//      task       two events on its track, begin and end; the first has the label
//
// Field numbers follow the published schema (Perfetto, protos/perfetto/trace). Each track has its
// own sequence of packets, as threads have in Perfetto's SDK. Its first packets carry the defaults
// of its events: their track, and that times are differences to the previous packet, on a clock of
// the sequence. So most tasks take 26 to 30 bytes. Sequence 1 has descriptors and the counter, in
// absolute time.
//
// Kernels are interned as categories, and as names of bars without values: the packet of a sequence
// that first uses one carries it. A packet is put together in memory before it is written, as its
// length comes first.

#include "picture.h"

// Texts are at most labels, whose bytes may all be invalid UTF-8.
enum { PWSP_PB_PACKET_MAX = 8192, PWSP_PB_TEXT_MAX = 3 * PWSP_LABEL_MAX, PWSP_PB_DEPTH_MAX = 4 };

// Uuids of tracks: processes, the counter, and threads from PWSP_PB_TRACK on.
enum { PWSP_PB_LANES = 1, PWSP_PB_PROCESSES, PWSP_PB_BUSY, PWSP_PB_MEASURED, PWSP_PB_TRACK };

// Sequences: the first, and one per track. Clocks: since boot, for absolute time, and the first
// that a sequence may define.
enum { PWSP_PB_FIRST = 1, PWSP_PB_OF_TRACK = 2, PWSP_PB_BOOTTIME = 6, PWSP_PB_CLOCK = 64 };

// sequence_flags
enum { PWSP_PB_CLEARED = 1, PWSP_PB_NEEDED = 2 };

enum { PWSP_PB_BEGIN = 1, PWSP_PB_END, PWSP_PB_INSTANT, PWSP_PB_COUNTER };

typedef struct pwsp_pb {
    size_t count;
    size_t opens[PWSP_PB_DEPTH_MAX];  // where the open messages begin
    uint32_t depth;
    unsigned char bytes[PWSP_PB_PACKET_MAX];
} pwsp_pb;

static void pwsp_pb_varint(pwsp_pb *pb, uint64_t value) {
    size_t count = pb->count;  // bytes may alias anything, so the count stays in a register
    PTOWSP_ASSERT(count + 10 <= PWSP_PB_PACKET_MAX);
    while (value >= 0x80) {
        pb->bytes[count++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    pb->bytes[count++] = (unsigned char)value;
    pb->count = count;
}

static void pwsp_pb_number(pwsp_pb *pb, uint32_t field, uint64_t value) {
    pwsp_pb_varint(pb, field << 3);
    pwsp_pb_varint(pb, value);
}

static void pwsp_pb_fixed(pwsp_pb *pb, uint32_t field, uint64_t value) {
    pwsp_pb_varint(pb, field << 3 | 1);
    PTOWSP_ASSERT(pb->count + 8 <= PWSP_PB_PACKET_MAX);
    for (int i = 0; i < 8; i++) {
        pb->bytes[pb->count++] = (unsigned char)(value >> 8 * i);
    }
}

static void pwsp_pb_text(pwsp_pb *pb, uint32_t field, const char *text, size_t length) {
    char room[PWSP_PB_TEXT_MAX];
    if (!pwsp_utf8_is_ascii(text, length)) {
        length = pwsp_utf8_copy(room, sizeof room, text, length);
        text = room;
    }
    pwsp_pb_varint(pb, field << 3 | 2);
    pwsp_pb_varint(pb, length);
    PTOWSP_ASSERT(pb->count + length <= PWSP_PB_PACKET_MAX);
    memcpy(pb->bytes + pb->count, text, length);
    pb->count += length;
}

// A nested message: its length takes one byte; if that is too small, the content moves up.
static void pwsp_pb_open(pwsp_pb *pb, uint32_t field) {
    PTOWSP_ASSERT(pb->depth < PWSP_PB_DEPTH_MAX);
    pwsp_pb_varint(pb, field << 3 | 2);
    pb->opens[pb->depth++] = ++pb->count;
}

static void pwsp_pb_close(pwsp_pb *pb) {
    size_t begin = pb->opens[--pb->depth], length = pb->count - begin;
    if (length >= 0x80) {
        PTOWSP_ASSERT(length < 1u << 14 && pb->count < PWSP_PB_PACKET_MAX);
        memmove(pb->bytes + begin + 1, pb->bytes + begin, length);
        pb->bytes[begin++] = (unsigned char)(length >> 7);
        pb->count++;
    }
    pb->bytes[begin - 1 - (length >= 0x80)] =
        (unsigned char)(length >= 0x80 ? (length & 0x7f) | 0x80 : length);
}

// -- packets --------------------------------------------------------------------------------------

static void pwsp_packet_begin(pwsp_pb *pb, uint64_t sequence) {
    pb->count = 0;
    pb->depth = 0;
    pwsp_pb_open(pb, 1);               // Trace.packet
    pwsp_pb_number(pb, 10, sequence);  // trusted_packet_sequence_id
}

static void pwsp_packet_end(pwsp_picture *picture, pwsp_pb *pb) {
    pwsp_pb_close(pb);
    PTOWSP_ASSERT(pb->depth == 0);
    pwsp_out_bytes(picture->out, pb->bytes, pb->count);
}

static void pwsp_perfetto_process(pwsp_picture *picture, pwsp_pb *pb, uint64_t uuid,
                                  const char *name, bool is_first) {
    char room[512];
    size_t length = pwsp_utf8_copy(room, sizeof room, name, strlen(name));
    pwsp_packet_begin(pb, PWSP_PB_FIRST);
    if (is_first) {
        pwsp_pb_number(pb, 13, PWSP_PB_CLEARED);
        pwsp_pb_number(pb, 87, 1);  // first_packet_on_sequence
    }
    pwsp_pb_open(pb, 60);  // track_descriptor
    pwsp_pb_number(pb, 1, uuid);
    pwsp_pb_open(pb, 3);  // process
    pwsp_pb_number(pb, 1, uuid);
    pwsp_pb_text(pb, 6, room, length);
    pwsp_pb_close(pb);
    pwsp_pb_close(pb);
    pwsp_packet_end(picture, pb);
}

// The first packets of a row's sequence.
static void pwsp_perfetto_sequence(pwsp_picture *picture, pwsp_pb *pb, uint32_t track) {
    pwsp_packet_begin(pb, (uint64_t)PWSP_PB_OF_TRACK + track);
    pwsp_pb_number(pb, 13, PWSP_PB_CLEARED);
    pwsp_pb_number(pb, 87, 1);
    pwsp_pb_open(pb, 59);  // trace_packet_defaults
    pwsp_pb_number(pb, 58, PWSP_PB_CLOCK);
    pwsp_pb_open(pb, 11);  // track_event_defaults
    pwsp_pb_number(pb, 11, (uint64_t)PWSP_PB_TRACK + track);
    pwsp_pb_close(pb);
    pwsp_pb_close(pb);
    pwsp_packet_end(picture, pb);
    pwsp_packet_begin(pb, (uint64_t)PWSP_PB_OF_TRACK + track);
    pwsp_pb_number(pb, 13, PWSP_PB_NEEDED);
    pwsp_pb_open(pb, 6);  // clock_snapshot: both clocks at 0
    for (int i = 0; i < 2; i++) {
        pwsp_pb_open(pb, 1);
        pwsp_pb_number(pb, 1, i ? PWSP_PB_CLOCK : PWSP_PB_BOOTTIME);
        pwsp_pb_number(pb, 2, 0);
        if (i) {
            pwsp_pb_number(pb, 3, 1);  // is_incremental
        }
        pwsp_pb_close(pb);
    }
    pwsp_pb_close(pb);
    pwsp_packet_end(picture, pb);
}

// A track as a thread of a process, with its other rows as tracks below it, and their sequences.
static void pwsp_perfetto_thread(pwsp_picture *picture, pwsp_pb *pb, uint32_t track, uint32_t base,
                                 uint64_t process, uint32_t number) {
    const uint32_t first = pwsp_picture_first_row(picture, track);
    for (uint32_t row = first; row < pwsp_picture_first_row(picture, track + 1); row++) {
        char name[PWSP_TRACK_NAME_MAX];
        pwsp_picture_row_name(picture, track, row, name);
        pwsp_packet_begin(pb, PWSP_PB_FIRST);
        pwsp_pb_open(pb, 60);
        pwsp_pb_number(pb, 1, (uint64_t)PWSP_PB_TRACK + base + row);
        if (row == first) {
            pwsp_pb_open(pb, 4);  // thread
            pwsp_pb_number(pb, 1, process);
            pwsp_pb_number(pb, 2, number);
            pwsp_pb_text(pb, 5, name, strlen(name));
            pwsp_pb_close(pb);
        } else {
            pwsp_pb_text(pb, 2, name, strlen(name));
            pwsp_pb_number(pb, 5, (uint64_t)PWSP_PB_TRACK + base + first);  // parent_uuid
        }
        pwsp_pb_close(pb);
        pwsp_packet_end(picture, pb);
        pwsp_perfetto_sequence(picture, pb, base + row);
    }
}

// A process for each rank. Their uuids follow the uuids of all rows.
static void pwsp_perfetto_ranks(pwsp_picture *picture, pwsp_pb *pb) {
    const uint32_t lanes = pwsp_picture_rank_lanes(picture);
    for (uint32_t i = 0; i < picture->track_count; i++) {
        const uint64_t process = (uint64_t)PWSP_PB_TRACK + picture->row_count + i / lanes;
        if (i % lanes == 0) {
            char name[32];
            memcpy(name, "rank ", 5);
            name[5 + pwsp_label_u64(i / lanes, name + 5)] = '\0';
            pwsp_perfetto_process(picture, pb, process, name, i == 0);
        }
        pwsp_perfetto_thread(picture, pb, i, 0, process, i % lanes + 1);
    }
}

static void pwsp_perfetto_tracks(pwsp_picture *picture, pwsp_pb *pb, uint32_t base, bool is_first) {
    char title[512];
    uint64_t lanes = (uint64_t)(picture->is_wall ? PWSP_PB_MEASURED : PWSP_PB_LANES);
    const char *own = pwsp_picture_title(picture);
    size_t length = pwsp_utf8_copy(title, sizeof title - 16, own, strlen(own));
    memcpy(title + length, picture->is_wall ? ", measured" : "", picture->is_wall ? 11 : 1);
    pwsp_perfetto_process(picture, pb, lanes, title, is_first);
    if (picture->track_count > picture->lane_count) {
        pwsp_perfetto_process(picture, pb, PWSP_PB_PROCESSES, "processes", false);
    }
    for (uint32_t i = 0; i < picture->track_count; i++) {
        bool is_lane = i < picture->lane_count;
        pwsp_perfetto_thread(picture, pb, i, base, is_lane ? lanes : (uint64_t)PWSP_PB_PROCESSES,
                             (is_lane ? i : i - picture->lane_count) + 1);
    }
}

// -- events ---------------------------------------------------------------------------------------

// The events of tasks. Arrow i of the critical path leads from place i to the next.
typedef struct pwsp_slices {
    pwsp_picture *picture;
    pwsp_pb *pb;
    uint32_t base;     // rows before the picture's
    uint32_t *places;  // by slot: its place in the path, + 1; NULL: no path
    uint64_t path_count;
    uint64_t *lasts;     // by row: the time of its last packet
    uint64_t *known;     // by row, words of bits by kernel: its name has been interned
    size_t known_words;  // of a row
    // The slot that is open, + 1, on the row where the last one began, and when that was.
    uint64_t top, begun;
} pwsp_slices;

static unsigned char *pwsp_small_varint(unsigned char *to, uint64_t value) {
    while (value >= 0x80) {
        *to++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *to++ = (unsigned char)value;
    return to;
}

// The name of a small event: interned, or a label with the kernel as category, or none.
typedef struct pwsp_small_name {
    uint32_t kernel;  // 0: none
    size_t length;    // of the label; 0: the kernel's name
    const char *label;
} pwsp_small_name;

enum { PWSP_SMALL_LABEL_MAX = 64, PWSP_SMALL_MAX = 48 + PWSP_SMALL_LABEL_MAX };

// Writes a packet with an event and at most a short name: most packets are such, and their lengths
// fit a byte. Returns where it ends.
static unsigned char *pwsp_perfetto_small(unsigned char *to, uint64_t sequence, uint64_t elapsed,
                                          uint32_t kind, pwsp_small_name name) {
    unsigned char *packet = to + 1, *event;
    to[0] = 1 << 3 | 2;  // Trace.packet
    to[2] = 10 << 3;     // trusted_packet_sequence_id
    to = pwsp_small_varint(to + 3, sequence);
    *to++ = 8 << 3;  // timestamp
    to = pwsp_small_varint(to, elapsed);
    to[0] = 13 << 3;  // sequence_flags
    to[1] = PWSP_PB_NEEDED;
    to[2] = 11 << 3 | 2;  // track_event
    event = to + 3;
    to[4] = 9 << 3;  // type
    to[5] = (unsigned char)kind;
    to += 6;
    if (name.length) {
        to[0] = 0xba;  // name: 23 << 3 | 2 in two bytes
        to[1] = 1;
        to[2] = (unsigned char)name.length;
        memcpy(to + 3, name.label, name.length);
        to += 3 + name.length;
        *to++ = 3 << 3;  // category_iids
        to = pwsp_small_varint(to, name.kernel);
    } else if (name.kernel) {
        *to++ = 10 << 3;  // name_iid
        to = pwsp_small_varint(to, name.kernel);
    }
    PTOWSP_ASSERT(kind < 0x80 && to - packet <= 0x80 && to - packet < PWSP_SMALL_MAX);
    *event = (unsigned char)(to - event - 1);
    *packet = (unsigned char)(to - packet - 1);
    return to;
}

enum { PWSP_PB_ARROWS_MAX = 128 };  // of a slice, each way; the others are left out

static void pwsp_perfetto_arrows(const pwsp_slices *slices, uint64_t slot) {
    const pwsp_picture *picture = slices->picture;
    uint32_t count = 0;
    for (uint64_t i = picture->first_out[slot]; i && count < PWSP_PB_ARROWS_MAX; count++) {
        pwsp_pb_fixed(slices->pb, 47, i);
        i = picture->next_out[i - 1];
    }
    count = 0;
    for (uint64_t i = picture->first_in[slot]; i && count < PWSP_PB_ARROWS_MAX; count++) {
        pwsp_pb_fixed(slices->pb, 48, i);
        i = picture->next_in[i - 1];
    }
}

static void pwsp_perfetto_flows(const pwsp_slices *slices, uint64_t slot) {
    if (slices->picture->arrows) {
        pwsp_perfetto_arrows(slices, slot);
    }
    uint32_t place = slices->places ? slices->places[slot] : 0;
    if (place && place < slices->path_count) {
        pwsp_pb_fixed(slices->pb, 47, place);
    }
    if (place > 1) {
        pwsp_pb_fixed(slices->pb, 48, place - 1);
    }
}

// The begin of a task with all that it may have: values, a name that is new, arrows.
static void pwsp_perfetto_begin(pwsp_slices *slices, uint64_t slot, uint64_t sequence,
                                uint64_t elapsed, pwsp_small_name name, bool is_new) {
    pwsp_picture *picture = slices->picture;
    pwsp_pb *pb = slices->pb;
    pwsp_packet_begin(pb, sequence);
    pwsp_pb_number(pb, 8, elapsed);  // timestamp
    pwsp_pb_number(pb, 13, PWSP_PB_NEEDED);
    pwsp_pb_open(pb, 11);  // track_event
    pwsp_pb_number(pb, 9, PWSP_PB_BEGIN);
    if (name.length) {
        pwsp_pb_text(pb, 23, name.label, name.length);  // name
        pwsp_pb_number(pb, 3, name.kernel);             // category_iids
    } else {
        pwsp_pb_number(pb, 10, name.kernel);  // name_iid
    }
    pwsp_perfetto_flows(slices, slot);
    pwsp_pb_close(pb);
    if (is_new) {
        const char *text = pwsp_picture_kernel(picture, name.kernel);
        pwsp_pb_open(pb, 12);                // interned_data
        for (uint32_t i = 1; i <= 2; i++) {  // event_categories, event_names
            pwsp_pb_open(pb, i);
            pwsp_pb_number(pb, 1, name.kernel);
            pwsp_pb_text(pb, 2, text, strlen(text));
            pwsp_pb_close(pb);
        }
        pwsp_pb_close(pb);
    }
    pwsp_packet_end(picture, pb);
}

// A small packet at a time, on a row.
static void pwsp_perfetto_mark(pwsp_slices *slices, uint32_t row, uint64_t time, uint32_t kind,
                               pwsp_small_name name) {
    pwsp_out *out = slices->picture->out;
    unsigned char *room = (unsigned char *)pwsp_out_room(out, PWSP_SMALL_MAX);
    const uint64_t sequence = (uint64_t)PWSP_PB_OF_TRACK + slices->base + row;
    out->count +=
        (size_t)(pwsp_perfetto_small(room, sequence, time - slices->lasts[row], kind, name) - room);
    slices->lasts[row] = time;
}

// Ends the open slices that have ended by a time, and waits in them, from the inside out.
static void pwsp_perfetto_end(pwsp_slices *slices, uint64_t time) {
    const pwsp_picture *picture = slices->picture;
    const pwsp_small_name none = {0, 0, NULL};
    while (slices->top) {
        const uint64_t slot = slices->top - 1;
        const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
        const uint32_t row = pwsp_picture_row(picture, slot);
        uint64_t waits_for, until = record->start + pwsp_picture_wait(picture, slot, &waits_for);
        if (until > slices->begun && until <= time) {
            pwsp_perfetto_mark(slices, row, pwsp_picture_ns(picture, until), PWSP_PB_END, none);
        }
        if (record->end > time) {
            return;
        }
        pwsp_perfetto_mark(slices, row, pwsp_picture_ns(picture, record->end), PWSP_PB_END, none);
        slices->top = picture->outers ? picture->outers[slot] : 0;
    }
}

// Begins the wait of a task for others, as a slice within its own, which has begun.
static void pwsp_perfetto_wait(pwsp_slices *slices, uint64_t slot, uint32_t row) {
    const pwsp_picture *picture = slices->picture;
    char label[PWSP_WAIT_LABEL_MAX];
    uint64_t waits_for = 0;
    if (pwsp_picture_wait(picture, slot, &waits_for)) {
        const pwsp_small_name name = {pwsp_picture_record(picture, slot)->kernel,
                                      pwsp_picture_wait_label(picture, waits_for, label), label};
        pwsp_perfetto_mark(slices, row, slices->lasts[row], PWSP_PB_BEGIN, name);
    }
}

static void pwsp_perfetto_task(pwsp_slices *slices, uint64_t slot) {
    pwsp_picture *picture = slices->picture;
    const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
    const uint32_t kernel = record->kernel, row = pwsp_picture_row(picture, slot);
    if (row >= picture->row_count) {
        return;
    }
    const bool is_same = slices->top && pwsp_picture_row(picture, slices->top - 1) == row;
    pwsp_perfetto_end(slices, is_same ? record->start : UINT64_MAX);
    uint64_t *known = &slices->known[row * slices->known_words + kernel / 64];
    const uint64_t bit = UINT64_C(1) << kernel % 64;
    bool is_short = picture->options->is_short || !pwsp_picture_has_values(picture, slot);
    bool has_flows = (slices->places && slices->places[slot]) ||
                     (picture->arrows && (picture->first_out[slot] || picture->first_in[slot]));
    const uint64_t start = pwsp_picture_ns(picture, record->start);
    char label[PWSP_LABEL_MAX];
    pwsp_small_name name = {kernel, 0, label};
    name.length = is_short ? 0 : pwsp_picture_label(picture, slot, PWSP_LABEL_FULL, label);
    PTOWSP_ASSERT(kernel > 0);
    PTOWSP_ASSERT(slices->lasts[row] <= start);
    if ((*known & bit) && !has_flows && name.length <= PWSP_SMALL_LABEL_MAX &&
        pwsp_utf8_is_ascii(label, name.length)) {
        pwsp_perfetto_mark(slices, row, start, PWSP_PB_BEGIN, name);
    } else {
        pwsp_perfetto_begin(slices, slot, (uint64_t)PWSP_PB_OF_TRACK + slices->base + row,
                            start - slices->lasts[row], name, !(*known & bit));
        *known |= bit;
        slices->lasts[row] = start;
        pwsp_perfetto_wait(slices, slot, row);
    }
    slices->top = slot + 1;
    slices->begun = record->start;
    if (!picture->outers) {
        pwsp_perfetto_end(slices, UINT64_MAX);
    }
}

// The counter of lanes that are busy.
static void pwsp_perfetto_busy(pwsp_picture *picture, pwsp_pb *pb) {
    const ptowsp_usage *usage = &picture->usage;
    pwsp_packet_begin(pb, PWSP_PB_FIRST);
    pwsp_pb_open(pb, 60);
    pwsp_pb_number(pb, 1, PWSP_PB_BUSY);
    pwsp_pb_text(pb, 2, "busy", 4);
    pwsp_pb_number(pb, 5, PWSP_PB_LANES);
    pwsp_pb_open(pb, 8);       // counter
    pwsp_pb_number(pb, 3, 2);  // a count
    pwsp_pb_close(pb);
    pwsp_pb_close(pb);
    pwsp_packet_end(picture, pb);
    for (uint64_t bin = 0; bin <= usage->bin_count && !picture->out->has_failed; bin++) {
        uint64_t busy = bin < usage->bin_count ? pwsp_picture_busy(picture, bin) : 0;
        uint64_t time = pwsp_min_u64(bin * usage->bin_cycles, picture->makespan), bits;
        double lanes = (double)busy / 1000.0;
        memcpy(&bits, &lanes, sizeof bits);
        pwsp_packet_begin(pb, PWSP_PB_FIRST);
        pwsp_pb_number(pb, 8, pwsp_picture_ns(picture, time));  // timestamp
        pwsp_pb_open(pb, 11);                                   // track_event
        pwsp_pb_number(pb, 9, PWSP_PB_COUNTER);
        pwsp_pb_number(pb, 11, PWSP_PB_BUSY);
        pwsp_pb_fixed(pb, 44, bits);  // double_counter_value
        pwsp_pb_close(pb);
        pwsp_packet_end(picture, pb);
    }
}

// The rows of a picture, after `base` others. False: memory is out.
static bool pwsp_perfetto_picture(pwsp_picture *picture, uint32_t base) {
    const pwsp_memory *memory = &picture->memory;
    PWSP_ZERO(pwsp_slices, slices);
    slices.picture = picture;
    slices.base = base;
    slices.path_count = picture->path_count;
    slices.known_words = (size_t)pwsp_picture_kernel_count(picture) / 64 + 1;
    size_t rows = (size_t)picture->row_count + 1;
    const uint64_t *path = picture->path;
    bool has_path = path && slices.path_count < UINT32_MAX;
    bool has_memory = PWSP_ALLOC(memory, slices.known, rows * slices.known_words) &&
                      PWSP_ALLOC(memory, slices.lasts, rows) && PWSP_ALLOC(memory, slices.pb, 1) &&
                      PWSP_ALLOC(memory, slices.places, has_path ? picture->count : 0);
    if (has_memory) {
        for (uint64_t i = 0; has_path && i < slices.path_count; i++) {
            slices.places[path[i]] = (uint32_t)i + 1;
        }
        if (pwsp_picture_rank_lanes(picture)) {
            pwsp_perfetto_ranks(picture, slices.pb);
        } else {
            pwsp_perfetto_tracks(picture, slices.pb, base, base == 0);
        }
        for (uint64_t i = 0; i < picture->count && !picture->out->has_failed; i++) {
            pwsp_perfetto_task(&slices, pwsp_picture_slot(picture, i));
        }
        pwsp_perfetto_end(&slices, UINT64_MAX);
        if (!picture->is_wall) {
            pwsp_perfetto_busy(picture, slices.pb);
        }
    }
    return has_memory;
}

PWSP_INTERNAL bool pwsp_export_perfetto(pwsp_picture *picture) {
    bool has_memory = pwsp_perfetto_picture(picture, 0);
    return has_memory &&
           (!picture->measured || pwsp_perfetto_picture(picture->measured, picture->row_count));
}
