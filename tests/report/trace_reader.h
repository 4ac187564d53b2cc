// A reader of Perfetto's traces, by its published field numbers: tracks, slices, flows and a counter of what has
// been written last.

#ifndef TRACE_READER_H
#define TRACE_READER_H

#include "written.h"

// -- protobuf -------------------------------------------------------------------------------------

typedef struct field {
    uint32_t number, type;
    uint64_t value;  // varint, fixed64
    const unsigned char *data;
    size_t size;
} field;

static inline uint64_t varint(const unsigned char **at, const unsigned char *end) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(*at < end && shift < 64);
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
}

// The next field; false at the end.
static inline bool next_field(const unsigned char **at, const unsigned char *end, field *f) {
    if (*at == end) {
        return false;
    }
    uint64_t key = varint(at, end);
    memset(f, 0, sizeof *f);
    f->number = (uint32_t)(key >> 3);
    f->type = (uint32_t)(key & 7);
    switch (f->type) {
    case 0: f->value = varint(at, end); break;
    case 1:
        assert_true(end - *at >= 8);
        for (int i = 0; i < 8; i++) {
            f->value |= (uint64_t) * (*at)++ << 8 * i;
        }
        break;
    case 2:
        f->size = (size_t)varint(at, end);
        assert_true((size_t)(end - *at) >= f->size);
        f->data = *at;
        *at += f->size;
        break;
    default: fail_msg("wire type %u", f->type);
    }
    return true;
}

// Fields of one message by number; the last of each.
typedef struct message {
    field fields[128];
    bool has[128];
} message;

static inline void parse(const unsigned char *data, size_t size, message *m) {
    const unsigned char *at = data;
    field f;
    memset(m, 0, sizeof *m);
    while (next_field(&at, data + size, &f)) {
        assert_in_range(f.number, 1, 127);
        m->fields[f.number] = f;
        m->has[f.number] = true;
    }
}

static inline void parse_field(const message *m, uint32_t number, message *inner) {
    assert_true(m->has[number]);
    assert_int_equal(m->fields[number].type, 2);
    parse(m->fields[number].data, m->fields[number].size, inner);
}

static inline void text_of(const message *m, uint32_t number, char *text) {
    assert_true(m->has[number] && m->fields[number].size < 200);
    memcpy(text, m->fields[number].data, m->fields[number].size);
    text[m->fields[number].size] = '\0';
}

enum { SLICE_MAX = 4096, TRACK_MAX = 1024, FLOW_MAX = 1000 };

typedef struct slice {
    uint64_t begin, end, track;
    char name[200], category[64];
    bool is_open;
} slice;

// The state of a packet sequence, from its first packet on: the defaults of its packets, the clock
// that it has defined, whose times are differences, and its interned names.
typedef struct sequence {
    bool is_cleared, has_clock;
    uint64_t track, clock;  // defaults; 0: none
    uint64_t now;           // on its clock
    char categories[16][64], event_names[16][64];
} sequence;

enum { OWN_CLOCK = 64, BOOTTIME = 6 };  // clocks from 64 on belong to their sequence

typedef struct reader {
    slice slices[SLICE_MAX];
    int count;
    uint64_t uuids[TRACK_MAX];
    char names[TRACK_MAX][128];
    bool is_process[TRACK_MAX];  // not a lane or a counter
    int track_count;
    sequence sequences[TRACK_MAX + 2];                // by id
    uint64_t flow_from[FLOW_MAX], flow_to[FLOW_MAX];  // slice + 1
    int flow_count;
    double counter_area, counter;
    uint64_t counter_time;
} reader;

static inline void read_interned(sequence *q, const field *interned) {
    const unsigned char *at = interned->data;
    field f;
    while (next_field(&at, interned->data + interned->size, &f)) {
        message entry;
        parse(f.data, f.size, &entry);
        uint64_t iid = entry.fields[1].value;
        assert_in_range(iid, 1, 15);
        text_of(&entry, 2, f.number == 1 ? q->categories[iid] : q->event_names[iid]);
    }
}

static inline void read_descriptor(reader *r, const message *packet) {
    message d, inner;
    parse_field(packet, 60, &d);
    assert_true(d.has[1] && d.fields[1].value != 0 && r->track_count < TRACK_MAX);
    for (int i = 0; i < r->track_count; i++) {
        assert_true(r->uuids[i] != d.fields[1].value);
    }
    r->uuids[r->track_count] = d.fields[1].value;
    if (d.has[4]) {
        parse_field(&d, 4, &inner);
        text_of(&inner, 5, r->names[r->track_count]);
        assert_true(inner.has[1] && inner.has[2]);
    } else if (d.has[3]) {
        parse_field(&d, 3, &inner);
        text_of(&inner, 6, r->names[r->track_count]);
        r->is_process[r->track_count] = true;
    } else {
        text_of(&d, 2, r->names[r->track_count]);
    }
    r->track_count++;
}

// trace_packet_defaults: the clock of times, and the track of events.
static inline void read_defaults(sequence *q, const message *packet) {
    message defaults, event;
    parse_field(packet, 59, &defaults);
    parse_field(&defaults, 11, &event);
    assert_true(packet->fields[13].value & 1);  // they come with a new state
    q->clock = defaults.fields[58].value;
    q->track = event.fields[11].value;
    assert_int_equal(q->clock, OWN_CLOCK);
    assert_int_not_equal(q->track, 0);
}

// A snapshot that says where the sequence's clock stands when time since boot is 0.
static inline void read_clocks(sequence *q, const field *snapshot) {
    const unsigned char *at = snapshot->data;
    bool has_boot = false;
    field f;
    while (next_field(&at, snapshot->data + snapshot->size, &f)) {
        message clock;
        assert_int_equal(f.number, 1);
        parse(f.data, f.size, &clock);
        assert_true(clock.has[1] && clock.has[2]);
        if (clock.fields[1].value == OWN_CLOCK) {
            assert_int_equal(clock.fields[3].value, 1);  // incremental
            q->has_clock = true;
            q->now = clock.fields[2].value;
        } else {
            assert_int_equal(clock.fields[1].value, BOOTTIME);
            assert_int_equal(clock.fields[2].value, 0);
            has_boot = true;
        }
    }
    assert_true(has_boot && q->has_clock);
}

// The time of a packet, since boot.
static inline uint64_t time_of(sequence *q, const message *packet) {
    assert_true(packet->has[8]);
    if (q->clock == 0) {
        return packet->fields[8].value;
    }
    assert_true(q->has_clock && packet->fields[13].value & 2);
    assert_true(packet->fields[8].value <= UINT64_MAX - q->now);  // it does not go back
    q->now += packet->fields[8].value;
    return q->now;
}

static inline void read_begin(reader *r, const sequence *q, const message *event, uint64_t time) {
    assert_true(r->count < SLICE_MAX);
    slice *made = &r->slices[r->count++];
    made->begin = time;
    made->track = event->has[11] ? event->fields[11].value : q->track;
    made->is_open = true;
    if (event->has[10]) {
        strcpy(made->name, q->event_names[event->fields[10].value]);
    } else {
        text_of(event, 23, made->name);
        strcpy(made->category, q->categories[event->fields[3].value]);
    }
    if (event->has[47]) {
        assert_in_range(event->fields[47].value, 1, FLOW_MAX - 1);
        r->flow_from[event->fields[47].value] = (uint64_t)r->count;
        r->flow_count++;
    }
    if (event->has[48]) {
        assert_in_range(event->fields[48].value, 1, FLOW_MAX - 1);
        r->flow_to[event->fields[48].value] = (uint64_t)r->count;
    }
}

static inline void read_event(reader *r, sequence *q, const message *packet) {
    message event;
    parse_field(packet, 11, &event);
    assert_true(event.has[9] && (event.has[11] || packet->fields[13].value & 2));
    uint64_t time = time_of(q, packet), track = event.has[11] ? event.fields[11].value : q->track;
    bool is_known = false;
    for (int i = 0; i < r->track_count; i++) {
        is_known = is_known || r->uuids[i] == track;
    }
    assert_true(is_known);
    if (event.has[10] || event.has[3]) {
        assert_int_equal(packet->fields[13].value & 2, 2);
    }
    switch (event.fields[9].value) {
    case 1: read_begin(r, q, &event, time); break;
    case 2: {
        int at = r->count - 1;
        while (at >= 0 && !(r->slices[at].track == track && r->slices[at].is_open)) {
            at--;
        }
        assert_true(at >= 0);  // slices of a track nest
        r->slices[at].is_open = false;
        r->slices[at].end = time;
        break;
    }
    case 4: {
        double value;
        memcpy(&value, &event.fields[44].value, sizeof value);
        r->counter_area += r->counter * (double)(time - r->counter_time);
        r->counter = value;
        r->counter_time = time;
        break;
    }
    default: fail_msg("%s", "an event of another kind");
    }
}

static inline void read_trace(reader *r) {
    const unsigned char *at = (const unsigned char *)written.text, *end = at + written.length;
    field f;
    memset(r, 0, sizeof *r);
    while (next_field(&at, end, &f)) {
        message packet;
        assert_int_equal(f.number, 1);
        assert_int_equal(f.type, 2);
        parse(f.data, f.size, &packet);
        assert_in_range(packet.fields[10].value, 1, TRACK_MAX + 1);
        sequence *q = &r->sequences[packet.fields[10].value];
        bool is_first = packet.fields[13].value & 1;
        assert_int_equal(packet.fields[87].value, is_first);
        assert_int_equal(q->is_cleared, !is_first);  // at its first packet, once
        q->is_cleared = true;
        if (packet.has[12]) {
            read_interned(q, &packet.fields[12]);
        }
        if (packet.has[60]) {
            read_descriptor(r, &packet);
        } else if (packet.has[59]) {
            read_defaults(q, &packet);
        } else if (packet.has[6]) {
            read_clocks(q, &packet.fields[6]);
        } else {
            read_event(r, q, &packet);
        }
    }
}

static inline const char *track_name(const reader *r, uint64_t uuid) {
    for (int i = 0; i < r->track_count; i++) {
        if (r->uuids[i] == uuid) {
            return r->names[i];
        }
    }
    return "";
}

#endif
