/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a statement: its local indices, by number; and boxes of their positions. */
#ifndef BACKEND_NKI_LABELS_H
#define BACKEND_NKI_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#define LABELS 32
typedef struct Labels {
    uint32_t n;
    uint8_t at[LABELS];
} Labels;

typedef struct Box {
    int64_t s[LABELS], n[LABELS];
} Box;

int64_t labels_count(Labels x, const Box *b);
bool labels_have(Labels x, uint32_t label);
Labels labels_one(uint32_t label);
Labels labels_join(Labels x, Labels y);

/* Cuts labels into boxes of at most `most` points: step sizes. */
void box_steps(Labels x, const Box *full, int64_t most, int64_t *step);
/* As many boxes, of equal sizes where the last would be a little one and their number divides the positions. */
void box_even(Labels x, const Box *full, int64_t *step);
/* How many boxes of such steps there are. */
int64_t box_count(Labels x, const Box *full, const int64_t *step);
/* The next box, or false past the last. `first` starts. */
bool box_next(Labels x, const Box *full, const int64_t *step, Box *box, bool first);

#endif
