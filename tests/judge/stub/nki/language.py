# SPDX-License-Identifier: Apache-2.0
# ndarray is traced like kernel code; sbuf and pmem are names the tracer knows.
import nki


def ndarray(shape, dtype, buffer=None, name="t"):
    if buffer == nki.language.psum:
        return pmem.view(dtype, shape, name)                    # noqa: F821
    assert buffer == nki.language.sbuf
    return sbuf.view(dtype, shape, name)                        # noqa: F821
