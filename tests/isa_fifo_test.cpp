// FIFOs between the cube core and the vector cores of a block: hand-calculated cycles, every split
// against a copy of the whole tile, faults, deadlocks; and an attention kernel in both halves (tests/own/attend.hpp)
// against double precision.

#include "isa_face.h"

// The source as each half sees it. Its includes of <pto/..> are the shim, which is read already.
#undef __DAV_CUBE__
#undef __DAV_VEC__
namespace cube {
#define __DAV_CUBE__
#define attend cube_attend
#include "own/attend.hpp"
#undef attend
#undef __DAV_CUBE__
}  // namespace cube
namespace vec {
#define __DAV_VEC__
#define attend vec_attend
#include "own/attend.hpp"
#undef attend
#undef __DAV_VEC__
}  // namespace vec

using namespace pto;

static std::vector<std::string> faults;

static void keep_fault(ptoisa_core *, const char *text) {
    faults.push_back(text);
}

static void reset(ptoisa_model model) {
    ptoisa_core_init(&ptoisa_this_core(), model, NULL);
    ptoisa_this_core().is_checked = true;
    ptoisa_this_core().on_fault = keep_fault;
    faults.clear();
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
    for (const std::string &fault : faults) {
        print_message("%s\n", fault.c_str());
    }
    assert_true(is_good && faults.empty());
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

static void fifo__attention_on_three_cores_is_good_to_half_in_every_split(void **) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifo__attention_on_three_cores_is_good_to_half_in_every_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
