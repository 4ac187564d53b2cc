// Both trace formats are read line by line with a cursor that never passes the end of its line.
// What is not understood is an error with its line number: a benchmark on misread data is worse
// than none.

#include "lengths.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// -- generator ------------------------------------------------------------------------------------

uint64_t lengths_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double lengths_random_unit(uint64_t *state) {
    return ((double)(lengths_random(state) >> 11) + 0.5) / 9007199254740992.0;
}

void lengths_generate(uint64_t seed, uint32_t count, int32_t *out_lengths) {
    uint64_t state = seed;
    for (uint32_t i = 0; i < count; i++) {
        // Box and Muller 1958
        double radius = sqrt(-2.0 * log(lengths_random_unit(&state)));
        double normal = radius * cos(6.283185307179586 * lengths_random_unit(&state));
        double length = exp(6.9 + 1.3 * normal);
        out_lengths[i] = length < 1.0 ? 1 : length > 131072.0 ? 131072 : (int32_t)length;
    }
}

// -- reading --------------------------------------------------------------------------------------

typedef struct trace_reader {
    const char *name;
    const char *at;   // inside the current line
    const char *end;  // of the current line
    size_t line;      // from 1
    char *error;
    size_t error_size;
    trace *to;
    size_t capacity, id_capacity;  // of to's requests and ids
} trace_reader;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static bool
reader_fail(const trace_reader *reader, const char *format, ...) {
    int length =
        snprintf(reader->error, reader->error_size, "%s:%zu: ", reader->name, reader->line);
    if (length >= 0 && (size_t)length < reader->error_size) {
        va_list args;
        va_start(args, format);
        vsnprintf(reader->error + length, reader->error_size - (size_t)length, format, args);
        va_end(args);
    }
    return false;
}

static void reader_skip_spaces(trace_reader *reader) {
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t')) {
        reader->at++;
    }
}

static bool reader_take(trace_reader *reader, char c) {
    if (reader->at < reader->end && *reader->at == c) {
        reader->at++;
        return true;
    }
    return false;
}

// Reads a whole number from 0 to limit.
static bool reader_number(trace_reader *reader, const char *what, int64_t limit,
                          int64_t *out_value) {
    if (reader_take(reader, '-')) {
        return reader_fail(reader, "%s is negative", what);
    }
    const char *start = reader->at;
    int64_t value = 0;
    while (reader->at < reader->end && '0' <= *reader->at && *reader->at <= '9') {
        value = value * 10 + (*reader->at - '0');
        if (value > limit) {
            return reader_fail(reader, "%s is greater than %lld", what, (long long)limit);
        }
        reader->at++;
    }
    if (reader->at == start) {
        return reader_fail(reader, "%s is not a number", what);
    }
    *out_value = value;
    return true;
}

// Digits from the cursor on, which it passes; false and an error if there are none.
static bool reader_digits(trace_reader *reader, const char *what) {
    const char *start = reader->at;
    while (reader->at < reader->end && '0' <= *reader->at && *reader->at <= '9') {
        reader->at++;
    }
    return reader->at > start || reader_fail(reader, "%s is not a number", what);
}

// A number of JSON, that has been read: its digits, and how many of them stand before the point once
// the exponent has moved it.
typedef struct json_number {
    const char *digits;  // with a point among them, perhaps
    const char *digits_end;
    int64_t point;
    bool is_negative;
} json_number;

// number = [ "-" ] digits [ "." digits ] [ ( "e" | "E" ) [ "+" | "-" ] digits ]
static bool reader_json_number(trace_reader *reader, const char *what, json_number *out_number) {
    const int64_t exponent_max = 1000000000;  // larger ones count as this
    out_number->is_negative = reader_take(reader, '-');
    out_number->digits = reader->at;
    if (!reader_digits(reader, what)) {
        return false;
    }
    out_number->point = reader->at - out_number->digits;
    if (reader_take(reader, '.') && !reader_digits(reader, what)) {
        return false;
    }
    out_number->digits_end = reader->at;
    if (reader_take(reader, 'e') || reader_take(reader, 'E')) {
        bool is_down = reader_take(reader, '-');
        if (!is_down) {
            reader_take(reader, '+');
        }
        const char *at = reader->at;
        if (!reader_digits(reader, what)) {
            return false;
        }
        int64_t exponent = 0;
        for (; at < reader->at; at++) {
            exponent = exponent * 10 + (*at - '0');
            exponent = exponent < exponent_max ? exponent : exponent_max;
        }
        out_number->point += is_down ? -exponent : exponent;
    }
    return true;
}

typedef enum json_whole { JSON_WHOLE, JSON_NEGATIVE, JSON_FRACTION, JSON_GREATER } json_whole;

// Makes a value ten times as large and adds a digit. False if that exceeds the limit.
static bool append_digit(int64_t *value, int64_t digit, int64_t limit) {
    if (digit > limit || *value > (limit - digit) / 10) {
        return false;
    }
    *value = *value * 10 + digit;
    return true;
}

// The value of a number if that is whole, from 0 to limit: 1000, 1e3 and 1000.0 are the same.
static json_whole json_number_whole(const json_number *number, int64_t limit, int64_t *out_value) {
    int64_t value = 0, place = 0;
    if (number->is_negative) {
        return JSON_NEGATIVE;
    }
    for (const char *at = number->digits; at < number->digits_end; at++) {
        if (*at == '.') {
            continue;
        }
        if (place >= number->point && *at != '0') {
            return JSON_FRACTION;
        }
        if (place < number->point && !append_digit(&value, *at - '0', limit)) {
            return JSON_GREATER;
        }
        place++;
    }
    for (; value > 0 && place < number->point; place++) {
        if (!append_digit(&value, 0, limit)) {
            return JSON_GREATER;
        }
    }
    *out_value = value;
    return JSON_WHOLE;
}

static bool reader_json_whole(trace_reader *reader, const char *what, int64_t limit,
                              int64_t *out_value) {
    json_number number;
    if (!reader_json_number(reader, what, &number)) {
        return false;
    }
    switch (json_number_whole(&number, limit, out_value)) {
    case JSON_WHOLE: break;
    case JSON_NEGATIVE: return reader_fail(reader, "%s is negative", what);
    case JSON_FRACTION: return reader_fail(reader, "%s is not a whole number", what);
    case JSON_GREATER:
        return reader_fail(reader, "%s is greater than %lld", what, (long long)limit);
    }
    return true;
}

// Days from 1970-01-01 in the Gregorian calendar (Fliegel and Van Flandern 1968).
static int64_t days_from_date(int64_t year, int64_t month, int64_t day) {
    int64_t a = (14 - month) / 12, y = year + 4800 - a, m = month + 12 * a - 3;
    return day + (153 * m + 2) / 5 + 365 * y + y / 4 - y / 100 + y / 400 - 32045 - 2440588;
}

static int64_t days_in_month(int64_t year, int64_t month) {
    int64_t next_year = month == 12 ? year + 1 : year, next_month = month == 12 ? 1 : month + 1;
    return days_from_date(next_year, next_month, 1) - days_from_date(year, month, 1);
}

// Reads a zone, "+00:00" or "Z", as the seconds that its clocks are ahead. It may be missing.
static bool reader_zone(trace_reader *reader, double *out_seconds) {
    *out_seconds = 0.0;
    bool is_ahead = reader_take(reader, '+');
    if (!is_ahead && !reader_take(reader, '-')) {
        reader_take(reader, 'Z');
        return true;
    }
    static const int64_t highest[] = {23, 59};
    int64_t field[2];
    for (int i = 0; i < 2; i++) {
        const char *start = reader->at;
        if (!reader_number(reader, "the zone of TIMESTAMP", highest[i], &field[i])) {
            return false;
        }
        if (reader->at - start != 2 || (i == 0 && !reader_take(reader, ':'))) {
            return reader_fail(reader, "TIMESTAMP has a zone that is not like +00:00");
        }
    }
    *out_seconds = (double)(field[0] * 3600 + field[1] * 60) * (is_ahead ? 1.0 : -1.0);
    return true;
}

// Reads ".68", which may be missing.
static double reader_fraction(trace_reader *reader) {
    double fraction = 0.0, digit = 0.1;
    if (reader_take(reader, '.')) {
        for (; reader->at < reader->end && '0' <= *reader->at && *reader->at <= '9'; reader->at++) {
            fraction += digit * (*reader->at - '0');
            digit *= 0.1;
        }
    }
    return fraction;
}

// Reads "2023-11-16 18:15:46.6805900" or "2024-05-10 00:00:00.009930+00:00" as seconds; fraction and
// zone may be missing.
static bool reader_time(trace_reader *reader, double *out_seconds) {
    static const char separators[] = "-- ::";
    static const int64_t lowest[] = {1970, 1, 1, 0, 0, 0}, highest[] = {9999, 12, 31, 23, 59, 60};
    int64_t field[6];
    for (int i = 0; i < 6; i++) {
        const char *start = reader->at;
        if (!reader_number(reader, "TIMESTAMP", highest[i], &field[i])) {
            return false;
        }
        if (field[i] < lowest[i] || reader->at - start != (i == 0 ? 4 : 2) ||
            (i < 5 && !reader_take(reader, separators[i]))) {
            return reader_fail(reader, "TIMESTAMP is not like 2023-11-16 18:15:46.68");
        }
    }
    double zone;
    if (field[2] > days_in_month(field[0], field[1])) {
        return reader_fail(reader, "TIMESTAMP has a day that its month has not");
    }
    const double fraction = reader_fraction(reader);
    if (!reader_zone(reader, &zone)) {
        return false;
    }
    int64_t days = days_from_date(field[0], field[1], field[2]);
    double seconds = (double)(days * 86400 + field[3] * 3600 + field[4] * 60 + field[5]);
    *out_seconds = seconds - zone + fraction;
    return true;
}

// Reads seconds from the start of a trace, as "3540" or "3540.25".
static bool reader_seconds(trace_reader *reader, double *out_seconds) {
    int64_t whole;
    if (!reader_number(reader, "Timestamp", INT32_MAX, &whole)) {
        return false;
    }
    *out_seconds = (double)whole + reader_fraction(reader);
    return true;
}

// -- CSV ------------------------------------------------------------------------------------------

// Formats with a header line, and the columns that are read, wherever they stand. Others are passed.
enum { CSV_ARRIVAL, CSV_INPUT, CSV_OUTPUT, CSV_READ, CSV_COLUMNS_MAX = 32 };

typedef struct csv_format {
    const char *name;
    const char *columns[CSV_READ];
    bool (*arrival)(trace_reader *reader, double *out_seconds);
} csv_format;

static const csv_format csv_formats[] = {
    {"Azure CSV", {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, reader_time},
    {"BurstGPT CSV", {"Timestamp", "Request tokens", "Response tokens"}, reader_seconds}};

// A file's format, and which of its columns is which: CSV_READ for those that are passed.
typedef struct csv_header {
    const csv_format *format;
    int columns[CSV_COLUMNS_MAX];
    size_t count;
} csv_header;

// Passes a value. Texts in quotes may have commas in them.
static bool reader_pass(trace_reader *reader) {
    bool is_quoted = false;
    for (; reader->at < reader->end && (is_quoted || *reader->at != ','); reader->at++) {
        is_quoted = is_quoted != (*reader->at == '"');
    }
    return !is_quoted || reader_fail(reader, "a text in quotes is cut off");
}

// Reads the first line as the header of a format; false and no error if it lacks a column of it.
static bool reader_header(trace_reader reader, const csv_format *format, csv_header *out) {
    bool is_there[CSV_READ] = {false};
    out->format = format;
    out->count = 0;
    do {
        const char *start = reader.at;
        int column = 0;
        if (out->count == CSV_COLUMNS_MAX || !reader_pass(&reader)) {
            return false;
        }
        const size_t length = (size_t)(reader.at - start);
        while (column < CSV_READ && (strlen(format->columns[column]) != length ||
                                     memcmp(format->columns[column], start, length) != 0)) {
            column++;
        }
        if (column < CSV_READ) {
            if (is_there[column]) {
                return false;
            }
            is_there[column] = true;
        }
        out->columns[out->count++] = column;
    } while (reader_take(&reader, ','));
    return is_there[CSV_ARRIVAL] && is_there[CSV_INPUT] && is_there[CSV_OUTPUT];
}

// Finds the format of which the first line is a header.
static bool reader_csv_format(trace_reader *reader, csv_header *out) {
    const size_t count = sizeof csv_formats / sizeof *csv_formats;
    for (size_t i = 0; i < count; i++) {
        if (reader_header(*reader, &csv_formats[i], out)) {
            return true;
        }
    }
    const char *const *azure = csv_formats[0].columns, *const *burst = csv_formats[1].columns;
    return reader_fail(reader,
                       "the first line is neither {...} nor a header with the columns %s, %s, %s "
                       "or %s, %s, %s, each once",
                       azure[0], azure[1], azure[2], burst[0], burst[1], burst[2]);
}

static bool reader_csv(trace_reader *reader, const csv_header *header, trace_request *request) {
    int64_t tokens[CSV_READ] = {0};
    for (size_t i = 0; i < header->count; i++) {
        const int column = header->columns[i];
        const char *name = column < CSV_READ ? header->format->columns[column] : "a column";
        if (i > 0 && !reader_take(reader, ',')) {
            return reader_fail(reader, "%s is missing", name);
        }
        if (column == CSV_ARRIVAL ? !header->format->arrival(reader, &request->arrival_seconds)
            : column == CSV_READ  ? !reader_pass(reader)
                                  : !reader_number(reader, name, INT32_MAX, &tokens[column])) {
            return false;
        }
    }
    if (reader->at != reader->end) {
        return reader_fail(reader, "there is more than the %zu columns of the first line",
                           header->count);
    }
    request->input_tokens = (int32_t)tokens[CSV_INPUT];
    request->output_tokens = (int32_t)tokens[CSV_OUTPUT];
    request->id_begin = request->id_count = 0;
    return true;
}

// -- Mooncake -------------------------------------------------------------------------------------

// Room for one more element, by doubling; false without memory, and then nothing has changed.
static bool trace_reserve(void **array, size_t size, size_t count, size_t *capacity) {
    if (count == *capacity) {
        size_t larger = *capacity ? *capacity * 2 : 1024;
        void *moved = larger <= SIZE_MAX / size ? realloc(*array, larger * size) : NULL;
        if (!moved) {
            return false;
        }
        *array = moved;
        *capacity = larger;
    }
    return true;
}

static bool reader_add_id(trace_reader *reader, int64_t id) {
    trace *to = reader->to;
    void *ids = to->ids;
    if (!trace_reserve(&ids, sizeof *to->ids, to->id_count, &reader->id_capacity)) {
        return reader_fail(reader, "out of memory");
    }
    to->ids = (int64_t *)ids;
    to->ids[to->id_count++] = id;
    return true;
}

// Reads a number, or a list of numbers, of which only the list hash_ids is of interest.
static bool reader_value(trace_reader *reader, const char *what) {
    json_number number;
    int64_t id;
    bool is_ids = strcmp(what, "hash_ids") == 0;
    if (!reader_take(reader, '[')) {
        return reader_json_number(reader, what, &number);
    }
    reader_skip_spaces(reader);
    if (reader_take(reader, ']')) {
        return true;
    }
    do {
        reader_skip_spaces(reader);
        if (!reader_json_number(reader, what, &number)) {
            return false;
        }
        is_ids = is_ids && json_number_whole(&number, INT64_MAX / 2, &id) == JSON_WHOLE;
        if (is_ids && !reader_add_id(reader, id)) {
            return false;
        }
        reader_skip_spaces(reader);
    } while (reader_take(reader, ','));
    return reader_take(reader, ']') || reader_fail(reader, "the list %s is cut off", what);
}

// Reads one `"key": value` of a Mooncake line; values[] are timestamp, input and output.
static bool reader_member(trace_reader *reader, int64_t values[3]) {
    static const char *const keys[] = {"timestamp", "input_length", "output_length"};
    static const int64_t limits[] = {INT64_MAX / 100, INT32_MAX, INT32_MAX};
    char key[32] = "";
    if (!reader_take(reader, '"')) {
        return reader_fail(reader, "a member's name is missing");
    }
    for (size_t i = 0; reader->at < reader->end && *reader->at != '"'; i++) {
        if (i + 1 < sizeof key) {  // as it may be printed
            key[i] = ' ' <= *reader->at && *reader->at <= '~' ? *reader->at : '?';
        }
        reader->at++;
    }
    if (!reader_take(reader, '"')) {
        return reader_fail(reader, "a member's name is cut off");
    }
    reader_skip_spaces(reader);
    if (!reader_take(reader, ':')) {
        return reader_fail(reader, "no colon after \"%s\"", key);
    }
    reader_skip_spaces(reader);
    for (int i = 0; i < 3; i++) {
        if (strcmp(key, keys[i]) == 0) {
            if (values[i] >= 0) {
                return reader_fail(reader, "%s stands there twice", keys[i]);
            }
            return reader_json_whole(reader, keys[i], limits[i], &values[i]);
        }
    }
    return reader_value(reader, key);
}

static bool reader_mooncake(trace_reader *reader, trace_request *request) {
    int64_t values[3] = {-1, -1, -1};
    request->id_begin = reader->to->id_count;
    if (!reader_take(reader, '{')) {
        return reader_fail(reader, "the line does not begin with {");
    }
    do {
        reader_skip_spaces(reader);
        if (!reader_member(reader, values)) {
            return false;
        }
        reader_skip_spaces(reader);
    } while (reader_take(reader, ','));
    if (!reader_take(reader, '}')) {
        return reader_fail(reader, "the line is cut off");
    }
    reader_skip_spaces(reader);
    if (reader->at != reader->end) {
        return reader_fail(reader, "there is text behind the }");
    }
    if (values[0] < 0 || values[1] < 0 || values[2] < 0) {
        return reader_fail(reader, "%s is missing",
                           values[0] < 0   ? "timestamp"
                           : values[1] < 0 ? "input_length"
                                           : "output_length");
    }
    request->arrival_seconds = (double)values[0] / 1000.0;
    request->input_tokens = (int32_t)values[1];
    request->output_tokens = (int32_t)values[2];
    request->id_count = reader->to->id_count - request->id_begin;
    const uint64_t covered = (uint64_t)request->id_count * TRACE_BLOCK_TOKENS;
    if (request->id_count > 0 && covered < (uint64_t)request->input_tokens) {
        return reader_fail(reader, "hash_ids has blocks for %llu of input_length's %ld tokens",
                           (unsigned long long)covered, (long)request->input_tokens);
    }
    return true;
}

// Sets the reader to the next line, without its end; false at the end of the text.
static bool reader_next_line(trace_reader *reader, const char **rest, const char *text_end) {
    if (*rest == text_end) {
        return false;
    }
    const char *newline = (const char *)memchr(*rest, '\n', (size_t)(text_end - *rest));
    reader->at = *rest;
    reader->end = newline ? newline : text_end;
    *rest = newline ? newline + 1 : text_end;
    if (reader->end > reader->at && reader->end[-1] == '\r') {
        reader->end--;
    }
    reader->line++;
    return true;
}

static bool reader_add(trace_reader *reader, const trace_request *request) {
    trace *to = reader->to;
    void *requests = to->requests;
    if (!trace_reserve(&requests, sizeof *to->requests, to->count, &reader->capacity)) {
        return reader_fail(reader, "out of memory");
    }
    to->requests = (trace_request *)requests;
    to->requests[to->count++] = *request;
    return true;
}

bool trace_parse(const char *name, const char *text, size_t size, trace *out_trace, char *error,
                 size_t error_size) {
    trace result = {NULL, 0, "Mooncake JSONL", NULL, 0};
    trace_reader reader = {name, text, text, 0, error, error_size, &result, 0, 0};
    const char *rest = text, *text_end = text + size;
    bool is_csv = size > 0 && text[0] != '{', is_good = true;
    csv_header header = {0};
    if (size == 0) {
        reader.line = 1;
        return reader_fail(&reader, "the file is empty");
    }
    if (is_csv) {
        reader_next_line(&reader, &rest, text_end);
        if (!reader_csv_format(&reader, &header)) {
            return false;
        }
        result.format = header.format->name;
    }
    while (is_good && reader_next_line(&reader, &rest, text_end)) {
        trace_request request;
        if (reader.at == reader.end) {
            continue;  // an empty line
        }
        is_good =
            is_csv ? reader_csv(&reader, &header, &request) : reader_mooncake(&reader, &request);
        is_good = is_good && reader_add(&reader, &request);
    }
    if (is_good && result.count == 0) {
        is_good = reader_fail(&reader, "there is no request");
    }
    if (!is_good) {
        trace_free(&result);
        return false;
    }
    for (size_t i = result.count; i-- > 0;) {
        result.requests[i].arrival_seconds -= result.requests[0].arrival_seconds;
    }
    *out_trace = result;
    return true;
}

#define TRACE_SIZE_MAX ((size_t)1 << 30)

bool trace_read(const char *path, trace *out_trace, char *error, size_t error_size) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        snprintf(error, error_size, "%s: cannot be opened", path);
        return false;
    }
    char *text = NULL;
    size_t size = 0, capacity = 0, got = 0;
    do {
        if (size == capacity) {
            capacity = capacity ? capacity * 2 : 1 << 16;
            char *moved = (char *)realloc(text, capacity);
            if (!moved) {
                snprintf(error, error_size, "%s: out of memory", path);
                break;
            }
            text = moved;
        }
        got = fread(text + size, 1, capacity - size, file);
        size += got;
    } while (got > 0 && size <= TRACE_SIZE_MAX);
    bool is_whole = size < capacity && size <= TRACE_SIZE_MAX && !ferror(file);
    if (ferror(file)) {
        snprintf(error, error_size, "%s: cannot be read", path);
    } else if (size > TRACE_SIZE_MAX) {
        snprintf(error, error_size, "%s: is larger than 1 GiB", path);
    }
    fclose(file);
    bool is_good = is_whole && trace_parse(path, text, size, out_trace, error, error_size);
    free(text);
    return is_good;
}

void trace_free(trace *from) {
    free(from->requests);
    free(from->ids);
    from->requests = NULL;
    from->ids = NULL;
    from->count = from->id_count = 0;
}

// -- batches --------------------------------------------------------------------------------------

uint32_t trace_first(const trace *from, uint32_t batch_max, int32_t *out_lengths) {
    uint32_t count = 0;
    for (size_t i = 0; i < from->count && count < batch_max; i++) {
        out_lengths[count++] = from->requests[i].input_tokens;
    }
    return count;
}

uint32_t trace_live(const trace *from, double at_seconds, double token_seconds, uint32_t batch_max,
                    int32_t *out_lengths) {
    uint32_t count = 0;
    for (size_t i = 0; i < from->count && count < batch_max; i++) {
        const trace_request *request = &from->requests[i];
        double tokens = floor((at_seconds - request->arrival_seconds) / token_seconds);
        if (tokens >= 0.0 && tokens < (double)request->output_tokens &&
            tokens + request->input_tokens <= (double)INT32_MAX) {
            out_lengths[count++] = request->input_tokens + (int32_t)tokens;
        }
    }
    return count;
}

double trace_end(const trace *from, double token_seconds) {
    double end = 0.0;
    for (size_t i = 0; i < from->count; i++) {
        const trace_request *request = &from->requests[i];
        end = fmax(end, request->arrival_seconds + request->output_tokens * token_seconds);
    }
    return end;
}
