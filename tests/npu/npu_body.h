// Walks a process of a description (pipeline_reference.h) as an emitted body would: ordinary loops
// that block in the words of a process, which are a parameter.

#ifndef NPU_BODY_H
#define NPU_BODY_H

#include "pipeline_random.h"

#include <vector>

template <typename Words> class npu_body {
  public:
    npu_body(Words &words, const sim_pipeline &p, const sim_bindings &b, int64_t round, int process,
             int64_t replica)
        : words_(words), p_(p), b_(b), round_(round), replica_(replica), variables_(SIM_STMT_MAX) {
        run(p.processes[process].body);
    }

  private:
    static uint64_t bits(int64_t value) {
        return static_cast<uint64_t>(value);
    }

    int64_t eval(int number) const {
        const sim_expr &e = p_.exprs[number];
        int64_t a = e.a ? eval(e.a) : 0, b = e.b ? eval(e.b) : 0;
        switch (e.op) {
        case SIM_NONE: break;
        case SIM_LITERAL: return e.value;
        case SIM_VARIABLE: return variables_[static_cast<size_t>(e.value)];
        case SIM_REPLICA: return replica_;
        case SIM_ROUND: return round_;
        case SIM_SYMBOL: return static_cast<int64_t>(b_.symbols[e.value]);
        case SIM_SLOT: return words_.slot(e.value);
        case SIM_ADD: return static_cast<int64_t>(bits(a) + bits(b));
        case SIM_SUB: return static_cast<int64_t>(bits(a) - bits(b));
        case SIM_MUL: return static_cast<int64_t>(bits(a) * bits(b));
        case SIM_REM: return b == 0 || b == -1 ? 0 : a % b;
        case SIM_EQUAL: return a == b;
        case SIM_LESS: return a < b;
        }
        return 0;
    }

    int64_t loop_count(const sim_stmt &stmt, int number) const {
        return stmt.loop == SIM_DENSE     ? stmt.count
               : stmt.loop == SIM_DYNAMIC ? b_.counts[number]
                                          : b_.lengths[eval(stmt.expr) & 3];
    }

    void run(int first) {
        for (int i = first; i >= 0 && words_.good(); i = p_.stmts[i].next) {
            run_stmt(p_.stmts[i], i);
        }
    }

    void run_stmt(const sim_stmt &stmt, int number) {
        int64_t value = stmt.expr && stmt.kind != SIM_FOR ? eval(stmt.expr) : 0;
        int64_t &variable = variables_[static_cast<size_t>(number)];
        switch (stmt.kind) {
        case SIM_FOR: {
            int64_t count = loop_count(stmt, number);
            for (int64_t i = 0; i < count && words_.good(); i++) {
                variable = i;
                run(stmt.body);
            }
            break;
        }
        case SIM_TASK: words_.task(value, number, stmt); break;
        case SIM_SEND_TASK:
            words_.task(value, number, stmt);
            words_.send(stmt.channel, value);
            break;
        case SIM_SEND: words_.send(stmt.channel, value); break;
        case SIM_CONSUME:
            for (int64_t token; words_.receive(stmt.channel, &token);) {
                variable = token;
                run(stmt.body);
            }
            break;
        case SIM_RECEIVE:
            if (int64_t token; words_.receive_one(stmt.channel, &token)) {
                variable = token;
                run(stmt.body);
            }
            break;
        case SIM_CLOSE: words_.close(stmt.channel); break;
        case SIM_WHEN: run(value ? stmt.body : stmt.otherwise); break;
        case SIM_SCOPE: run(stmt.body); break;
        case SIM_RECORD: words_.record(stmt.channel); break;
        case SIM_WAIT: words_.wait(stmt.channel); break;
        case SIM_SLOT_SET: words_.set_slot(stmt.slot, value); break;
        }
    }

    Words &words_;
    const sim_pipeline &p_;
    const sim_bindings &b_;
    int64_t round_, replica_;
    std::vector<int64_t> variables_;
};

#endif
