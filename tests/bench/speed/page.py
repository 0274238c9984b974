# SPDX-License-Identifier: Apache-2.0
"""The page that tdsl-bench writes: one file, plots as SVG in its text, nothing from elsewhere."""
import html as escape
import math

from speed.race import COPY, OURS
from speed.report import limits_lines, mean, percent, shares, span

COLOURS = {OURS: "#c1121f", "openblas": "#1d4ed8", "blis": "#0e9f6e", "onednn": "#9333ea", "numpy": "#d97706", "jax": "#0891b2", "torch": "#65a30d", "libm": "#6b7280",
           COPY: "#9ca3af"}
OTHER = "#1e3a8a"                               # programs of our own that call a library
STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1080px;padding:0 1em;color:#1b1f24;background:#fff}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;font-size:13px}
td,th{padding:2px 9px;text-align:right;border-bottom:1px solid #e5e7eb;white-space:nowrap}td:first-child,th:first-child{text-align:left}
tr.below td.ratio{color:#c1121f}tr.wrong td{color:#c1121f;text-align:left}svg{display:block;max-width:100%;height:auto}
svg text{font:12px system-ui,sans-serif;fill:#374151}ul.facts{color:#4b5563;font-size:13px}details{margin:.6em 0}"""
WIDTH, NAMES, ROW, TOP = 1040, 260, 19, 34


def colour(name):
    return COLOURS.get(name, OTHER)


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape.escape(words)}</text>'


def line(x1, y1, x2, y2, stroke="#e5e7eb"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}"/>'


def dot(x, y, name, words, size=4.5):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour(name)}" fill-opacity=".85"><title>{escape.escape(words)}</title></circle>'


def svg(height, parts, label):
    return f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="{escape.escape(label)}">{"".join(parts)}</svg>'


def legend(names, y=14):
    parts, x = [], NAMES
    for name in names:
        parts += [dot(x, y - 4, name, name), text(x + 9, y, name)]
        x += 24 + 7.4 * len(name)
    return parts


def speeds(rows):
    """A line of dots for each case: how fast each contestant is, as times the best peer's speed (or ours, where there is none)."""
    names = list(dict.fromkeys(name for row in rows for name in row.times))
    unit = {id(row): row.times[row.best or OURS].least for row in rows}
    least, most = 0.1, max([2.0, *(unit[id(row)] / row.times[OURS].least for row in rows)])
    most = min(100.0, most * 1.15)

    def place(value):
        share = math.log(min(max(value, least), most) / least) / math.log(most / least)
        return NAMES + share * (WIDTH - NAMES - 30)
    height = TOP + ROW * len(rows) + 24
    parts = legend(names)
    for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100):
        if tick <= most:
            parts += [line(place(tick), TOP - 8, place(tick), height - 20, "#9ca3af" if tick == 1 else "#e5e7eb"), text(place(tick), height - 5, f"{tick:g}x", "middle")]
    for k, row in enumerate(rows):
        y = TOP + ROW * k + 6
        parts += [text(NAMES - 12, y + 4, f"{row.name} {row.dtype}", "end"), line(NAMES, y, WIDTH - 30, y, "#f3f4f6")]
        for name in [name for name in row.times if name != OURS] + [OURS]:
            speed = unit[id(row)] / row.times[name].least
            parts.append(dot(place(speed), y, name, f"{name}: {speed:.2f}x the best peer, {span(row.times[name].least)}", 5.5 if name == OURS else 4))
    return svg(height, parts, "speed of each contestant, the best peer's being 1")


def roofline(rows, limits):
    """Ours of all cases that multiply: flop a second over flop per byte moved at least, below the roof of this machine's memory."""
    rows = [row for row in rows if row.flops]
    if not rows:
        return ""
    peak = limits.peak("f32")
    memory = min(rate for rates in limits.rates.values() for rate in rates)
    intensity = {id(row): row.flops / (row.read + row.written) for row in rows}
    left, right = 0.1, max(1000.0, *intensity.values())
    bottom, top, height = peak / 1000, peak * 1.5, 420

    def x(value):
        return 60 + (WIDTH - 90) * math.log(min(max(value, left), right) / left) / math.log(right / left)

    def y(value):
        return height - 40 - (height - 60) * math.log(min(max(value, bottom), top) / bottom) / math.log(top / bottom)
    corner = peak / memory
    parts = [line(x(left), y(left * memory), x(corner), y(peak), "#6b7280"), line(x(corner), y(peak), x(right), y(peak), "#6b7280"),
             text(x(right), y(peak) - 6, f"{peak / 1e9:.0f} GFLOP/s (f32)", "end"), text(x(left) + 70, y(left * memory) - 30, f"memory, {memory / 1e9:.0f} GB/s")]
    for power in range(-1, int(math.log10(right)) + 1):
        parts += [line(x(10.0 ** power), 20, x(10.0 ** power), height - 40), text(x(10.0 ** power), height - 24, f"{10.0 ** power:g}", "middle")]
    for power in range(math.ceil(math.log10(bottom)), int(math.log10(top)) + 1):
        parts += [line(60, y(10.0 ** power), WIDTH - 30, y(10.0 ** power)), text(54, y(10.0 ** power) + 4, f"{10.0 ** power / 1e9:g}", "end")]
    parts.append(text(WIDTH / 2, height - 6, "flop per byte of operands and result", "middle"))
    for row in rows:
        speed = row.flops / row.times[OURS].least
        parts.append(dot(x(intensity[id(row)]), y(speed), OURS if row.dtype in ("f32", "c64") else "openblas",
                         f"{row.group}/{row.name} {row.dtype}: {speed / 1e9:.3g} GFLOP/s", 3.5))
    return "<h2>Roofline</h2><p>Our kernels: f32 and c64 red, f64 and c128 blue (their peak is half as high). Cases that stay in caches may lie above the slope.</p>" + svg(
        height, parts, "roofline")


def table(rows, limits):
    peers = list(dict.fromkeys(name for row in rows for name in row.times if name != OURS))
    out = ["<table><thead><tr><th>case</th><th>least</th><th>median</th><th>peak</th><th>roof</th><th>best peer</th><th>ratio</th>" +
           "".join(f"<th>{escape.escape(peer)}</th>" for peer in peers) + "</tr></thead><tbody>"]
    for row in rows:
        name = f"<td>{escape.escape(f'{row.name} {row.dtype}')}</td>"
        if OURS in row.wrong:
            out.append(f'<tr class="wrong">{name}<td colspan="{6 + len(peers)}">WRONG: {escape.escape(row.wrong[OURS].splitlines()[0])}</td></tr>')
            continue
        (peak, roof), ours = shares(row, limits), row.times[OURS]
        ratio = row.ratio(row.best) if row.best else None
        cells = [span(ours.least), span(ours.median), percent(peak), percent(roof), row.best or "-"]
        out.append(f'<tr class="{"below" if ratio and ratio < 1 else "above"}">{name}' + "".join(f"<td>{escape.escape(cell)}</td>" for cell in cells) +
                   f'<td class="ratio">{f"{ratio:.2f}" if ratio else ""}</td>' +
                   "".join(f"<td>{f'{row.ratio(peer):.2f}' if peer in row.times else ''}{' (wrong)' if peer in row.wrong else ''}</td>" for peer in peers) + "</tr>")
    return "".join(out) + "</tbody></table>"


def overview(groups, limits):
    out = ["<table><thead><tr><th>group</th><th>cases</th><th>of peak</th><th>of roofline</th><th>times the best peer</th><th>least</th><th>below 1</th></tr></thead><tbody>"]
    for group, rows in groups.items():
        right = [row for row in rows if OURS not in row.wrong]
        both, ratios = [shares(row, limits) for row in right], [row.ratio(row.best) for row in right if row.best]
        cells = [str(len(rows)), percent(mean(p for p, _ in both if p is not None)), percent(mean(r for _, r in both))]
        cells += [f"{mean(ratios):.2f}", f"{min(ratios):.2f}", str(sum(r < 1 for r in ratios))] if ratios else ["", "", ""]
        out.append(f'<tr><td><a href="#{group}">{group}</a></td>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return "".join(out) + "</tbody></table>"


def html(facts, rows, limits):
    groups = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    body = ["<h1>tdsl-bench</h1>", '<ul class="facts">', *(f"<li>{escape.escape(words)}</li>" for words in [*facts, *limits_lines(limits)]), "</ul>",
            "<h2>All groups</h2><p>Geometric means. A ratio above 1: our kernel is faster.</p>", overview(groups, limits)]
    right = [row for row in rows if OURS not in row.wrong]
    body.append(roofline(right, limits))
    for group, found in groups.items():
        drawn = [row for row in found if row in right]
        body += [f'<h2 id="{group}">{group}</h2>', speeds(drawn) if drawn else "", "<details open><summary>numbers</summary>", table(found, limits), "</details>"]
    return ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>tdsl-bench</title>"
            f"<style>{STYLE}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n")
