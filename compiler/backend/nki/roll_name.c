/* SPDX-License-Identifier: Apache-2.0 */
/* Names of tiles by what they are for: `a_tile` was loaded from A, `a_t` is a transpose of such
 * a tile, `acc` collects matmuls, `c_tile` goes to C. What has no such role keeps the word its
 * maker gave it. */
#include "backend/nki/roll.h"
#include "loop/walk.h"

#include <string.h>

typedef struct Role {
    const char *from, *to; /* names of HBM tensors */
    bool turned, sums;
} Role;

static const char *lower_case(Arena *a, const char *name)
{
    char *out = str_format(a, "%s", name);
    for (size_t i = 0; out[i] != '\0'; i++) {
        out[i] = out[i] >= 'A' && out[i] <= 'Z' ? (char)(out[i] - 'A' + 'a') : out[i];
    }
    return out;
}

/* `psum_12` -> `psum` */
static const char *stem(Arena *a, const char *name)
{
    size_t n = strlen(name);
    while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9') {
        n--;
    }
    return n > 1 && n < strlen(name) && name[n - 1] == '_'
               ? str_format(a, "%.*s", (int)(n - 1), name)
               : name;
}

/* Does the copy exchange its two indices? */
static bool is_turn(const Stmt *s, const Expr *load)
{
    return s->at[0].n == 1 && load->at[0].n == 1 && s->n_index == 2 &&
           s->at[0].term[0].var != load->at[0].term[0].var;
}

static void note_copy(const Kernel *k, const Stmt *s, const Expr *load, Role *role)
{
    Role *dst = &role[s->dst], *src = &role[load->buf];
    if (!nki_on_chip(k, load->buf)) {
        dst->from = dst->from == NULL ? k->bufs.at[load->buf].name->text : dst->from;
    } else if (!nki_on_chip(k, s->dst)) {
        src->to = src->to == NULL ? k->bufs.at[s->dst].name->text : src->to;
    } else if (dst->from == NULL && !dst->sums) {
        bool turn = is_turn(s, load);
        dst->from = src->from == NULL && turn ? stem(k->arena, k->bufs.at[load->buf].name->text)
                                              : src->from;
        dst->turned = src->turned != turn;
    }
}

static const char *role_name(Roll *r, BufRef b, const Role *role)
{
    const Buffer *buf = &r->k->bufs.at[b];
    Arena *a = r->arena;
    if (buf->space == SPACE_ACC) {
        return role->sums ? "acc"
               : role->turned && role->from != NULL
                   ? str_format(a, "%s_t_psum", lower_case(a, role->from))
                   : "in_psum";
    }
    if (!nki_on_chip(r->k, b)) {
        return buf->param >= 0 ? buf->name->text : stem(a, buf->name->text);
    }
    if (role->from != NULL) {
        return str_format(a, role->turned ? "%s_t" : "%s_tile", lower_case(a, role->from));
    }
    return role->to != NULL ? str_format(a, "%s_tile", lower_case(a, role->to))
                            : stem(a, buf->name->text);
}

void roll_names(Roll *r)
{
    const Kernel *k = r->from;
    Role *role = ARENA_ARRAY(r->arena, k->bufs.n + 1, Role);
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        const Expr *e = nki_bare(s->value);
        if (s->fold == OP_SUM && k->bufs.at[s->dst].space == SPACE_ACC) {
            role[s->dst].sums = true;
        } else if (e->kind == EXPR_LOAD && s->fold == OP_COPY) {
            note_copy(k, s, e, role);
        }
    }
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        vec_push(r->arena, &r->hint, role_name(r, b, &role[b]));
    }
}
