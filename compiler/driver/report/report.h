/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the reports: what is told of a kernel, collected once and printed as text, as JSON, as a page and as a graph to be
 * drawn. Nothing is computed by a printer. Names are those of the source; numbers are for typical extents. */
#ifndef DRIVER_REPORT_REPORT_H
#define DRIVER_REPORT_REPORT_H

#include "driver/compile.h"
#include "dump/text.h"
#include "nest/uses.h"

/* Of the objects of --report=json: grows when a member goes or changes. docs/report.schema.json */
#define REPORT_JSON_VERSION 1

/* A value that is somewhere: parameters that are used, expressions, what is stored. Words may be null: nothing to say. */
typedef struct ReportValue {
    NodeRef node;
    Residence residence;
    const char *name;    /* T; %4 */
    const char *indices; /* [i,a], as it is computed; of a parameter none: "" */
    const char *type;    /* f64[o,v] */
    const char *lives; /* "tile", "workspace", ...; what grows with an open dim is a "block" */
    const char *level; /* of memory, by the machine's word; "registers" */
    const char
        *computes; /* "sum[k](A[i,k] * B[k,j])", expressions expanded; cut where it gets long */
    const char
        *levels; /* of a contraction: how it is cut inside of its loops, as nests write it */
    const char *in_place; /* the value or argument whose place it takes */
    const char *symmetry; /* "T[i,j] = T[j,i]": what is known, one equation after the other */
    const char
        *reason; /* why it is in memory, and up to which sizes it stays on chip all the same */
    const char *remedy; /* what would keep it out of memory */
    int64_t bytes;      /* where it lives: of its block; 0 in registers */
    int64_t whole;      /* of all of it */
    uint32_t group; /* from 1: the top-level item of the nest that computes it; 0: none does */
    uint32_t line;  /* of the source; 0: not known */
    UseList reads;  /* stored values and parameters, expressions expanded */
} ReportValue;

/* An item of the nest. */
typedef struct ReportItem {
    uint32_t depth, group;
    const char *index;  /* loop: i; i' inside of another i */
    const char *from;   /* loop: the index of the loop at whose tile it begins */
    const char *extent; /* loop: o, 16 */
    int64_t typical;    /* and as a number */
    uint32_t value;     /* leaf: which of the values */
} ReportItem;

/* A result that no leaf writes: it is delivered when all is done. */
typedef struct ReportLate {
    const char *name, *computes;
    UseList reads;
} ReportLate;

typedef struct ReportKernel {
    const Compilation *c;
    uint32_t kernel;
    const Nest *nest;
    const Graph *g;
    GraphNames names;
    VEC(ReportValue) values;  /* in the order of the graph */
    const uint32_t *value_of; /* [nodes]: 1 + its place there, or 0 */
    const ReportItem *items;  /* [nest->n_items] */
    uint32_t n_groups;
    VEC(ReportLate) late;
    Str source;                   /* its text, if the program is there: */
    uint32_t first_line, n_lines; /* and which lines these are */
    VEC(NodeRef)
    pairs; /* sums that look at each pair once, and values of which one of each pair is copied */
    int64_t parameters, results; /* bytes, each read or written once */
    const char *threads;         /* what they share; null: nothing is known of the target's */
    const NestCost *bound;       /* with the typical sizes bound; null: nothing is open */
} ReportKernel;

/* Grids that are told of beside the best one, at most. */
#define REPORT_GRIDS 6

/* A kernel on the ranks of --mesh or --ranks, at typical extents. */
typedef struct ReportRanks {
    uint32_t kernel;
    int32_t ranks;
    const char *mesh; /* "r:8,c:8" */
    const char *why;  /* not null: it has no plan for such a mesh */
    const DistPlan *plan;
    uint64_t memory, received; /* bytes of the rank that has most */
    uint64_t bound;            /* what any plan receives */
    double moving, computing;  /* seconds predicted */
    double imbalance;          /* most work of a rank over the mean */
    const char *grid;          /* "8 parts of m, 8 parts of n" */
    uint32_t n_other;          /* the next best grids */
    struct ReportGrid {
        const char *grid;
        double seconds;
    } other[REPORT_GRIDS];
} ReportRanks;
/* ranks.c. False: none were asked for, or there is no plan. */
bool report_ranks(const Compilation *c, uint32_t kernel, ReportRanks *out);
void report_ranks_text(const Compilation *c, uint32_t kernel, Text *out);
void report_ranks_json(const Compilation *c, uint32_t kernel, Text *out);

/* Lines of a source that are shown. */
#define REPORT_LINES 1500
static inline bool report_line_is_shown(const ReportKernel *r, uint32_t line)
{
    return line >= r->first_line && line - r->first_line < r->n_lines &&
           line - r->first_line < REPORT_LINES;
}

/* collect.c. In the compilation's arena. */
const ReportKernel *report_collect(const Compilation *c, uint32_t kernel);

/* names.c */
const char *report_value_name(const Graph *g, NodeRef n, Arena *arena);
/* In the largest unit of which there is one. */
void report_bytes(Text *out, int64_t bytes);
/* The index of a loop: that of its first value. */
const char *report_loop_index(const Nest *nest, GraphNames names, uint32_t loop);

/* expression.c: what the node computes, as the language writes it; cut after some hundred bytes. */
const char *report_expression(Arena *arena, const Nest *nest, GraphNames names, NodeRef n);
/* The same of a result that node `n` is, which may be a parameter or a number. */
const char *report_result(Arena *arena, const Nest *nest, GraphNames names, NodeRef n);
/* T[i,a]: a value read there. */
void report_access(const Access *access, const char *const *label, Text *out);

/* price.c */
#define REPORT_FORMS 5
/* What the model says of a nest: of the chosen one, of none at all, of the best that was turned down, and of the one that would
 * be chosen if -D made the typical sizes known; and what the target's own model says of the printed program, if it has one. */
typedef struct ReportForm {
    const char *name, *key; /* as a line of text, as a member of JSON */
    const NestCost *cost;   /* null: there is none */
    const char *binds; /* what takes most of its time: "arithmetic", a level, or an engine */
} ReportForm;
/* `printed` has room for one of the forms. */
void report_forms(const ReportKernel *r, NestCost *printed, ReportForm form[REPORT_FORMS]);
/* Multiply-adds a second of the kernel's contractions in full register tiles; 0: there are none. */
double report_peak(const ReportKernel *r);
/* Bytes of a cost as a whole number. */
int64_t report_whole(double bytes);
void report_price_text(const ReportKernel *r, Text *out);
/* A member `model` of the kernel's object. */
void report_price_json(const ReportKernel *r, Text *out);
/* The tree of loops and values, by the names of the source. */
void report_tree_line(const Nest *nest, Arena *arena, Text *out);

/* sizes.c, of a kernel with several nests: lines of text, a member `nests`. */
void report_sizes_text(const Machine *m, const Nest *nest, Arena *arena, Text *out);
void report_sizes_json(const Machine *m, const Nest *nest, Arena *arena, Text *out);

/* threads.c: what threads share, or why nothing: "share the loop over i; not the loop over j: ..." */
const char *report_threads(const Nest *nest, const Machine *machine, Arena *arena);
/* "; 16 threads: 14x, 1 % serial": the gain, and what one thread does alone. */
const char *report_gain_words(const Nest *nest, const Machine *machine, Arena *arena);
/* How many times faster the machine's threads are than one. */
double report_gain(const Nest *nest);
/* Warns -Wserial of kernels that take long and gain little by threads. */
void report_warn_serial(Ctx *ctx, const Nest *nest, const Machine *machine);

/* report.c: contractions planned together, and the order of each. */
void report_orders_text(const Compilation *c, Text *out);

/* html.c: the head of a page, with its style; and text of the user in HTML, which may hold any bytes of UTF-8. */
void report_page_begin(Text *out, const char *title);
void html_text(Text *out, const char *s);
void html_text_n(Text *out, Str s);
/* The same between two pieces of HTML. */
void html_in(Text *out, const char *before, const char *s, const char *after);
/* picture.c: the nest as nested boxes, the values at the level where they live, and who reads whom. */
void report_picture_nest(const ReportKernel *r, Text *out);
void report_picture_memory(const ReportKernel *r, Text *out);
void report_picture_graph(const ReportKernel *r, Text *out);

/* roofline.c: nothing where the target's model has no such numbers. */
void report_picture_roofline(const ReportKernel *r, Text *out);
void report_picture_moves(const ReportKernel *r, Text *out);

#endif
