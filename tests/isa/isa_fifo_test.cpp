// FIFOs between the cube core and the vector cores of a block: hand-calculated cycles, every split
// against a copy of the whole tile, faults, deadlocks; and an attention kernel in both halves
// (tests/npu/own/attend.hpp) against double precision.

#include <pthread.h>

#include <string>
#include <thread>
#include <vector>

// The threads of a block's cores are started through this, so that one can fail.
static int test_pthread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                               void *(*fn)(void *), void *arg);
#define pthread_create test_pthread_create
#include "isa_face.h"
#undef pthread_create

// The source as each half sees it. Its includes of <pto/..> are the shim, which is read already.
#undef __DAV_CUBE__
#undef __DAV_VEC__
namespace cube {
#define __DAV_CUBE__
#define attend cube_attend
#include "npu/own/attend.hpp"
#undef attend
#undef __DAV_CUBE__
}  // namespace cube
namespace vec {
#define __DAV_VEC__
#define attend vec_attend
#include "npu/own/attend.hpp"
#undef attend
#undef __DAV_VEC__
}  // namespace vec

using namespace pto;

static std::vector<std::string> faults;

static void keep_fault(ptoisa_core *, const char *text) {
    faults.push_back(text);
}

static void is_without_faults(bool is_good) {
    for (const std::string &fault : faults) {
        print_message("%s\n", fault.c_str());
    }
    assert_true(is_good && faults.empty());
}

static void reset(ptoisa_model model) {
    ptoisa_core_init(&ptoisa_this_core(), model, NULL);
    ptoisa_this_core().is_checked = true;
    ptoisa_this_core().on_fault = keep_fault;
    faults.clear();
}

// -- cycles on paper ------------------------------------------------------------------------------

// A user's model of round numbers; flags are free. `user` multiplies those of a vector core.
static uint64_t round_cost(const ptoisa_issue_info *info, void *user) {
    uint64_t times = user ? *static_cast<uint64_t *>(user) : 1;
    switch (info->op) {
    case PTOISA_TMATMUL: return 300;
    case PTOISA_TSTORE: return 100 * times;
    case PTOISA_TLOAD: return 50;
    case PTOISA_TADDS: return 1000 * times;
    default: return 0;
    }
}

struct Three {
    ptoisa_core core[3];
    ptoisa_core *cores[3];
    explicit Three(ptoisa_model model, bool is_dry = true) {
        faults.clear();
        for (int i = 0; i < 3; i++) {
            ptoisa_core_init(&core[i], model, NULL);
            core[i].is_dry = is_dry;
            core[i].is_checked = true;
            core[i].on_fault = keep_fault;
            core[i].cost = round_cost;
            cores[i] = &core[i];
        }
    }
};

static ptoisa_tile tile_in(ptoisa_memory memory, ptoisa_dtype dtype, uint32_t rows, uint32_t cols,
                           void *data = NULL) {
    ptoisa_layout layout = memory == PTOISA_VEC     ? PTOISA_ROW_MAJOR
                           : memory == PTOISA_LEFT  ? PTOISA_ZZ
                           : memory == PTOISA_RIGHT ? PTOISA_ZN
                                                    : PTOISA_NZ;
    return ptoisa_tile_make(data, dtype, memory, layout, rows, cols);
}

// A push of the cube core as another type.
static void push_as(ptoisa_core *core, ptoisa_fifo *fifo, const ptoisa_tile *tile,
                    ptoisa_split split, ptoisa_dtype dtype) {
    const ptoisa_fifo_fixpipe how = {dtype, false, false, 0, NULL};
    ptoisa_fifo_push_fixpipe(core, fifo, 0, tile, split, &how);
}

struct Overlap {
    uint32_t slots;
};

static void overlap_cube(ptoisa_block *block, uint32_t core_index, void *arg) {
    ptoisa_core *core = block->cores[core_index];
    ptoisa_fifo *fifo = ptoisa_block_fifo(block, core_index, PTOISA_C2V, 0, 64 * 64 * 4,
                                          static_cast<Overlap *>(arg)->slots, NULL);
    ptoisa_tile acc = tile_in(PTOISA_ACC, PTOISA_F32, 64, 64);
    ptoisa_tile left = tile_in(PTOISA_LEFT, PTOISA_F16, 64, 64);
    ptoisa_tile right = tile_in(PTOISA_RIGHT, PTOISA_F16, 64, 64);
    for (int i = 0; i < 4; i++) {
        ptoisa_tmatmul(core, &acc, &left, &right);
        ptoisa_set_flag(core, PTOISA_PIPE_M, PTOISA_PIPE_FIX, 0);
        ptoisa_wait_flag(core, PTOISA_PIPE_M, PTOISA_PIPE_FIX, 0);
        ptoisa_fifo_push(core, fifo, 0, &acc, PTOISA_UP_DOWN);
        ptoisa_set_flag(core, PTOISA_PIPE_FIX, PTOISA_PIPE_M, 0);
        ptoisa_wait_flag(core, PTOISA_PIPE_FIX, PTOISA_PIPE_M, 0);
    }
}

static void overlap_vector(ptoisa_block *block, uint32_t core_index, void *arg) {
    ptoisa_core *core = block->cores[core_index];
    ptoisa_fifo *fifo = ptoisa_block_fifo(block, core_index, PTOISA_C2V, 0, 64 * 64 * 4,
                                          static_cast<Overlap *>(arg)->slots, NULL);
    ptoisa_tile half = tile_in(PTOISA_VEC, PTOISA_F32, 32, 64);
    for (int i = 0; i < 4; i++) {
        ptoisa_fifo_pop(core, fifo, core_index - 1, &half, PTOISA_UP_DOWN);
        ptoisa_set_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 0);
        ptoisa_wait_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 0);
        ptoisa_tadds(core, &half, &half, 1);
        ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, 0);
        ptoisa_wait_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE2, 0);
    }
}

// A product takes 300, a push 100, a pop 50, the softmax 1000, with one buffer on either side:
//
//     vector     pop 400-450, 1450-1500, 2500-2550, 3550-3600; work until 4600
//     2 slots    push 300-400, 700-800; the third, ready at 1100, waits for both slots, the second
//                of which is free at 1500: -1600; product -1900, push -2000
//     1 slot     as 2 until 1600; the fourth, ready at 1900, waits until 2550: -2650
//     4 slots    push 1100-1200, 1500-1600
//
// The second product (400-700) is under the first softmax (450-1450). One after the other, four
// times 1450 would be 5800.
TEST(fifo__products_run_under_the_vector_cores_work) {
    const uint64_t want[3][2] = {{1, 2650}, {2, 2000}, {4, 1600}};
    for (const uint64_t *each : want) {
        Three three(PTOISA_MODEL_USER);
        Overlap overlap = {(uint32_t)each[0]};
        assert_true(ptoisa_block_run(three.cores, overlap_cube, overlap_vector, &overlap));
        assert_true(faults.empty());
        assert_int_equal(three.core[0].clock[PTOISA_PIPE_FIX], each[1]);
        assert_int_equal(three.core[1].clock[PTOISA_PIPE_V], 4600);
        assert_int_equal(three.core[2].clock[PTOISA_PIPE_V], 4600);
        assert_int_equal(ptoisa_block_cycles(three.cores, 3), 4600);
    }
}

// The cube waits for the slower vector core: its push ends at 300, the other's at 100. And frees
// for both: slot 0 is free at 350, so the second push of either is 350-450 and 350-650, at the one
// slot.
TEST(fifo__the_cube_core_waits_for_both_vector_cores) {
    Three three(PTOISA_MODEL_USER);
    uint64_t times = 3;
    three.core[2].cost_user = &times;
    ptoisa_fifo fifo;
    assert_true(ptoisa_fifo_init(&three.core[0], &fifo, PTOISA_V2C, 2, 4096, 1, NULL, 0));
    ptoisa_tile half = tile_in(PTOISA_VEC, PTOISA_F16, 16, 64);
    ptoisa_tile mat = tile_in(PTOISA_MAT, PTOISA_F16, 32, 64);
    for (int i = 0; i < 2; i++) {
        assert_true(ptoisa_fifo_can_push(&fifo, 1) && ptoisa_fifo_can_push(&fifo, 0));
        ptoisa_fifo_push(&three.core[2], &fifo, 1, &half, PTOISA_UP_DOWN);
        assert_false(ptoisa_fifo_can_pop(&fifo, 0));
        ptoisa_fifo_push(&three.core[1], &fifo, 0, &half, PTOISA_UP_DOWN);
        assert_true(ptoisa_fifo_can_pop(&fifo, 0) && !ptoisa_fifo_can_push(&fifo, 0));
        ptoisa_fifo_pop(&three.core[0], &fifo, 0, &mat, PTOISA_UP_DOWN);
    }
    assert_int_equal(three.core[1].clock[PTOISA_PIPE_MTE3], 450);
    assert_int_equal(three.core[2].clock[PTOISA_PIPE_MTE3], 650);
    assert_int_equal(three.core[0].clock[PTOISA_PIPE_MTE2], 700);
    assert_true(ptoisa_fifo_finish(&three.core[0], &fifo) && faults.empty());
}

// -- relays: there and back, in every split -------------------------------------------------------

// The cube core pushes `count` tiles, `ahead` of those that it has back; the vector cores add 1 to
// their halves and push them back.
struct Relay {
    ptoisa_split split;
    ptoisa_dtype dtype;  // in the slots
    uint32_t rows, cols, valid_rows, valid_cols, part_rows, count, ahead, slots[2];
    std::vector<uint8_t> gm;
    std::vector<float> sent;  // count * rows * cols, row-major
    ptoisa_fifo fifos[2];
    Three *three;
    uint32_t pushes[3], pops[3];
    alignas(32) uint8_t chip[3][2][48 * 96 * 4];  // a tile of each memory
    std::vector<double> back;

    size_t at(uint32_t i, uint32_t r, uint32_t c) const {
        return ((size_t)i * rows + r) * cols + c;
    }
    ptoisa_tile part(uint32_t sub) {
        bool is_cols = ptoisa_split_is_cols(split), is_odd = ptoisa_split_is_odd(split);
        ptoisa_tile tile = tile_in(PTOISA_VEC, dtype, split == PTOISA_UP_DOWN ? part_rows : rows,
                                   is_cols ? cols / 2 : cols, chip[1 + sub][0]);
        uint32_t all = is_cols ? valid_cols : valid_rows;
        uint32_t cut = is_odd ? (all + 1) / 2 : is_cols ? cols / 2 : part_rows;
        uint32_t mine = split == PTOISA_NO_SPLIT ? all
                        : sub == 0               ? (all < cut ? all : cut)
                                                 : (all > cut ? all - cut : 0);
        tile.valid_rows = is_cols ? valid_rows : mine;
        tile.valid_cols = is_cols ? mine : valid_cols;
        return tile;
    }
    void push_cube(ptoisa_core *core) {
        uint32_t i = pushes[0]++;
        ptoisa_tile acc = ptoisa_tile_valid(tile_in(PTOISA_ACC, PTOISA_F32, rows, cols, chip[0][0]),
                                            valid_rows, valid_cols);
        TEST_GRID(uint32_t, r, rows, c, cols) {
            reinterpret_cast<float *>(chip[0][0])[ptoisa_offset(&acc, r, c)] = sent[at(i, r, c)];
        }
        push_as(core, &fifos[0], &acc, split, dtype);
    }
    void pop_cube(ptoisa_core *core) {
        uint32_t i = pops[0]++;
        ptoisa_tile mat = ptoisa_tile_valid(tile_in(PTOISA_MAT, dtype, rows, cols, chip[0][1]),
                                            valid_rows, valid_cols);
        ptoisa_fifo_pop(core, &fifos[1], 0, &mat, split);
        TEST_GRID(uint32_t, r, valid_rows, c, valid_cols) {
            back[at(i, r, c)] = ptoisa_get(&mat, r, c);
        }
    }

    // Runs the next step of a core; false if it has none. `ask`: or if it cannot go on.
    bool step(ptoisa_core *core, uint32_t core_index, bool ask) {
        uint32_t sub = core_index == 2 ? 1 : 0;
        bool is_push = core_index == 0 ? pushes[0] < count && pushes[0] < pops[0] + ahead
                                       : pushes[core_index] < pops[core_index];
        if (!is_push && pops[core_index] == count) {
            return false;
        }
        const ptoisa_fifo *fifo = &fifos[(core_index == 0) == is_push ? 0 : 1];
        if (ask && !(is_push ? ptoisa_fifo_can_push(fifo, sub) : ptoisa_fifo_can_pop(fifo, sub))) {
            return false;
        }
        if (core_index == 0) {
            is_push ? push_cube(core) : pop_cube(core);
            return true;
        }
        ptoisa_tile mine = part(sub);
        if (!is_push) {
            pops[core_index]++;
            ptoisa_fifo_pop(core, &fifos[0], sub, &mine, split);
            ptoisa_set_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 0);
            ptoisa_wait_flag(core, PTOISA_PIPE_MTE2, PTOISA_PIPE_V, 0);
            if (mine.valid_rows > 0 && mine.valid_cols > 0) {
                ptoisa_tadds(core, &mine, &mine, 1);
            }
            ptoisa_set_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE3, 0);
            ptoisa_wait_flag(core, PTOISA_PIPE_V, PTOISA_PIPE_MTE3, 0);
        } else {
            pushes[core_index]++;
            ptoisa_fifo_push(core, &fifos[1], sub, &mine, split);
        }
        return true;
    }

    void begin(Three *with) {
        three = with;
        memset(pushes, 0, sizeof pushes);
        memset(pops, 0, sizeof pops);
        memset(chip, 0x5a, sizeof chip);
        uint32_t bytes = rows * cols * ptoisa_dtype_size(dtype);
        gm.assign((size_t)bytes * (slots[0] + slots[1]) + 64, 0xa5);
        back.assign(sent.size(), 0);
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(ptoisa_fifo_init(three->cores[0], &fifos[i],
                                         i == 0 ? PTOISA_C2V : PTOISA_V2C, 2 * i, bytes, slots[i],
                                         gm.data() + (i == 0 ? 0 : (size_t)bytes * slots[0]),
                                         (uint64_t)bytes * slots[i]));
        }
    }

    void check() {
        is_without_faults(true);
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(ptoisa_fifo_finish(three->cores[0], &fifos[i]));
        }
        for (size_t i = gm.size() - 64; i < gm.size(); i++) {
            assert_int_equal(gm[i], 0xa5);
        }
        TEST_GRID(uint32_t, i, count, r, valid_rows) {
            for (uint32_t c = 0; c < valid_cols; c++) {
                float x = sent[at(i, r, c)];
                float half = ptoisa_f32_from_f16(ptoisa_f16_from_f32(x)) + 1;
                assert_true(back[at(i, r, c)] ==
                            (dtype == PTOISA_F32
                                 ? (double)(x + 1)
                                 : (double)ptoisa_f32_from_f16(ptoisa_f16_from_f32(half))));
            }
        }
    }
};

static void relay_half(ptoisa_block *block, uint32_t core_index, void *arg) {
    Relay *relay = static_cast<Relay *>(arg);
    for (int i = 0; i < 2; i++) {  // the relay's own FIFOs, waited for as the block's
        relay->fifos[i].wait = ptoisa_block_wait;
        relay->fifos[i].wait_user = block;
    }
    while (relay->step(block->cores[core_index], core_index, false)) {
    }
}

static uint32_t in(uint64_t *seed, uint32_t low, uint32_t high) {
    return low + (uint32_t)(face_random(seed) % (high - low + 1));
}

// On A5 what it splits has 32 bits, and is whole: see fifo.h.
static void relay_random(Relay *relay, uint64_t *seed, bool is_a5) {
    relay->split = (ptoisa_split)in(seed, 0, PTOISA_SPLIT_COUNT - 1);
    relay->dtype = in(seed, 0, 1) ? PTOISA_F32 : PTOISA_F16;
    relay->rows = 16 * in(seed, 1, 3);
    relay->cols = 32 * in(seed, 1, 3);
    relay->valid_rows = in(seed, 1, relay->rows);
    relay->valid_cols = in(seed, 1, relay->cols);
    relay->valid_rows -= relay->split == PTOISA_UP_DOWN_ODD && relay->valid_rows % 2 == 0;
    relay->valid_cols -= relay->split == PTOISA_LEFT_RIGHT_ODD && relay->valid_cols % 2 == 0;
    if (is_a5) {
        relay->split = ptoisa_split_is_odd(relay->split) ? PTOISA_NO_SPLIT : relay->split;
        relay->dtype = relay->split == PTOISA_NO_SPLIT ? relay->dtype : PTOISA_F32;
        relay->valid_rows += relay->split == PTOISA_UP_DOWN && relay->valid_rows % 2;
        bool is_cols = relay->split == PTOISA_LEFT_RIGHT;
        relay->valid_cols = is_cols ? relay->cols : (relay->valid_cols + 15) / 16 * 16;
    }
    relay->part_rows = in(seed, 0, 1) ? relay->rows / 2 : (relay->valid_rows + 1) / 2;
    relay->count = in(seed, 1, 9);
    for (uint32_t &slots : relay->slots) {
        slots = in(seed, 1, 5);
    }
    // By the rule of the documentation more would deadlock: see the test below.
    uint32_t period = relay->slots[0] <= 2 ? relay->slots[0] : relay->slots[0] / 2;
    relay->ahead = in(seed, 1, relay->slots[0] - period + 1);
    relay->sent.resize((size_t)relay->count * relay->rows * relay->cols);
    for (float &each : relay->sent) {
        each = (float)(8 * face_uniform(seed));
    }
}

// Interleaved on one thread in a random order, and as a block: the same bits and clocks.
TEST(fifo__every_split_brings_tiles_there_and_back_in_any_order) {
    const char *text = getenv("PTOWSP_SEED"), *scale = getenv("PTOWSP_SCALE");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20261123;
    print_message("seed %llu (set PTOWSP_SEED to change it)\n", (unsigned long long)seed);
    int rounds = scale ? (int)(300 * atof(scale)) : 300;
    std::vector<Relay> relay(1);
    for (int round = 0; round < rounds; round++) {
        ptoisa_model model = (ptoisa_model)in(&seed, PTOISA_MODEL_UNIT, PTOISA_MODEL_A5);
        relay_random(&relay[0], &seed, model == PTOISA_MODEL_A5);
        Three one(model, false), block(model, false);
        relay[0].begin(&one);
        for (int idle = 0; idle < 1000; idle++) {
            uint32_t core_index = in(&seed, 0, 2);
            idle = relay[0].step(one.cores[core_index], core_index, true) ? 0 : idle;
        }
        assert_int_equal(relay[0].pops[0], relay[0].count);
        relay[0].check();
        relay[0].begin(&block);
        assert_true(ptoisa_block_run(block.cores, relay_half, relay_half, &relay[0]));
        relay[0].check();
        for (int i = 0; i < 3; i++) {
            assert_int_equal(one.core[i].sum, block.core[i].sum);
            assert_memory_equal(one.core[i].clock, block.core[i].clock, sizeof one.core[i].clock);
        }
    }
}

// -- faults ---------------------------------------------------------------------------------------

static bool has_fault(const char *text) {
    for (const std::string &fault : faults) {
        if (fault.find(text) != std::string::npos) {
            return true;
        }
    }
    for (const std::string &fault : faults) {
        print_message("%s\n", fault.c_str());
    }
    return false;
}

// -- the C++ face ---------------------------------------------------------------------------------

using FaceAcc = TileAcc<float, 32, 32>;
using FaceHalf = Tile<TileType::Vec, float, 16, 32>;
using FacePart = Tile<TileType::Vec, float, 8, 32>;
using FaceMat = Tile<TileType::Mat, float, 32, 32, BLayout::ColMajor, 32, 32, SLayout::RowMajor>;
using FacePipe = TPipe<4, Direction::DIR_BOTH, 32 * 32 * 4, 2>;
using FaceWindow = GlobalTensor<float, Shape<1, 1, 1, 8, 32>, Stride<1, 1, 1, 32, 1>>;
constexpr TileSplitAxis face_split = TileSplitAxis::TILE_UP_DOWN;

static std::vector<float *> face_popped;  // where

enum class Wrong { Nothing, NoPop, NoFree, NoPush, OtherPipe, NoFfts, Twice };

static void face_cube(float *gm, float *back, int count, Wrong wrong) {
    if (wrong != Wrong::NoFfts) {
        set_ffts_base_addr(0);
    }
    FacePipe pipe(gm, 0, 0x4000);
    FaceAcc acc;
    TASSIGN(acc, 0x800);
    for (int i = 0; i < count; i++) {
        for (int c = 0; c < 32 * 32; c++) {
            acc.SetElement(c / 32, c % 32, (float)(1000 * i + c));
        }
        TPUSH<FacePipe, FaceAcc, face_split>(pipe, acc);
        FaceMat mat;
        TPOP<FacePipe, FaceMat, face_split>(pipe, mat);
        TFREE(pipe);
        face_popped.push_back(mat.data());
        for (int c = 0; c < 32 * 32 && mat.data(); c++) {
            back[c] += mat.GetElement(c / 32, c % 32) * (float)(i + 1);
        }
    }
    pipe_barrier(PIPE_ALL);
}

// In two pieces of eight rows each, by address.
static void face_vector(float *gm, int count, Wrong wrong) {
    set_ffts_base_addr(0);
    FacePipe pipe(wrong == Wrong::OtherPipe ? gm + 8 : gm, 0x2000, 0);
    if (wrong == Wrong::Twice) {
        FacePipe again(gm, 0, 0);
        return;
    }
    for (int i = 0; i < count && wrong != Wrong::NoPop; i++) {
        FaceWindow from(NULL), to(NULL);
        // The window is of a piece; the split offset is that of the half, two of them.
        using Both = GlobalTensor<float, Shape<1, 1, 2, 8, 32>, Stride<1, 1, 256, 32, 1>>;
        Both in(NULL), out(NULL);
        TPOP<FacePipe, Both, face_split>(pipe, in);
        TALLOC<FacePipe, Both, face_split>(pipe, out);
        for (int piece = 0; piece < 2; piece++) {
            FacePart part;
            TASSIGN(part, piece * 0x400);
            if (in.data() && out.data()) {
                TASSIGN(from, in.data() + piece * 256);
                TASSIGN(to, out.data() + piece * 256);
                TLOAD(part, from);
                set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
                wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
                TADDS(part, part, 1.0f);
                set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
                wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
                TSTORE(to, part);
            }
        }
        if (wrong != Wrong::NoPush) {
            TPUSH<FacePipe, Both, face_split>(pipe, out);
        }
        if (wrong != Wrong::NoFree) {
            TFREE<FacePipe, Both, face_split>(pipe, in);
        }
    }
    pipe_barrier(PIPE_ALL);
}

static bool face_run(Wrong wrong, int count, float *back, uint64_t *cycles,
                     std::vector<float> *memory = NULL) {
    std::vector<float> own, &gm = memory ? *memory : own;
    gm.assign(2 * 2 * 32 * 32 + 8, 0);
    face_popped.clear();
    reset(PTOISA_MODEL_A2A3);
    return RunBlock([&] { face_cube(gm.data(), back, count, wrong); },
                    [&] { face_vector(gm.data(), count, wrong); }, cycles);
}

// Element c comes back as 1000 i + c + 1 and is summed i + 1 times, for i of 0, 1, 2: 8,006 + 6 c.
// In time: push 4,096 B at 70 GiB/s 100.8; pieces of 1,024 B in at 100.9 GiB/s 17.5, out at 188.46
// GiB/s 9.4; pop 4,096 B at 135 GiB/s 52.3.
TEST(fifo__the_face_moves_by_tile_and_by_address) {
    float back[32 * 32] = {0};
    uint64_t cycles, again;
    std::vector<float> gm;
    bool is_good = face_run(Wrong::Nothing, 3, back, &cycles, &gm);
    is_without_faults(is_good);
    for (int c = 0; c < 32 * 32; c++) {
        assert_true(back[c] == (float)(8006 + 6 * c));
    }
    assert_int_equal(ptoisa_this_core().busy[PTOISA_PIPE_FIX], 3 * 100);
    // Tile 2 is in the first slot of both rings, tile 1 in the second; popped into two slots in
    // turn.
    assert_true(gm[0] == 2000 && gm[1024] == 1000 && gm[2048] == 2001 && gm[3072] == 1001);
    assert_true(face_popped[1] == face_popped[0] + 1024 && face_popped[2] == face_popped[0]);
    // Both vector cores' pieces, and the cube core's pops.
    assert_int_equal(ptoisa_this_core().busy[PTOISA_PIPE_MTE2], 2 * 3 * 2 * (17 + 1) + 3 * 52);
    assert_true(face_run(Wrong::Nothing, 3, back, &again));
    assert_int_equal(cycles, again);
}

// A core that misses a step does not hang: the others are told, and end.
TEST(fifo__a_deadlock_is_reported_with_where_each_core_is) {
    const struct {
        Wrong wrong;
        int count;
        const char *text;
    } cases[] = {
        {Wrong::NoPop, 1,
         "block: no core can go on: the cube core waits to pop tile 0 of FIFO 6, vector core 0 has "
         "ended, vector core 1 has ended"},
        {Wrong::NoPush, 3,
         "the cube core waits to pop tile 0 of FIFO 6, vector core 0 waits to pop tile 1 of FIFO "
         "4, "
         "vector core 1 waits to pop tile 1 of FIFO 4"},
        {Wrong::NoFree, 3,
         "the cube core waits to push tile 2 of FIFO 4, vector core 0 waits to pop tile 2 of FIFO "
         "4, vector core 1 waits to pop tile 2 of FIFO 4"},
        {Wrong::NoFree, 2, "FIFO 4: a slot was popped and never freed"},
        {Wrong::OtherPipe, 1, "TPIPE: FIFO 4 is 2 x 4096 bytes, cube to vector, at "},
        {Wrong::NoFfts, 1, "TPIPE: set_ffts_base_addr was not called"},
        {Wrong::Twice, 1, "TPIPE: vector core 1 has FIFO 4 already"}};
    static float back[4 * 32 * 32];
    for (const auto &each : cases) {
        assert_false(face_run(each.wrong, each.count, back, NULL));
        assert_true(has_fault(each.text));
    }
    reset(PTOISA_MODEL_A2A3);
    FacePipe alone(back, 0, 0);
    assert_true(has_fault("TPIPE: this thread runs no block (RunBlock)"));
    reset(PTOISA_MODEL_A2A3);
    assert_false(RunBlock([] {},
                          [] {
                              TileAcc<float, 16, 16> acc;
                              TileLeft<half, 16, 16> left;
                              TileRight<half, 16, 16> right;
                              bind_all(0, acc, 0, left, 0, right);
                              TMATMUL(acc, left, right);
                          }));
    assert_true(has_fault("block: vector core 1 ran an instruction of the cube core's pipes"));
}

// -- what a block cannot have ---------------------------------------------------------------------

static uint32_t threads_refuse_at;  // the thread with this number (from 1); 0 refuses none
static uint32_t threads_started;

static int test_pthread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                               void *(*fn)(void *), void *arg) {
    bool is_refused = ++threads_started == threads_refuse_at;
    return is_refused ? EAGAIN : pthread_create(out_thread, attributes, fn, arg);
}

// Says which core ran.
static void ran_half(ptoisa_block *, uint32_t core_index, void *arg) {
    static_cast<bool *>(arg)[core_index] = true;
}

// Two threads are started, one for each vector core. Without one of them no half runs; the next block
// has both.
TEST(fifo__a_block_without_a_thread_for_a_core_is_a_fault) {
    for (uint32_t refused = 1; refused <= 3; refused++) {
        Three three(PTOISA_MODEL_UNIT);
        bool has_run[3] = {false, false, false};
        threads_started = 0;
        threads_refuse_at = refused;
        bool is_good = ptoisa_block_run(three.cores, ran_half, ran_half, has_run);
        threads_refuse_at = 0;
        assert_int_equal(is_good, refused == 3);
        assert_true(is_good ? faults.empty()
                            : faults.size() == 1 && has_fault("block: no thread for a core"));
        assert_int_equal(threads_started, refused < 2 ? refused : 2);
        for (bool has : has_run) {
            assert_int_equal(has, is_good);
        }
    }
}

// FIFO 4 has flags 4 and 5, so 3 and 5 cannot begin another; 6 and 2 can, and 15 has no flag behind it.
static void flags_half(ptoisa_block *block, uint32_t core_index, void *arg) {
    if (core_index == 0) {
        ptoisa_fifo **made = static_cast<ptoisa_fifo **>(arg);
        const uint32_t flags[] = {4, 5, 3, 6, 2, 15, 16};
        for (uint32_t i = 0; i < 7; i++) {
            made[i] = ptoisa_block_fifo(block, 0, PTOISA_C2V, flags[i], 4096, 1, NULL);
        }
    }
}

TEST(fifo__two_flags_are_one_fifos) {
    Three three(PTOISA_MODEL_UNIT);
    ptoisa_fifo *made[7];
    assert_true(ptoisa_block_run(three.cores, flags_half, flags_half, made));
    assert_int_equal(faults.size(), 4);
    assert_string_equal(faults[0].c_str(), "TPIPE: flag 5 or 6 is another FIFO's");
    assert_string_equal(faults[1].c_str(), "TPIPE: flag 3 or 4 is another FIFO's");
    assert_true(has_fault("TPIPE: flags 15 and 16: there are 16"));
    assert_true(has_fault("TPIPE: flags 16 and 17: there are 16"));
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(made[i] != NULL, i == 0 || i == 3 || i == 4);
    }
}

// A pipe of one direction is pushed on one side and popped on the other.
TEST(fifo__a_pipe_has_only_the_directions_it_was_made_with) {
    using Pipe = TPipe<4, Direction::DIR_C2V, 32 * 32 * 4, 2>;
    std::vector<float> gm(2 * 32 * 32);
    reset(PTOISA_MODEL_A2A3);
    assert_true(RunBlock(
        [&] {
            set_ffts_base_addr(0);
            Pipe pipe(gm.data(), 0, 0);
            FaceMat mat;
            TPOP<Pipe, FaceMat, face_split>(pipe, mat);
        },
        [&] {
            set_ffts_base_addr(0);
            Pipe pipe(gm.data(), 0, 0);
            FaceHalf half_tile;
            TASSIGN(half_tile, 0);
            TPUSH<Pipe, FaceHalf, face_split>(pipe, half_tile);
        }));
    assert_int_equal(faults.size(), 3);
    assert_true(has_fault("TPOP: the pipe has no direction for the cube core"));
    assert_true(has_fault("TPUSH: the pipe has no direction for vector core 0"));
    assert_true(has_fault("TPUSH: the pipe has no direction for vector core 1"));
}

// -- through the fixpipe --------------------------------------------------------------------------

// To the nearest number of `bits` binary digits, ties to even.
static double nearest(double x, int bits) {
    double unit = x == 0 ? 1 : ldexp(1, ilogb(x) - bits + 1);
    return nearbyint(x / unit) * unit;
}

template <typename D> static double to_type(double x) {
    if constexpr (std::is_same_v<D, half>) {
        return nearest(x, 11);
    } else if constexpr (std::is_same_v<D, bfloat16_t>) {
        return nearest(x, 8);
    } else if constexpr (std::is_same_v<D, int8_t>) {
        double rounded = nearbyint(x);
        return rounded < -128 ? -128 : rounded > 127 ? 127 : rounded;
    } else if constexpr (std::is_same_v<D, uint8_t>) {
        double rounded = nearbyint(x);
        return rounded < 0 ? 0 : rounded > 255 ? 255 : rounded;
    } else {
        return x;
    }
}

// Pushes 32 x 32 of L0C to both vector cores, with a scale for all (or none) or for each column, and
// compares. Element (r, c) is (32 r + c - 500) / 8, or eight times that as an integer.
template <typename S, typename D, ReluPreMode Relu, bool IsQuant> static void fixpipe_case(int by) {
    using Pipe = TPipe<4, Direction::DIR_C2V, 32 * 32 * 4, 2>;
    using Acc = TileAcc<S, 32, 32>;
    using Half = Tile<TileType::Vec, D, 16, 32>;
    using Scales = Tile<TileType::Scaling, uint64_t, 1, 32>;
    using Row = Tile<TileType::Mat, uint64_t, 1, 32>;
    constexpr double unit = std::is_same_v<S, float> ? 0.125 : 1;
    static std::vector<uint8_t> gm(2 * 32 * 32 * 4);
    std::vector<D> out(32 * 32);
    uint64_t scales[32];
    for (uint32_t c = 0; c < 32; c++) {
        scales[c] = ptoisa_bits_from_f32(by == 2 ? 0.25f * (float)(c + 1) : 1.5f);
    }
    reset(PTOISA_MODEL_A2A3);
    bool is_good = RunBlock(
        [&] {
            set_ffts_base_addr(0);
            Pipe pipe(gm.data(), 0, 0);
            Acc acc;
            TASSIGN(acc, 0);
            for (int i = 0; i < 32 * 32; i++) {
                acc.SetElement(i / 32, i % 32, (S)((i - 500) * unit));
            }
            FixpipeParams<D, Relu, IsQuant> params;
            params.preQuantScalar = scales[0];
            if constexpr (IsQuant) {
                if (by == 2) {
                    Row row;
                    Scales fp;
                    TASSIGN(row, 0);
                    TASSIGN(fp, 0);
                    GlobalTensor<uint64_t, Shape<1, 1, 1, 1, 32>, Stride<1, 1, 1, 32, 1>> g(scales);
                    TLOAD(row, g);
                    set_flag(PIPE_MTE2, PIPE_FIX, EVENT_ID0);
                    wait_flag(PIPE_MTE2, PIPE_FIX, EVENT_ID0);
                    TMOV(fp, row);
                    pipe_barrier(PIPE_FIX);
                    TPUSH<Pipe, Acc, face_split>(pipe, acc, params, fp);
                    return;
                }
            }
            TPUSH<Pipe, Acc, face_split>(pipe, acc, params);
        },
        [&] {
            set_ffts_base_addr(0);
            Pipe pipe(gm.data(), 0, 0);
            Half half_tile;
            TPOP<Pipe, Half, face_split>(pipe, half_tile);
            set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
            wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
            GlobalTensor<D, Shape<1, 1, 1, 16, 32>, Stride<1, 1, 1, 32, 1>> to(
                out.data() + get_subblockid() * 16 * 32);
            TSTORE(to, half_tile);
        });
    is_without_faults(is_good);
    for (int i = 0; i < 32 * 32; i++) {
        double x = (i - 500) * unit;
        x = Relu == ReluPreMode::NormalRelu && x < 0 ? 0 : x;
        x *= IsQuant ? (double)ptoisa_f32_from_bits((uint32_t)scales[i % 32]) : 1;
        assert_true((double)(float)out[(size_t)i] == to_type<D>(x));
    }
    // It leaves L0C as it is there, 4,096 bytes at 70 GiB/s: 100.8. 256 bytes of scales at 32 GiB/s
    // are 13.8, behind a flag and before a barrier.
    assert_int_equal(ptoisa_this_core().busy[PTOISA_PIPE_FIX], by == 2 ? 100 + 13 + 2 : 100);
}

TEST(fifo__what_is_pushed_is_changed_on_its_way) {
    constexpr ReluPreMode as_is = ReluPreMode::NoRelu, relu = ReluPreMode::NormalRelu;
    fixpipe_case<float, float, as_is, false>(0);
    fixpipe_case<float, float, relu, false>(0);
    fixpipe_case<float, half, as_is, false>(0);
    fixpipe_case<float, half, relu, false>(0);
    fixpipe_case<float, bfloat16_t, relu, false>(0);
    fixpipe_case<int32_t, int32_t, relu, false>(0);
    fixpipe_case<float, int8_t, as_is, true>(1);
    fixpipe_case<float, uint8_t, as_is, true>(1);
    fixpipe_case<int32_t, int8_t, relu, true>(1);
    fixpipe_case<int32_t, half, as_is, true>(1);
    fixpipe_case<float, int8_t, as_is, true>(2);
    fixpipe_case<int32_t, half, relu, true>(2);
}

// -- attention ------------------------------------------------------------------------------------

struct Attention {
    std::vector<half> q, k, v;
    std::vector<float> out;
    std::vector<uint8_t> fifos;
    int rows, keys, cols;
    uint64_t cycles;
};

// The largest error of out against softmax(q k^T / 8) v in double. What is not of its rows and
// columns must be the pattern.
static double attention_error(Attention &a) {
    double worst = 0;
    std::vector<double> p((size_t)a.keys);
    for (int r = 0; r < 32; r++) {
        double max = -1e30, sum = 0;
        for (int n = 0; n < a.keys; n++) {
            double s = 0;
            for (int d = 0; d < 64; d++) {
                s += (double)a.q[(size_t)(r * 64 + d)] * (double)a.k[(size_t)(n * 64 + d)] / 8;
            }
            p[(size_t)n] = s;
            max = s > max ? s : max;
        }
        for (double &each : p) {
            each = exp(each - max);
            sum += each;
        }
        for (int d = 0; d < 64; d++) {
            double want = 0, got = (double)a.out[(size_t)(r * 64 + d)];
            for (int n = 0; n < a.keys; n++) {
                want += p[(size_t)n] / sum * (double)a.v[(size_t)(n * 64 + d)];
            }
            want = r < a.rows && d < a.cols ? want : 77;
            worst = fabs(want - got) > worst ? fabs(want - got) : worst;
        }
    }
    return worst;
}

template <TileSplitAxis Rows, TileSplitAxis Out>
static void attention_run(Attention &a, int rows, int keys, int cols, ptoisa_model model) {
    uint64_t seed = (uint64_t)(rows * 1000 + keys);
    a.rows = rows;
    a.keys = keys;
    a.cols = cols;
    a.q.resize(32 * 64);
    a.k.resize((size_t)keys * 64);
    a.v.resize((size_t)keys * 64);
    for (std::vector<half> *each : {&a.q, &a.k, &a.v}) {
        for (half &cell : *each) {
            cell = (half)(float)(face_uniform(&seed) * (each == &a.v ? 1 : 2));
        }
    }
    a.out.assign(32 * 64, 77.0f);
    a.fifos.assign(5 * 32 * 64 * 4, 0xa5);
    reset(model);
    bool is_good = RunBlock(
        [&] {
            set_ffts_base_addr(0);
            cube::Attend<32, 64, 64, Rows, Out>::Entry(a.fifos.data(), a.q.data(), a.k.data(),
                                                       a.v.data(), a.out.data(), rows, keys, cols);
        },
        [&] {
            set_ffts_base_addr(0);
            vec::Attend<32, 64, 64, Rows, Out>::Entry(a.fifos.data(), a.q.data(), a.k.data(),
                                                      a.v.data(), a.out.data(), rows, keys, cols);
        },
        &a.cycles);
    is_without_faults(is_good);
    ptoisa_core_finish(&ptoisa_this_core());
    assert_true(faults.empty());
}

// P is stored as f16: off by 2^-11 of itself, and |v| < 1. The rest is float.
template <TileSplitAxis Rows, TileSplitAxis Out>
static void attention_case(int rows, int keys, int cols) {
    Attention a, b;
    attention_run<Rows, Out>(a, rows, keys, cols, PTOISA_MODEL_A2A3);
    double error = attention_error(a);
    print_message("%d rows, %d keys, %d columns: %.2g, %llu cycles\n", rows, keys, cols, error,
                  (unsigned long long)a.cycles);
    assert_true(error < 0x1p-11 + 1e-5);
    attention_run<Rows, Out>(b, rows, keys, cols, PTOISA_MODEL_A2A3);
    assert_true(a.cycles == b.cycles && a.out == b.out);
}

TEST(fifo__attention_on_three_cores_is_good_to_half_in_every_split) {
    constexpr TileSplitAxis whole = TileSplitAxis::TILE_NO_SPLIT, up = TileSplitAxis::TILE_UP_DOWN,
                            odd = TileSplitAxis::TILE_UP_DOWN_ODD,
                            left = TileSplitAxis::TILE_LEFT_RIGHT,
                            left_odd = TileSplitAxis::TILE_LEFT_RIGHT_ODD;
    for (int rows : {32, 18, 16, 7, 1}) {
        attention_case<up, up>(rows, 192, 64);
    }
    for (int rows : {31, 17, 3, 1}) {
        attention_case<odd, odd>(rows, 128, 64);
    }
    attention_case<whole, whole>(29, 128, 64);
    attention_case<whole, left>(32, 128, 64);
    attention_case<whole, left_odd>(5, 64, 63);
}
