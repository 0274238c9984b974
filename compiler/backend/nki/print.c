/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a LEGAL kernel as one Python module: one call for each instruction, every argument by
 * keyword, every bound a literal or a sum of literals times loop variables. The text keeps to
 * what NKI 0.3.0 to 0.6.0 take alike. Decides nothing but the engine of plain copies and row sums, which go
 * where less is to do. */
#include "backend/nki/print.h"
#include "loop/walk.h"

#include <math.h>
#include <string.h>

/* What a tile is for: where its first value comes from, and where it is stored. */
static void put_use(Printer *p, BufRef buf)
{
    const TileUse *use = &p->use[buf];
    if (use->made == NULL && use->to == NULL) {
        return;
    }
    text_put(p->out, "  # ");
    if (use->made != NULL) {
        text_put(p->out, use->made);
        text_put(p->out, use->from == NULL ? "" : use->from);
    }
    if (use->to != NULL) {
        text_printf(p->out, "%sto %s", use->made == NULL ? "" : ", ", use->to);
    }
}

/* Notes the uses of an instruction's operands. */
static void note_use(Printer *p, const Instr *i)
{
    TileUse *dst = &p->use[i->dst.buf];
    const char *from = instr_reads(i) ? print_source(p, i) : "";
    if (i->kind == INSTR_DMA && !i->dst.on_chip) {
        TileUse *src = &p->use[i->a.buf];
        src->to = src->to == NULL ? nki_result(p->k, i->dst.buf) : src->to;
    } else if (!dst->seen && i->kind == INSTR_DMA) {
        *dst = (TileUse){.made = "from ", .from = from};
    } else if (!dst->seen && i->kind == INSTR_TRANSPOSE) {
        *dst = (TileUse){.made = "transpose of ", .from = from};
    } else if (!dst->seen && i->kind == INSTR_COPY) {
        *dst = (TileUse){.made = "copy of ", .from = from};
    } else if (!dst->seen && i->kind == INSTR_MATMUL) {
        *dst = (TileUse){.made = "sums of products"};
    }
    if (i->dst.on_chip) {
        dst->seen = true;
    }
}

static void put_new(Printer *p, const char *name, BufRef buf, const char *space)
{
    const Buffer *b = &p->k->bufs.at[buf];
    int64_t bank = nki_bank(p->k, buf);
    if (bank > 0) {
        text_printf(p->out, "%s = [", name);
        put_use(p, buf);
        text_put(p->out, "\n");
        int64_t n = b->extent[1].n / bank;
        for (int64_t i = 0; i < n; i++) { /* two a line */
            text_printf(
                p->out, "%snl.ndarray(shape=(%lld, %lld), dtype=nl.%s, buffer=nl.%s),%s",
                i % 2 == 0 ? "    " : " ", (long long)b->extent[0].n, (long long)p->wide[buf],
                nki_dtype(b->dtype), space, i % 2 == 1 || i + 1 == n ? "\n" : "");
        }
        text_put(p->out, "]\n");
        return;
    }
    text_printf(p->out, "%s = nl.ndarray(shape=", name);
    nki_print_shape(p->k, buf, p->out);
    text_printf(p->out, ", dtype=nl.%s, buffer=nl.%s)",
                nki_dtype(buffer_stored(&p->k->bufs.at[buf])), space);
    put_use(p, buf);
    text_put(p->out, "\n");
}

/* The op's name in nki.language. An op without one is never an instruction of its own: decode takes none. */
static const char *nki_word(Op op)
{
    CHECK(op_info(op)->nki != NULL && op_info(op)->nki[0] != '\0');
    return op_info(op)->nki;
}

static void put_activation(Printer *p, const Instr *i)
{
    if (nki_vector_reciprocal(i)) {
        text_put(p->out, "nisa.reciprocal(");
        print_key(p, "dst", ROLE_DST);
        print_key(p, ", data", ROLE_A);
        return;
    }
    text_put(p->out, "nisa.activation(");
    print_key(p, "dst", ROLE_DST);
    text_printf(p->out, ", op=nl.%s, ",
                i->recip          ? "reciprocal"
                : i->op == OP_MUL ? "square"
                                  : nki_word(i->op));
    print_key(p, "data", ROLE_A);
    if (i->s0.given) {
        text_put(p->out, ", scale=");
        print_scalar(p, ROLE_S0);
    } else if (i->scale < 1.0) {
        text_put(p->out, ", scale=-1.0");
    }
    if (i->s1.given) {
        text_put(p->out, ", bias=");
        print_scalar(p, ROLE_S1);
    }
    if (i->sums) {
        text_put(p->out, ", reduce_op=nl.add, ");
        print_key(p, "reduce_res", ROLE_SUM);
        text_printf(p->out, ", reduce_cmd=nisa.reduce_cmd.%s",
                    i->adds ? "reduce" : "reset_reduce");
    }
}

static void put_tensor_scalar(Printer *p, const Instr *i)
{
    text_put(p->out, "nisa.tensor_scalar(");
    print_key(p, "dst", ROLE_DST);
    print_key(p, ", data", ROLE_A);
    for (int n = 0; n < 2; n++) {
        const ScalarOperand *s = n == 0 ? &i->s0 : &i->s1;
        if (s->given) {
            text_printf(p->out, ", op%d=nl.%s, operand%d=", n, nki_word(s->op), n);
            print_scalar(p, n == 0 ? ROLE_S0 : ROLE_S1);
            text_put(p->out, s->reverse ? n == 0 ? ", reverse0=True" : ", reverse1=True" : "");
        }
    }
}

static void put_two(Printer *p, const char *name, const char *first, const char *second)
{
    text_printf(p->out, "nisa.%s(", name);
    print_key(p, "dst", ROLE_DST);
    print_key(p, first, ROLE_A);
    print_key(p, second, ROLE_B);
}

static const char *fold_name(Op fold)
{
    return nki_word(op_joined_by(fold, DTYPE_F32));
}

static void put_both(Printer *p, const Instr *i)
{
    text_put(p->out, "nisa.scalar_tensor_tensor(");
    print_key(p, "dst", ROLE_DST);
    print_key(p, ", data", ROLE_A);
    text_printf(p->out, ", op0=nl.%s, operand0=", nki_word(i->s0.op));
    print_scalar(p, ROLE_S0);
    text_printf(p->out, ", op1=nl.%s, ", nki_word(i->op));
    print_key(p, "operand1", ROLE_B);
    text_put(p->out, i->s0.reverse ? ", reverse0=True" : "");
    text_put(p->out, i->reverse ? ", reverse1=True" : "");
}

static void put_memset(Printer *p, const Instr *i)
{
    text_put(p->out, "nisa.memset(");
    print_key(p, "dst", ROLE_DST);
    text_put(p->out, ", value=");
    DType t = p->k->bufs.at[i->dst.buf].dtype;
    if (t == DTYPE_BOOL || t == DTYPE_I32) {
        text_i64(p->out, (int64_t)i->value);
    } else {
        print_number(p->out, i->value);
    }
}

/* A sum of loop variables, all of them times positive numbers. */
static void put_affine(Printer *p, Affine x)
{
    for (uint32_t i = 0; i < x.n; i++) {
        print_term(p, x.term[i].coef, p->k->vars.at[x.term[i].var].name->text, i == 0, false);
    }
    if (x.n == 0) {
        text_i64(p->out, x.base);
    } else if (x.base != 0) {
        text_printf(p->out, x.base < 0 ? " - %lld" : " + %lld",
                    (long long)(x.base < 0 ? -x.base : x.base));
    }
}

/* False for the first matmul of a group, true for the others. */
static void put_accumulate(Printer *p, const Stmt *s)
{
    const char *join = ", accumulate=";
    if (!s->begins) {
        text_printf(p->out, "%sTrue", join);
        return;
    }
    for (uint32_t i = 0; i < s->n_first; i++) {
        VarRef v = s->first[i];
        Affine least = p->least[v];
        if (least.n == 0 && p->range[v]->limit.n <= least.base + 1) {
            continue; /* one iteration */
        }
        text_printf(p->out, "%s%s > ", join, p->k->vars.at[v].name->text);
        put_affine(p, least);
        join = " or ";
    }
    text_put(p->out, join[0] == ',' ? ", accumulate=False" : "");
}

/* The dimensions that a reduction folds: the last ones of the tile. */
static void put_axis(Printer *p, const Instr *i)
{
    uint32_t end = i->a.n_free > 0 ? i->a.n_free : 1;
    bool one = i->fold_from + 1 == end;
    text_put(p->out, one ? ", axis=" : ", axis=[");
    for (uint32_t d = i->fold_from; d < end; d++) {
        text_printf(p->out, "%s%u", d == i->fold_from ? "" : ", ", d + 1);
    }
    text_put(p->out, one ? "" : "]");
}

static void put_position_pattern(Printer *p, const Instr *i)
{
    text_put(p->out, ", pattern=[");
    for (uint32_t d = 0; d < i->n_along; d++) {
        text_printf(p->out, "%s[%lld, %lld]", d == 0 ? "" : ", ", (long long)i->along[d].step,
                    (long long)i->along[d].n);
    }
    text_put(p->out, i->n_along == 0 ? "[0, 1]], offset=" : "], offset=");
    print_position(p, ROLE_DST, AXIS_BASE, 0);
    text_printf(p->out, ", channel_multiplier=%lld", (long long)i->down);
}

static void put_instr(Printer *p)
{
    const Instr *i = &p->at;
    bool scalar = i->kind != INSTR_DMA && nki_on_scalar(&p->balance, p->k, p->chip, i);
    switch (i->kind) {
    case INSTR_ALLOC:
        return;
    case INSTR_DMA:
        text_put(p->out, "nisa.dma_copy(");
        print_key(p, "dst", ROLE_DST);
        print_key(p, ", src", ROLE_A);
        break;
    case INSTR_COPY:
        text_put(p->out, scalar ? "nisa.activation(" : "nisa.tensor_copy(");
        print_key(p, "dst", ROLE_DST);
        print_key(p, scalar ? ", op=nl.copy, data" : ", src", ROLE_A);
        break;
    case INSTR_MEMSET:
        put_memset(p, i);
        break;
    case INSTR_MATMUL:
        put_two(p, "nc_matmul", ", stationary", ", moving");
        put_accumulate(p, i->stmt);
        break;
    case INSTR_TRANSPOSE:
        text_put(p->out, "nisa.nc_transpose(");
        print_key(p, "dst", ROLE_DST);
        print_key(p, ", data", ROLE_A);
        break;
    case INSTR_ACTIVATION:
        put_activation(p, i);
        break;
    case INSTR_SCALAR:
        if (scalar) {
            text_put(p->out, "nisa.activation(");
            print_key(p, "dst", ROLE_DST);
            print_key(p, ", op=nl.copy, data", ROLE_A);
            text_put(p->out, ", scale=");
            print_scalar(p, ROLE_S0);
            break;
        }
        put_tensor_scalar(p, i);
        break;
    case INSTR_TENSOR:
        if (scalar) {
            put_activation(p, i);
            break;
        }
        put_two(p, "tensor_tensor", ", data1", ", data2");
        text_printf(p->out, ", op=nl.%s", nki_word(i->op));
        break;
    case INSTR_BOTH:
        put_both(p, i);
        break;
    case INSTR_PREDICATED:
        put_two(p, "tensor_copy_predicated", ", predicate", ", src");
        break;
    case INSTR_IOTA:
        text_put(p->out, "nisa.iota(");
        print_key(p, "dst", ROLE_DST);
        put_position_pattern(p, i);
        break;
    case INSTR_AFFINE:
        text_put(p->out, "nisa.affine_select(");
        print_key(p, "dst", ROLE_DST);
        put_position_pattern(p, i);
        print_key(p, ", on_true_tile", ROLE_A);
        text_put(p->out, ", on_false_value=");
        print_number(p->out, i->value);
        text_printf(p->out, ", cmp_op=nl.%s", nki_word(i->op));
        break;
    case INSTR_SCAN:
        text_put(p->out, "nisa.tensor_tensor_scan(");
        print_key(p, "dst", ROLE_DST);
        print_key(p, ", data0", ROLE_A);
        print_key(p, ", data1", ROLE_B);
        text_put(p->out, ", initial=");
        print_number(p->out, i->op == OP_SUM ? 0.0 : i->op == OP_RMAX ? -INFINITY : INFINITY);
        text_printf(p->out, ", op0=nl.%s, op1=nl.%s",
                    i->op == OP_SUM ? "multiply" : fold_name(i->op), fold_name(i->op));
        break;
    case INSTR_REDUCE:
        if (scalar) {
            text_put(p->out, "nisa.activation(");
            print_key(p, "dst", ROLE_A);
            print_key(p, ", op=nl.copy, data", ROLE_A);
            print_key(p, ", reduce_op=nl.add, reduce_res", ROLE_DST);
            text_put(p->out, ", reduce_cmd=nisa.reduce_cmd.reset_reduce");
            break;
        }
        text_put(p->out, "nisa.tensor_reduce(");
        print_key(p, "dst", ROLE_DST);
        text_printf(p->out, ", op=nl.%s, ", fold_name(i->op));
        print_key(p, "data", ROLE_A);
        put_axis(p, i);
        break;
    }
    text_put(p->out, ")\n");
}

/* Printable ASCII as it is, all else as a blank: what may stand in a comment or docstring. */
static void put_safe(Text *out, Str s)
{
    for (size_t i = 0; i < s.n; i++) {
        bool plain = s.at[i] >= 32 && s.at[i] < 127 && s.at[i] != '\\' && s.at[i] != '"';
        text_char(out, plain ? s.at[i] : ' ');
    }
}

static void put_origin(Printer *p, const Stmt *s)
{
    if (s->span.source == 0 || p->k->sources == NULL ||
        (p->commented && memcmp(&s->span, &p->span, sizeof s->span) == 0)) {
        return;
    }
    uint32_t line = 0, column = 0;
    source_position(p->k->sources, s->span, &line, &column);
    text_printf(p->out, "# line %u: ", line);
    Str text = source_get(p->k->sources, s->span.source)->places_only
                   ? str_from(s->name == NULL ? "" : s->name->text)
                   : source_line(p->k->sources, s->span.source, line);
    while (text.n > 0 && text.at[0] == ' ') {
        text.at++;
        text.n--;
    }
    put_safe(p->out, text);
    text_put(p->out, "\n");
    p->span = s->span;
    p->commented = true;
}

static void put_block(Printer *p, Stmt *const *body, uint32_t n);

static void put_copies(Printer *p)
{
    for (uint32_t i = 0; i < p->k->args.n; i++) {
        BufRef buf = p->k->args.at[i].buf;
        if (p->copied[i]) {
            text_printf(p->out, "nisa.dma_copy(dst=%s[...], src=%s[...])\n",
                        nki_result(p->k, buf), nki_param(p->k, buf));
        }
    }
}

/* Each core runs the text with a number of its own; or the first core runs all of it. */
static void put_core_loop(Printer *p, const Stmt *s)
{
    bool alone = s->range.limit.n < 2;
    text_printf(p->out,
                alone ? "if nl.program_id(axis=0) == 0:\n" : "%s = nl.program_id(axis=0)\n",
                p->k->vars.at[s->var].name->text);
    p->out->indent += alone;
    put_copies(p);
    p->loop[p->depth++] = s->var;
    p->range[s->var] = &s->range;
    put_block(p, s->body, s->n_body);
    p->depth--;
    p->out->indent -= alone;
}

static void put_for(Printer *p, const Stmt *s)
{
    CHECK(p->depth < LOOP_DEPTH_LIMIT);
    if (s->parallel) {
        put_core_loop(p, s);
        return;
    }
    text_printf(p->out, "for %s in range(", p->k->vars.at[s->var].name->text);
    if (s->range.start.n > 0 || s->range.start.base != 0) {
        put_affine(p, s->range.start);
        text_put(p->out, ", ");
    }
    if (s->window != NULL) {
        put_affine(p, s->window->hi);
        text_put(p->out, "):\n");
    } else {
        text_printf(p->out, "%lld):\n", (long long)s->range.limit.n);
    }
    p->loop[p->depth++] = s->var;
    p->range[s->var] = &s->range;
    p->least[s->var] = s->range.start;
    p->out->indent++;
    put_block(p, s->body, s->n_body);
    p->out->indent--;
    p->depth--;
}

/* The tests of a block, without what the loop's own range says. */
static void put_tests(Printer *p, const Stmt *s)
{
    for (uint32_t i = 0; i < s->n_guards; i++) {
        Guard g = s->guard[i];
        const char *var = p->k->vars.at[g.var].name->text;
        const Range *r = p->range[g.var];
        bool from = g.lo > r->start.base, to = g.hi < r->limit.n;
        text_put(p->out, i == 0 ? "if " : " and ");
        if (g.hi == g.lo + 1 && g.from.n == 0) {
            text_printf(p->out, "%s == %lld", var, (long long)g.lo);
            continue;
        }
        if (from || !to) {
            Affine lo = g.from;
            lo.base = g.lo;
            text_printf(p->out, "%s >= ", var);
            put_affine(p, lo);
        }
        text_put(p->out, from && to ? " and " : "");
        if (to) {
            text_printf(p->out, "%s < %lld", var, (long long)g.hi);
        }
    }
    text_put(p->out, s->n_guards > 0 ? ":\n" : "");
}

/* The block, its tests from `at` on: they say in which iterations of their loops it is run first. */
static void put_tested(Printer *p, const Stmt *s, uint32_t at)
{
    if (at == s->n_guards) {
        put_block(p, s->body, s->n_body);
        return;
    }
    VarRef v = s->guard[at].var;
    Affine around = p->least[v];
    p->least[v] = instr_least(around, &s->guard[at]);
    put_tested(p, s, at + 1);
    p->least[v] = around;
}

static void put_guarded(Printer *p, const Stmt *s)
{
    put_tests(p, s);
    p->out->indent += s->n_guards > 0;
    put_tested(p, s, 0);
    p->out->indent -= s->n_guards > 0;
}

static void put_tile(Printer *p, const Stmt *s)
{
    const char *why = NULL;
    CHECK(instr_decode(p->k, s, p->env, &p->at, &why)); /* all variables 0 */
    p->at.place = p->place++;
    put_origin(p, s);
    put_instr(p);
}

static void put_block(Printer *p, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_ALLOC) {
            Space space = p->k->bufs.at[s->buf].space;
            StmtWalk w;
            const Stmt *use = tile_first(&w, body + i, n - i); /* it begins for that */
            put_origin(p, use != NULL ? use : s);
            put_new(p, nki_param(p->k, s->buf), s->buf,
                    space == SPACE_ACC    ? "psum"
                    : space == SPACE_TILE ? "sbuf"
                                          : "private_hbm");
        } else if (s->kind == STMT_TILE) {
            put_tile(p, s);
        } else if (s->kind == STMT_BLOCK) {
            put_guarded(p, s);
        } else {
            put_for(p, s);
        }
    }
}

/* Before anything is printed: which engine each copy and row sum is for, decided in the order in
 * which they run, and what tiles are for. */
static bool choose_engine(void *user, const Instr *i)
{
    Printer *p = user;
    if (i->kind != INSTR_ALLOC) {
        note_use(p, i);
        int64_t *wide = &p->wide[i->dst.buf];
        *wide = i->dst.nf > *wide ? i->dst.nf : *wide;
    }
    if (i->kind != INSTR_DMA && i->kind != INSTR_ALLOC) {
        (void)nki_on_scalar(&p->balance, p->k, p->chip, i);
    }
    return true;
}

/* What steps of loops are called: all is printed once for that. */
static void name_steps(Printer *p)
{
    Printer other = *p;
    Text text;
    text_init(&text, p->k->arena);
    other.out = &text;
    other.noting = true;
    put_block(&other, p->k->body, p->k->n_body);
    p->names = other.names;
    tile_names_choose(&p->names, p->k);
}

/* ---- the module ---- */

void nki_print_kernel(const Kernel *k, const NkiCost *cost, const EmitOptions *o,
                      const char *note, Text *out)
{
    const NkiChip *chip = nki_chip(k->target);
    Printer p = {.k = k, .chip = chip, .out = out, .balance = nki_balance(k, chip)};
    const Stmt *bad = NULL;
    const char *why = NULL;
    p.env = ARENA_ARRAY(k->arena, k->vars.n + 1, int64_t);
    p.least = ARENA_ARRAY(k->arena, k->vars.n + 1, Affine);
    p.range = (const Range **)arena_array(k->arena, k->vars.n + 1, sizeof *p.range);
    p.use = ARENA_ARRAY(k->arena, k->bufs.n + 1, TileUse);
    p.wide = ARENA_ARRAY(k->arena, k->bufs.n + 1, int64_t);
    p.came_in = ARENA_ARRAY(k->arena, instr_places(k) + 1, bool);
    p.copied = ARENA_ARRAY(k->arena, k->args.n + 1, bool);
    for (uint32_t i = 0; i < k->args.n; i++) {
        p.copied[i] = nki_copied(k, k->args.at[i].buf, p.came_in);
    }
    CHECK(instr_walk_cores(k, choose_engine, &p, &bad, &why));
    out->indent_width = 4;
    text_put(out, "\"\"\"");
    put_safe(out, str_from(k->signature));
    text_put(out, "\n\nMade from ");
    put_safe(out, str_from(o->source_name == NULL ? "-" : o->source_name));
    text_printf(out, " by tdslc %s for %s. Dialect: NKI 0.3.0 to 0.6.0.\n" GENERATED_TERMS "\n",
                o->tool_version == NULL ? "" : o->tool_version, k->target);
    if (note != NULL) {
        text_printf(out, "%s\n", note);
    }
    nki_print_plan(k, cost, out);
    text_put(out, "\"\"\"\nimport nki\nimport nki.isa as nisa\nimport nki.language as "
                  "nl\n\n\n@nki.jit\n");
    text_printf(out, "def %s(", nki_function(k));
    bool first = true;
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (k->args.at[i].role != ARG_RESULT) {
            text_printf(out, "%s%s", first ? "" : ", ", nki_param(k, k->args.at[i].buf));
            first = false;
        }
    }
    text_put(out, "):\n");
    out->indent++;
    nki_print_asserts(k, out);
    name_steps(&p);
    tile_names_print(&p.names, out);
    for (uint32_t i = 0; i < k->args.n; i++) {
        BufRef buf = k->args.at[i].buf;
        if (k->args.at[i].role == ARG_RESULT || k->args.at[i].role == ARG_INOUT) {
            put_new(&p, nki_result(k, buf), buf, "shared_hbm");
        }
    }
    if (nki_lnc(k) < 2) {
        put_copies(&p);
    }
    put_block(&p, k->body, k->n_body);
    text_put(out, "return ");
    first = true;
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (k->args.at[i].role == ARG_RESULT || k->args.at[i].role == ARG_INOUT) {
            text_printf(out, "%s%s", first ? "" : ", ", nki_result(k, k->args.at[i].buf));
            first = false;
        }
    }
    text_put(out, "\n");
    out->indent--;
}
