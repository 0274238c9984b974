/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a statement and boxes of their positions. */
#include "backend/nki/labels.h"
#include "backend/nki/nki.h"

int64_t labels_count(Labels x, const Box *b)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < x.n; i++) {
        n = sat_mul(n, b->n[x.at[i]]);
    }
    return n;
}

bool labels_have(Labels x, uint32_t label)
{
    for (uint32_t i = 0; i < x.n; i++) {
        if (x.at[i] == label) {
            return true;
        }
    }
    return false;
}

Labels labels_one(uint32_t label)
{
    return (Labels){1, {(uint8_t)label}};
}

Labels labels_join(Labels x, Labels y)
{
    for (uint32_t i = 0; i < y.n; i++) {
        if (!labels_have(x, y.at[i])) {
            x.at[x.n++] = y.at[i];
        }
    }
    return x;
}

void box_steps(Labels x, const Box *full, int64_t most, int64_t *step)
{
    int64_t count = 1;
    bool cut = false;
    for (uint32_t i = x.n; i-- > 0;) {
        int64_t n = full->n[x.at[i]];
        if (!cut && n * count <= most) {
            step[i] = n;
            count *= n;
        } else {
            step[i] = cut ? 1 : most / count > 1 ? most / count : 1;
            cut = true;
        }
    }
}

void box_even(Labels x, const Box *full, int64_t *step)
{
    for (uint32_t i = 0; i < x.n; i++) {
        int64_t n = full->n[x.at[i]], boxes = (n + step[i] - 1) / step[i];
        bool little = n % step[i] * 4 < step[i];
        step[i] = little && n % boxes == 0 ? n / boxes : step[i];
    }
}

int64_t box_count(Labels x, const Box *full, const int64_t *step)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < x.n; i++) {
        count = sat_mul(count, (full->n[x.at[i]] + step[i] - 1) / step[i]);
    }
    return count;
}

bool box_next(Labels x, const Box *full, const int64_t *step, Box *box, bool first)
{
    for (uint32_t i = x.n; i-- > 0;) {
        uint32_t label = x.at[i];
        int64_t start = first ? full->s[label] : box->s[label] + step[i];
        int64_t end = full->s[label] + full->n[label];
        bool fits = start < end;
        box->s[label] = fits ? start : full->s[label];
        box->n[label] = step[i] < end - box->s[label] ? step[i] : end - box->s[label];
        if (fits && !first) {
            return true;
        }
    }
    return first;
}
