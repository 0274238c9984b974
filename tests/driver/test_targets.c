/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets holds what the build found, each complete. */
#include <string.h>

#include "base/ctx.h"
#include "driver/targets.h"
#include "support/test.h"

static void every_target_is_found_by_its_name_and_complete(void **state)
{
    uint32_t n = 0;
    for (; target_at(n) != NULL; n++) {
        const Target *t = target_at(n);
        assert_ptr_equal(target_find(t->name), t);
        assert_true(t->summary != NULL && t->machine != NULL && t->passes[0].run != NULL &&
                    t->verify != NULL && t->emit != NULL);
        assert_true(t->machine->tile.line > 0 && t->machine->tile.rows > 0);
    }
    assert_true(n >= 2);
    assert_null(target_at(n + 1));
}

static void the_names_are_listed_for_messages(void **state)
{
    Ctx c;
    ctx_init(&c);
    Usage usage;
    usage_init(&usage, &c.arena, "tdslc");
    assert_null(target_named(&c.arena, "'c'", &usage));
    assert_non_null(strstr(usage.message.at, " 'c'"));
    assert_non_null(strstr(usage.message.at, " 'null'"));
    assert_null(target_find(""));
    ctx_release(&c);
}

TESTS(TEST(every_target_is_found_by_its_name_and_complete),
      TEST(the_names_are_listed_for_messages))
