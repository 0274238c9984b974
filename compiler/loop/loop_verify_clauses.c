/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with clauses of tile statements. */
#include "loop/loop_verify_clauses.h"

#include "loop/clauses.h"
#include "loop/places.h"
#include "loop/term.h"

const char *no_problem(const ClauseContext *x, const Stmt *s)
{
    (void)x;
    (void)s;
    return NULL;
}

const char *scan_problem(const ClauseContext *x, const Stmt *s)
{
    (void)x;
    bool scan = s->fold != OP_COPY && s->begins && s->n_first == 0 && s->schedule == NULL &&
                expr_load_of(s->value, s->dst) == NULL;
    return scan
               ? NULL
               : "a scan is a fold that always begins, is no product and reads nothing that it "
                 "writes";
}

const char *decays_problem(const ClauseContext *x, const Stmt *s)
{
    (void)x;
    bool product = s->value->kind == EXPR_OP && s->value->op == OP_MUL;
    return s->scan > 0 && s->fold == OP_SUM && !s->exclusive && product
               ? NULL
               : "what decays is a running sum of products";
}

const char *sums_problem(const ClauseContext *x, const Stmt *s)
{
    const Kernel *k = x->k;
    BufRef buf = s->sums - 1;
    DType t = k->bufs.at[buf].dtype, made = DTYPE_NONE;
    if (tile_kind(s) != TILE_MAP || s->schedule != NULL || buf == s->dst) {
        return "only a map has sums beside it, in another buffer";
    }
    if (!buffer_is_writable(k, buf)) {
        return "a map adds up into what is only read by this kernel";
    }
    if (expr_load_of(s->value, buf) != NULL) {
        return "a map reads the sums that it adds to";
    }
    bool sums = op_result_type(OP_SUM, &t, 1, &made) && made == t;
    return sums && tile_summed(k, s)->dtype == t
               ? NULL
               : "the values of a map and its sums are of two types";
}

/* The loops that it begins with stand around it, and run in order. */
const char *begins_problem(const ClauseContext *x, const Stmt *s)
{
    for (uint32_t i = 0; i < s->n_first; i++) {
        if (!bounds_in_scope(x->bounds, s->first[i])) {
            return "a fold begins with what is no loop around it";
        }
        for (uint32_t p = 0; p < x->n_parallel; p++) {
            if (x->parallel[p]->loop->var == s->first[i]) {
                return "a fold begins with a loop whose iterations run at the same time";
            }
        }
    }
    return s->fold == OP_COPY && s->sums == 0 ? "what begins is no fold" : NULL;
}

const char *places_problem(const ClauseContext *x, const Stmt *s)
{
    Scattered places;
    return stmt_places(x->scratch, x->k, s, &places)
               ? NULL
               : "the value is not what belongs to one position of an index alone";
}

const char *hint_problem(const ClauseContext *x, const Stmt *s)
{
    (void)s;
    return x->k->form == LOOP_LEGAL ? NULL
                                    : "only statements of form legal say how they are run";
}

const char *specialised_problem(const ClauseContext *x, const Stmt *s)
{
    FoldTerm term;
    bool product = tile_kind(s) == TILE_MATMUL || fold_term(x->k, s->fold, s->value, &term);
    return product ? hint_problem(x, s) : "only products are specialised";
}

const char *clauses_problem(const ClauseContext *x, const Stmt *s)
{
    static ClauseProblem *const row[] = {
#define STMT_CLAUSE(of, word, operand, field, expected, problem) problem,
#define BUFFER_CLAUSE(...)                                       no_problem,
#include "loop/clauses.def"
    };
    const char *problem = NULL;
    Clauses has;
    clauses_of(x->k, s, &has);
    for (uint32_t i = 0; problem == NULL && i < has.n; i++) {
        problem = row[has.at[i].row](x, s);
    }
    return problem;
}
