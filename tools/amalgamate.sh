#!/bin/sh
# Makes ptowsp.c from the files of src/, in the order of the list below: lowest floor first;
# ptoisa_shim.h from those of src/isa/, with its C++ face; ptowsp_dump.c from those of src/dump/; and
# ptowsp_npu_emit.c from those of src/npu/, with the files of emitted trees as strings. The runtime of trees among these is nowhere
# else: wsp_core.h, of those files of src/ that a tree needs, and a few files of src/npu/tree/.
#
# Also writes the contents and the index of ptowsp.h anew, by contents.awk: the lines of sections and of functions.
#
# parts/attention/ has the part for engines that plan and compute attention themselves: PTOWSP_ONLY_PLAN.
#
#   tools/amalgamate.sh                writes them
#   tools/amalgamate.sh --check        says whether all are up to date, and writes nothing
#   tools/amalgamate.sh --part attention|plan|no-tiles DIR   writes ptowsp.h and ptowsp.c of a part into DIR
#   tools/amalgamate.sh --core FILE    writes the runtime of trees to FILE, for tests
#   tools/amalgamate.sh --fixed FILE   writes the files of trees, as strings, into a C file of their own
#
# Refuses a file of src/ that is not listed, a listed file that is missing, carriage returns, a static
# or private name that two files define, and an include of a room that is not lower in the list.
set -eu
LC_ALL=C
export LC_ALL

ISA="
src/isa/isa.h
src/isa/simd.h
src/isa/tile.h
src/isa/machine.h
src/isa/timing_fitted.h
src/isa/timing.h
src/isa/cost_a2a3.h
src/isa/cost_a5.h
src/isa/cost.h
src/isa/cost_timed.h
src/isa/cost_models.h
src/isa/core.h
src/isa/view.h
src/isa/cast.h
src/isa/move.h
src/isa/fifo.h
src/isa/shape.h
src/isa/convert.h
src/isa/arith.h
src/isa/vector.h
src/isa/map.h
src/isa/elementwise.h
src/isa/broadcast.h
src/isa/fold.h
src/isa/reduce.h
src/isa/matmul_block.h
src/isa/matmul_neon.h
src/isa/matmul_pack_x86.h
src/isa/matmul_x86.h
src/isa/matmul.h
src/isa/rows.h
src/isa/compare.h
src/isa/sort.h
src/isa/gather.h
"
# In the shim alone: blocks of cores, which have threads.
BLOCK="
src/isa/block.h
"
FACE="
src/isa/pto_core.h
src/isa/pto_types.h
src/isa/pto_ops.h
src/isa/pto_fifo.h
"
# What is taken by all parts, and all that PTOWSP_ONLY_ATTENTION leaves; with MORE_PLANS it is what
# PTOWSP_ONLY_PLAN leaves.
PLAN="
src/base/base.h src/base/base.c
src/base/atomic.h src/base/halt.h src/base/heap.h
src/base/cpu.h
src/base/math.h src/base/math.c
src/base/number.h
src/base/os.h src/base/os.c src/base/wall.h
src/base/sleeper.h src/base/sleeper.c
src/base/text.h src/base/text.c
src/base/error.h src/base/error.c
src/base/processors.h src/base/processors.c
src/base/pool.h src/base/pool.c
src/base/context.h src/base/context.c
src/data/space.c
src/plan/count.h src/plan/count.c
src/plan/generate.h src/plan/generate_cuts.h src/plan/generate_avx512.c src/plan/generate.c
src/plan/plan.h src/plan/fault.c
src/plan/work.c
src/plan/plan.c
src/plan/attention.h src/plan/attention_positions.c src/plan/attention.c
src/plan/attention_write.h src/plan/attention_write.c
src/plan/attention_fill.h src/plan/attention_fill.c src/plan/attention_share.c
src/plan/attention_decode.c
src/plan/attention_cut.h src/plan/attention_cut.c
src/plan/attention_plan.c
src/plan/attention_check.c src/plan/attention_print.c
src/plan/dispatch.c
src/plan/merge.c
src/plan/attention_run.c
"
MORE_PLANS="
src/plan/moe.h src/plan/moe_sort.c src/plan/moe_units.c src/plan/moe_check.c src/plan/moe_place.c src/plan/moe_move.c
src/plan/moe_combine.c src/plan/moe_look.c
src/plan/prefix.h src/plan/prefix_tree.c src/plan/prefix_given.c
src/plan/prefix_choose.c src/plan/prefix_plan.c src/plan/prefix_check.c
"
# Attention kernels: above the plans, in all parts. Their inner loops are included several times, so
# they are no file of their own in ptowsp.c but stand where they are included, with comments the first
# time.
ATTEND="
src/attend/attend.h src/attend/attend_simd.h
src/attend/attend_body.h
src/attend/attend_portable.c src/attend/attend_x86.c src/attend/attend_neon.c
src/attend/attend_block.c src/attend/attend.c src/attend/attend_run.c
"
TEMPLATES="src/attend/attend_body.h"
# Routes are generated for tests and sizing: no part has that.
DATA="
src/plan/moe_routes.c
src/base/block_list.h src/base/block_list.c
src/base/arena.h src/base/arena.c
src/base/earliest.h src/base/earliest.c
src/base/free_list.h
src/base/lookup.h
src/data/dtype_names.c src/data/dtype.c
src/data/array.h src/data/array.c
src/data/region.h src/data/region.c src/data/demand.h
src/data/names.h src/data/names.c
src/data/expr.h src/data/expr.c
src/data/code.h src/data/code.c
src/data/placement.h src/data/placement.c
src/data/column.h src/data/column.c src/data/digest.h src/data/digest.c
src/data/cost_model.h
src/data/attention_cost.c
src/data/linear.c
src/data/layout.h src/data/layout.c src/data/layout_join.c src/data/layout_rule.h src/data/layout_rule.c
src/data/relayout.c
"
RANKS="
src/ranks/ranks.h src/ranks/rounds.c src/ranks/collective.c
src/ranks/traffic.h src/ranks/traffic.c src/ranks/links.c src/ranks/reduce.c src/ranks/hub.c src/ranks/ranks.c src/ranks/ranks_relayout.c
"
# Who takes a ready entry: what simulation, cores and lanes share, and emitted trees carry.
POOLS="
src/engine/policy.h src/engine/ready.h src/engine/ready.c src/engine/ready_pool.h src/engine/ready_pool.c
"
# The lanes on it.
ENGINE="
src/engine/deque.h src/engine/deque.c src/engine/engine.h src/engine/take.c src/engine/lanes.c
"
# The floor that emitted trees carry as it is.
RUNTIME="
src/runtime/arrival.h
src/runtime/control_costs.h
src/runtime/binding_check.h src/runtime/binding_check.c src/runtime/plan_binding.h src/runtime/plan_binding.c
src/runtime/plan_batch.h src/runtime/plan_batch.c
src/runtime/walk_check.h src/runtime/walk_check.c
src/runtime/deps.h src/runtime/groups.c src/runtime/access.h src/runtime/access.c
    src/runtime/cells.h src/runtime/grid.h src/runtime/grid.c src/runtime/cells.c src/runtime/meet.h
    src/runtime/deps.c
src/runtime/precedence.h src/runtime/precedence.c
src/runtime/reorder.h src/runtime/reorder.c
src/runtime/issue.h src/runtime/issue.c
src/runtime/handshake.h
src/runtime/cores.h src/runtime/cores.c src/runtime/aicpu.c
"
# What PTOWSP_NO_TILES leaves out, and what it has instead.
TILES="
$ISA
src/kernel/list.h src/kernel/list.c
src/kernel/memory.h src/kernel/memory.c src/kernel/rotate.h src/kernel/rotate.c
src/kernel/waits.h src/kernel/waits_state.h src/kernel/waits_spans.c src/kernel/waits_loops.c src/kernel/waits.c
src/kernel/split.h src/kernel/split.c
src/kernel/unroll.h src/kernel/unroll.c src/kernel/proof.h src/kernel/proof_state.h src/kernel/proof_tiles.c src/kernel/proof_order.c src/kernel/proof.c
src/kernel/description.h src/kernel/description.c
src/kernel/body.h src/kernel/body.c
src/kernel/builder.h src/kernel/builder.c src/kernel/ops.c src/kernel/loops.c
src/kernel/forms.h src/kernel/forms.c src/kernel/indexing.c
src/kernel/passes.h src/kernel/passes.c
src/kernel/lower.h src/kernel/lower_tiles.c src/kernel/lower_vector.c src/kernel/lower_panel.c
src/kernel/lower_matmul.c
src/kernel/lower_loop.c src/kernel/lower_shape.c src/kernel/lower.c
src/kernel/legal.h src/kernel/legal.c src/kernel/legal_forms.c
src/kernel/cut.h src/kernel/cut.c
src/kernel/preload.h src/kernel/preload.c
src/kernel/compiled.h src/kernel/compiled.c src/kernel/tile_core.h src/kernel/tile_core.c src/kernel/execute.c src/kernel/demand.c src/kernel/print_kernel.c
src/kernel/read_kernel.c src/kernel/hash_kernel.c
src/kernel/body_text.h src/kernel/body_write.c
"
ABSENT=src/kernel/absent.h
WORKLOAD="
src/workload/module.h src/workload/module.c src/workload/spread.c
src/workload/plan_axis.c
src/workload/kernel.c src/workload/kernel_pto.c src/workload/kernel_collective.c src/workload/kernel_hash.c
src/workload/scalar.c
src/workload/build.h src/workload/build.c src/workload/variant.c src/workload/insert.c src/workload/place.h src/workload/place_steps.c src/workload/place.c
src/workload/workload.c src/workload/process.c
src/workload/control_fitted.h src/workload/schedule_control.h src/workload/schedule_control.c
src/workload/schedule.h src/workload/schedule.c src/workload/pools.c
src/workload/check.h src/workload/check.c src/workload/check_pipeline.c
src/workload/program.h src/workload/compile.h src/workload/read.h
src/workload/reads.c
src/workload/compile.c src/workload/task_list.c
src/workload/compile_pipeline.c src/workload/lifetime.c src/workload/blocks.c src/workload/program.c
src/workload/taint.c src/workload/conflict.c src/workload/control.h src/workload/control.c
src/workload/read_exprs.c src/workload/read_program.c
src/text/print_module.c src/text/print_program.c
src/text/parse.h src/text/lexer.c src/text/parse_expr.c src/text/parse_tree.c
src/text/parse_schedule.c src/text/parse_collective.c src/text/parse_spread.c src/text/parse_module.c src/text/save.c
"
TILE_WORKLOAD="src/workload/tile_kernel.c src/text/parse_body.c"
REST="
src/workload/expand.h src/workload/expand.c src/workload/task_list_walk.c src/workload/stretch.h src/workload/stretch.c
src/csp/channel.h src/csp/channel.c
src/csp/exchange.h src/csp/rules.h src/csp/exchange.c src/csp/deadlock.c
src/csp/pipeline.h src/csp/steps.c
src/csp/order.h src/csp/order.c src/csp/pipeline.c
src/csp/explore.h src/csp/explore_state.c src/csp/explore.c
src/time/rings.h src/time/rings.c
src/time/sim.h src/time/sim.c
src/time/hits.h src/time/hits.c src/time/contention.h src/time/contention.c
src/time/lanes.h src/time/lanes.c src/time/batch.c
src/time/control_threads.h
src/time/events.h src/time/nodes.h src/time/nodes.c src/time/control_threads.c
src/time/advance.c src/time/events.c
src/time/timeline.h src/time/timeline.c
src/result/edges.h src/result/edges.c src/result/recorder.h src/result/recorder.c
src/result/result.h src/result/result.c src/result/trace.c
src/base/start.h src/base/start.c
src/exec/bind.h src/exec/transient.h src/exec/transient.c src/exec/bind.c
src/exec/communicate.h src/exec/communicate.c src/exec/communicate_time.c src/exec/walk.h src/exec/walk.c
src/exec/run_pipelines.h src/exec/run_pipelines.c
src/exec/pace.h src/exec/pace.c src/exec/frontend.h src/exec/frontend_setup.c
src/exec/frontend_words.c src/exec/frontend_block.c src/exec/frontend.c
src/exec/workers.h src/exec/workers.c
src/exec/run.h src/exec/run.c src/exec/run_walk.c
src/exec/fingerprint.h src/exec/fingerprint.c src/exec/run_execute.c src/exec/run_explore.c
src/exec/together.c
src/exec/bound.c src/exec/run_start.c
src/graph/graph_state.h src/graph/graph_state.c src/graph/graph_kernel.c src/graph/graph_added.c src/graph/graph_seal.c
src/graph/graph_step.c src/graph/graph_lanes.c src/graph/graph_run.c
src/graph/graph.c
src/device/device_memory.h src/device/device_memory.c
src/device/device.h src/device/device.c
src/device/device_graph.c src/device/device_launch.c src/device/device_run.c
src/base/json.h src/report/report.h src/report/pipelines.c src/report/stats.c
src/report/label.h src/report/label.c
src/report/output.h src/report/output.c
src/report/picture.h src/report/tracks.c src/report/picture.c
src/report/tables.c src/report/chrome.c src/report/perfetto.c src/report/svg_style.h src/report/svg_style.c src/report/svg.c src/report/lifetimes.c src/report/edges_text.c src/report/dumps.c src/report/facts.h src/report/verdict.c src/report/report_run.c src/report/page.c src/report/decisions.c src/report/export.c src/report/export_ranks.c
src/search/search.h src/search/search_look.c src/search/search.c
src/tune/tuning_file.h src/tune/tuning_file.c
src/tune/tuning.h src/tune/tuning_table.c src/tune/tuning_line.c src/tune/tuning.c src/tune/tuning_compact.c
src/tune/measure.c src/tune/rails.c
"
FILES="$PLAN $MORE_PLANS $ATTEND $DATA $POOLS $ENGINE $RANKS $RUNTIME $TILES $WORKLOAD $TILE_WORKLOAD $REST"

# Of the files above, the planner of attention plans. In emitted trees it is behind the headers, as
# none but src/runtime/plan_batch.c calls it; a program without plans has neither (WSP_CORE_PLANS).
PLANNER="
src/base/cpu.h
src/plan/count.h src/plan/count.c
src/plan/plan.h src/plan/fault.c
src/plan/attention.h src/plan/attention_positions.c src/plan/attention.c
src/plan/attention_write.h src/plan/attention_write.c
src/plan/attention_fill.h src/plan/attention_fill.c src/plan/attention_share.c
src/plan/attention_decode.c
src/plan/attention_cut.h src/plan/attention_cut.c
src/plan/attention_plan.c
src/runtime/plan_batch.c
"
# And what only programs with pipelines have (WSP_CORE_PIPELINES).
EXCHANGE="
src/csp/channel.c src/csp/exchange.c src/csp/deadlock.c
"
# Those of the runtime of emitted trees: see src/npu/tree/aicpu/wsp_core.cpp.
CORE_FILES="
src/base/base.h src/base/base.c
src/base/block_list.h src/base/block_list.c
src/base/atomic.h src/base/heap.h src/base/free_list.h src/base/lookup.h
src/base/os.h src/base/os.c
src/base/number.h
src/base/sleeper.h src/base/sleeper.c
src/base/earliest.h src/base/earliest.c
src/base/text.h src/base/text.c
src/base/error.h src/base/error.c
src/data/dtype_names.c
src/data/array.h src/data/array.c
src/data/region.h src/data/region.c src/data/demand.h
src/data/placement.h src/data/placement.c
src/data/names.h src/data/names.c
$POOLS
$RUNTIME
src/csp/channel.h src/csp/channel.c
src/csp/exchange.h src/csp/rules.h src/csp/exchange.c src/csp/deadlock.c
src/time/rings.h src/time/rings.c
src/time/sim.h src/time/sim.c
src/time/hits.h src/time/hits.c src/time/contention.h src/time/contention.c
src/time/lanes.h src/time/lanes.c src/time/batch.c
src/time/control_threads.h
src/time/events.h src/time/nodes.h src/time/nodes.c src/time/control_threads.c
src/time/advance.c src/time/events.c
src/time/timeline.h src/time/timeline.c
"
CORE=include/wsp_core.h

# Where the part is that is committed.
PARTS=parts/attention

# And what the library has for kernels that are C functions (PTOWSP_AICORE), for the trees of those
# that call it: see src/npu/tree/aicore/wsp_merge.cpp.
MERGE_FILES="
src/base/cpu.h
src/base/math.h src/base/math.c
src/plan/merge.c
"

# The emitter: its own files; and in every tree, beside what is in src/npu/tree/: file, path there.
NPU="
src/base/number.h src/base/json.h
src/npu/npu.h
src/npu/npu_text.c
src/npu/hash.c
src/npu/npu_names.c
src/npu/files.c
src/npu/npu_expand.h src/npu/npu_expr.c src/npu/npu_expand_text.c
src/npu/npu_expand_pipeline.c src/npu/npu_expand.c
src/npu/kernels.h src/npu/kernel_parts.c src/npu/kernel_declare.c src/npu/kernel_insns.c src/npu/kernel_halves.c src/npu/native.c
src/npu/launches.c src/npu/own.c src/npu/npu_dispatch.c src/npu/npu_strides.c src/npu/kernels.c
src/npu/npu_program.c
src/npu/manifest.c
src/npu/documents.c
src/npu/tree.c
src/npu/simpler_test.c src/npu/simpler.c
src/npu/npu_emit.c
src/npu/record.c
src/npu/npu_build.h src/npu/npu_process.c src/npu/cache.c src/npu/npu_compile.c src/npu/npu_execute.c
src/npu/npu_measure.c src/npu/npu_build.c
"
TREE=src/npu/tree

# The reader of dumps.
DUMP="
src/dump/dump.h
src/dump/dump_base.c
src/dump/dump_json.c
src/dump/dump_read.c
src/dump/dump_link.c
src/dump/dump_region.c
src/dump/dump_order.c
src/dump/dump_check.c
src/dump/dump_note.c
src/dump/dump_rings.c
src/dump/dump_explain.c
src/dump/dump_print.c
src/dump/dump_replay.h
src/dump/dump_replay.c
src/dump/dump_show.c
src/dump/dump.c
"

# The runtime of trees beside wsp_core.h: a file of a tree, and the files of src/npu/tree/ in it, each
# below those that it includes. What is alone in its line is written as it is. Builds on a CPU compile
# the sources of aicpu/ and host/ as one, in this order: wsp_core.cpp is the first.
TREE_FILES="
CMakeLists.txt
Makefile
README.md
aicpu/wsp_core.cpp       aicpu/wsp_core.cpp
aicore/wsp_aicore.cpp    aicore/wsp_core_main.cpp
aicore/wsp_kernel.h      aicore/wsp_target.h aicore/wsp_args.h aicore/wsp_window.h aicore/wsp_product.h aicore/wsp_halves.h aicore/wsp_kernel.h aicore/wsp_dispatch.h
aicore/wsp_merge.cpp     aicore/wsp_merge.cpp
aicore/wsp_native.h      aicore/wsp_native.h
aicpu/wsp_aicpu.cpp      aicore/wsp_worker.cpp aicpu/wsp_clock.cpp aicpu/wsp_scheduler.cpp aicpu/wsp_cores.cpp aicpu/wsp_expand.cpp aicpu/wsp_device_main.cpp
aicpu/wsp_aicpu.h        aicore/wsp_worker.h aicpu/wsp_clock.h aicpu/wsp_scheduler.h
aicpu/wsp_expand.h       include/wsp_number.h aicpu/wsp_walk.h aicpu/wsp_expand.h
aicpu/wsp_pipeline.cpp   aicpu/wsp_pipeline_network.cpp aicpu/wsp_pipeline_turns.cpp aicpu/wsp_pipeline.cpp
aicpu/wsp_pipeline.h     aicpu/wsp_pipeline_network.h aicpu/wsp_pipeline.h
host/main.cpp            host/elements.h host/binding_text.h host/bindable.h host/recording.h host/replay.h host/timeline.h host/main.cpp
host/wsp_host.cpp        host/wsp_transients.h host/wsp_bindings.h host/wsp_run.h host/wsp_launch.h host/wsp_ascend.h host/wsp_transients.cpp host/wsp_bindings.cpp host/wsp_launch.cpp host/wsp_run.cpp host/wsp_ascend.cpp host/wsp_ascend_launch.cpp host/wsp_runner.cpp
host/wsp_runner.h        host/wsp_runner.h
include/wsp_abi.h        include/wsp_abi.h include/wsp_device.h
include/wsp_list.h       include/wsp_list.h
simpler/wsp_recording.py
simpler/wsp_simpler_kernel.h simpler/wsp_simpler_kernel.h
simpler/wsp_simpler_target.h simpler/wsp_simpler_target.h
simpler/wsp_walk.cpp     aicpu/wsp_expand.cpp host/wsp_transients.h host/wsp_bindings.h host/wsp_transients.cpp host/wsp_bindings.cpp host/elements.h host/binding_text.h simpler/wsp_ancestors.h simpler/wsp_submits.h
"

start=$PWD
cd "$(dirname "$0")/.."

fail() {
    echo "amalgamate: $1" >&2
    exit 1
}

case "${1-} $#" in
' 0' | '--check 1' | '--core 2' | '--fixed 2' | '--part 3') ;;
*) fail "usage: tools/amalgamate.sh [--check | --core FILE | --fixed FILE | --part attention|plan|no-tiles DIR]" ;;
esac
target=
for target; do :; done
case "$target" in
/* | '') ;;
*) target=$start/$target ;;
esac
case "${1-} ${2-}" in
'--part attention') macros='PTOWSP_ONLY_ATTENTION PTOWSP_ONLY_PLAN' ;;
'--part plan') macros=PTOWSP_ONLY_PLAN ;;
'--part no-tiles') macros=PTOWSP_NO_TILES ;;
'--part'*) fail "the parts are attention, plan and no-tiles" ;;
esac

listed=" $(echo $FILES $ABSENT $BLOCK $FACE $NPU $DUMP) "
for file in $(find src -type f ! -path "$TREE/*" ! -path src/README.md | sort); do
    case "$listed" in
    *" $file "*) ;;
    *) fail "$file is not in the list of $0" ;;
    esac
done

# Writes those files of a list whose names end in a letter: headers or sources.
of_kind() {
    kind=$1
    shift
    for file in "$@"; do
        case "$file" in
        *."$kind") echo "$file" ;;
        esac
    done
}

carriage_return=$(printf '\r')
# Each local include must name a file that came before.
check_files() {
    for file in "$@"; do
        [ -f "$file" ] || fail "$file is listed but missing"
    done
    wrong=$(awk '
        function base(path) { sub(/.*\//, "", path); return path }
        function say(what) { if (!found++) print FILENAME " " what }
        BEGIN { seen["ptowsp.h"] = 1 }
        FNR == 1 { if (last) seen[base(last)] = 1; last = FILENAME }
        /\r/ { say("has carriage returns") }
        /^#include ".*"$/ {
            split($0, part, "\"")
            if (!(base(part[2]) in seen)) say("includes " part[2] ", which is not below it")
        }' "$@")
    [ -z "$wrong" ] || fail "$wrong"
}
check_files $FILES $BLOCK $FACE
check_files $PLAN $MORE_PLANS $DATA $ABSENT
check_files $(of_kind h $CORE_FILES) $PLANNER $(of_kind c $CORE_FILES)
check_files $NPU
check_files $DUMP
wrong=$(grep -l "$carriage_return" $(find $TREE -type f) | head -n 1)
[ -z "$wrong" ] || fail "$wrong has carriage returns"
listed=" $(echo "$TREE_FILES" | awk '{ for (i = NF > 1 ? 2 : 1; i <= NF; i++) print $i }' | tr '\n' ' ') "
for file in $listed; do
    [ -f "$TREE/$file" ] || fail "$TREE/$file is listed but missing"
done
for file in $(find $TREE -type f | sort); do
    [ -z "$(tail -c 1 "$file")" ] || fail "$file does not end with a newline"
    case "$listed" in
    *" ${file#$TREE/} "*) ;;
    *) fail "$file is not in the list of $0" ;;
    esac
done

# Includes are told apart by their last name, so no two headers may share one.
same=$(echo $FILES $BLOCK $FACE | tr ' ' '\n' | sed 's#.*/##' | grep '\.h$' | sort | uniq -d)
[ -z "$same" ] || fail "two headers are called $same"

# Names that a file defines at its top level: functions, and structs, enums and types with a body. All
# files become one, so no name may be defined twice, but for the macros that a template undefines.
duplicates() {
    awk -v undefined=" $(sed -n 's/^#undef //p' $TEMPLATES | tr '\n' ' ')" '
    function note(kind, name) {
        key = kind " " name
        if (key in where && where[key] != FILENAME) print name " in " where[key] " and " FILENAME
        where[key] = FILENAME
    }
    /^[A-Za-z].*\(/ && !/^(typedef|#|extern)/ {
        head = $0
        sub(/\(.*/, "", head)
        if (head ~ /^(PTOWSP_STATIC_ASSERT|PTOWSP_DEFINE_)/) next
        if (FILENAME ~ /\.h$/ && $0 ~ /;$/) next
        n = split(head, word, /[ *]+/)
        pending = word[n]
    }
    pending != "" && /\{$/ { if (FILENAME ~ /\.c$/ || $0 !~ /;$/) note("function", pending); pending = "" }
    pending != "" && /;$/ { pending = "" }
    /^(typedef )?(struct|enum|union) [a-z_0-9]+ \{/ { name = $0; sub(/ \{.*/, "", name); n = split(name, word, " "); note("type", word[n]) }
    /^#define [A-Za-z_0-9]+/ { name = $2; sub(/\(.*/, "", name); if (!index(undefined, " " name " ")) note("macro", name) }
' "$@"
}
duplicates=$(duplicates $FILES; duplicates $NPU; duplicates $DUMP)
if [ -n "$duplicates" ]; then
    fail "defined twice: $duplicates"
fi

# Writes each file under a line with its name: as it is, or without its local includes.
bodies_of() {
    for file in "$@"; do
        echo
        printf '// == %s %s\n' "$file" "$(printf '%*s' $((94 - ${#file})) '' | tr ' ' =)"
        cat "$file"
    done
}
bodies() {
    files=
    for file in "$@"; do
        case " $TEMPLATES " in
        *" $file "*) ;;
        *) files="$files $file" ;;
        esac
    done
    bodies_of $files | awk -v templates="$TEMPLATES" '
        BEGIN {
            count = split(templates, path, " ")
            for (i = 1; i <= count; i++) { name = path[i]; sub(/.*\//, "", name); at[name] = path[i] }
        }
        /^#include "/ {
            split($0, part, "\"")
            while (part[2] in at && (getline line < at[part[2]]) > 0) {
                if (!copies[part[2]] || line !~ /^ *(\/\/|$)/) print line
            }
            close(at[part[2]])
            copies[part[2]]++
            next
        }
        { print }'
}

# Writes a file of the runtime of trees: those of src/npu/tree/ in it, one below the other. Includes
# name the files of the tree; those of itself fall away.
tree_file() {
    target=$1
    shift
    echo "// Generated by tools/amalgamate.sh of ptowsp from files of its src/npu/tree/:"
    echo "//"
    printf '//      %s\n' "$@"
    echo "//"
    echo "// The same in every tree of this version. MIT licence, see LICENSE."
    for file in "$@"; do
        bodies_of "$TREE/$file" | awk -v list="$TREE_FILES" -v target="$target" '
        function base(path) { sub(/.*\//, "", path); return path }
        BEGIN {
            lines = split(list, line, "\n")
            for (i = 1; i <= lines; i++) {
                count = split(line[i], word, " ")
                for (k = 2; k <= count; k++) {
                    room = base(word[k])  # of several files, the one that is written or the first
                    if (!(room in in_file) || word[1] == target) in_file[room] = word[1]
                }
            }
        }
        /^ *#include ".*"$/ {
            split($0, part, "\"")
            if (part[2] in in_file) {
                if (in_file[part[2]] == target) next
                sub(/".*"/, "\"" base(in_file[part[2]]) "\"")
            }
        }
        { print }'
    done
}

# Writes all files of trees that come from src/npu/tree/ into a directory; prints FILE:PATH of each.
tree_files() {
    echo "$TREE_FILES" | while read -r target rooms; do
        if [ -n "$rooms" ]; then
            mkdir -p "$1/$(dirname "$target")"
            tree_file "$target" $rooms | cat -s > "$1/$target"
            echo "$1/$target:$target"
        elif [ -n "$target" ]; then
            echo "$TREE/$target:$target"
        fi
    done
}

# Writes the files of trees as strings, a line a literal, and the function that finds them.
embedded() {
    echo
    echo "// ================================================================================================="
    echo "// Files that are the same in every tree"
    echo "// ================================================================================================="
    echo
    echo "#if defined(__GNUC__)"
    echo '#pragma GCC diagnostic push'
    echo '#pragma GCC diagnostic ignored "-Woverlength-strings"'
    echo "#endif"
    number=0
    for file in "$@"; do
        echo
        echo "static const char npu_fixed_$number[] ="
        sed 's/[\\"]/\\&/g; s/??/?\\?/g; s/??/?\\?/g; s/^/    "/; s/$/\\n"/; $s/$/;/' "${file%%:*}"
        number=$((number + 1))
    done
    echo
    echo "#if defined(__GNUC__)"
    echo '#pragma GCC diagnostic pop'
    echo "#endif"
    echo
    echo "NPU_INTERNAL npu_fixed npu_fixed_at(uint32_t i) {"
    echo "    npu_fixed fixed = {NULL, NULL, 0};"
    echo "    switch (i) {"
    number=0
    for file in "$@"; do
        echo "    case $number:"
        echo "        fixed.path = \"${file##*:}\";"
        echo "        fixed.data = npu_fixed_$number;"
        echo "        fixed.size = sizeof npu_fixed_$number - 1;"
        echo "        break;"
        number=$((number + 1))
    done
    echo "    default: break;"
    echo "    }"
    echo "    return fixed;"
    echo "}"
}

# The library: macros leave out whole files of it.
library_bodies() {
    bodies $PLAN
    echo
    echo "#if !defined(PTOWSP_ONLY_ATTENTION)"
    bodies $MORE_PLANS
    echo
    echo "#endif  // PTOWSP_ONLY_ATTENTION"
    bodies $ATTEND
    echo
    echo "#if !defined(PTOWSP_ONLY_PLAN)"
    bodies $DATA $POOLS $ENGINE $RANKS $RUNTIME
    echo
    echo "#if defined(PTOWSP_NO_TILES)"
    bodies $ABSENT
    echo
    echo "#endif  // absent"
    echo
    echo "#if !defined(PTOWSP_NO_TILES)"
    bodies $TILES
    echo
    echo "#endif  // PTOWSP_NO_TILES"
    bodies $WORKLOAD
    echo
    echo "#if !defined(PTOWSP_NO_TILES)"
    bodies $TILE_WORKLOAD
    echo
    echo "#endif  // PTOWSP_NO_TILES"
    bodies $REST
    echo
    echo "#endif  // PTOWSP_ONLY_PLAN"
}

# Writes a file as a part has it: without what the part's macros leave out, the first of which it defines.
part_of() {
    awk -v macros="$macros" '
    BEGIN { count = split(macros, macro, " ") }
    /^#define PTOWSP_H$/ { print; print ""; print "#ifndef " macro[1]; print "#define " macro[1] "  // this is a part of ptowsp"; print "#endif"; next }
    BEGIN { is_plan = macro[count] == "PTOWSP_ONLY_PLAN" }
    is_plan && /^\/\/ WHAT IT IS$/ {
        print "// THIS IS A PART of it, for engines: sections 1 to 12, 32 and 33, without pthreads. Section 9 plans"
        print "// attention, section 10 computes it on CPUs."
        print "//"
    }
    is_plan && /^\/\/ Larger work / { skips = "workloads" }
    skips == "workloads" && /^\/\/ WHAT IT DOES NOT DO$/ { skips = "" }
    is_plan && /^\/\/      layout        in tensors/ { skips = "words of tensors" }
    skips == "words of tensors" && /^\/\/      merge / { skips = "" }
    is_plan && /^\/\/ \(Two optional files / { skips = "files" }
    skips == "files" && /^\/\/$/ { skips = "" }
    is_plan && /^\/\/      module        axes,/ { skips = "words of workloads" }
    skips == "words of workloads" && /^\/\/ CONVENTIONS$/ { skips = ""; print "//" }
    is_plan && /^\/\/ To emit NPU code,/ { skips = "emitter" }
    skips == "emitter" && /^\/\/ The following macros/ { skips = "" }
    is_plan && /^\/\/ SIX PATHS, A PROGRAM EACH$/ { print "// A PROGRAM"; next }
    is_plan && /^\/\/ 2\. WORKLOAD: / { skips = "the paths" }
    /^\/\/ CONTENTS$/ { skips = "" }
    !skips { for (i in macro) if ($0 == "#if !defined(" macro[i] ")") skips = macro[i] }
    !skips
    $0 == "#endif  // " skips { skips = "" }
    ' "$1" | cat -s
}

# The header of a part, with contents of its own.
header_of() {
    part_of ptowsp.h > "$contents"
    awk -f tools/contents.awk "$contents" "$contents"
}

# Of sources, those that every tree has.
common_of() {
    for file in "$@"; do
        case " $(echo $PLANNER $EXCHANGE) " in
        *" $file "*) ;;
        *) echo "$file" ;;
        esac
    done
}

core=$(mktemp)
contents=$(mktemp)
library=$(mktemp)
fixed=$(mktemp)
emitter=$(mktemp)
dumps=$(mktemp)
shim=$(mktemp)
tree=$(mktemp -d)
part=$(mktemp -d)
trap 'rm -rf "$contents" "$library" "$fixed" "$shim" "$core" "$emitter" "$dumps" "$tree" "$part"' EXIT
awk -f tools/contents.awk ptowsp.h ptowsp.h > "$contents"
if ! cmp -s "$contents" ptowsp.h; then
    [ "${1-}" != --check ] || fail "the contents of ptowsp.h are not those of its sections; run tools/amalgamate.sh"
    [ $# -gt 0 ] || cp "$contents" ptowsp.h
fi
{
    echo "// Generated by tools/amalgamate.sh of ptowsp from its src/."
    echo "//"
    echo "// The part of ptowsp that its emitted trees run on, for aicpu/wsp_core.cpp, which compiles it, and"
    echo "// for those that call it; and merging, for aicore/wsp_merge.cpp. The same in every tree of this"
    echo "// version. MIT licence, see LICENSE."
    echo
    echo "#ifndef WSP_CORE_H"
    echo "#define WSP_CORE_H"
    echo
    echo "// A tree may be linked with the library, which has some of these functions, too."
    echo "#if defined(WSP_CORE_SOURCES)"
    echo '#define PTOWSP_API extern __attribute__((weak, visibility("hidden")))'
    echo "#elif !defined(PTOWSP_API)"
    echo '#define PTOWSP_API extern __attribute__((visibility("hidden")))'
    echo "#endif"
    echo '#include "ptowsp.h"'
    echo
    echo "#if defined(WSP_CORE_MERGE)"
    bodies $MERGE_FILES
    echo
    echo "#elif defined(WSP_CORE_LINE)"
    bodies src/runtime/handshake.h
    echo
    echo "#else"
    bodies $(of_kind h $CORE_FILES)
    echo
    echo "#if defined(WSP_CORE_SOURCES)"
    bodies $(common_of $(of_kind c $CORE_FILES))
    echo
    echo "#if defined(WSP_CORE_PLANS)"
    bodies $PLANNER
    echo
    echo "#endif  // WSP_CORE_PLANS"
    echo
    echo "#if defined(WSP_CORE_PIPELINES)"
    bodies $EXCHANGE
    echo
    echo "#endif  // WSP_CORE_PIPELINES"
    echo
    echo "#endif  // WSP_CORE_SOURCES"
    echo
    echo "#endif  // WSP_CORE_MERGE"
    echo
    echo "#endif  // WSP_CORE_H"
} | cat -s > "$core"
if [ "${1-}" = --core ]; then
    cmp -s "$core" "$target" || { cp "$core" "$target" && chmod 644 "$target"; }
    exit 0
fi
{
    echo "// Generated by tools/amalgamate.sh from src/: edit the files there, not this one."
    echo "//"
    echo "// ptowsp, the library. The manual is ptowsp.h. MIT licence, see LICENSE."
    echo
    echo "#ifndef PTOWSP_C"
    echo "#define PTOWSP_C"
    echo
    echo '#include "ptowsp.h"'
    library_bodies
    echo
    echo "#endif  // PTOWSP_C"
} | cat -s > "$library"
if [ "${1-}" = --part ]; then
    mkdir -p "$target"
    header_of > "$target/ptowsp.h"
    part_of "$library" > "$target/ptowsp.c"
    exit 0
fi
{
    echo "// Generated by tools/amalgamate.sh from src/isa/: edit the files there, not this one."
    echo "//"
    echo "// PTO-ISA tile instructions on the CPU, part of ptowsp. MIT licence, see LICENSE."
    echo
    echo "#ifndef PTOISA_SHIM_H"
    echo "#define PTOISA_SHIM_H"
    bodies src/base/number.h $ISA $BLOCK
    if [ -n "$(echo $FACE)" ]; then
        echo
        echo "#if defined(__cplusplus) && __cplusplus >= 201703L"
        bodies $FACE
        echo
        echo "#endif  // C++17"
    fi
    echo
    echo "#endif  // PTOISA_SHIM_H"
} | cat -s > "$shim"
embedded $(tree_files "$tree") "$core:$CORE" ptowsp.h:include/ptowsp.h "$shim:shim/ptoisa_shim.h" LICENSE:LICENSE > "$fixed"
if [ "${1-}" = --fixed ]; then
    { echo '#include "npu.h"' && cat -s "$fixed"; } > "$target"
    exit 0
fi
{
    echo "// Generated by tools/amalgamate.sh from src/npu/: edit the files there, not this one."
    echo "//"
    echo "// The emitter of ptowsp, section 30 of ptowsp.h. MIT licence, see LICENSE."
    echo
    echo "#ifndef PTOWSP_NPU_EMIT_C"
    echo "#define PTOWSP_NPU_EMIT_C"
    echo
    echo "#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)  // before all headers"
    echo "#define _POSIX_C_SOURCE 200809L"
    echo "#endif"
    echo
    echo '#include "ptowsp.h"'
    bodies $NPU
    cat "$fixed"
    echo
    echo "#endif  // PTOWSP_NPU_EMIT_C"
} | cat -s > "$emitter"
{
    echo "// Generated by tools/amalgamate.sh from src/dump/: edit the files there, not this one."
    echo "//"
    echo "// Dumps of PTO Runtime, section 31 of ptowsp.h. MIT licence, see LICENSE."
    echo
    echo "#ifndef PTOWSP_DUMP_C"
    echo "#define PTOWSP_DUMP_C"
    echo
    echo "#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)  // before all headers"
    echo "#define _POSIX_C_SOURCE 200809L"
    echo "#endif"
    echo
    echo '#include "ptowsp.h"'
    bodies $DUMP
    echo
    echo "#endif  // PTOWSP_DUMP_C"
} | cat -s > "$dumps"

macros=PTOWSP_ONLY_PLAN
header_of > "$part/ptowsp.h"
part_of "$library" > "$part/ptowsp.c"

if [ "${1-}" = --check ]; then
    cmp -s "$library" ptowsp.c || fail "ptowsp.c does not match src/; run tools/amalgamate.sh"
    cmp -s "$shim" ptoisa_shim.h || fail "ptoisa_shim.h does not match src/; run tools/amalgamate.sh"
    cmp -s "$emitter" ptowsp_npu_emit.c ||
        fail "ptowsp_npu_emit.c does not match src/npu/; run tools/amalgamate.sh"
    cmp -s "$dumps" ptowsp_dump.c || fail "ptowsp_dump.c does not match src/dump/; run tools/amalgamate.sh"
    for file in ptowsp.h ptowsp.c; do
        cmp -s "$part/$file" "$PARTS/$file" || fail "$PARTS/$file does not match; run tools/amalgamate.sh"
    done
    exit 0
fi
cmp -s "$library" ptowsp.c 2>/dev/null || { cp "$library" ptowsp.c && chmod 644 ptowsp.c; }
cmp -s "$shim" ptoisa_shim.h 2>/dev/null || { cp "$shim" ptoisa_shim.h && chmod 644 ptoisa_shim.h; }
cmp -s "$emitter" ptowsp_npu_emit.c 2>/dev/null ||
    { cp "$emitter" ptowsp_npu_emit.c && chmod 644 ptowsp_npu_emit.c; }
cmp -s "$dumps" ptowsp_dump.c 2>/dev/null || { cp "$dumps" ptowsp_dump.c && chmod 644 ptowsp_dump.c; }
mkdir -p "$PARTS"
for file in ptowsp.h ptowsp.c; do
    cmp -s "$part/$file" "$PARTS/$file" 2>/dev/null || { cp "$part/$file" "$PARTS/$file" && chmod 644 "$PARTS/$file"; }
done
