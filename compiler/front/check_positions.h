/* SPDX-License-Identifier: Apache-2.0 */
/* Positions between brackets: which names are indices there, over what these run, and what is read so. */
#ifndef FRONT_CHECK_POSITIONS_H
#define FRONT_CHECK_POSITIONS_H

#include "front/check_types.h"

/* ---- check_position.c ---- */
/* Which names stand for indices in the statement. */
void positions_scan(Kern *k, AstId statement);
/* `i`, `2*i + d - 1`, `n - 1 - i`, of known indices, dims and numbers; false after a report. */
bool position_affine(Kern *k, AstId id, Affine *out);
/* The labels of positions, each once: in the order of dimensions, in one the faster ones last. At most RANK_LIMIT. */
uint32_t positions_labels(const Affine *at, uint32_t rank, int32_t *label);
/* The positions noted from `first` on are of one tensor, which has these labels. */
void positions_are_of(Kern *k, uint32_t first, const int32_t *label, uint32_t n);
/* The value of such a position. */
CheckedExpr *position_number(Kern *k, AstId ast, Span span, Affine x);
/* The index that a condition begins with, `j` in `2*j <= i`; false where it begins with none. */
bool condition_index(Kern *k, AstId id, AstNode *name);
/* `<`, `<=`, `>` or `>=`. */
bool is_order(const AstNode *n);
/* Does a value stand in a position of this indexed tensor? */
bool gather_is(Kern *k, const AstNode *n);
/* Does a value stand in what is written for a position? */
bool position_is_value(Kern *k, AstId id);
/* Of a name alone between brackets on the right, in a dimension of this extent; false after a report that a position may be
 * meant. */
bool lone_name_is_index(Kern *k, const AstNode *n, Dim extent);
/* A new index of the left side. False after a report: it has one of this name. */
bool left_index(Kern *k, const AstNode *i, int32_t *label);

/* ---- check_split.c ---- */
/* x * y, of which one may have indices and the other open dims; false after a report. */
bool position_times(Kern *k, Span at, Affine *x, Affine y);
/* The positions of all dimensions of a value, none of them with a product of an index: *rank and *at become those of the shape
 * that it counts as, and *split that shape, null if it is its own. Each part is noted. False after a report. */
bool positions_split(Kern *k, uint32_t value, const Span *span, uint32_t *rank,
                     const Affine **at, const SplitShape **split);
/* Notes that `value` is read or assigned at position *x of a dimension. */
void position_note(Kern *k, uint32_t value, uint32_t axis, Affine x, Span span);

/* ---- check_range.c ---- */
/* Does the index stand in a sum so far? */
bool position_has(const Kern *k, VarRef label);
/* Indices that stand in sums alone get all the range that fits. */
void positions_infer(Kern *k);
/* Marks positions that leave what they read. */
void positions_check(Kern *k);

/* ---- check_read.c ---- */
/* What a value is read as: where all f64 but results are f32, results that are read are, too. A statement that computes in f64 reads them
 * as they are. */
DType type_when_read(const Kern *k, const Value *v);
CheckedExpr *expr_read(Kern *k, uint32_t value, AstId ast, Span span, const int32_t *label,
                       uint32_t rank);
/* A value written without indices. */
CheckedExpr *expr_whole(Kern *k, uint32_t value, AstId ast, Span at);
/* Refuses operands without indices beside others that have some. */
void whole_check(Kern *k);
/* Has the call its statements? Else it is none of a kernel. */
bool call_is_done(const Kern *k, AstId ast);
/* What such a call gives: its only result, or the one that the statement takes. */
CheckedExpr *call_read(Kern *k, AstId ast);
/* The value of one without indices; UINT32_MAX after a report. */
uint32_t call_value(Kern *k, AstId ast);
/* A value at what stands in the brackets of `list`; poison after a report. `ast`: the expression that it is. */
CheckedExpr *expr_indexed(Kern *k, AstId list, uint32_t value, AstId ast);
/* The position *out that is read in a dimension of the value, which is noted; *whole: an index alone, which runs over all of it.
 * False after a report. */
bool position_of_axis(Kern *k, uint32_t value, uint32_t axis, AstId id, Affine *out,
                      bool *whole);
/* Are there as many indices as the value has dimensions? False after a report. */
bool index_count_fits(Kern *k, const AstNode *n, uint32_t value);

/* ---- check_pieces.c ---- */
/* Does the left side have positions that are more than indices? */
bool left_has_positions(const Kern *k, const AstNode *left);
/* Which names of the body are assigned piece by piece. */
void pieces_scan(Kern *k);
/* How many pieces of the name are still to come, this one among them; 0: it is assigned whole. */
uint32_t pieces_left(Kern *k, Sym name);
/* One of them has been looked at; false: it was refused. */
void piece_done(Kern *k, Sym name, bool fine);
/* The statement's piece of `value` is looked at; with the last one, whether they cover it and where they meet. */
void piece_check(Kern *k, uint32_t value, const int32_t *label, uint32_t rank, const Affine *at,
                 const SplitShape *split, Span span, bool adds, bool last);

#endif
