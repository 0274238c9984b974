/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of a graph's text share. Nobody else includes this. */
#ifndef GRAPH_READ_PARTS_H
#define GRAPH_READ_PARTS_H

#include "dump/text.h"
#include "graph/graph.h"

typedef struct GraphReader {
    DumpReader *in;
    Ctx *ctx;
    Arena *scratch;
    Graph *g;
    Map value_of;    /* number in the text -> node */
    Map param_of;    /* Sym id -> param */
    VEC(Span) place; /* of each node in the text */
    /* The labels of the node at hand; their numbers are in the DumpReader. */
    VEC(Dim) extent; /* of each label; -1: not known */
    VEC(uint8_t) in_out;
    VEC(Generator) generators; /* of it, and of its terms */
    VEC(Generator) exchanges;
} GraphReader;

/* ---- graph_read.c ---- */
/* The number of a label that is called so here, a new one if need be. */
int32_t graph_reader_label(GraphReader *r, Sym name);
bool graph_reader_value(GraphReader *r, const Term *t, NodeRef *out);

/* ---- read_positions.c ---- */
/* `%1[2*a+b,0] ->` */
bool graph_read_viewed(GraphReader *r, Cursor *c, NodeSpec *spec);
/* `%1[a], %2[a+extent(m)] ->` */
bool graph_read_pieces(GraphReader *r, Cursor *c, NodeSpec *spec);
/* Is each label of a position one of the result's? */
bool graph_positions_have_labels(const GraphReader *r, const NodeSpec *spec);

#endif
