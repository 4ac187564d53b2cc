// Times of published kernels that communicate between ranks.

#ifndef PREDICT_LINKS_H
#define PREDICT_LINKS_H

#include "predict.h"

// An all-reduce of a product, or an all-gather that feeds one. product_us is the time of the whole product
// on one rank, its launch included. False with a reason.
bool predict_links(const predict_kernel *row, double product_us, double launch_us,
                   uint64_t tile_count, double *out_us, char reason[PREDICT_REASON_MAX]);

#endif
