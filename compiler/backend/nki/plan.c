/* SPDX-License-Identifier: Apache-2.0 */
/* What a printed module says of its tiles, of the time that it takes, and of what it is called with. */
#include "backend/nki/cores.h"

void nki_print_plan(const Kernel *k, const NkiCost *cost, Text *out)
{
    NkiCost c = *cost;
    const NkiChip *chip = nki_chip(k->target);
    if (nki_lnc(k) > 1) {
        text_printf(out,
                    "For two cores: %s[2](...), with NEURON_LOGICAL_NC_CONFIG=2. What follows "
                    "is of the first.\n",
                    nki_function(k));
    }
    text_printf(
        out,
        "Tile plan: %lld instructions, %lld multiply-adds on the Tensor engine, SBUF peak %lld "
        "of %lld bytes per partition, PSUM peak %lld of %d banks.\n",
        (long long)c.instructions, (long long)c.matmul_macs, (long long)c.sbuf_peak,
        (long long)chip->sbuf_bytes, (long long)c.psum_peak, NKI_PSUM_BANKS);
    text_printf(out,
                "Predicted (a model, nobody has measured it): %.3f us, busiest %s %.3f us; HBM "
                "read %lld and written %lld bytes (%lld are compulsory).\n",
                c.predicted_us, nki_engine_names[c.bound_by], c.busy_us[c.bound_by],
                (long long)c.read_bytes, (long long)c.written_bytes,
                (long long)c.compulsory_bytes);
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        if (k->bufs.at[i].space == SPACE_WORKSPACE) {
            text_printf(out, "Spill: %s goes through HBM.\n", nki_param(k, i));
        }
    }
    nki_print_ranges(k, out);
}

void nki_print_shape(const Kernel *k, BufRef buf, Text *out)
{
    const Dim *extent = NULL;
    uint32_t rank = nki_shape(k, buf, &extent);
    text_put(out, "(");
    for (uint32_t d = 0; d < rank; d++) {
        text_printf(out, "%s%lld", d == 0 ? "" : ", ", (long long)extent[d].n);
    }
    text_put(out, rank == 0 ? "1, 1)" : rank == 1 ? ",)" : ")");
}

/* A call with other shapes fails here, not deep inside. */
void nki_print_asserts(const Kernel *k, Text *out)
{
    bool first = true;
    for (uint32_t i = 0; i < k->args.n; i++) {
        BufRef buf = k->args.at[i].buf;
        if (k->args.at[i].role != ARG_RESULT) {
            text_printf(out, "%s%s.shape == ", first ? "assert " : " and ", nki_param(k, buf));
            nki_print_shape(k, buf, out);
            first = false;
        }
    }
    text_put(out, first ? "" : "\n");
    if (nki_lnc(k) > 1) {
        text_printf(out, "assert nl.num_programs(axes=0) == %d\n", nki_lnc(k));
    }
}
