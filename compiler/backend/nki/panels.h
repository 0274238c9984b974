/* SPDX-License-Identifier: Apache-2.0 */
/* A contraction as loops over its tiles (panels.c): what its loops have of either operand, and what is filled when. Shapes are in
 * elements, `bytes` are of a partition. */
#ifndef BACKEND_NKI_PANELS_H
#define BACKEND_NKI_PANELS_H

#include "backend/nki/contract.h"

#define BATCH_MOST 4 /* of an operand that is made before loops */
#define TAIL       4 /* steps of the sum taken tile by tile: longer than emptying a bank takes */

/* A tile, and the positions at which it begins. */
typedef struct Held {
    TileView view;
    Box box;
    Affine moves[2]; /* of the rows or columns, of the sum */
    Affine batch[BATCH_MOST];
    const struct PanelLoop *loop; /* the innermost around it */
    uint32_t depth;               /* all that are open */
} Held;

typedef struct Panel {
    Labels own;                  /* rows or columns that share a tile: */
    Labels outer;                /* those taken one by one around all others, */
    uint32_t label;              /* the one that is cut, */
    int64_t inner;               /* positions of those that are whole */
    int64_t tile, strip, packed; /* positions; packed: of the level that packs, or 0 */
    int64_t width;               /* positions that the panel has */
    bool
        view; /* it is no panel: each step is a view, which lies where it lies, or is made once for all that use it (view.c) */
    bool keeps; /* it is to be kept for several positions of `outer` */
    bool begun; /* are loops over `outer` open? */
    bool turns;
    bool again;   /* are there loops over the other operand that use a strip? */
    bool streams; /* each step is loaded when it is multiplied, into a tile of its own */
    bool
        lifted; /* all of it is made before loops around the statement, with which it does not move: */
    uint32_t depth; /* in so many loops, */
    int64_t bytes;  /* of a partition */
    Held panel,
        lines; /* of a view: where the block begins; lines: of a strip that is to be turned, the sum along them */
} Panel;

typedef struct Panels {
    Contraction *c;
    Lower *l;
    Panel side[2];          /* ROLE_M: stationary, ROLE_N: moving */
    Labels sums;            /* taken one by one around the others, */
    uint32_t k;             /* the one that is cut, */
    int64_t step;           /* and its positions that lie on partitions */
    uint32_t n_levels;      /* outside of the sum */
    struct PanelLoop *loop; /* the innermost that is open */
    bool
        mirrored; /* is the result its own transpose? Then blocks above the diagonal are that of others, */
    bool shared; /* and both sides have one panel */
} Panels;

/* The operand of a side. */
const Place *panels_place(const Panels *p, ScheduleRole side);

/* ---- loops (panel_fill.c) ---- */

/* Over a label as it is, by steps:
 *
 *     PanelLoop x = panels_loop(p, label, step);
 *     while (panels_next(p, &x)) { ... }
 *
 * The body is emitted once for all equal steps, which are a loop of the program if they are several, and once more for what is left. */
typedef struct PanelLoop {
    uint32_t label;
    int64_t step, done; /* positions */
    Affine first;       /* iteration */
    bool begun;
    bool open;  /* the body is that of a loop: over `var` */
    bool later; /* or that of a later iteration than the first */
    VarRef var;
    int64_t trips;
    Box full;
    Affine moves;
    struct PanelLoop *around;
} PanelLoop;

PanelLoop panels_loop(const Panels *p, uint32_t label, int64_t step);
/* From iteration `first` on; steps are equal. */
PanelLoop panels_loop_from(const Panels *p, uint32_t label, int64_t step, Affine first);
bool panels_next(Panels *p, PanelLoop *x);

/* ---- tiles ---- */

/* The tile begins at the positions that are open. */
Held panels_held(Panels *p, const Panel *s, TileView view);
/* How far the rows or columns, or the sum, are from where the tile begins, in units times `by`. */
Affine panels_distance(Panels *p, const Panel *s, const Held *h, bool sum, int64_t unit,
                       int64_t by);
/* `np` rows of `nf` elements of a tile, from that element on. */
TileView panels_view(Lower *l, TileView v, Affine at, int64_t np, int64_t nf);
/* What is open of a panel, at one step of the sum. */
TileView panel_part(Panels *p, const Panel *s);
void panel_make(Panels *p, ScheduleRole r);

/* ---- filling panels ---- */

/* Steps that the open positions of the sum are. */
int64_t panels_steps(const Panels *p);
/* Positions of the sum that are loaded and turned at a time. */
int64_t panels_piece(const Panels *p);

/* What is made in the first iterations of the loops over the other operand that began after the panel goes in a block of its own. */
typedef struct PanelOnce {
    uint32_t n;
    Guard *guard;
    int64_t times;
    VEC(Stmt *) out;
} PanelOnce;

/* False, and nothing done: these are past. */
bool panels_once(Panels *p, ScheduleRole r, PanelOnce *o);
void panels_once_open(Panels *p, PanelOnce *o);
void panels_once_end(Panels *p, const PanelOnce *o);

typedef enum PanelFill {
    FILL_NOT,
    FILL_BEFORE,
    FILL_KEPT,
    FILL_TURNED,
    FILL_STREAMING
} PanelFill;

PanelFill panel_fill_of(const Panel *s);
/* All steps that are open, of the operands that are filled so. */
void panels_fill(Panels *p, PanelFill fill);
/* The steps that are open, transposed. */
void panel_turn(Panels *p, ScheduleRole r);
/* Panels of the steps that are open, for operands that stream. */
void panels_stream(Panels *p);
/* The strip that is open; or all of them. */
void panel_fill_strip(Panels *p, ScheduleRole r);
void panel_fill_strips(Panels *p, ScheduleRole r);
/* An operand before the loops around, strip by strip. */
void panel_fill_before(Panels *p, ScheduleRole r);

/* ---- blocks (panels.c) ---- */

typedef struct Banks {
    TileView acc;
    TileView rows;           /* of a mirrored result: what is stored */
    int64_t tile, row;       /* elements from one tile of columns to the next, of rows */
    const PanelLoop *loop;   /* around them */
    const PanelLoop *pieces; /* over what is turned, a piece before it is multiplied; or null */
    bool later;              /* sums have begun */
    Held at[2];              /* where the block begins */
} Banks;

/* A strip of rows times a strip of columns, and what becomes of it. */
Banks panels_block(Panels *p);

/* mirrored.c: all of a result that is its own transpose. */
void panels_mirrored(Panels *p);

#endif
