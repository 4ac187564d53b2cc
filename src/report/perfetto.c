// Perfetto's protobuf: packets of track events.
//
//      trace      packet*                                 field 1, length-delimited
//      packet     time, sequence, flags, one of: track descriptor, track event; interned names
//      task       two events on its track, begin and end; the first has the label
//
// Field numbers are those of the published schema (Perfetto, protos/perfetto/trace). Kernels are
// interned as categories, and as names of bars without values: the packet that first uses one
// carries it. A packet is put together in memory before it is written, as its length comes first.

#include "picture.h"

enum { PWSP_PB_PACKET_MAX = 4096, PWSP_PB_DEPTH_MAX = 4 };

// Uuids of tracks: processes, the counter, and threads from PWSP_PB_TRACK on.
enum { PWSP_PB_LANES = 1, PWSP_PB_PROCESSES, PWSP_PB_BUSY, PWSP_PB_TRACK };

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
    pwsp_pb_varint(pb, field << 3 | 2);
    pwsp_pb_varint(pb, length);
    PTOWSP_ASSERT(pb->count + length <= PWSP_PB_PACKET_MAX);
    memcpy(pb->bytes + pb->count, text, length);
    pb->count += length;
}

// A message inside: its length is one byte, and moves up what follows where that is not enough.
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

static void pwsp_packet_begin(pwsp_pb *pb) {
    pb->count = 0;
    pb->depth = 0;
    pwsp_pb_open(pb, 1);        // Trace.packet
    pwsp_pb_number(pb, 10, 1);  // trusted_packet_sequence_id
}

static void pwsp_packet_end(pwsp_picture *picture, pwsp_pb *pb) {
    pwsp_pb_close(pb);
    PTOWSP_ASSERT(pb->depth == 0);
    pwsp_out_bytes(picture->out, pb->bytes, pb->count);
}

// Any text as UTF-8 that is cut off where it gets long; returns its length.
static size_t pwsp_pb_title(const char *title, char *room, size_t size) {
    size_t length = strlen(title);
    length = length < size ? length : size - 1;
    while (length && ((unsigned char)title[length] & 0xc0) == 0x80) {
        length--;
    }
    memcpy(room, title, length);
    room[length] = '\0';
    return length;
}

static void pwsp_perfetto_process(pwsp_picture *picture, pwsp_pb *pb, uint64_t uuid,
                                  const char *name, bool is_first) {
    char room[512];
    size_t length = pwsp_pb_title(name, room, sizeof room);
    pwsp_packet_begin(pb);
    if (is_first) {
        pwsp_pb_number(pb, 13, 3);  // sequence_flags: state cleared, and needed
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

static void pwsp_perfetto_tracks(pwsp_picture *picture, pwsp_pb *pb) {
    pwsp_perfetto_process(picture, pb, PWSP_PB_LANES, pwsp_picture_title(picture), true);
    if (picture->track_count > picture->lane_count) {
        pwsp_perfetto_process(picture, pb, PWSP_PB_PROCESSES, "processes", false);
    }
    for (uint32_t i = 0; i < picture->track_count && !picture->out->has_failed; i++) {
        char name[PWSP_TRACK_NAME_MAX];
        bool is_lane = i < picture->lane_count;
        pwsp_picture_track_name(picture, i, name);
        pwsp_packet_begin(pb);
        pwsp_pb_open(pb, 60);
        pwsp_pb_number(pb, 1, (uint64_t)PWSP_PB_TRACK + i);
        pwsp_pb_open(pb, 4);  // thread
        pwsp_pb_number(pb, 1, is_lane ? PWSP_PB_LANES : PWSP_PB_PROCESSES);
        pwsp_pb_number(pb, 2, (is_lane ? i : i - picture->lane_count) + 1);
        pwsp_pb_text(pb, 5, name, strlen(name));
        pwsp_pb_close(pb);
        pwsp_pb_close(pb);
        pwsp_packet_end(picture, pb);
    }
    pwsp_packet_begin(pb);
    pwsp_pb_open(pb, 60);
    pwsp_pb_number(pb, 1, PWSP_PB_BUSY);
    pwsp_pb_text(pb, 2, "busy", 4);
    pwsp_pb_number(pb, 5, PWSP_PB_LANES);
    pwsp_pb_open(pb, 8);       // counter
    pwsp_pb_number(pb, 3, 2);  // a count
    pwsp_pb_close(pb);
    pwsp_pb_close(pb);
    pwsp_packet_end(picture, pb);
}

// -- events ---------------------------------------------------------------------------------------

// The packet's time, and an event of a kind on a track, left open.
static void pwsp_perfetto_event(pwsp_pb *pb, uint64_t ns, uint64_t kind, uint64_t track,
                                bool is_interned) {
    pwsp_packet_begin(pb);
    pwsp_pb_number(pb, 8, ns);  // timestamp
    if (is_interned) {
        pwsp_pb_number(pb, 13, 2);  // sequence_flags: state needed
    }
    pwsp_pb_open(pb, 11);  // track_event
    pwsp_pb_number(pb, 9, kind);
    pwsp_pb_number(pb, 11, track);
}

static unsigned char *pwsp_small_varint(unsigned char *to, uint64_t value) {
    while (value >= 0x80) {
        *to++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *to++ = (unsigned char)value;
    return to;
}

// Writes a packet with an event that has at most an interned name: the same bytes as
// pwsp_perfetto_event makes. Most packets are such, and their lengths fit a byte.
enum { PWSP_SMALL_MAX = 64, PWSP_SMALL_UNNAMED = 0 };

static void pwsp_perfetto_small(pwsp_picture *picture, uint64_t ns, uint64_t kind, uint64_t track,
                                uint32_t name) {
    unsigned char bytes[PWSP_SMALL_MAX], *to = bytes, *packet, *event;
    *to++ = 1 << 3 | 2;  // Trace.packet
    packet = to++;
    *to++ = 10 << 3;  // trusted_packet_sequence_id
    *to++ = 1;
    *to++ = 8 << 3;  // timestamp
    to = pwsp_small_varint(to, ns);
    if (name != PWSP_SMALL_UNNAMED) {
        *to++ = 13 << 3;  // sequence_flags: state needed
        *to++ = 2;
    }
    *to++ = 11 << 3 | 2;  // track_event
    event = to++;
    *to++ = 9 << 3;  // type
    *to++ = (unsigned char)kind;
    *to++ = 11 << 3;  // track_uuid
    to = pwsp_small_varint(to, track);
    if (name != PWSP_SMALL_UNNAMED) {
        *to++ = 10 << 3;  // name_iid
        to = pwsp_small_varint(to, name);
    }
    PTOWSP_ASSERT(kind < 0x80 && to - bytes <= PWSP_SMALL_MAX);
    *event = (unsigned char)(to - event - 1);
    *packet = (unsigned char)(to - packet - 1);
    pwsp_out_bytes(picture->out, bytes, (size_t)(to - bytes));
}

// The places of tasks in the critical path. Arrow i leads from place i to the next.
typedef struct pwsp_flows {
    uint32_t *places;  // by slot: its place in the path, + 1; NULL: there is no path
    uint64_t count;
} pwsp_flows;

static void pwsp_perfetto_flows(pwsp_pb *pb, const pwsp_flows *flows, uint64_t slot) {
    uint32_t place = flows->places ? flows->places[slot] : 0;
    if (place && place < flows->count) {
        pwsp_pb_fixed(pb, 47, place);
    }
    if (place > 1) {
        pwsp_pb_fixed(pb, 48, place - 1);
    }
}

static void pwsp_perfetto_task(pwsp_picture *picture, pwsp_pb *pb, uint64_t slot, bool *is_known,
                               const pwsp_flows *flows) {
    const ptowsp_task_record *record = pwsp_picture_record(picture, slot);
    uint32_t kernel = record->kernel;
    uint64_t track = (uint64_t)PWSP_PB_TRACK + pwsp_picture_track(picture, slot);
    const pwsp_task_op *op = picture->ops[record->node];
    bool is_short = picture->options->is_short || op->axis_count + op->scalar_count == 0;
    uint64_t start = pwsp_picture_ns(picture, record->start);
    uint64_t end = pwsp_picture_ns(picture, record->end);
    PTOWSP_ASSERT(kernel != PWSP_SMALL_UNNAMED);
    if (is_short && is_known[kernel] && !(flows->places && flows->places[slot])) {
        pwsp_perfetto_small(picture, start, PWSP_PB_BEGIN, track, kernel);
        pwsp_perfetto_small(picture, end, PWSP_PB_END, track, PWSP_SMALL_UNNAMED);
        return;
    }
    pwsp_perfetto_event(pb, start, PWSP_PB_BEGIN, track, true);
    if (is_short) {
        pwsp_pb_number(pb, 10, kernel);  // name_iid
    } else {
        char label[PWSP_LABEL_MAX];
        size_t length = pwsp_picture_label(picture, slot, PWSP_LABEL_FULL, label);
        pwsp_pb_text(pb, 23, label, length);  // name
        pwsp_pb_number(pb, 3, kernel);        // category_iids
    }
    pwsp_perfetto_flows(pb, flows, slot);
    pwsp_pb_close(pb);
    if (!is_known[kernel]) {
        const char *name = pwsp_picture_kernel(picture, kernel);
        is_known[kernel] = true;
        pwsp_pb_open(pb, 12);                // interned_data
        for (uint32_t i = 1; i <= 2; i++) {  // event_categories, event_names
            pwsp_pb_open(pb, i);
            pwsp_pb_number(pb, 1, kernel);
            pwsp_pb_text(pb, 2, name, strlen(name));
            pwsp_pb_close(pb);
        }
        pwsp_pb_close(pb);
    }
    pwsp_packet_end(picture, pb);
    pwsp_perfetto_small(picture, end, PWSP_PB_END, track, PWSP_SMALL_UNNAMED);
}

static void pwsp_perfetto_busy(pwsp_picture *picture, pwsp_pb *pb) {
    const ptowsp_usage usage = ptowsp_run_usage(picture->run);
    for (uint64_t bin = 0; bin <= usage.bin_count && !picture->out->has_failed; bin++) {
        uint64_t busy = bin < usage.bin_count ? pwsp_picture_busy(picture, &usage, bin) : 0;
        uint64_t time = pwsp_min_u64(bin * usage.bin_cycles, picture->makespan), bits;
        double lanes = (double)busy / 1000.0;
        memcpy(&bits, &lanes, sizeof bits);
        pwsp_perfetto_event(pb, pwsp_picture_ns(picture, time), PWSP_PB_COUNTER, PWSP_PB_BUSY,
                            false);
        pwsp_pb_fixed(pb, 44, bits);  // double_counter_value
        pwsp_pb_close(pb);
        pwsp_packet_end(picture, pb);
    }
}

PWSP_INTERNAL bool pwsp_export_perfetto(pwsp_picture *picture) {
    const pwsp_memory *memory = &picture->memory;
    size_t known_size = ((size_t)picture->program->kernels.count + 1) * sizeof(bool);
    size_t places_size = (size_t)picture->count * sizeof(uint32_t);
    pwsp_flows flows = {NULL, 0};
    const uint64_t *path = ptowsp_run_critical_path(picture->run, &flows.count);
    bool *is_known = (bool *)pwsp_memory_alloc(memory, known_size);
    pwsp_pb *pb = (pwsp_pb *)pwsp_memory_alloc(memory, sizeof(pwsp_pb));
    bool has_path = path && flows.count < UINT32_MAX;
    flows.places = has_path ? (uint32_t *)pwsp_memory_alloc(memory, places_size) : NULL;
    bool has_memory = is_known && pb && (!has_path || flows.places);
    if (has_memory) {
        for (uint64_t i = 0; has_path && i < flows.count; i++) {
            flows.places[path[i]] = (uint32_t)i + 1;
        }
        pwsp_perfetto_tracks(picture, pb);
        for (uint64_t i = 0; i < picture->count && !picture->out->has_failed; i++) {
            uint64_t slot = pwsp_picture_slot(picture, i);
            if (pwsp_picture_track(picture, slot) < picture->track_count) {
                pwsp_perfetto_task(picture, pb, slot, is_known, &flows);
            }
        }
        pwsp_perfetto_busy(picture, pb);
    }
    pwsp_memory_free(memory, flows.places, places_size);
    pwsp_memory_free(memory, pb, sizeof(pwsp_pb));
    pwsp_memory_free(memory, is_known, known_size);
    return has_memory;
}
