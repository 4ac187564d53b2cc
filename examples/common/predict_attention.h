// The time of flash attention as PTO-ISA's kernel does it on a 910B.

#ifndef PREDICT_ATTENTION_H
#define PREDICT_ATTENTION_H

#include "predict.h"

enum { ATTENTION_ROWS = 128, ATTENTION_HEAD = 128, ATTENTION_CORES = 24 };

// Times of `queries` x `keys` with heads of 128 in f16: whole tiles of 128 of both.
void predict_attention(uint64_t queries, uint64_t keys, predict_times *out);

#endif
