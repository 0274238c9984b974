/* SPDX-License-Identifier: Apache-2.0 */
/* Index sets: the operations too long for a header. Words beyond the last member are zero by construction. */
#include "base/bits.h"

uint32_t bits_count(const uint64_t *s, uint32_t words)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < words; w++) {
        for (uint64_t left = s[w]; left != 0; left &= left - 1) {
            n++;
        }
    }
    return n;
}

uint32_t bits_next(const uint64_t *s, uint32_t words, uint32_t from)
{
    for (uint32_t w = from / 64; w < words; w++) {
        uint64_t left = s[w];
        if (w == from / 64) {
            left &= ~(uint64_t)0 << (from % 64);
        }
        if (left != 0) {
            uint32_t bit = 0;
            while ((left >> bit & 1) == 0) {
                bit++;
            }
            return w * 64 + bit;
        }
    }
    return UINT32_MAX;
}
