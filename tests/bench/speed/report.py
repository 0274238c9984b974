# SPDX-License-Identifier: Apache-2.0
"""What tdsl-bench prints and writes: a table, and JSON."""
import dataclasses
import math

from speed.race import COPY, OURS


def mean(numbers):
    """The geometric mean, or None of nothing."""
    numbers = list(numbers)
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else None


def shares(row, limits):
    """Percent of the peak (None where nothing is multiplied) and of the roofline, of the least time."""
    least = row.times[OURS].least
    peak = 100 * row.flops / limits.peak(row.dtype) / least if row.flops else None
    return peak, 100 * limits.roofline(row) / least


def span(seconds):
    """A time in four digits or so."""
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def percent(number):
    return "" if number is None else f"{number:.0f}%"


HEADER = f"{'case':44} {'least':>9} {'median':>9} {'peak':>5} {'roof':>5}  {'best peer':14} {'ratio':>6} {'median':>6}   others"


def line(row, limits):
    name = f"{row.group}/{row.name} {row.dtype}"
    if OURS in row.wrong:
        return f"{name:44} WRONG: {row.wrong[OURS].splitlines()[0]}"
    ours, (peak, roof) = row.times[OURS], shares(row, limits)
    text = f"{name:44} {span(ours.least):>9} {span(ours.median):>9} {percent(peak):>5} {percent(roof):>5}  "
    best = row.best
    text += f"{best:14} {row.ratio(best):6.2f} {row.ratio(best, 'median'):6.2f}" if best else f"{'-':14} {'':6} {'':6}"
    others = [f"{peer} {row.ratio(peer):.2f}" + (" (wrong)" if peer in row.wrong else "") for peer in row.times if peer not in (OURS, best)]
    return f"{text}   {' '.join(others)}".rstrip()


def disturbed(rows, threads):
    """A line where other work had part of the processor, so that long calls were cut into and look slow."""
    shares_had = sorted(row.share for row in rows if row.times)
    middle = shares_had[len(shares_had) // 2] if shares_had else 1.0
    if threads == 1 and middle < 0.9:
        yield f"other work ran beside this: half of the cases had less than {100 * middle:.0f}% of the processor; times of calls longer than a few ms mean little"


def summary(rows, limits):
    """A line for each group: geometric means, and how many cases are below the best peer."""
    out = [f"{'group':12} {'cases':>5} {'peak':>5} {'roof':>5} {'least roof':>10} {'best peer':>10} {'least':>6} {'below 1':>8}"]
    for group in dict.fromkeys(row.group for row in rows):
        found = [row for row in rows if row.group == group and OURS not in row.wrong]
        if not found:
            out.append(f"{group:12} {'none right':>5}")
            continue
        both = [shares(row, limits) for row in found]
        peak, roof = mean(p for p, _ in both if p is not None), [r for _, r in both]
        ratios = [row.ratio(row.best) for row in found if row.best]
        text = f"{group:12} {len(found):5} {percent(peak):>5} {percent(mean(roof)):>5} {percent(min(roof)):>10} "
        out.append(text + (f"{mean(ratios):10.2f} {min(ratios):6.2f} {sum(r < 1 for r in ratios):8}" if ratios else ""))
    return out


def against(rows, earlier):
    """A line for each case that was measured before, too, those that have lost most first, and one for each group."""
    def title(group, name, dtype):
        return f"{group}/{name} {dtype}"
    then = {title(row["group"], row["name"], row["dtype"]): row["times"][OURS]["least"] for row in earlier if OURS in row["times"]}
    found = [(title(row.group, row.name, row.dtype), row) for row in rows if OURS not in row.wrong]
    gains = {name: (then[name] / row.times[OURS].least, row.group) for name, row in found if name in then}
    out = [f"{'then / now':44} {'then':>9} {'now':>9} {'ratio':>6}"]
    for name, (gain, _) in sorted(gains.items(), key=lambda item: item[1][0]):
        out.append(f"{name:44} {span(then[name]):>9} {span(then[name] / gain):>9} {gain:6.2f}")
    for group in dict.fromkeys(group for _, group in gains.values()):
        several = [gain for gain, own in gains.values() if own == group]
        out.append(f"{group:44} {len(several):>9} {'cases':>9} {mean(several):6.2f}")
    return out


def as_data(facts, rows, limits):
    """All of it, for JSON."""
    def of_row(row):
        data = dataclasses.asdict(row) | {"best_peer": row.best}
        if OURS not in row.wrong:
            peak, roof = shares(row, limits)
            data |= {"percent_of_peak": peak, "percent_of_roofline": roof,
                     "ratios": {peer: {"least": row.ratio(peer), "median": row.ratio(peer, "median")} for peer in row.times if peer != OURS}}
        return data
    return {"facts": facts, "limits": limits_data(limits), "yardstick": COPY, "rows": [of_row(row) for row in rows]}


def limits_data(limits):
    return {"peak_flops": {"f32": limits.peak("f32"), "f64": limits.peak("f64")},
            "bandwidth": [{"bytes": size, "read": read, "write": write} for size, (read, write) in limits.rates.items()]}


def limits_lines(limits):
    def size_of(n):
        return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n >> 10} KiB"
    rates = ", ".join(f"{size_of(n)} {read / 1e9:.0f}/{write / 1e9:.0f}" for n, (read, write) in limits.rates.items())
    return [f"peak: {limits.peak('f32') / 1e9:.1f} GFLOP/s f32, {limits.peak('f64') / 1e9:.1f} f64", f"GB/s read/write by size of the set: {rates}"]
