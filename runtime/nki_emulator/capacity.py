# SPDX-License-Identifier: Apache-2.0
"""Do the live tiles fit? Rules G3, G4 and G13, from the live ranges of a finished run.

A tile lives from the first instruction that touches it to the last, and takes its row of bytes
(rounded up to 4) in every partition, whichever partitions it uses; a PSUM tile takes whole
banks. Program order is what is checked: an allocator that reorders needs at least this much,
so what is refused here cannot be placed without spilling.
"""

from .errors import broken


def _cost(tensor, machine):
    if tensor.space == "psum":
        return -(-tensor.row_bytes // machine.bank_bytes)
    return -(-tensor.row_bytes // 4) * 4


def live_peak(tensors, machine, space):
    """(peak, tensor whose birth made it) for a space, in bytes (sbuf) or banks (psum)."""
    born, dying = {}, {}
    for tensor in tensors:
        if tensor.space == space and tensor.born is not None:
            born.setdefault(tensor.born, []).append(tensor)
            dying.setdefault(tensor.died, []).append(tensor)
    live, peak, culprit = 0, 0, None
    for at in sorted(set(born) | set(dying)):
        for tensor in born.get(at, ()):
            live += _cost(tensor, machine)
            if live > peak:
                peak, culprit = live, tensor
        for tensor in dying.get(at, ()):
            live -= _cost(tensor, machine)
    return peak, culprit


def _check_addresses(tensors, space, path):
    placed = [t for t in tensors if t.space == space and t.born is not None]
    manual = [t for t in placed if t.address is not None]
    if not manual:
        return
    if len(manual) != len(placed):
        other = next(t for t in placed if t.address is None)
        broken("G13", f"{other} has no address while others in {space.upper()} have",
               op="nl.ndarray", line=other.line, path=path)
    manual.sort(key=lambda t: t.address[1])
    for i, low in enumerate(manual):
        for high in manual[i + 1:]:
            if high.address[1] >= low.address[1] + low.row_bytes:
                break
            if low.born <= high.died and high.born <= low.died:
                broken("G13", f"{low} and {high} overlap while both live", op="nl.ndarray",
                       line=high.line, path=path)


def check_capacity(session):
    """Raise G3, G4 or G13; otherwise the peaks, for the report."""
    machine, tensors = session.machine, session.tensors
    sbuf, sbuf_tensor = live_peak(tensors, machine, "sbuf")
    psum, psum_tensor = live_peak(tensors, machine, "psum")
    if sbuf > machine.sbuf_bytes:
        broken("G3", f"{sbuf} bytes per partition are live with {sbuf_tensor}, SBUF of "
                     f"{machine.name} has {machine.sbuf_bytes}", op="nl.ndarray",
               line=sbuf_tensor.line, path=session.path)
    if psum > machine.psum_banks:
        broken("G4", f"{psum} banks are live with {psum_tensor}, PSUM has "
                     f"{machine.psum_banks}", op="nl.ndarray", line=psum_tensor.line,
               path=session.path)
    for space in ("sbuf", "psum"):
        _check_addresses(tensors, space, session.path)
    return {"sbuf_bytes_peak": sbuf, "sbuf_bytes_limit": machine.sbuf_bytes,
            "psum_banks_peak": psum, "psum_banks_limit": machine.psum_banks}
