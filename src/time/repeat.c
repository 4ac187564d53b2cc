// Skipping the periods of a steady state.
//
// Max-plus systems become periodic (Baccelli, Cohen, Olsder, Quadrat, Synchronization and
// Linearity, 1992), and so do most pipelines: after some tokens everything happens again and again,
// a period later each time. A walk is a function of its state. If the state is that of an earlier
// visit, but for times that are all later by the same dt, the walk does the same as since then.
// This needs nothing else of the network, so the walk in the order of time repeats as well.
//
//      keep S0 ---- period ----> S1 = S0 + dt ---- period, followed ----> S2     skip n periods
//
// Values must decide nothing. So a period consists of sends of cells, receives, ends of loops and
// constant tasks; any other op is counted, and no period has one. Loops, limits and the end of time
// decide by numbers that grow, so n is such that none of them is reached. What only the end of time
// would stop is walked step by step, and can be cancelled.
//
// States are compared as Brent does (An improved Monte Carlo factorization algorithm, 1980): with
// one that is kept, and replaced after twice as many visits. Of these the first eighth is looked at,
// so a period is found once it is as short as that; and the more numbers a look has compared, the
// later the next one. So networks without a period pay a percent or two.
//
// A process that stands still while others move may do so only where it cannot meet them. All else
// that is alive must be later by dt: processes that are ready or wait, and the last d times of each
// channel that moves. Other times are not read any more. Lines follow from the waits of processes and
// their times, the mark of a channel from its times: a period finds the one that the last one found.
//
// Values move, though: tokens are copied from cell to cell, and loops count. In the period S1 ... S2
// each place has its own number for a value, times 2^40. Afterwards each place says where its value
// comes from and how much loops have added; n such steps, composed by squaring, give the value after
// n periods.

#include "pipeline.h"

#define PWSP_REPEAT_WEIGHT_MAX 4096u  // larger states are not looked at
#define PWSP_REPEAT_VALUE_MAX  65536u
#define PWSP_REPEAT_SHIFT      40

// -- the state ------------------------------------------------------------------------------------

static pwsp_frame *pwsp_repeat_frame(const pwsp_process *process) {
    return process->frame_count ? &process->frames[process->frame_count - 1] : NULL;
}

// The process that moves now.
static uint32_t pwsp_repeat_first(const pwsp_exchange *exchange) {
    uint32_t few_count = exchange->few_end - exchange->few_first;
    const pwsp_ready *few = &exchange->few[exchange->few_first], *heap = exchange->heap;
    if (!exchange->is_ordered) {
        return exchange->ready - 1;
    }
    return few_count > 0 &&
                   (exchange->ready_count == few_count ||
                    pwsp_exchange_is_before(few->time, few->process, heap->time, heap->process))
               ? few->process
               : heap->process;
}

static pwsp_channel *pwsp_repeat_channel(const pwsp_pipelines *pipelines, uint32_t i) {
    return &pipelines->exchange.channels[pipelines->op->first_channel + i];
}

// The time of a channel's token, counted from the last one sent.
static uint64_t *pwsp_repeat_time(const pwsp_channel *channel, uint64_t back) {
    return &channel->ring[(channel->sent - 1 - back) & channel->mask];
}

// Visits from one state that is kept to the next, at first.
static uint64_t pwsp_repeat_distance(const pwsp_repeat *repeat) {
    return 64 + 8 * repeat->weight;
}

// The values that move are at most so many; tokens are no more than depths.
static uint64_t pwsp_repeat_value_max(const pwsp_pipelines *pipelines) {
    uint64_t count = pipelines->program->cell_count + pipelines->repeat.weight;
    for (uint32_t i = 0; i < pipelines->exchange.running_count; i++) {
        count += pipelines->exchange.processes[i].op->private_count + 2;
    }
    return count;
}

static bool pwsp_repeat_make_room(pwsp_pipelines *pipelines) {
    pwsp_repeat *repeat = &pipelines->repeat;
    const pwsp_memory *memory = &pipelines->memory;
    void *processes = repeat->processes, *channels = repeat->channels, *times = repeat->times;
    void *values = repeat->values;
    bool is_good =
        pwsp_memory_room(memory, &processes, &repeat->process_capacity,
                         pipelines->exchange.running_count, sizeof(pwsp_repeat_process)) &&
        pwsp_memory_room(memory, &channels, &repeat->channel_capacity,
                         pipelines->op->channel_count + UINT64_C(1), sizeof(pwsp_channel)) &&
        pwsp_memory_room(memory, &times, &repeat->time_capacity, repeat->weight,
                         sizeof(uint64_t)) &&
        pwsp_memory_room(memory, &values, &repeat->value_capacity, pwsp_repeat_value_max(pipelines),
                         sizeof(pwsp_repeat_value));
    repeat->processes = (pwsp_repeat_process *)processes;
    repeat->channels = (pwsp_channel *)channels;
    repeat->times = (uint64_t *)times;
    repeat->values = (pwsp_repeat_value *)values;
    return is_good;
}

PWSP_INTERNAL bool pwsp_repeat_begin(pwsp_pipelines *pipelines) {
    pwsp_repeat *repeat = &pipelines->repeat;
    repeat->weight = (uint64_t)pipelines->exchange.running_count + pipelines->op->channel_count;
    for (uint32_t i = 0; i < pipelines->op->channel_count; i++) {
        repeat->weight += pwsp_repeat_channel(pipelines, i)->depth;
    }
    bool is_small = repeat->weight <= PWSP_REPEAT_WEIGHT_MAX &&
                    pwsp_repeat_value_max(pipelines) <= PWSP_REPEAT_VALUE_MAX;
    bool is_off = pipelines->host.has_records || !is_small;
    repeat->visit_count = repeat->other_count = repeat->kept_other_count = 0;
    repeat->distance = pwsp_repeat_distance(repeat);
    repeat->next_look = is_off ? UINT64_MAX : 16 + repeat->weight;
    repeat->is_kept = false;
    repeat->skip_count = 0;
    return !is_small || pwsp_repeat_make_room(pipelines);
}

// Keeps the present state.
static void pwsp_repeat_keep(pwsp_pipelines *pipelines) {
    pwsp_repeat *repeat = &pipelines->repeat;
    const pwsp_exchange *exchange = &pipelines->exchange;
    repeat->is_kept = true;
    repeat->first = pwsp_repeat_first(exchange);
    repeat->kept_visit = repeat->visit_count;
    repeat->kept_other_count = repeat->other_count;
    repeat->task_count = pipelines->x->task_count;
    repeat->constant_count = pipelines->constant_count;
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        const pwsp_process *p = &exchange->processes[i];
        const pwsp_frame *frame = pwsp_repeat_frame(p);
        pwsp_repeat_process kept = {p->time, p->full,    p->empty, p->busy, p->tasks,  0,
                                    0,       p->next_op, p->after, p->wait, p->has_met};
        kept.i = frame ? (uint64_t)frame->i : 0;
        kept.count = frame ? (uint64_t)frame->count : 0;
        repeat->processes[i] = kept;
    }
    uint64_t *times = repeat->times;
    for (uint32_t i = 0; i < pipelines->op->channel_count; i++) {
        const pwsp_channel *channel = pwsp_repeat_channel(pipelines, i);
        repeat->channels[i] = *channel;
        for (uint64_t k = 0; k < channel->depth; k++) {
            *times++ = *pwsp_repeat_time(channel, k);
        }
    }
}

// -- comparing ------------------------------------------------------------------------------------

static bool pwsp_repeat_has_moved(const pwsp_channel *channel, const pwsp_channel *kept) {
    return channel->sent != kept->sent || channel->received != kept->received;
}

static bool pwsp_repeat_is_process(const pwsp_pipelines *pipelines, const pwsp_process *process,
                                   uint64_t dt) {
    const pwsp_repeat_process *kept = &pipelines->repeat.processes[process->index];
    const pwsp_frame *frame = pwsp_repeat_frame(process);
    if (process->next_op != kept->next_op || process->wait != kept->wait ||
        process->after != kept->after || process->has_met != kept->has_met) {
        return false;
    }
    if (process->wait == PWSP_PROCESS_HAS_ENDED || process->time == kept->time + dt) {
        return true;
    }
    bool is_still = process->time == kept->time && process->tasks == kept->tasks &&
                    (!frame || (uint64_t)frame->i == kept->i) &&
                    (!pipelines->exchange.is_ordered || process->wait != PWSP_PROCESS_READY);
    for (uint32_t i = 0; is_still && i < process->port_count; i++) {
        uint32_t channel = process->ports[i].channel - pipelines->op->first_channel;
        is_still = !pwsp_repeat_has_moved(pwsp_repeat_channel(pipelines, channel),
                                          &pipelines->repeat.channels[channel]);
    }
    return is_still;
}

// `times` are those that are kept of the channel; *compared counts them.
static bool pwsp_repeat_is_channel(const pwsp_channel *channel, const pwsp_channel *kept,
                                   const uint64_t *times, uint64_t dt, uint64_t *compared) {
    uint64_t moved = channel->sent - kept->sent;
    if (!pwsp_repeat_has_moved(channel, kept)) {
        return true;
    }
    if (channel->received - kept->received != moved || kept->sent < channel->depth) {
        return false;
    }
    for (uint64_t i = 0; i < channel->depth; i++) {
        ++*compared;
        if (*pwsp_repeat_time(channel, i) != times[i] + dt) {
            return false;
        }
    }
    return true;
}

// Is the present state the one that is kept, but for times?
static bool pwsp_repeat_is_same(pwsp_pipelines *pipelines) {
    pwsp_repeat *repeat = &pipelines->repeat;
    const pwsp_exchange *exchange = &pipelines->exchange;
    const uint64_t *times = repeat->times;
    uint32_t first = pwsp_repeat_first(exchange);
    repeat->compared = 0;
    if (first != repeat->first ||
        exchange->processes[first].next_op != repeat->processes[first].next_op ||
        repeat->other_count != repeat->kept_other_count) {
        return false;
    }
    uint64_t dt = exchange->processes[first].time - repeat->processes[first].time;
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        repeat->compared++;
        if (!pwsp_repeat_is_process(pipelines, &exchange->processes[i], dt)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < pipelines->op->channel_count; i++) {
        const pwsp_channel *channel = pwsp_repeat_channel(pipelines, i);
        if (!pwsp_repeat_is_channel(channel, &repeat->channels[i], times, dt, &repeat->compared)) {
            return false;
        }
        times += channel->depth;
    }
    return true;
}

// The periods in which no loop ends, no limit is reached, and time does not end. 0 if only time
// would end them.
static uint64_t pwsp_repeat_count(const pwsp_pipelines *pipelines) {
    const pwsp_repeat *repeat = &pipelines->repeat;
    const pwsp_exchange *exchange = &pipelines->exchange;
    uint64_t count = UINT64_MAX, latest = 0;
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        const pwsp_process *process = &exchange->processes[i];
        const pwsp_frame *frame = pwsp_repeat_frame(process);
        latest = pwsp_max_u64(latest, process->time);
        if (frame && (uint64_t)frame->i != repeat->processes[i].i) {
            uint64_t step = (uint64_t)frame->i - repeat->processes[i].i;
            count = pwsp_min_u64(count, (uint64_t)(frame->count - 1 - frame->i) / step);
        }
    }
    if (count == UINT64_MAX) {
        return 0;
    }
    for (uint32_t i = 0; i < pipelines->op->channel_count; i++) {
        const pwsp_channel *channel = pwsp_repeat_channel(pipelines, i);
        uint64_t step = channel->sent - repeat->channels[i].sent;
        if (step) {
            uint64_t left = channel->limit - pwsp_min_u64(channel->limit, channel->sent + 1);
            count = pwsp_min_u64(count, left / step);
        }
    }
    uint32_t first = repeat->first;
    uint64_t dt = exchange->processes[first].time - repeat->processes[first].time;
    uint64_t tasks = pipelines->x->task_count - repeat->task_count;
    count = tasks ? pwsp_min_u64(count, (UINT64_MAX - pipelines->x->task_count) / tasks) : count;
    return dt ? pwsp_min_u64(count, (PTOWSP_CYCLES_MAX - latest) / dt) : count;
}

// -- following values -----------------------------------------------------------------------------

static void pwsp_repeat_value_add(pwsp_repeat *repeat, uint64_t *at) {
    PTOWSP_ASSERT(repeat->value_count < repeat->value_capacity);
    repeat->values[repeat->value_count++].at = at;
}

// Finds the places of all values: their order is the same in each period.
static void pwsp_repeat_place(pwsp_pipelines *pipelines) {
    pwsp_repeat *repeat = &pipelines->repeat;
    const pwsp_exchange *exchange = &pipelines->exchange;
    repeat->value_count = 0;
    for (uint32_t i = 0; i < pipelines->program->cell_count; i++) {
        pwsp_repeat_value_add(repeat, &pipelines->cells[i]);
    }
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        pwsp_process *process = &exchange->processes[i];
        pwsp_frame *frame = pwsp_repeat_frame(process);
        for (uint32_t k = 0; k < process->op->private_count; k++) {
            pwsp_repeat_value_add(repeat, &process->kept[k]);
        }
        pwsp_repeat_value_add(repeat, &process->token);
        if (frame) {
            pwsp_repeat_value_add(repeat, (uint64_t *)&frame->i);
        }
    }
    for (uint32_t i = 0; i < pipelines->op->channel_count; i++) {
        const pwsp_channel *channel = pwsp_repeat_channel(pipelines, i);
        for (uint64_t k = channel->received; k < channel->sent; k++) {
            pwsp_repeat_value_add(repeat, &channel->ring[(k & channel->mask) + channel->mask + 1]);
        }
    }
}

// The period from here on is followed. It does not end early: it is as short as the ones before.
static void pwsp_repeat_follow(pwsp_pipelines *pipelines) {
    pwsp_repeat *repeat = &pipelines->repeat;
    pwsp_repeat_place(pipelines);
    for (uint32_t i = 0; i < repeat->value_count; i++) {
        pwsp_repeat_value *value = &repeat->values[i];
        value->before = *value->at;
        *value->at = (uint64_t)i << PWSP_REPEAT_SHIFT;
    }
    for (uint32_t i = 0; i < pipelines->exchange.running_count; i++) {
        pwsp_frame *frame = pwsp_repeat_frame(&pipelines->exchange.processes[i]);
        if (frame) {
            frame->count = 0;  // which its iteration does not reach
        }
    }
    pwsp_halt_begin(&repeat->none, 0);
    repeat->halt = pipelines->host.halt;
    pipelines->host.halt = &repeat->none;
}

// What each place has after so many periods.
static void pwsp_repeat_compose(pwsp_repeat *repeat, uint64_t count) {
    pwsp_repeat_value *values = repeat->values;
    for (uint32_t i = 0; i < repeat->value_count; i++) {
        values[i].from = i;
        values[i].after = 0;
    }
    for (; count > 0; count /= 2) {
        for (uint32_t i = 0; count % 2 && i < repeat->value_count; i++) {
            values[i].after += values[values[i].from].added;
            values[i].from = values[values[i].from].source;
        }
        for (uint32_t i = 0; i < repeat->value_count; i++) {
            values[i].twice_added = values[i].added + values[values[i].source].added;
            values[i].twice_source = values[values[i].source].source;
        }
        for (uint32_t i = 0; i < repeat->value_count; i++) {
            values[i].added = values[i].twice_added;
            values[i].source = values[i].twice_source;
        }
    }
    for (uint32_t i = 0; i < repeat->value_count; i++) {
        values[i].after += values[values[i].from].before;
    }
}

// Behind the period: what each place has after `count` more.
static void pwsp_repeat_find_values(pwsp_pipelines *pipelines, uint64_t count) {
    pwsp_repeat *repeat = &pipelines->repeat;
    pipelines->host.halt = repeat->halt;
    pwsp_repeat_place(pipelines);
    for (uint32_t i = 0; i < repeat->value_count; i++) {
        pwsp_repeat_value *value = &repeat->values[i];
        value->source = (uint32_t)(*value->at >> PWSP_REPEAT_SHIFT);
        value->added = *value->at & ((UINT64_C(1) << PWSP_REPEAT_SHIFT) - 1);
        PTOWSP_ASSERT(value->source < repeat->value_count);
    }
    pwsp_repeat_compose(repeat, count + 1);
    for (uint32_t i = 0; i < pipelines->exchange.running_count; i++) {
        pwsp_frame *frame = pwsp_repeat_frame(&pipelines->exchange.processes[i]);
        if (frame) {
            frame->count = (int64_t)repeat->processes[i].count;
        }
    }
}

// -- skipping -------------------------------------------------------------------------------------

// A number that grew from `before` to `now`, after more periods. Those of several processes stop at
// the last number.
static uint64_t pwsp_repeat_grow(uint64_t before, uint64_t now, uint64_t count) {
    uint64_t grown;
    return pwsp_mul_fits(now - before, count, &grown) ? pwsp_sum_u64(now, grown) : UINT64_MAX;
}

static void pwsp_repeat_skip_channel(pwsp_channel *channel, const pwsp_channel *kept,
                                     uint64_t *times, uint64_t count, uint64_t later) {
    uint64_t moved = (channel->sent - kept->sent) * count;
    if (moved == 0) {
        return;
    }
    for (uint64_t i = 0; i < channel->depth; i++) {
        times[i] = *pwsp_repeat_time(channel, i) + later;
    }
    channel->sent += moved;
    channel->received += moved;
    channel->oldest += moved;
    channel->full = pwsp_repeat_grow(kept->full, channel->full, count);
    channel->empty = pwsp_repeat_grow(kept->empty, channel->empty, count);
    for (uint64_t i = 0; i < channel->depth; i++) {
        *pwsp_repeat_time(channel, i) = times[i];
    }
}

// Behind the period that was followed: as many more as can be skipped.
static void pwsp_repeat_skip(pwsp_pipelines *pipelines) {
    pwsp_repeat *repeat = &pipelines->repeat;
    pwsp_exchange *exchange = &pipelines->exchange;
    uint64_t count = repeat->skip_count, *times = repeat->times;
    uint32_t first = repeat->first, few_count = exchange->few_end - exchange->few_first;
    uint64_t later = (exchange->processes[first].time - repeat->processes[first].time) * count;
    PTOWSP_ASSERT(repeat->other_count == repeat->kept_other_count);
    pwsp_repeat_find_values(pipelines, count);
    for (uint32_t i = 0; i < exchange->running_count; i++) {
        pwsp_process *process = &exchange->processes[i];
        const pwsp_repeat_process *kept = &repeat->processes[i];
        process->full += (process->full - kept->full) * count;
        process->empty += (process->empty - kept->empty) * count;
        process->busy += (process->busy - kept->busy) * count;
        process->tasks += (process->tasks - kept->tasks) * count;
        process->time += (process->time - kept->time) * count;
    }
    for (uint32_t i = 0; i < pipelines->op->channel_count; i++) {
        pwsp_channel *channel = pwsp_repeat_channel(pipelines, i);
        pwsp_repeat_skip_channel(channel, &repeat->channels[i], times, count, later);
        times += channel->depth;
    }
    for (uint32_t i = 0; exchange->is_ordered && i < exchange->ready_count; i++) {
        *(i < few_count ? &exchange->few[exchange->few_first + i].time
                        : &exchange->heap[i - few_count].time) += later;
    }
    pipelines->x->task_count += (pipelines->x->task_count - repeat->task_count) * count;
    pipelines->constant_count += (pipelines->constant_count - repeat->constant_count) * count;
    pwsp_repeat_place(pipelines);
    for (uint32_t i = 0; i < repeat->value_count; i++) {
        *repeat->values[i].at = repeat->values[i].after;
    }
}

// Follows a period, if behind it more visits can be skipped than there are values.
static bool pwsp_repeat_try(pwsp_pipelines *pipelines) {
    pwsp_repeat *repeat = &pipelines->repeat;
    uint64_t period = repeat->visit_count - repeat->kept_visit;
    uint64_t count = pwsp_repeat_count(pipelines), values = pwsp_repeat_value_max(pipelines);
    if (count < 2 || count - 1 < values / period || pwsp_halt_is(pipelines->host.halt)) {
        return false;
    }
    pwsp_repeat_keep(pipelines);
    repeat->skip_count = count - 1;
    repeat->next_look = repeat->visit_count + period;
    pwsp_repeat_follow(pipelines);
    return true;
}

PWSP_INTERNAL void pwsp_repeat_look(pwsp_pipelines *pipelines) {
    pwsp_repeat *repeat = &pipelines->repeat;
    if (repeat->skip_count > 0) {
        pwsp_repeat_skip(pipelines);
        repeat->skip_count = 0;
        repeat->is_kept = false;
    } else if (repeat->is_kept && pwsp_repeat_is_same(pipelines) && pwsp_repeat_try(pipelines)) {
        return;
    }
    uint64_t end = repeat->kept_visit + repeat->distance;
    if (!repeat->is_kept || repeat->visit_count >= end) {
        repeat->distance = repeat->is_kept ? 2 * repeat->distance : pwsp_repeat_distance(repeat);
        pwsp_repeat_keep(pipelines);
        repeat->next_look = repeat->visit_count + 1;
    } else {
        uint64_t next = repeat->visit_count + 1 + repeat->compared / 8;
        repeat->next_look = next > repeat->kept_visit + 64 + repeat->distance / 8 ? end : next;
    }
}
