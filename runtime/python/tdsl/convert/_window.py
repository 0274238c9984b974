# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling: a window that moves over an image."""
from __future__ import annotations

import functools
from typing import Any

from ._graph import ATOM, PRODUCT, Code, Node, Pos, flat


class Window(Node):
    """`orders`: which axes of the image, of the filter and of the result are batch, channel and then space; of the filter the channel that it gives comes first. Without
    a filter the window, of these `sizes`, is folded by `op`."""
    fold = True

    def __init__(self, image: Node, window: Node | None, orders: Any, strides: list[int], dilations: list[int], shape: Any, kind: str, sizes: Any = (), op: str = "sum") -> None:
        super().__init__(shape, kind)
        of_image, of_window, self.out = orders
        self.of_image, self.of_window = of_image, of_window
        image = flat(image, list(range(len(image.shape))))
        window = flat(window, list(range(len(window.shape)))) if window is not None else None
        self.operands, self.strides, self.dilations, self.op = [image] + ([window] if window is not None else []), strides, dilations, op
        self.sizes = [window.shape[k] for k in of_window[2:]] if window is not None else list(sizes)

    def own_code(self, ctx: Any, at: list[Pos]) -> Code:
        image = self.operands[0]
        at_image: list[Any] = [None] * len(at)
        at_window: list[Any] = [None] * len(at)
        at_image[self.of_image[0]] = at[self.out[0]]
        names: list[str] = []
        if self.of_window is None:
            at_image[self.of_image[1]] = at[self.out[1]]
        else:
            channel = ctx.digits([image.shape[self.of_image[1]]])
            at_image[self.of_image[1]] = at_window[self.of_window[1]] = channel
            at_window[self.of_window[0]] = at[self.out[1]]
            names += [name for _, name in channel.terms]
        for k, size in enumerate(self.sizes):
            inner = ctx.digits([size])
            names += [name for _, name in inner.terms]
            if self.of_window is not None:
                at_window[self.of_window[k + 2]] = inner
            at_image[self.of_image[k + 2]] = at[self.out[k + 2]].moved(self.strides[k], 0).plus(inner.moved(self.dilations[k], 0))
        codes = [x.code(ctx, place).within(PRODUCT) for x, place in zip(self.operands, (at_image, at_window))]
        code = functools.reduce(lambda a, b: f"{a} * {b}", codes)
        return Code(f"{self.op}[{', '.join(ctx.listed(name) for name in names)}]({code})" if names else code, ATOM if names else PRODUCT, self.kind)
