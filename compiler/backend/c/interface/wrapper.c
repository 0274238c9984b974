/* SPDX-License-Identifier: Apache-2.0 */
/* Files for callers in other languages: which there are, and for which kernels. */
#include <string.h>

#include "backend/c/interface/caller.h"
#include "dist/dist.h"

/* Without local kernels, which callers do not call. */
static void leave_out_locals(Arena *a, KernelModule *m, const ExportedName **name)
{
    KernelModule to = {.arena = m->arena, .source_name = m->source_name};
    ExportedName *names = ARENA_ARRAY(a, (size_t)m->kernels.n + 1, ExportedName);
    for (uint32_t k = 0; k < m->kernels.n; k++) {
        if (dist_owner(&m->kernels.at[k]->ranks).at == NULL) {
            names[to.kernels.n] = (*name)[k];
            vec_push(a, &to.kernels, m->kernels.at[k]);
        }
    }
    *m = to;
    *name = names;
}

void wrapper_emit(const KernelModule *all_kernels, const ExportedName *name,
                  const EmitOptions *o, const char *source, OutputSet *set)
{
    KernelModule own = *all_kernels;
    leave_out_locals(set->arena, &own, &name);
    const KernelModule *m = &own;
    static const struct {
        const char *name, *suffix, *mark;
        void (*emit)(const CallFile *, Text *);
    } all[] = {{"hpp", ".hpp", "//", hpp_emit},
               {"fortran", ".f90", "!", fortran_emit},
               {"rust", ".rs", "//", rust_emit},
               {"manifest", ".json", NULL, manifest_emit}}; /* JSON has no comments */
    const char *header = o->header_name != NULL ? o->header_name : "kernels.h";
    CallFile f = {set->arena,
                  m,
                  name,
                  header,
                  exported_stem(set->arena, header),
                  source,
                  o->tool_version != NULL ? o->tool_version : ""};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, o->wrapper) == 0) {
            Text out;
            text_init(&out, set->arena);
            if (all[i].mark != NULL) {
                generated_emit(&out, o, source, all[i].mark);
            }
            all[i].emit(&f, &out);
            vec_push(set->arena, &set->files,
                     ((OutputFile){all[i].suffix, NULL, text_str(&out)}));
        }
    }
}
