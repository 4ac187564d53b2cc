// The scheduler: which tasks a task waits for, and which core gets it when it is ready. All of it is
// under the lock, but for the looks at lines that say whether taking the lock is worth it.

#include "wsp_scheduler.h"

#include <algorithm>

namespace wsp {

namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

}  // namespace

// -- nodes ----------------------------------------------------------------------------------------

bool Scheduler::is_over(Token token) const {
    return token.id == 0 || nodes_[token.node].id != token.id;
}

void Scheduler::begin_node(uint32_t node) {
    nodes_[node].id = ++last_id_;
    nodes_[node].mark = 0;
    nodes_[node].pending = 0;
}

uint32_t Scheduler::make_join() {
    if (free_joins_.empty()) {
        free_joins_.push_back(static_cast<uint32_t>(nodes_.size()));
        nodes_.emplace_back();
    }
    const uint32_t join = free_joins_.back();
    free_joins_.pop_back();
    begin_node(join);
    return join;
}

void Scheduler::add_link(uint32_t from, uint32_t to) {
    uint32_t link = free_links_;
    if (link) {
        free_links_ = links_[link].next;
    } else {
        link = static_cast<uint32_t>(links_.size());
        links_.emplace_back();
    }
    links_[link] = {to, nodes_[from].links};
    nodes_[from].links = link;
    nodes_[from].mark = nodes_[to].id;
    nodes_[to].pending++;
}

// A node waits for a token; once, however often it is told.
void Scheduler::wait_for(Token token, uint32_t node) {
    if (!is_over(token) && nodes_[token.node].mark != nodes_[node].id) {
        add_link(token.node, node);
    }
}

// A token that is over when both are. What nobody waits for yet can have more to join.
void Scheduler::merge(Token *into, Token token) {
    if (is_over(token)) {
        return;
    }
    if (is_over(*into)) {
        *into = token;
        return;
    }
    if (into->node == token.node) {
        return;
    }
    if (nodes_[into->node].submission || nodes_[into->node].links) {
        const uint32_t join = make_join();
        wait_for(*into, join);
        *into = {join, nodes_[join].id};
    }
    wait_for(token, into->node);
}

// Something in the innermost scope is done when the token is over.
void Scheduler::child_begins(Token token) {
    OpenScope &scope = scopes_.back();
    if (scope.is_parallel) {
        merge(&scope.done, token);
    } else {
        scope.ready = token;
    }
}

// A node is done: whoever has waited for nothing else is ready, or done as well if it is a join.
void Scheduler::release(uint32_t node) {
    released_.push_back(node);
    while (!released_.empty()) {
        const uint32_t done = released_.back();
        released_.pop_back();
        uint32_t link = nodes_[done].links;
        nodes_[done].links = 0;
        nodes_[done].id = 0;
        if (!nodes_[done].submission) {
            free_joins_.push_back(done);
        }
        for (uint32_t next; link; link = next) {
            Node &waiting = nodes_[links_[link].node];
            if (--waiting.pending == 0) {
                if (waiting.submission) {
                    push_ready(waiting.submission);
                } else {
                    released_.push_back(links_[link].node);
                }
            }
            next = links_[link].next;
            links_[link].next = free_links_;
            free_links_ = link;
        }
    }
}

// Lets a task wait for those before it.
void Scheduler::connect(Submission *submission) {
    const uint32_t node = static_cast<uint32_t>(submission->number % capacity_);
    begin_node(node);
    nodes_[node].submission = submission;
    nodes_[node].pending = 1;  // until all is known
    const Token token = {node, nodes_[node].id};
    if (has_structure_) {
        wait_for(scopes_.back().ready, node);
    }
    for (uint32_t edge : submission->after) {
        wait_for(edges_[edge], node);
    }
    if (!streams_.empty()) {
        Token &last = streams_[submission->stream_key % streams_.size()];
        wait_for(last, node);
        last = token;
    }
    const uint32_t tile_count = submission->task.tile_count;
    for (uint32_t i = 0; i < tile_count; i++) {
        regions_.meet(submission->tiles[i], [&](uint32_t owner) {
            wait_for({owner, nodes_[owner].id}, node);
        });
    }
    for (uint32_t i = 0; i < tile_count; i++) {
        submission->items[i] = regions_.add(submission->tiles[i], node);
    }
    if (has_structure_) {
        child_begins(token);
    }
    for (uint32_t edge : submission->before) {
        merge(&edges_[edge], token);
    }
    if (--nodes_[node].pending == 0) {
        push_ready(submission);
    }
}

// -- queues and cores -----------------------------------------------------------------------------

// The core that dispatch asks for, or NONE: any of its unit.
uint32_t Scheduler::home_of(const Submission &submission) {
    if (!is_homed_) {
        return NONE;
    }
    const ptowsp_schedule &schedule = program_->schedule;
    const uint32_t unit = program_->kernels[submission.task.kernel].unit;
    const bool is_by_unit = schedule.pools == PTOWSP_POOLS_BY_UNIT;
    const uint32_t lane_count = !is_by_unit                ? schedule.lane_count
                                : unit == PTOWSP_UNIT_CUBE ? schedule.cube_lane_count
                                                           : schedule.vector_lane_count;
    uint64_t key = submission.dispatch_key;
    if (schedule.dispatch == PTOWSP_DISPATCH_HASH) {
        key = mix(key);
    } else if (schedule.dispatch == PTOWSP_DISPATCH_ROUND_ROBIN ||
               schedule.dispatch == PTOWSP_DISPATCH_DEFAULT) {
        key = pool_counts_[is_by_unit ? unit : 0]++;
    }
    const uint64_t lane = key % std::max(lane_count, 1u);
    return unit_first_[unit] + static_cast<uint32_t>(lane % unit_count_[unit]);
}

void Scheduler::push_ready(Submission *submission) {
    const uint32_t unit = program_->kernels[submission->task.kernel].unit;
    const uint32_t core_count = static_cast<uint32_t>(cores_.size());
    const uint32_t home = submission->task.core;
    const bool is_homed = home != NONE;
    const uint64_t sign = program_->is_priority_signed ? UINT64_C(1) << 63 : 0;
    const uint64_t rank = has_priority_ ? submission->priority_key ^ sign : 0;
    std::vector<Ready> &queue = queues_[is_homed ? home : core_count + unit];
    queue.push_back({rank, submission->number, submission});
    std::push_heap(queue.begin(), queue.end());
    __atomic_fetch_add(&ready_count_, 1u, __ATOMIC_RELAXED);
    owners_to_ring_ |= is_homed && !is_stealing_ ? 1u << cores_[home].owner : unit_owners_[unit];
}

bool Scheduler::may_begin(const Ready &ready) const {
    return !is_in_order_ || ready.submission->is_direct || ready.number == next_begin_;
}

// What a free core takes: the best of its own queue and of its unit's; with stealing, if there is
// none, the best of all others'.
bool Scheduler::pop_ready(uint32_t core, Ready *out) {
    const uint32_t core_count = static_cast<uint32_t>(cores_.size()), unit = cores_[core].core.unit;
    std::vector<Ready> *best = nullptr;
    const auto look = [&](std::vector<Ready> &queue) {
        if (!queue.empty() && may_begin(queue.front()) &&
            (!best || best->front() < queue.front())) {
            best = &queue;
        }
    };
    look(queues_[core]);
    look(queues_[core_count + unit]);
    const bool must_steal = is_stealing_ && !best;
    for (uint32_t i = 0; must_steal && i < unit_count_[unit]; i++) {
        look(queues_[unit_first_[unit] + i]);
    }
    if (!best) {
        return false;
    }
    *out = best->front();
    std::pop_heap(best->begin(), best->end());
    best->pop_back();
    __atomic_fetch_sub(&ready_count_, 1u, __ATOMIC_RELAXED);
    if (!out->submission->is_direct) {
        next_begin_ = out->number + 1;
    }
    if (is_in_order_) {  // the next one may be in any queue
        owners_to_ring_ |= unit_owners_[0] | unit_owners_[1];
    }
    return true;
}

void Scheduler::stop_behind(uint64_t number) {
    failed_at_ = std::min(failed_at_, number);
    __atomic_store_n(&has_failed_, 1u, __ATOMIC_RELAXED);
}

void Scheduler::complete(Submission *submission) {
    if (submission->task.status != PTOWSP_OK) {
        stop_behind(submission->number);
    }
    if (!submission->is_direct) {
        const uint32_t node = static_cast<uint32_t>(submission->number % capacity_);
        for (uint32_t i = 0; i < submission->task.tile_count; i++) {
            regions_.remove(submission->items[i], node);
        }
        release(node);
    }
    __atomic_store_n(&submission->is_done, 1u, __ATOMIC_RELEASE);
    owners_to_ring_ |= 1;
}

// Takes what a thread's cores have done, and gives them what is ready.
bool Scheduler::look_after(uint32_t thread) {
    bool has_some = false;
    for (uint32_t i = 0; i < cores_.size(); i++) {
        CoreState &core = cores_[i];
        if (core.owner != thread) {
            continue;
        }
        if (core.running && is_done(core.core.line)) {
            Submission *done = core.running;
            core.running = nullptr;
            take_back(core.core.line);
            complete(done);
            has_some = true;
        }
        Ready ready;
        while (!core.running && pop_ready(i, &ready)) {
            has_some = true;
            Submission *submission = ready.submission;
            if (submission->number > failed_at_) {  // whatever it waited for may have failed
                submission->task.status = PTOWSP_SKIPPED;
                complete(submission);
                continue;
            }
            submission->task.core = i;
            core.running = submission;
            give_task(core.core.line, &submission->task);
            if (core.core.bell) {
                core.core.bell->ring();
            }
        }
    }
    return has_some;
}

// Is it worth the lock? Looks at lines only.
bool Scheduler::has_news(uint32_t thread) const {
    const bool has_ready = __atomic_load_n(&ready_count_, __ATOMIC_RELAXED) > 0;
    for (const CoreState &core : cores_) {
        if (core.owner == thread &&
            (is_done(core.core.line) || (has_ready && is_idle(core.core.line)))) {
            return true;
        }
    }
    return false;
}

void Scheduler::ring_marked(uint32_t owners) {
    for (uint32_t i = 0; i < thread_count_; i++) {
        if (owners & 1u << i) {
            bells_[i].ring();
        }
    }
}

// One round of a thread; says whether there was something to do.
bool Scheduler::step(uint32_t thread) {
    if (!has_news(thread)) {
        return false;
    }
    uint32_t owners;
    bool has_some;
    {
        std::lock_guard<std::mutex> guard(mutex_);
        has_some = look_after(thread);
        owners = owners_to_ring_;
        owners_to_ring_ = 0;
    }
    ring_marked(owners);
    return has_some;
}

}  // namespace wsp
