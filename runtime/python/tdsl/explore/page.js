// SPDX-License-Identifier: Apache-2.0
// The page of python -m tdsl.explore. What is typed goes to the server, which this address alone reaches; the program also stands in the fragment of the
// address, which a browser sends to nobody.
"use strict";

const $ = id => document.getElementById(id);
const make = (tag, name, ...inside) => {
    const e = document.createElement(tag);
    if (name) e.className = name;
    e.append(...inside);
    return e;
};

const TABS = [["report", "Report"], ["loops", "Loops"], ["nest", "Nest"], ["c", "C"], ["nki", "NKI"]];
const EXAMPLES = {
    "a product of matrices": `kernel product(A: f64[m, k], B: f64[k, n]) -> (C: f64[m, n]) {
    C[i,j] = A[i,l] * B[l,j];
}
`,
    "MP2 energy": `dim o ~ 16, v ~ 64, x ~ 200;

kernel mp2_energy(B: f64[o, v, x], eo: f64[o], ev: f64[v]) -> (E: f64) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    D[i,a,j,b] = eo[i] + eo[j] - ev[a] - ev[b];
    E = sum[i,j,a,b](T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / D[i,a,j,b]);
}
`,
    "attention": `dim h ~ 12, s ~ 512, t ~ 512, d ~ 64;

kernel attention(Q: f32[h, s, d], K: f32[h, t, d], V: f32[h, t, d]) -> (O: f32[h, s, d]) {
    S[h,q,k] = Q[h,q,e] * K[h,k,e] * rsqrt(extent(d));
    M[h,q] = max[k](S[h,q,k]);
    W[h,q,k] = exp(S[h,q,k] - M[h,q]);
    Z[h,q] = sum[k](W[h,q,k]);
    O[h,q,e] = W[h,q,k] * V[h,k,e] / Z[h,q];
}
`,
    "a tensor network": `dim a ~ 30, b ~ 40;

kernel network(A: f64[a, b], B: f64[b, a, b], C: f64[b, a, b], D: f64[b, a]) -> (T: f64[a, a, a, a]) {
    T = einsum("ip,pjq,qkr,rl->ijkl", A, B, C, D);
}
`,
};
const LARGEST = 16; // binary logarithm of the largest size of a slider
const STEPS = 8; // of a slider, for each factor of two

const program = $("program");
let report = null, view = null, messages = [], sizes = {}, tab = "report", marked = 0, message = -1;
let asking = null, running = null, timer = 0, numbered = 0;

/* ---- the program: colours, marks, the line of the caret ---- */

const FUNCTIONS = "abs|exp|log|sqrt|rsqrt|sin|cos|tanh|pow|erf|sigmoid|relu|gelu|floor|ceil|round|sign|finite|exp2|expm1|log2|log1p|atan|atan2|mod|abs2|arg|min|max" +
    "|select|conj|re|im|extent|index|sum|prod|any|all|argmax|argmin|mean|var|norm|count|logsumexp|cholesky|solve|inverse|logdet|perm|antisym|einsum";
const TOKEN = new RegExp(["(?<comment>//.*|/\\*[^]*?(?:\\*/|$))", "(?<text>\"[^\"\\n]*\"?)", "(?<number>\\b\\d+(?:\\.\\d*)?(?:[eE][+-]?\\d+)?i?\\b)",
    "(?<keyword>\\b(?:include|dim|const|kernel|inout|spill|symmetric|antisymmetric|hermitian|antihermitian|lower|upper)\\b)",
    "(?<type>\\b(?:f64|f32|f16|bf16|bool|c64|c128|[iu](?:8|16|32|64)|f8e4m3|f8e5m2|f8e4m3fn)\\b)", `(?<function>\\b(?:${FUNCTIONS})\\b(?=\\s*[\\[(]))`].join("|"), "g");

// Runs [from, to, class] of one kind, in their order.
function colours(text) {
    const found = [];
    for (const m of text.matchAll(TOKEN)) {
        const kind = Object.keys(m.groups).find(k => m.groups[k] !== undefined);
        found.push([m.index, m.index + m[0].length, "t-" + kind]);
    }
    return found;
}

function marks(text) {
    return messages.filter(m => m.at).map(m => {
        let [from, to] = m.at;
        if (from === to) to < text.length && text[to] !== "\n" ? to++ : from--;
        return [from, to, m.level === "error" ? "error" : "warning"];
    });
}

const caretLine = () => program.value.slice(0, program.selectionStart).split("\n").length;

// The runs of a line, from and to within it.
function runsByLine(text, starts) {
    const all = [...(text.length < 300000 ? colours(text) : []), ...marks(text)], byLine = starts.map(() => []);
    const lineOf = at => {
        let low = 0, high = starts.length;
        while (high - low > 1) {
            const middle = (low + high) >> 1;
            if (starts[middle] <= at) low = middle;
            else high = middle;
        }
        return low;
    };
    for (const [from, to, name] of all)
        for (let k = lineOf(Math.max(0, from)); k < starts.length && starts[k] < Math.max(to, from + 1); k++) byLine[k].push([Math.max(0, from - starts[k]), to - starts[k], name]);
    return byLine;
}

function lineElement(line, runs) {
    const e = make("span", "line"), cuts = new Set([0, line.length]);
    for (const [from, to] of runs) cuts.add(Math.min(from, line.length)).add(Math.min(to, line.length));
    const at = [...cuts].sort((a, b) => a - b);
    for (let i = 0; i + 1 < at.length; i++) {
        const names = runs.filter(([from, to]) => from <= at[i] && at[i + 1] <= to).map(r => r[2]), piece = line.slice(at[i], at[i + 1]);
        e.append(names.length ? make("span", names.join(" "), piece) : piece);
    }
    return e;
}

let painted = []; // of each line what it was made of

// Lines that are as before stay.
function paint() {
    const text = program.value, lines = text.split("\n"), starts = [], layer = $("layer");
    let at = 0;
    for (const line of lines) {
        starts.push(at);
        at += line.length + 1;
    }
    const runs = runsByLine(text, starts), keys = lines.map((line, k) => `${line}\n${runs[k].join(";")}`);
    let first = 0, last = 0;
    while (first < keys.length && first < painted.length && keys[first] === painted[first]) first++;
    while (last < Math.min(keys.length, painted.length) - first && keys[keys.length - 1 - last] === painted[painted.length - 1 - last]) last++;
    const stays = layer.children[painted.length - last] ?? null, fresh = document.createDocumentFragment();
    for (let k = painted.length - last - 1; k >= first; k--) layer.children[k].remove();
    for (let k = first; k < keys.length - last; k++) fresh.append(lineElement(lines[k], runs[k]));
    layer.insertBefore(fresh, stays);
    if (painted.length !== keys.length || !numbered) $("numbers").textContent = Array.from({length: numbered = keys.length}, (_, k) => k + 1).join("\n");
    painted = keys;
    paintLines();
    scrolled();
}

// The line of the caret, and the one that the pointer is at in the view.
function paintLines() {
    const layer = $("layer");
    for (const e of layer.querySelectorAll(".here, .of")) e.classList.remove("here", "of");
    if (document.activeElement === program) layer.children[caretLine() - 1]?.classList.add("here");
    if (marked) layer.children[marked - 1]?.classList.add("of");
}

function scrolled() {
    $("layer").scrollTop = $("numbers").scrollTop = program.scrollTop;
    $("layer").scrollLeft = program.scrollLeft;
}

// Marks the lines of the view that are made of the line of the caret, and shows the first if none is in sight.
function markView(scroll) {
    const here = caretLine(), panel = $("panel"), all = panel.querySelectorAll("[data-line]");
    let first = null, seen = false;
    for (const e of all) {
        const is = +e.dataset.line === here;
        e.classList.toggle("of", is);
        if (!is) continue;
        first ??= e;
        const y = e.getBoundingClientRect(), p = panel.getBoundingClientRect();
        seen ||= y.bottom > p.top && y.top < p.bottom;
    }
    if (scroll && first && !seen) panel.scrollTop += first.getBoundingClientRect().top - panel.getBoundingClientRect().top - 40;
}

function goTo(from, to) {
    program.focus();
    program.setSelectionRange(from, to);
    const top = (caretLine() - 1) * 20;
    if (top < program.scrollTop || top > program.scrollTop + program.clientHeight - 40) program.scrollTop = top - 60;
    moved();
}

function goToLine(n) {
    const lines = program.value.split("\n"), from = lines.slice(0, n - 1).join("\n").length + (n > 1 ? 1 : 0);
    goTo(from, from + (lines[n - 1] ?? "").length);
}

function moved() {
    paintLines();
    markView(true);
}

/* ---- what the server says ---- */

async function ask(what, question, signal) {
    const answer = await fetch(what, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(question), signal});
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.json();
}

const question = () => ({program: program.value, sizes, tab, kernel: $("kernel").value, target: $("target").value, f32: $("f32").checked});

function state(words, bad) {
    $("state").textContent = words;
    $("state").classList.toggle("bad", !!bad);
}

// What was asked before is abandoned: the server ends its compiler when the connection closes.
async function look() {
    clearTimeout(timer);
    asking?.abort();
    const mine = asking = new AbortController();
    const slow = setTimeout(() => state("compiling ..."), 400);
    try {
        const said = await ask("look", question(), mine.signal);
        if (mine !== asking) return;
        if (said.stopped) {
            state(said.stopped, true);
            return;
        }
        messages = said.messages;
        const errors = messages.filter(m => m.level === "error").length, warnings = messages.filter(m => m.level === "warning").length;
        const count = (n, what) => n ? `${n} ${what}${n > 1 ? "s" : ""}` : "";
        state([count(errors, "error"), count(warnings, "warning")].filter(Boolean).join(", ") || `compiled in ${time(said.seconds)}`, errors);
        if (said.report) [report, view] = [said.report, said.view];
        const stale = !said.report;
        $("stale").hidden = !(stale && report);
        $("panel").classList.toggle("stale", stale);
        showMessages();
        if (said.report) {
            showKernels();
            showSizes();
            showPrice();
            showView();
        }
        paint();
    } catch (error) {
        if (error.name !== "AbortError") state(error instanceof TypeError ? "The server has ended." : error.message, true);
    } finally {
        clearTimeout(slow);
    }
}

function soon(wait = 150) {
    clearTimeout(timer);
    timer = setTimeout(() => {
        look();
        keep();
    }, wait);
}

function showMessages() {
    message = -1;
    $("messages").replaceChildren(...messages.filter(m => m.message).slice(0, 50).map(m => {
        const place = m.place ? (m.at ? `line ${m.place.line}, column ${m.place.column}` : `${m.place.file}:${m.place.line}`) : "";
        const button = make("button", "", make("b", "", [m.level, m.code].filter(Boolean).join(" ")), ` ${place ? place + ": " : ""}${m.message}`,
            ...[["note", m.note], ["help", m.help]].filter(([, t]) => t).map(([n, t]) => `\n${n}: ${t}`));
        button.type = "button";
        if (m.at) button.onclick = () => goTo(...m.at);
        return make("li", m.level, button);
    }));
}

function nextMessage(by) {
    const there = messages.filter(m => m.at);
    if (!there.length) return;
    message = (message + by + there.length) % there.length;
    goTo(...there[message].at);
    state(there[message].message, there[message].level === "error");
}

/* ---- kernels, sizes, price ---- */

const kernel = () => report?.kernels.find(k => k.name === $("kernel").value) ?? report?.kernels[0];

function showKernels() {
    const names = report.kernels.map(k => k.name), select = $("kernel"), chosen = names.includes(select.value) ? select.value : names[0];
    if ([...select.options].map(o => o.value).join() !== names.join()) select.replaceChildren(...names.map(n => new Option(n)));
    if (chosen !== undefined) select.value = chosen;
    $("kernel-label").hidden = names.length < 2;
}

const toSlider = n => Math.round(Math.log2(Math.max(n, 1)) * STEPS);
const ofSlider = s => Math.round(2 ** (s / STEPS));

function setSize(name, n) {
    if (!(n >= 1 && n < 2 ** 31)) return;
    sizes[name] = n;
    const row = $("sliders").querySelector(`[data-dim="${name}"]`), range = row.querySelector("[type=range]"), number = row.querySelector("[type=number]");
    if (+number.value !== n) number.value = n;
    if (toSlider(n) !== +range.value) range.value = toSlider(n);
    range.setAttribute("aria-valuetext", n);
    soon(60);
}

function showSizes() {
    const typical = kernel()?.typical ?? {}, names = Object.keys(typical).filter(n => /^[A-Za-z_]\w*$/.test(n)), box = $("sliders");
    if ([...box.children].map(e => e.dataset.dim).join() !== names.join()) {
        box.replaceChildren(...names.map(name => {
            const range = make("input"), number = make("input"), row = make("div", "slider", make("code", "", name), range, number);
            row.dataset.dim = name;
            Object.assign(range, {type: "range", min: 0, max: LARGEST * STEPS, step: 1, ariaLabel: `size of ${name}, by a slider`});
            Object.assign(number, {type: "number", min: 1, max: 2 ** 31 - 1, ariaLabel: `size of ${name}`});
            range.oninput = () => setSize(name, ofSlider(+range.value));
            number.oninput = () => setSize(name, Math.round(+number.value));
            return row;
        }));
    }
    for (const row of box.children) {
        const n = typical[row.dataset.dim], range = row.querySelector("[type=range]"), number = row.querySelector("[type=number]");
        if (document.activeElement !== range) range.value = toSlider(n);
        if (document.activeElement !== number) number.value = n;
        range.setAttribute("aria-valuetext", n);
    }
    $("sizes").hidden = !names.length;
    $("typical").hidden = !names.some(n => n in sizes);
}

const scaled = (x, units, factor) => {
    let k = 0;
    while (k + 1 < units.length && x >= factor) [x, k] = [x / factor, k + 1];
    return `${x >= 100 || Number.isInteger(x) ? Math.round(x) : x.toPrecision(3)} ${units[k]}`.trim();
};
const bytes = n => scaled(n, ["bytes", "KB", "MB", "GB", "TB"], 1000);
const count = n => scaled(n, ["", "thousand", "million", "billion", "trillion"], 1000);
const time = s => s <= 0 ? "0" : scaled(s * 1e9, ["ns", "us", "ms", "s"], 1000);
const rate = (adds, s) => `${(2e-9 * adds / s).toPrecision(3)} GF/s`;

function facts(...pairs) {
    return pairs.filter(p => p).map(([name, value]) => make("div", "", make("dt", "", name), make("dd", "", value)));
}

function showPrice() {
    const k = kernel(), m = k?.model?.chosen;
    $("price").replaceChildren(...!m ? [] : facts(["a call, by the model", time(m.total_seconds)], m.multiply_adds > 0 && ["rate", rate(m.multiply_adds, m.total_seconds)],
        ["multiply-adds", count(m.multiply_adds)], ["without fusion", time(k.seconds_unfused)], ["most time goes to", m.binds],
        ["bytes of memory", bytes(m.bytes.memory ?? 0)], ["spilled", bytes(k.bytes_spilled)], ["parameters and results", bytes(k.bytes_compulsory)]));
}

/* ---- the views ---- */

function linesView(v) {
    const box = make("div", "lines code");
    for (const [text, line] of v.lines) {
        const e = make("div", line ? "from" : "", text);
        if (line) e.dataset.line = line;
        box.append(e);
    }
    if (v.left) box.append(make("div", "", `... and ${v.left} more lines`));
    return box;
}

function loopsView(k) {
    const values = new Map(k.values.map(v => [v.name, v])), typical = k.typical;
    const item = node => {
        if (typeof node === "string") {
            const v = values.get(node), kind = v?.residence ?? "";
            const li = make("li", kind, make("p", "", make("code", "", `${node}${v?.indices ?? ""}`), v?.computes ? make("code", "quiet", ` = ${v.computes}`) : ""));
            if (!v) return li;
            const where = make("p", "quiet", make("span", `pill ${kind}`, kind + (v.bytes ? ` ${bytes(v.bytes)}` : "")), v.level && kind !== "argument" ? ` in ${v.level} ` : " ");
            if (v.line) {
                const go = make("button", "", `line ${v.line}`);
                Object.assign(go, {type: "button", onclick: () => goToLine(v.line)});
                where.append(go);
                li.dataset.line = v.line;
            }
            li.append(where);
            if (v.levels) li.append(make("p", "quiet", v.levels));
            return li;
        }
        const extent = node.extent ?? "", about = extent in typical ? `${extent} ~ ${typical[extent]}` : extent;
        const head = make("p", "", make("b", "", "for ", make("code", "", node.index)), ` of ${about} by ${node.tile} `);
        for (const [is, words] of [[node.parallel, "parallel"], [node.online, "online: one pass"], [node.pairs_once, `from ${node.from}: each pair once`]])
            if (is) head.append(make("span", "pill mark", words), " ");
        return make("li", "loop", head, make("ol", "", ...node.body.map(item)));
    };
    const more = (k.at_the_end ?? []).map(v => make("p", "quiet", make("code", "", `${v.name} = ${v.computes}`), " at the end"));
    return make("div", "pad", make("ol", "nest", ...k.nest.map(item)), ...more);
}

function showView() {
    const panel = $("panel"), top = panel.scrollTop, fresh = !panel.childElementCount;
    $("options").hidden = tab !== "nki";
    if (!report) return;
    if (view?.failed) panel.replaceChildren(make("pre", "failed", view.failed));
    else if (tab === "loops") panel.replaceChildren(kernel() ? loopsView(kernel()) : make("p", "pad", "There is no kernel yet."));
    else if (tab === "report" && view?.html !== undefined) {
        let frame = panel.querySelector("iframe");
        if (!frame) {
            frame = make("iframe");
            frame.title = "report";
            frame.setAttribute("sandbox", "");
            panel.replaceChildren(frame);
        }
        if (frame.srcdoc !== view.html) frame.srcdoc = view.html;
    } else if (view?.lines) panel.replaceChildren(linesView(view));
    else panel.replaceChildren();
    panel.scrollTop = top;
    markView(fresh);
    const first = fresh && tab === "c" && !panel.querySelector(".of") && panel.querySelector("[data-line]"); // the C begins with what all kernels share
    if (first) panel.scrollTop += first.getBoundingClientRect().top - panel.getBoundingClientRect().top - 100;
}

function showTabs() {
    $("tabs").replaceChildren(...TABS.map(([id, name]) => {
        const b = make("button", "", name);
        Object.assign(b, {type: "button", id: "tab-" + id, role: "tab", onclick: () => choose(id)});
        b.setAttribute("aria-controls", "panel");
        return b;
    }));
    choose(tab, true);
}

function choose(id, quiet) {
    tab = id;
    for (const b of $("tabs").children) {
        const is = b.id === "tab-" + id;
        b.setAttribute("aria-selected", is);
        b.tabIndex = is ? 0 : -1;
    }
    $("panel").setAttribute("aria-labelledby", "tab-" + id);
    $("panel").scrollTop = 0;
    $("panel").replaceChildren();
    $("options").hidden = tab !== "nki";
    if (!quiet) soon(0);
}

$("tabs").onkeydown = e => {
    const at = TABS.findIndex(([id]) => id === tab), to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: TABS.length - 1}[e.key];
    if (to === undefined) return;
    e.preventDefault();
    choose(TABS[(to + TABS.length) % TABS.length][0]);
    $("tab-" + tab).focus();
};

// A line of C or NKI leads to its line of the program, and marks it while the pointer is there.
$("panel").onclick = e => {
    const line = e.target.closest?.(".lines [data-line]");
    if (line && String(getSelection()) === "") goToLine(+line.dataset.line);
};
$("panel").onpointermove = e => {
    const n = +(e.target.closest?.("[data-line]")?.dataset.line ?? 0);
    if (n !== marked) {
        marked = n;
        paintLines();
    }
};
$("panel").onpointerleave = () => {
    marked = 0;
    paintLines();
};

// By keys: from one statement's lines to the next one's, and to its line of the program.
function step(by) {
    const heads = [...$("panel").querySelectorAll(".lines .from")].filter(e => e.previousElementSibling?.dataset.line !== e.dataset.line);
    const old = $("panel").querySelector(".cursor"), to = heads[old ? heads.indexOf(old) + by : by > 0 ? 0 : heads.length - 1];
    if (!to) return;
    old?.classList.remove("cursor");
    to.classList.add("cursor");
    to.scrollIntoView({block: "center"});
    marked = +to.dataset.line;
    paintLines();
    state(`of line ${marked} of the program: Enter goes there`);
}

$("panel").addEventListener("keydown", e => {
    const cursor = $("panel").querySelector(".cursor");
    if (e.altKey && (e.key === "ArrowDown" || e.key === "ArrowUp")) step(e.key === "ArrowDown" ? 1 : -1);
    else if (e.key === "Enter" && !e.ctrlKey && !e.metaKey && e.target === $("panel") && cursor) goToLine(+cursor.dataset.line);
    else return;
    e.preventDefault();
});

/* ---- a run ---- */

const RUN = {run: "Run on random data", profile: "Where time goes", schedule: "Schedule of the engines"};

function whatRan(r) {
    const at = Object.entries(r.sizes).map(([n, v]) => `${n} = ${v}`).join(", ");
    return [make("p", "quiet", `${r.kernel}${at ? " at " + at : ""}${r.zeros ? ", whole numbers 0" : ""}. In a shell:`), make("pre", "quiet", r.command)];
}

function ranView(r) {
    return [make("dl", "", ...facts(["a call, measured", time(r.seconds)], r.multiply_adds > 0 && ["rate", rate(r.multiply_adds, r.seconds)],
        ["by the model", time(r.predicted)], [`median of ${r.calls}`, time(r.median)])), make("pre", "", r.said), ...whatRan(r)];
}

// A bar for each statement, with its line to go to.
function profileView(r) {
    const rows = [...r.statements, {text: "the rest", seconds: r.rest_seconds}].map(s => {
        const share = r.seconds > 0 ? 100 * s.seconds / r.seconds : 0, fill = make("span");
        fill.style.width = `${Math.min(100, share)}%`;
        const words = make("td", "", make("code", "", s.text));
        if (s.line) {
            const go = make("button", "", `line ${s.line}`);
            Object.assign(go, {type: "button", onclick: () => goToLine(s.line)});
            words.prepend(go, " ");
        }
        return make("tr", "", make("td", "", make("span", "bar", fill), `${share.toFixed(1)} %, ${time(s.seconds)}`), words);
    });
    return [make("p", "quiet", `${time(r.seconds)} a call on one thread, of which the counters take about ${time(r.counters_seconds)}.`), make("table", "", make("tbody", "", ...rows)), ...whatRan(r)];
}

// Colours that are told apart on light and on dark.
const COLOURS = ["#2f7ed8", "#c2410c", "#1f8a4c", "#8e57d1", "#b8860b", "#d1477b", "#0e8f8f", "#7a7f87"];

function svg(tag, attributes, ...inside) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
    e.append(...inside);
    return e;
}

// What each engine does over time, by statement, and the same as a table.
function scheduleView(r) {
    const left = 96, wide = 900, row = 30, high = r.tracks.length * row, x = t => left + (r.end > 0 ? t / r.end : 0) * wide;
    const picture = svg("svg", {class: "schedule", viewBox: `0 0 ${left + wide + 10} ${high + 30}`, role: "img", "aria-label": `what the engines do over ${r.end.toFixed(1)} us; the table below has their sums`});
    r.tracks.forEach((name, k) => picture.append(svg("path", {d: `M${left} ${(k + 1) * row}H${left + wide}`}), svg("text", {x: left - 8, y: k * row + 20, "text-anchor": "end"}, name)));
    for (let k = 0; k <= 4; k++) picture.append(svg("text", {class: "quiet", x: x(k * r.end / 4), y: high + 20, "text-anchor": k === 4 ? "end" : "middle"}, `${(k * r.end / 4).toFixed(1)} us`));
    for (const [track, statement, start, length] of r.spans)
        picture.append(svg("rect", {x: x(start), y: track * row + 4, width: Math.max(0.4, x(start + length) - x(start)), height: row - 8, fill: COLOURS[statement % COLOURS.length]}));
    const key = make("ol", "key", ...r.statements.map((words, k) => {
        const colour = make("span"), line = +(words.match(/^line (\d+):/)?.[1] ?? 0), item = make("li", "", colour, make("code", "", words || "other"));
        colour.style.background = COLOURS[k % COLOURS.length];
        if (line) item.dataset.line = line;
        return item;
    }));
    const rows = r.tracks.map((name, k) => make("tr", "", make("th", "", name), make("td", "", `${r.busy[k].toFixed(2)} us`), make("td", "", `${(100 * r.busy[k] / (r.end || 1)).toFixed(0)} %`)));
    return make("div", "pad", make("p", "quiet", `${r.kernel} on ${r.target}: ${r.end.toFixed(2)} us, predicted by a model; nobody has measured it.`), picture, key, make("table", "", make("tbody", "", ...rows)),
        make("p", "quiet", `tdsl-run FILE.tdsl --target=${r.target} ... --profile=FILE.json writes each instruction of it for Perfetto.`));
}

async function run(what = "run") {
    if (running) {
        running.abort();
        return;
    }
    const mine = running = new AbortController(), button = $(what), place = what === "schedule" ? $("panel") : $("result");
    button.textContent = "Stop";
    place.replaceChildren(make("p", "quiet", "running ..."));
    try {
        const r = await ask(what, question(), mine.signal), failed = r.failed ?? r.stopped;
        place.replaceChildren(...failed ? [make("pre", "failed", failed)] : what === "run" ? ranView(r) : what === "profile" ? profileView(r) : [scheduleView(r)]);
        if (place === $("panel")) markView(false);
    } catch (error) {
        place.replaceChildren(make("p", "quiet", error.name === "AbortError" ? "stopped" : error.message));
    } finally {
        running = null;
        button.textContent = RUN[what];
    }
}

/* ---- the link ---- */

async function through(stream, data) {
    return new Uint8Array(await new Response(new Blob([data]).stream().pipeThrough(stream)).arrayBuffer());
}

async function fragment() {
    const held = new TextEncoder().encode(JSON.stringify({program: program.value, sizes, tab, kernel: $("kernel").value}));
    let text = "";
    for (const b of await through(new CompressionStream("deflate-raw"), held)) text += String.fromCharCode(b);
    return "#p=" + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function keep() {
    history.replaceState(null, "", await fragment());
}

// The program of the address; false where it has none.
async function held() {
    if (!location.hash.startsWith("#p=")) return false;
    try {
        const text = atob(location.hash.slice(3).replaceAll("-", "+").replaceAll("_", "/"));
        const data = await through(new DecompressionStream("deflate-raw"), Uint8Array.from(text, c => c.charCodeAt(0)));
        const found = JSON.parse(new TextDecoder().decode(data));
        begin(String(found.program ?? ""), found.sizes, found.tab, found.kernel);
        return true;
    } catch {
        state("The link in the address is damaged.", true);
        return false;
    }
}

function begin(text, given, shown, chosen) {
    program.value = text;
    sizes = {};
    for (const [name, n] of Object.entries(given ?? {})) if (Number.isInteger(n) && n >= 1) sizes[name] = n;
    if (chosen && /^\w+$/.test(chosen)) {
        $("kernel").replaceChildren(new Option(chosen));
        $("kernel").value = chosen;
    }
    if (TABS.some(([id]) => id === shown)) choose(shown, true);
    program.setSelectionRange(0, 0);
    messages = [];
    paint();
    look();
}

$("link").onclick = async () => {
    await keep();
    try {
        await navigator.clipboard.writeText(location.href);
        state("The link is copied: it holds the program. python -m tdsl.explore LINK opens it elsewhere.");
    } catch {
        state("The address holds the program: copy it from there.");
    }
};

/* ---- the rest ---- */

$("format").onclick = async () => {
    try {
        const r = await ask("format", question());
        if (r.failed) state("What has errors cannot be formatted.", true);
        else if (r.program !== undefined && r.program !== program.value) replace(0, program.value.length, r.program);
    } catch (error) {
        state(error.message, true);
    }
};

// As if typed, so that it can be undone.
function replace(from, to, text) {
    program.focus();
    program.setSelectionRange(from, to);
    document.execCommand("insertText", false, text);
}

program.oninput = () => {
    for (const m of messages) delete m.at; // they are of another text
    paint();
    moved();
    soon();
};
program.onscroll = scrolled;
program.onfocus = program.onblur = paintLines;
document.onselectionchange = () => {
    if (document.activeElement === program) moved();
};
program.onkeydown = e => {
    if (e.key !== "Enter" || e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    const before = program.value.slice(0, program.selectionStart).split("\n").pop(), blanks = before.match(/^ */)[0];
    e.preventDefault();
    document.execCommand("insertText", false, "\n" + blanks + (/[{(]\s*$/.test(before) ? "    " : ""));
};
document.addEventListener("keydown", e => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
        e.preventDefault();
        run();
    } else if (e.key === "F8") {
        e.preventDefault();
        nextMessage(e.shiftKey ? -1 : 1);
    }
});
$("run").onclick = () => run();
$("profile").onclick = () => run("profile");
$("schedule").onclick = () => run("schedule");
$("typical").onclick = () => {
    sizes = {};
    soon(0);
    $("sliders").querySelector("input")?.focus();
};
$("kernel").onchange = $("target").onchange = $("f32").onchange = () => soon(0);
$("examples").append(new Option("...", ""), ...Object.keys(EXAMPLES).map(name => new Option(name)));
$("examples").onchange = e => {
    const text = EXAMPLES[e.target.value];
    e.target.value = "";
    if (text) {
        sizes = {};
        replace(0, program.value.length, text);
    }
};
addEventListener("hashchange", held);
addEventListener("resize", scrolled);

showTabs();
held().then(was => {
    const start = JSON.parse($("start").textContent);
    if (!was) begin(start.program || EXAMPLES["MP2 energy"], start.sizes, "", "");
});
