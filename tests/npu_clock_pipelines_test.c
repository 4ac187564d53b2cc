// The same as npu_clock_oracle_test.c for the oracle's pipelines.

#include "test.h"

#include "npu_clock_mirror.h"

#include "oracle_pipeline_test.c"
