/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of FIPS 180-4's examples, and of texts about the ends of blocks. */
#include <string.h>

#include "base/sha256.h"
#include "support/test.h"

static void digest_is(const char *text, size_t n, const char *expected)
{
    char hex[SHA256_HEX_BYTES];
    sha256_hex((Str){text, n}, hex);
    assert_string_equal(hex, expected);
}

static void test_digests_are_the_published_ones(void **state)
{
    digest_is("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_is("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    digest_is(two, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void test_ends_of_blocks(void **state)
{
    char text[200];
    memset(text, 'a', sizeof text);
    digest_is(text, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    digest_is(text, 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    digest_is(text, 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
    digest_is(text, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    digest_is(text, 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
    digest_is(text, 120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c");
    digest_is(text, 200, "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5");
}

TESTS(TEST(test_digests_are_the_published_ones), TEST(test_ends_of_blocks))
