// Lists with loops: places, flags and the proof, against the judge of list_build.h, who runs each
// list unrolled, 0 to 6 times, on pipes of random speeds.
//
// Random lists pass. Then their flags and barriers are taken away, moved and renamed, one at a time:
// the proof has to refuse exactly those lists in which the judge finds something wrong.

#include "list_judge.h"

#include "src/kernel/rotate.h"

// -- building -------------------------------------------------------------------------------------

// Some instructions, with a loop among them, whose tiles nothing outside uses. depth 0: no loop.
static void random_body(random_list *r, uint32_t loop, uint32_t depth, uint32_t length) {
    random_fill(r, (uint32_t)r->b->list.insn_count + 1 +
                       (uint32_t)test_random_in(r->random, 0, length));
    if (depth == 0) {
        return;
    }
    uint32_t counts[PTOISA_MEMORY_COUNT];
    memcpy(counts, r->root_count, sizeof counts);
    uint32_t inner = built_loop(r->b, loop);
    random_body(r, inner, depth - 1, length);
    built_mark(r->b, PWSP_INSN_END, inner);
    memcpy(r->root_count, counts, sizeof counts);
    random_fill(r, (uint32_t)r->b->list.insn_count + 1 +
                       (uint32_t)test_random_in(r->random, 0, length / 2));
}

static void finish(built *b) {
    built_must(b, pwsp_list_place_loops(&b->list, &b->machine, &b->fault));
    built_must(b, pwsp_list_add_waits(&b->list, &b->machine, &b->fault));
    built_must(b, pwsp_list_verify(&b->list, &b->machine, &b->fault));
}

static void random_loops(built *b, uint64_t *random, uint32_t length) {
    built_init(b, test_random_in(random, 0, 1) ? PTOISA_A2A3 : PTOISA_A5);
    random_list *r = random_list_make(b, random, (uint32_t)test_random_in(random, 2, 12));
    random_body(r, 0, (uint32_t)test_random_in(random, 1, 3), length);
    if (test_random_in(random, 0, 3) == 0) {  // another one
        random_body(r, 0, b->list.loop_count == 1, length);
    }
    free(r);
}

// -- unrolling, for the judge ---------------------------------------------------------------------

typedef struct plain {
    built b;
    const built *from;
    uint32_t *odd;  // [tile] its copy in iterations 1, 3, ...
    uint32_t counts[PTOWSP_LOOP_MAX + 1], turn[PTOWSP_LOOP_MAX + 1];
    bool is_wrong;  // a flag rotates outside of its loop
} plain;

static uint32_t plain_tile(const plain *p, uint32_t tile) {
    const pwsp_list_tile *tiles = p->from->list.tiles;
    uint32_t loop = tile ? tiles[tiles[tile].root].loop : 0;
    return loop && p->turn[loop] % 2 ? p->odd[tile] : tile;
}

static uint64_t plain_body(plain *p, uint64_t at, uint32_t loop, uint32_t open) {
    const pwsp_list *list = &p->from->list;
    uint64_t end = at;
    for (uint32_t depth = 1; end < list->insn_count; end++) {
        depth += list->insns[end].op == PWSP_INSN_LOOP;
        depth -= list->insns[end].op == PWSP_INSN_END;
        if (depth == 0) {
            break;
        }
    }
    for (p->turn[loop] = 0; p->turn[loop] < p->counts[loop]; p->turn[loop]++) {
        for (uint64_t i = at; i < end; i++) {
            pwsp_insn insn = list->insns[i];
            if (insn.op == PWSP_INSN_LOOP) {
                i = plain_body(p, i + 1, insn.loop, open | 1u << insn.loop);
                continue;
            }
            if (insn.loop) {
                p->is_wrong = p->is_wrong || !(open >> insn.loop & 1);
                insn.event = (uint8_t)(insn.event + p->turn[insn.loop] % 2);
                insn.loop = 0;
            }
            for (int k = 0; k < PWSP_INSN_SRC_MAX; k++) {
                insn.src[k] = plain_tile(p, insn.src[k]);
            }
            for (int k = 0; k < PWSP_INSN_DST_MAX; k++) {
                insn.dst[k] = plain_tile(p, insn.dst[k]);
            }
            insn.tmp = plain_tile(p, insn.tmp);
            pwsp_insn *to = pwsp_list_add(&p->b.list, PTOISA_NOP);
            assert_non_null(to);
            *to = insn;
        }
    }
    return end;
}

// What the judge says of a list whose loops run so often.
static bool judge_counts(const built *b, const uint32_t *counts, uint64_t *random,
                         const char **what) {
    plain p = {0};
    built_init(&p.b, (ptoisa_family)b->machine.family);
    p.b.machine = b->machine;
    p.from = b;
    memcpy(p.counts, counts, sizeof p.counts);
    uint32_t count = (uint32_t)b->list.tile_count;
    p.odd = (uint32_t *)calloc(count + 1, sizeof *p.odd);
    assert_non_null(p.odd);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t copy = pwsp_list_add_tile(&p.b.list);
        p.b.list.tiles[copy] = b->list.tiles[i];
    }
    for (uint32_t i = 1; i < count; i++) {
        p.odd[i] = pwsp_list_add_tile(&p.b.list);
    }
    for (uint32_t i = 1; i < count; i++) {
        pwsp_list_tile *odd = &p.b.list.tiles[p.odd[i]];
        uint64_t bytes = pwsp_list_tile_bytes(&b->list.tiles[i]);
        *odd = b->list.tiles[i];
        odd->root = p.odd[odd->root];
        odd->address += (uint32_t)((bytes + 31) / 32 * 32);  // of a root
    }
    memcpy(p.b.list.used, b->list.used, sizeof p.b.list.used);
    p.counts[0] = 1;
    plain_body(&p, 0, 0, 1);
    bool is_good = !p.is_wrong && judge_list(&p.b, random, 2, what);
    *what = p.is_wrong ? "a flag rotates outside of its loop" : *what;
    free(p.odd);
    built_free(&p.b);
    return is_good;
}

// Of one loop all numbers up to 6, of two all pairs up to 4, of three all up to 2.
static bool judge_loops(const built *b, uint64_t *random, const char **what) {
    static const uint32_t mosts[] = {1, 7, 5, 3}, kinds[] = {1, 7, 25, 27};
    uint32_t loops = b->list.loop_count;
    assert_in_range(loops, 0, 3);
    for (uint32_t n = 0; n < kinds[loops]; n++) {
        uint32_t counts[PTOWSP_LOOP_MAX + 1] = {0}, most = mosts[loops];
        counts[1] = n % most;
        counts[2] = n / most % most;
        counts[3] = n / most / most;
        if (!judge_counts(b, counts, random, what)) {
            return false;
        }
    }
    return true;
}

static void show(const built *b, char *text, size_t size) {
    size_t at = 0;
    text[0] = 0;
    for (uint64_t i = 0; i < b->list.insn_count && at + 100 < size; i++) {
        const pwsp_insn *insn = &b->list.insns[i];
        at += (size_t)snprintf(text + at, size - at, "%3d %s %s %s %u (loop %u) d %u s %u %u\n",
                               (int)i, pwsp_insn_name(insn),
                               ptoisa_pipe_name((ptoisa_pipe)insn->src_pipe),
                               ptoisa_pipe_name((ptoisa_pipe)insn->dst_pipe), insn->event,
                               insn->loop, insn->dst[0], insn->src[0], insn->src[1]);
    }
}

// -- tests ----------------------------------------------------------------------------------------

TEST(loops__random_lists_are_proved_and_judged_good) {
    uint64_t random = test_seed();
    uint32_t rotating = 0, flags = 0;
    for (int i = 0; TEST_ROUNDS(i, 20); i++) {
        built b;
        random_loops(&b, &random, 14);
        finish(&b);
        const char *what = "nothing";
        if (!judge_loops(&b, &random, &what)) {
            char text[16384];
            show(&b, text, sizeof text);
            fail_msg("%s\n%s", what, text);
        }
        for (uint32_t t = 1; t < b.list.tile_count; t++) {
            rotating += b.list.tiles[t].loop != 0;
        }
        for (uint64_t k = 0; k < b.list.insn_count; k++) {
            flags += !pwsp_insn_is_mark(&b.list.insns[k]) && b.list.insns[k].loop;
        }
        built_free(&b);
    }
    assert_met(rotating > 20 && flags > 40);
}

typedef struct damage_count {
    uint64_t tried, matters;
} damage_count;

static void compare(built *b, uint64_t *random, damage_count *count, const char *kind,
                    uint64_t at) {
    const char *what = "nothing";
    bool is_proved = pwsp_list_verify(&b->list, &b->machine, &b->fault);
    bool is_judged = judge_loops(b, random, &what);
    if (is_proved != is_judged) {
        char text[16384];
        show(b, text, sizeof text);
        fail_msg("%s at %d: the judge finds %s, the proof %s\n%s", kind, (int)at, what,
                 is_proved ? "nothing" : b->fault.text, text);
    }
    count->tried++;
    count->matters += !is_judged;
}

static void damage(built *b, uint64_t *random, damage_count *d) {
    built_saved s;
    built_save(&s, b);
    for (uint64_t i = 0; i < s.list.insn_count; i++) {
        const pwsp_insn *insn = &s.insns[i];
        if (!built_is_sync(insn)) {
            continue;
        }
        built_remove(b, i);
        compare(b, random, &d[0], "one taken away", i);
        built_restore(&s, b);
        const int64_t by = test_random_in(random, 1, 6);
        built_move(b, i, by);
        compare(b, random, &d[1], "one moved later", i);
        built_restore(&s, b);
        built_move(b, i, -by);
        compare(b, random, &d[1], "one moved earlier", i);
        built_restore(&s, b);
        if (insn->op == PTOISA_PIPE_BARRIER) {
            continue;
        }
        b->list.insns[i].event = insn->event ? insn->event - 1 : 1;
        compare(b, random, &d[2], "another event", i);
        b->list.insns[i] = *insn;
        b->list.insns[i].loop = insn->loop ? 0 : b->list.insns[i].event < 7;
        compare(b, random, &d[2], "rotation", i);
        b->list.insns[i] = *insn;
        for (uint64_t j = 0; j < s.list.insn_count; j++) {  // with all others of its pair and event
            pwsp_insn *other = &b->list.insns[j];
            if (built_is_sync(other) && other->loop && other->src_pipe == insn->src_pipe &&
                other->dst_pipe == insn->dst_pipe && other->event == insn->event) {
                other->loop = 0;
            }
        }
        compare(b, random, &d[3], "no rotation", i);
        built_restore(&s, b);
    }
    built_saved_free(&s);
}

TEST(loops__the_proof_refuses_what_the_judge_finds) {
    uint64_t random = test_seed() + 7;
    damage_count d[4] = {0};
    for (int i = 0; TEST_ROUNDS(i, 4); i++) {
        built b;
        random_loops(&b, &random, 8);
        finish(&b);
        damage(&b, &random, d);
        built_free(&b);
    }
    static const char *const names[] = {"taken away", "moved", "renamed", "not rotating"};
    for (int i = 0; i < 4; i++) {
        print_message("%s: %llu, of which %llu matter\n", names[i], (unsigned long long)d[i].tried,
                      (unsigned long long)d[i].matters);
        assert_met(i == 3 || d[i].matters > 0);
    }
}

// Each operand of each instruction is put beyond the list's tiles, and each root. A proof that would
// look there reads memory that is not the list's, which sanitizers see.
TEST(loops__the_proof_refuses_tiles_that_the_list_does_not_have) {
    uint64_t random = test_seed(), tried = 0;
    for (int i = 0; TEST_ROUNDS(i, 30); i++) {
        built b;
        random_loops(&b, &random, 8);
        finish(&b);
        pwsp_list *list = &b.list;
        bool is_used[UINT8_MAX + 1] = {false};
        for (uint64_t at = 0; at < list->insn_count; at++) {
            pwsp_insn *insn = &list->insns[at];
            uint32_t *const operands[] = {&insn->dst[0], &insn->dst[1], &insn->src[0],
                                          &insn->src[1], &insn->src[2], &insn->tmp};
            for (uint32_t k = 0; k < sizeof operands / sizeof operands[0]; k++) {
                const uint32_t tile = *operands[k];
                if (tile) {
                    char text[96];
                    is_used[tile & UINT8_MAX] = true;
                    *operands[k] = UINT32_MAX;
                    snprintf(text, sizeof text, "verify: instruction %d (%s", (int)at,
                             pwsp_insn_name(insn));
                    assert_false(pwsp_list_verify(list, &b.machine, &b.fault));
                    assert_int_equal(b.fault.status, PTOWSP_INVALID_PARAMS);
                    assert_int_equal(strncmp(b.fault.text, text, strlen(text)), 0);
                    assert_non_null(strstr(b.fault.text, " uses tile "));
                    *operands[k] = tile;
                    tried++;
                }
            }
        }
        for (uint32_t tile = 1; tile < list->tile_count && tile <= UINT8_MAX; tile++) {
            const uint32_t root = list->tiles[tile].root;
            if (is_used[tile]) {
                list->tiles[tile].root = UINT32_MAX;
                assert_false(pwsp_list_verify(list, &b.machine, &b.fault));
                assert_non_null(strstr(b.fault.text, " has no root"));
                list->tiles[tile].root = root;
                tried++;
            }
        }
        built_must(&b, pwsp_list_verify(list, &b.machine, &b.fault));
        built_free(&b);
    }
    assert_true(tried > 20);
}

// Where two places do not fit, there is one; and the list is still proved and judged good.
TEST(loops__tiles_have_one_place_where_two_do_not_fit) {
    for (int is_large = 0; is_large < 2; is_large++) {
        built b;
        built_init(&b, PTOISA_A2A3);
        // Rows of 128 bytes: half of 184 KiB, or one more.
        uint32_t x = built_vec(&b, is_large ? 737 : 736, 32);
        built_loop(&b, 0);
        built_load(&b, x, 0);
        built_op(&b, PTOISA_TEXP, x, x, 0);
        built_store(&b, 1, x);
        built_mark(&b, PWSP_INSN_END, 1);
        finish(&b);
        assert_int_equal(b.list.tiles[x].loop, !is_large);
        uint64_t random = 5;
        const char *what = "nothing";
        if (!judge_loops(&b, &random, &what)) {
            fail_msg("%s", what);
        }
        built_free(&b);
    }
}

// In memories of just what they used, lists have the same places again: whether tiles fit with two
// places does not depend on whether they do with one, which those of the seeds do not, nor on other
// memories.
TEST(loops__fit_into_what_they_used) {
    static const uint64_t seeds[] = {UINT64_C(1457719231704345000), UINT64_C(15827846294949658508)};
    uint64_t random = test_seed();
    for (int i = 0; i < 2 || TEST_ROUNDS(i, 200); i++) {
        uint64_t seed = i < 2 ? seeds[i] : test_random(&random);
        built b;
        random_loops(&b, &seed, 24);
        built_must(&b, pwsp_list_place_loops(&b.list, &b.machine, &b.fault));
        uint32_t used[PTOISA_MEMORY_COUNT];
        memcpy(used, b.list.used, sizeof used);
        memcpy(b.machine.memory_size, used, sizeof used);
        for (uint32_t t = 1; t < b.list.tile_count; t++) {
            b.list.tiles[t].loop = 0;
        }
        pwsp_list_fault with_one = {0};
        assert_true(i >= 2 || !pwsp_list_place(&b.list, &b.machine, &with_one));
        built_must(&b, pwsp_list_place_loops(&b.list, &b.machine, &b.fault));
        assert_memory_equal(used, b.list.used, sizeof used);
        built_free(&b);
    }
}

TEST(loops__every_allocation_may_fail) {
    uint64_t refused = 0;
    for (bool has_passed = false; !has_passed; refused++) {
        uint64_t random = 3;
        built b;
        random_loops(&b, &random, 10);
        built_refuse(&b, refused + 1);
        has_passed = pwsp_list_place_loops(&b.list, &b.machine, &b.fault) &&
                     pwsp_list_add_waits(&b.list, &b.machine, &b.fault) &&
                     pwsp_list_verify(&b.list, &b.machine, &b.fault);
        assert_int_equal(b.fault.status, has_passed ? PTOWSP_OK : PTOWSP_OUT_OF_MEMORY);
        built_free(&b);
    }
    assert_true(refused > 10);  // blocks of three arenas, and what unrolling notes
}
