// The trace for ui.perfetto.dev, in Perfetto's protobuf (TrackEvent): a process for each policy.
//
//      counters    requests that wait, requests that run, KV cache in use (%)
//      row 0       | request 0: 374 in, 44 out            | | request 2 ...
//                  | waiting and prompt | decoding        |
//      row 1          | request 1 ...
//
// A request is in the first row that is free when it arrives. There are at most ROWS; requests that
// find none are left out, and the name of the process says how many. Times are nanoseconds.

#include "serve_report.h"

#include <string.h>

enum {
    ROWS = 256,
    PACKET = 1024,
    TRACKS = ROWS + 4
};  // tracks of a policy: itself, counters, rows

enum { SLICE_BEGIN = 1, SLICE_END, COUNTER = 4 };

// A message, put together before it is written, as its length comes first.
typedef struct message {
    unsigned char bytes[PACKET];
    size_t count;
} message;

static void add_varint(message *m, uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        m->bytes[m->count++] = (unsigned char)(value | 0x80);
    }
    m->bytes[m->count++] = (unsigned char)value;
}

static void add_number(message *m, uint32_t field, uint64_t value) {
    add_varint(m, (uint64_t)field << 3);
    add_varint(m, value);
}

static void add_bytes(message *m, uint32_t field, const void *bytes, size_t count) {
    add_varint(m, (uint64_t)field << 3 | 2);
    add_varint(m, count);
    memcpy(m->bytes + m->count, bytes, count);
    m->count += count;
}

static void add_double(message *m, uint32_t field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_varint(m, (uint64_t)field << 3 | 1);
    for (int i = 0; i < 8; i++) {
        m->bytes[m->count++] = (unsigned char)(bits >> 8 * i);
    }
}

// Writes a packet of the one sequence with a message in a field of it.
static void write_packet(FILE *to, message *packet, uint32_t field, const message *inside) {
    message head = {{0}, 0};
    add_number(packet, 10, 1);  // trusted_packet_sequence_id
    add_bytes(packet, field, inside->bytes, inside->count);
    add_varint(&head, 1 << 3 | 2);  // Trace.packet
    add_varint(&head, packet->count);
    fwrite(head.bytes, 1, head.count, to);
    fwrite(packet->bytes, 1, packet->count, to);
}

// -- tracks ---------------------------------------------------------------------------------------

static uint64_t track_of(uint32_t policy, uint32_t track) {
    return (uint64_t)policy * TRACKS + track + 1;  // not 0
}

static void write_process(FILE *to, uint32_t policy, const char *name) {
    message packet = {{0}, 0}, track = {{0}, 0}, process = {{0}, 0};
    add_number(&process, 1, policy + 1);  // pid
    add_bytes(&process, 6, name, strlen(name));
    add_number(&track, 1, track_of(policy, 0));
    add_bytes(&track, 3, process.bytes, process.count);
    if (policy == 0) {
        add_number(&packet, 13, 1);  // sequence_flags: state cleared
        add_number(&packet, 87, 1);  // first_packet_on_sequence
    }
    write_packet(to, &packet, 60, &track);
}

static void write_counter_track(FILE *to, uint32_t policy, uint32_t which, const char *name) {
    message packet = {{0}, 0}, track = {{0}, 0};
    add_number(&track, 1, track_of(policy, 1 + which));
    add_bytes(&track, 2, name, strlen(name));
    add_number(&track, 5, track_of(policy, 0));  // parent
    add_bytes(&track, 8, "", 0);                 // a counter
    write_packet(to, &packet, 60, &track);
}

static void write_row_track(FILE *to, uint32_t policy, uint32_t row) {
    message packet = {{0}, 0}, track = {{0}, 0}, thread = {{0}, 0};
    char name[32];
    snprintf(name, sizeof name, "row %u", row);
    add_number(&thread, 1, policy + 1);  // pid
    add_number(&thread, 2, row + 1);     // tid
    add_bytes(&thread, 5, name, strlen(name));
    add_number(&track, 1, track_of(policy, 4 + row));
    add_bytes(&track, 4, thread.bytes, thread.count);
    write_packet(to, &packet, 60, &track);
}

// -- events ---------------------------------------------------------------------------------------

static void write_event(FILE *to, uint64_t ns, int type, uint64_t track, const char *name) {
    message packet = {{0}, 0}, event = {{0}, 0};
    add_number(&packet, 8, ns);
    add_number(&event, 9, (uint64_t)type);
    add_number(&event, 11, track);
    if (name) {
        add_bytes(&event, 23, name, strlen(name));
    }
    write_packet(to, &packet, 11, &event);
}

static void write_count(FILE *to, uint64_t ns, uint64_t track, double value) {
    message packet = {{0}, 0}, event = {{0}, 0};
    add_number(&packet, 8, ns);
    add_number(&event, 9, COUNTER);
    add_number(&event, 11, track);
    add_double(&event, 44, value);
    write_packet(to, &packet, 11, &event);
}

static void write_request(FILE *to, uint64_t track, const serve_load *load, const serve_result *q,
                          uint32_t i) {
    const serve_request *request = &load->requests[i];
    const serve_record *record = &q->records[i];
    char name[96];
    snprintf(name, sizeof name, "request %u: %u in, %u out", i, request->input, request->output);
    write_event(to, request->arrival_ns, SLICE_BEGIN, track, name);
    write_event(to, request->arrival_ns, SLICE_BEGIN, track, "waiting and prompt");
    write_event(to, record->first_ns, SLICE_END, track, NULL);
    if (record->done_ns > record->first_ns) {
        write_event(to, record->first_ns, SLICE_BEGIN, track, "decoding");
        write_event(to, record->done_ns, SLICE_END, track, NULL);
    }
    write_event(to, record->done_ns, SLICE_END, track, NULL);
}

// The means of each interval, at its start; 0 at the end.
static void write_counters(FILE *to, uint32_t policy, const serve_result *q) {
    const double ns = (double)q->interval_ns, pages = (double)(q->pages ? q->pages : 1);
    for (uint32_t i = 0; i < SERVE_INTERVALS && i * q->interval_ns < q->end_ns; i++) {
        const serve_interval *v = &q->intervals[i];
        uint64_t at = i * q->interval_ns;
        write_count(to, at, track_of(policy, 1), v->waiting_ns / ns);
        write_count(to, at, track_of(policy, 2), v->running_ns / ns);
        write_count(to, at, track_of(policy, 3), 100.0 * v->page_ns / ns / pages);
    }
    for (uint32_t k = 1; k <= 3; k++) {
        write_count(to, q->end_ns, track_of(policy, k), 0.0);
    }
}

// -- policies -------------------------------------------------------------------------------------

// The first row that is free when a request arrives, taken until it is done; ROWS: none is.
static uint32_t row_take(uint64_t *frees, const serve_load *load, const serve_result *q,
                         uint32_t i) {
    uint32_t row = 0;
    while (row < ROWS && frees[row] > load->requests[i].arrival_ns) {
        row++;
    }
    if (row < ROWS) {
        frees[row] = q->records[i].done_ns;
    }
    return row;
}

static void write_policy(const serve_report *r, uint32_t policy, FILE *to) {
    static const char *const counters[3] = {"waiting", "running", "KV cache, %"};
    const serve_result *q = &r->results[policy];
    uint64_t frees[ROWS] = {0}, left_out = 0;
    uint32_t row_count = 0;
    char name[160];
    for (uint32_t i = 0; i < r->load.count; i++) {
        uint32_t row = q->records[i].is_refused ? 0 : row_take(frees, &r->load, q, i);
        left_out += row == ROWS;
        row_count = row < ROWS && row >= row_count ? row + 1 : row_count;
    }
    int length = snprintf(name, sizeof name, "%s", r->policies[policy].name);
    if (left_out) {
        snprintf(name + length, sizeof name - (size_t)length, " (%llu requests are left out)",
                 (unsigned long long)left_out);
    }
    write_process(to, policy, name);
    for (uint32_t k = 0; k < 3; k++) {
        write_counter_track(to, policy, k, counters[k]);
    }
    for (uint32_t row = 0; row < row_count; row++) {
        write_row_track(to, policy, row);
    }
    memset(frees, 0, sizeof frees);
    for (uint32_t i = 0; i < r->load.count; i++) {
        uint32_t row = q->records[i].is_refused ? ROWS : row_take(frees, &r->load, q, i);
        if (row < ROWS) {
            write_request(to, track_of(policy, 4 + row), &r->load, q, i);
        }
    }
    write_counters(to, policy, q);
}

void serve_report_perfetto(const serve_report *r, FILE *to) {
    for (uint32_t i = 0; i < r->policy_count; i++) {
        write_policy(r, i, to);
    }
}
