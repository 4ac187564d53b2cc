// A libFuzzer target for traces. Any bytes are either a trace that makes sense, or refused with a
// text. The same bytes decide on requests, which are written as a trace in one of the spellings
// that there are: those are what is read again. A line that is damaged is refused by its number.

#include "common/lengths.h"

#include "bytes.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

enum { REQUEST_MAX = 8, ID_MAX = 4 };

typedef struct request {
    int64_t ms;           // of arrival
    double fraction;      // seconds more, in CSV
    int64_t tokens[2];    // input, output
    int64_t ids[ID_MAX];  // those before the first that is none
    uint32_t id_count;
} request;

typedef struct text {
    char data[8192];
    size_t size;
} text;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
add(text *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(out->data + out->size, sizeof out->data - out->size, format, args);
    va_end(args);
    REQUIRE(length >= 0 && out->size + (size_t)length < sizeof out->data);
    out->size += (size_t)length;
}

// -- any text -------------------------------------------------------------------------------------

static void any_text(const uint8_t *data, size_t size) {
    char error[200] = "";
    trace parsed;
    if (!trace_parse("fuzz", (const char *)data, size, &parsed, error, sizeof error)) {
        REQUIRE(strncmp(error, "fuzz:", 5) == 0 && strlen(error) >= 8);
        return;
    }
    int32_t lengths[16];
    REQUIRE(parsed.count > 0 && trace_first(&parsed, 16, lengths) > 0 && lengths[0] >= 0);
    uint32_t live = trace_live(&parsed, 10.0, 0.03, 16, lengths);
    for (uint32_t i = 0; i < live; i++) {
        REQUIRE(lengths[i] >= 0);
    }
    trace_free(&parsed);
}

// -- writing --------------------------------------------------------------------------------------

static void write_spaces(text *out, bytes *in) {
    static const char *const spaces[] = {"", "", " ", "\t "};
    add(out, "%s", spaces[take_below(in, 4)]);
}

// The number as JSON may have it: with its point moved by an exponent, and zeros behind it.
static void write_number(text *out, bytes *in, int64_t value) {
    char digits[40];
    int zeros = (int)take_below(in, 3), count = snprintf(digits, 24, "%lld", (long long)value);
    int before = value == 0 ? 1 : 1 + (int)take_below(in, (uint32_t)count);
    for (int i = 0; i < zeros; i++, count++) {
        digits[count] = '0';  // behind the point, or taken back by the exponent
    }
    digits[count] = 0;
    bool has_point = count > before && take_below(in, 2);
    int exponent = (value == 0 ? (int)take_below(in, 9) : count - zeros - before) -
                   (has_point ? 0 : count - before);
    add(out, "%.*s%s%s", before, digits, has_point ? "." : "", digits + before);
    if (exponent != 0 || take_below(in, 4) == 0) {
        bool is_signed = exponent < 0 || take_below(in, 2);
        add(out, "%c%s%d", take_below(in, 2) ? 'e' : 'E',
            exponent < 0 ? "-"
            : is_signed  ? "+"
                         : "",
            abs(exponent));
    }
}

static void write_ids(text *out, bytes *in, const request *from) {
    add(out, "[");
    write_spaces(out, in);
    for (uint32_t i = 0; i < from->id_count; i++) {
        add(out, "%s", i > 0 ? "," : "");
        write_spaces(out, in);
        write_number(out, in, from->ids[i]);
    }
    if (take_below(in, 4) == 0) {  // what is none ends them
        add(out, "%s-1, 7", from->id_count > 0 ? "," : "");
    }
    write_spaces(out, in);
    add(out, "]");
}

enum { GOOD, MISSING, TWICE, NEGATIVE, FRACTION, GREATER, CUT_OFF, DAMAGE_COUNT };

static const char *const names[] = {"timestamp", "input_length", "output_length", "hash_ids"};

// Its members in any order, beside one that says nothing. A damage is one of timestamp or lengths.
static void write_json(text *out, bytes *in, const request *from, int damage, uint32_t damaged) {
    uint32_t first = take_below(in, 5), step = 1 + take_below(in, 4);
    bool is_next = false;
    add(out, "{");
    for (uint32_t k = 0; k < 5; k++) {
        uint32_t member = (first + k * step) % 5;
        bool is_damaged = damage != GOOD && member == damaged;
        int64_t value = member == 0 ? from->ms : from->tokens[member == 2];
        for (int i = is_damaged && damage == TWICE     ? 2
                     : is_damaged && damage == MISSING ? 0
                                                       : 1;
             i > 0; i--) {
            add(out, "%s", is_next ? "," : "");
            write_spaces(out, in);
            add(out, "\"%s\"", member < 4 ? names[member] : "output_length_max");
            write_spaces(out, in);
            add(out, ":");
            write_spaces(out, in);
            add(out, "%s", is_damaged && damage == NEGATIVE ? "-" : "");
            if (is_damaged && damage == FRACTION) {
                add(out, "%lld5e-1", (long long)value);
            } else if (is_damaged && damage == GREATER) {
                add(out, member == 0 ? "92233720368547759e0" : "21474836.48E2");
            } else if (member == 3) {
                write_ids(out, in, from);
            } else {
                write_number(out, in, member < 3 ? value : 3);
            }
            write_spaces(out, in);
            is_next = true;
        }
    }
    add(out, damage == CUT_OFF ? "" : "}");
}

// The time of a clock that is so many minutes ahead.
static void write_csv(text *out, bytes *in, const request *from, int damage, uint32_t damaged) {
    int zone = take_below(in, 2) ? (int)take_below(in, 240) * 12 - 1439 : 0;
    time_t seconds = (time_t)(from->ms / 1000) + 60 * zone;
    const struct tm *tm = gmtime(&seconds);
    char fraction[16];
    REQUIRE(tm);
    snprintf(fraction, sizeof fraction, "%.7f", from->fraction);
    add(out, "%04d-%02d-%02d %02d:%02d:%02d%s", tm->tm_year + 1900, tm->tm_mon + 1, tm->tm_mday,
        tm->tm_hour, tm->tm_min, tm->tm_sec, from->fraction > 0 ? fraction + 1 : "");
    if (zone != 0) {
        add(out, "%c%02d:%02d", zone > 0 ? '+' : '-', abs(zone) / 60, abs(zone) % 60);
    }
    for (uint32_t i = 0; i < (damage == MISSING ? 1 : damage == TWICE ? 3 : 2); i++) {
        bool is_damaged = damage != GOOD && i == damaged % 2;
        add(out, ",%s%lld%s", is_damaged && damage == NEGATIVE ? "-" : "",
            (long long)(is_damaged && damage == GREATER ? INT64_C(2147483648)
                                                        : from->tokens[i % 2]),
            is_damaged && damage == FRACTION ? ".5" : "");
    }
    if (damage == CUT_OFF) {
        out->size--;
        while (out->data[out->size - 1] != ',') {
            out->size--;
        }
    }
}

// -- what is written is read ----------------------------------------------------------------------

static request take_request(bytes *in, bool is_csv) {
    request made = {0};
    // Until the year 2033. In CSV fractions of seconds are not those of the milliseconds.
    made.ms =
        is_csv ? (int64_t)(86400 + take(in, 4) % 2000000000) * 1000 : (int64_t)take_number(in);
    made.fraction = is_csv ? (double)take_below(in, 3) * 0.1234567 : 0;
    for (int i = 0; i < 2; i++) {
        made.tokens[i] = take_number(in) & INT32_MAX;
    }
    made.id_count = is_csv ? 0 : take_below(in, ID_MAX + 1);
    if (made.id_count > 0) {  // which cover the input
        made.tokens[0] %= (int64_t)made.id_count * TRACE_BLOCK_TOKENS + 1;
    }
    for (uint32_t i = 0; i < made.id_count; i++) {
        made.ids[i] = (int64_t)take_number(in) * (1 + take_below(in, 3));
    }
    return made;
}

static void same_requests(const trace *parsed, const request *made, uint32_t count) {
    REQUIRE(parsed->count == count);
    for (uint32_t i = 0; i < count; i++) {
        const trace_request *r = &parsed->requests[i];
        double arrival =
            (double)(made[i].ms - made[0].ms) / 1000 + made[i].fraction - made[0].fraction;
        REQUIRE(fabs(r->arrival_seconds - arrival) < 1e-5);
        REQUIRE(r->input_tokens == made[i].tokens[0] && r->output_tokens == made[i].tokens[1]);
        REQUIRE(r->id_count == made[i].id_count);
        for (uint32_t k = 0; k < r->id_count; k++) {
            REQUIRE(parsed->ids[r->id_begin + k] == made[i].ids[k]);
        }
    }
}

// At half a millisecond past a whole one, so that none is about to make a token.
static void same_lengths(const trace *parsed, const request *made, uint32_t count, bytes *in) {
    int64_t at = take_number(in), token = 1 + take_below(in, 50);
    int32_t lengths[REQUEST_MAX];
    uint32_t live = 0, batch_max = take_below(in, REQUEST_MAX + 1);
    uint32_t found =
        trace_live(parsed, ((double)at + 0.5) / 1000, (double)token / 1000, batch_max, lengths);
    for (uint32_t i = 0; i < count && live < batch_max; i++) {
        int64_t since = at - (made[i].ms - made[0].ms);
        int64_t length = since / token + made[i].tokens[0];
        if (since >= 0 && since / token < made[i].tokens[1] && length <= INT32_MAX) {
            REQUIRE(live < found && lengths[live] == length);
            live++;
        }
    }
    REQUIRE(live == found);
}

static void written(bytes in) {
    bool is_csv = take_below(&in, 2);
    uint32_t count = 1 + take_below(&in, REQUEST_MAX), bad_line = 0, line = is_csv;
    int damage = take_below(&in, 3) ? GOOD : (int)take_below(&in, DAMAGE_COUNT);
    uint32_t bad = take_below(&in, count), damaged = take_below(&in, 3);
    request made[REQUEST_MAX];
    static text out;
    out.size = 0;
    add(&out, is_csv ? "TIMESTAMP,ContextTokens,GeneratedTokens\n" : "");
    for (uint32_t i = 0; i < count; i++) {
        bool is_bad = damage != GOOD && i == bad;
        made[i] = take_request(&in, is_csv);
        (is_csv ? write_csv : write_json)(&out, &in, &made[i], is_bad ? damage : GOOD, damaged);
        line++;
        bad_line = is_bad ? line : bad_line;
        for (uint32_t k = take_below(&in, 4) == 0 ? 2 : 1; k > 0; k--, line += k > 0) {
            add(&out, take_below(&in, 2) ? "\r\n" : "\n");
        }
    }
    char error[200] = "", expected[40];
    trace parsed;
    bool is_read = trace_parse("fuzz", out.data, out.size, &parsed, error, sizeof error);
    REQUIRE(is_read == (damage == GOOD));
    if (!is_read) {
        snprintf(expected, sizeof expected, "fuzz:%u: ", bad_line);
        REQUIRE(strncmp(error, expected, strlen(expected)) == 0);
        return;
    }
    same_requests(&parsed, made, count);
    if (!is_csv) {
        same_lengths(&parsed, made, count, &in);
    }
    trace_free(&parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const bytes in = {data, size};
    any_text(data, size);
    written(in);
    return 0;
}
