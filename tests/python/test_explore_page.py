# SPDX-License-Identifier: Apache-2.0
"""The page of `python -m tdsl.explore` in a browser, wide and narrow, light and dark, by keyboard. Pictures of it are left in pages/ of the build folder,
or where TDSL_PAGES says. 77: no Chromium."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import browser  # noqa: E402  (beside the tests)

MP2 = """dim o ~ 16, v ~ 64, x ~ 200;

kernel mp2_energy(B: f64[o, v, x], eo: f64[o], ev: f64[v]) -> (E: f64) {
    T[i,a,j,b] = B[i,a,P] * B[j,b,P];
    D[i,a,j,b] = eo[i] + eo[j] - ev[a] - ev[b];
    E = sum[i,j,a,b](T[i,a,j,b] * (2*T[i,a,j,b] - T[i,b,j,a]) / D[i,a,j,b]);
}
"""
# Nothing is wider than the page, but in boxes that scroll; everything that is reached by Tab has a name.
LAYOUT = """(() => {
const size = e => e.getBoundingClientRect(), scrolls = e => e.closest('#editor, #panel');
const controls = [...document.querySelectorAll('button, select, textarea, input, iframe, [tabindex]')].filter(e => size(e).width > 0);
const named = e => (e.getAttribute('aria-label') || e.ariaLabel || e.title || e.textContent || [...(e.labels ?? [])].map(l => l.textContent).join() ||
    e.getAttribute('aria-labelledby') || '').trim();
return {page: document.documentElement.scrollWidth, window: innerWidth,
    wide: [...document.querySelectorAll('body *')].filter(e => !scrolls(e) && size(e).right > innerWidth + 1).map(e => e.tagName + '#' + e.id),
    unnamed: controls.filter(e => !named(e)).map(e => e.outerHTML), low: controls.filter(e => !scrolls(e) && size(e).height < 12).map(e => e.outerHTML),
    foreign: performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin + location.pathname)),
    paper: getComputedStyle(document.body).backgroundColor};
})()"""
# Contrast of the text of an element to what is behind it, as WCAG 2 counts.
CONTRAST = """(q => {
const parts = c => c.match(/[\\d.]+/g).map(Number);
const light = c => parts(c).slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (parts(c)[3] !== 0) return c; } return 'rgb(255,255,255)'; };
return [...document.querySelectorAll(q)].filter(e => e.textContent.trim() && e.getBoundingClientRect().width > 0).map(e => {
    const a = light(getComputedStyle(e).color), b = light(behind(e));
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 80)];
}).filter(([r]) => r < 4.5);
})('#layer span, button, dt, dd, .quiet, .pill, label, legend, .lines div')"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.pictures = os.environ.get("TDSL_PAGES") or cls.scratch.name
        os.makedirs(cls.pictures, exist_ok=True)
        path = os.path.join(cls.scratch.name, "mp2.tdsl")
        with open(path, "w", encoding="utf-8") as f:
            f.write(MP2)
        cls.server = subprocess.Popen([sys.executable, "-B", "-m", "tdsl.explore", "--no-browser", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        cls.address = cls.server.stdout.readline().strip()
        cls.browser = browser.Browser(browser.found(), os.path.join(cls.scratch.name, "profile"))

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.server.send_signal(signal.SIGINT)
        cls.server.communicate(timeout=30)
        cls.scratch.cleanup()

    def setUp(self):
        self.b = self.browser
        self.b.messages.clear()
        self.b.size(1300, 900)
        self.open()

    def tearDown(self):
        self.assertEqual(self.b.messages, [])

    def open(self, fragment=""):
        self.b.open("about:blank")
        self.b.open(self.address + fragment)
        self.settled()

    def settled(self, state="compiled"):
        self.b.wait(f"document.getElementById('state').textContent.includes('{state}')")
        self.b.wait("document.getElementById('panel').childElementCount")

    def text(self, selector):
        return self.b.value(f"document.querySelector({selector!r})?.innerText ?? ''")

    def focused(self):
        return self.b.value("(document.activeElement.id || document.activeElement.ariaLabel || document.activeElement.tagName)")

    def price(self):
        return dict(self.b.value("[...document.querySelectorAll('#price div')].map(e => [...e.children].map(c => c.textContent))"))

    def show(self, tab):
        self.b.value(f"document.getElementById('tab-{tab}').click()")
        self.b.wait(f"document.getElementById('panel').getAttribute('aria-labelledby') === 'tab-{tab}' && document.getElementById('panel').childElementCount")

    def caret_behind(self, words):
        self.b.value(f"(() => {{ const p = document.getElementById('program'); p.focus(); p.setSelectionRange(...[0, 0].fill(p.value.indexOf({words!r}) + {len(words)})); }})()")

    def check_layout(self, width, dark):
        self.b.size(width, 900, dark)
        for tab in "report", "loops", "nest", "c", "nki":
            self.show(tab)
            found = self.b.value(LAYOUT)
            self.assertTrue(found["page"] <= found["window"] == width, found)
            self.assertEqual((found["wide"], found["unnamed"], found["low"], found["foreign"]), ([], [], [], []))
            self.assertEqual(self.b.value(CONTRAST), [], (width, dark, tab))
        self.show("loops")
        self.b.picture(os.path.join(self.pictures, f"explore-{width}{'-dark' if dark else ''}.png"))
        return found["paper"]

    def test_layout(self):
        papers = {self.check_layout(width, dark) for width in (1300, 420) for dark in (False, True)}
        self.assertEqual(len(papers), 2)

    def test_errors_are_marked_where_they_are(self):
        self.caret_behind("B[j,b")
        self.b.type(",q")
        self.settled("1 error")
        self.assertEqual(self.text("#layer .error"), "B[j,b,q,P]")
        self.assertIn("E0204 line 4, column", self.text("#messages"))
        self.assertTrue(self.b.value("document.getElementById('panel').classList.contains('stale')"))
        self.b.key("F8")
        self.assertEqual(self.b.value("getSelection().toString() || program.value.slice(program.selectionStart, program.selectionEnd)"), "B[j,b,q,P]")
        self.b.type("B[j,b,P]")
        self.settled()
        self.assertEqual(self.b.value("document.querySelectorAll('#layer .error, #messages li').length"), 0)
        self.assertFalse(self.b.value("document.getElementById('panel').classList.contains('stale')"))

    def test_colours_lie_under_what_is_typed(self):
        self.assertEqual(self.b.value("document.getElementById('layer').innerText.replace(/\\n+/g, '\\n').trim()"), MP2.replace("\n\n", "\n").strip())
        place = self.b.value("(() => { const p = document.getElementById('program'), l = document.getElementById('layer'); const a = getComputedStyle(p), b = getComputedStyle(l);"
                             "return [a.font === b.font, a.lineHeight === b.lineHeight, a.padding === b.padding, p.getBoundingClientRect().x === l.getBoundingClientRect().x]; })()")
        self.assertEqual(place, [True] * 4)

    def test_a_letter_paints_its_line_alone(self):
        text = "// a comment\n" * 500 + MP2 + "/* one\nthat is long */\n" * 200
        self.b.value(f"begin({text!r})")
        self.settled()
        self.caret_behind("B[j,b")
        self.b.value("for (const e of document.getElementById('layer').children) e.old = true")
        self.b.type("x")
        painted = "[...document.getElementById('layer').children].filter(e => !e.old).length"
        self.assertEqual(self.b.value(painted), 1)
        self.b.key("Enter")
        self.assertEqual(self.b.value(painted), 2)
        layer, lines = self.b.value("[[...document.getElementById('layer').children].map(e => e.textContent), program.value.split('\\n')]")
        self.assertEqual(layer, lines)
        self.assertEqual(self.b.value("document.querySelectorAll('#layer .t-comment').length"), 500 + 2 * 200)

    def test_views(self):
        self.show("c")
        self.caret_behind("T[i,a")
        self.b.wait("document.querySelector('#panel .of[data-line=\"4\"]')")
        self.assertTrue(self.b.value("[...document.querySelectorAll('#panel .of')].some(e => { const a = e.getBoundingClientRect(), b = document.getElementById('panel').getBoundingClientRect();"
                                     "return a.top >= b.top && a.bottom <= b.bottom; })"), "none of its lines is in sight")
        self.b.value("document.querySelector('#panel [data-line=\"6\"]').click()")
        self.assertEqual(self.b.value("[caretLine(), document.activeElement.id]"), [6, "program"])
        self.show("nki")
        self.assertIn("@nki.jit", self.text("#panel"))
        self.b.value("document.getElementById('f32').click()")
        self.b.wait("document.querySelector('#panel .failed')")
        self.assertIn("does not have f64", self.text("#panel"))
        self.show("loops")
        self.assertIn("from j: each pair once", self.text("#panel .nest"))
        self.show("report")
        self.assertIn("kernel mp2_energy", self.b.value("document.querySelector('#panel iframe').srcdoc"))

    def test_sliders_move_the_price(self):
        before = self.price()
        self.assertEqual(self.text("#sizes .slider code"), "o")
        self.b.value("document.querySelector('#sizes [data-dim=v] [type=range]').focus()")
        self.b.key("ArrowRight", times=8)  # a factor of two
        self.b.wait(f"document.querySelector('#price dd').textContent !== {before['a call, by the model']!r}")
        self.settled()
        self.assertEqual(self.b.value("document.querySelector('#sizes [data-dim=v] [type=number]').value"), "128")
        self.assertEqual(self.b.value("document.querySelector('#sizes [data-dim=v] [type=range]').getAttribute('aria-valuetext')"), "128")
        self.assertNotEqual(self.price()["multiply-adds"], before["multiply-adds"])
        self.b.value("document.getElementById('typical').click()")
        self.b.wait(f"document.querySelector('#price dd').textContent === {before['a call, by the model']!r}")

    def test_a_run(self):
        self.b.value("document.getElementById('program').focus()")
        self.b.key("Enter", browser.CONTROL)
        self.b.wait("document.querySelector('#result dd')")
        said = self.text("#result")
        self.assertRegex(said, r"a call, measured\s+[\d.]+ [mun]s")
        self.assertRegex(said, r"rate\s+[\d.]+ GF/s")
        self.assertIn("E : f64[]", said)

    def test_where_time_goes(self):
        self.b.value("document.getElementById('profile').click()")
        self.b.wait("document.querySelector('#result table')")
        self.assertRegex(self.text("#result"), r"of which the counters take about")
        shares = self.b.value("[...document.querySelectorAll('#result .bar')].map(e => [e.firstChild.getBoundingClientRect().width / e.getBoundingClientRect().width, parseFloat(e.parentNode.innerText)])")
        self.assertGreater(len(shares), 2)
        for width, share in shares:
            self.assertAlmostEqual(100 * width, share, delta=2)
        self.b.value("document.querySelector('#result button').click()")
        self.assertEqual(self.b.value("`line ${caretLine()}` === document.querySelector('#result button').innerText"), True)

    def test_the_schedule_of_the_engines(self):
        self.show("nki")
        self.b.value("document.getElementById('schedule').click()")
        self.b.wait("document.querySelector('#panel .schedule')")
        self.assertGreater(self.b.value("[...document.querySelectorAll('.schedule rect')].filter(e => e.getBoundingClientRect().width > 0).length"), 20)
        self.assertIn("DMA: stores", self.text("#panel table"))
        self.assertIn("line 4: T[i,a,j,b] = B[i,a,P] * B[j,b,P];", self.text("#panel .key"))
        self.assertEqual(self.b.value(CONTRAST), [])
        self.show("c")
        self.assertEqual(self.b.value("document.querySelectorAll('.schedule').length"), 0)

    def test_a_link_holds_the_program(self):
        self.b.value("document.querySelector('#sizes [data-dim=o] [type=number]').focus()")
        self.b.value("setSize('o', 20)")
        self.show("nest")
        self.caret_behind("eo[j]")
        self.b.type(" + 1")
        self.settled()
        self.b.wait("location.hash.length > 50")
        self.b.value("keep()")
        link = self.b.value("location.href")
        self.open("#" + link.split("#")[1])
        self.assertEqual(self.b.value("[program.value.includes('eo[j] + 1'), sizes.o, tab]"), [True, 20, "nest"])
        self.open("#p=damaged")
        self.assertIn("mp2_energy", self.b.value("program.value"))

    def test_by_keyboard_alone(self):
        self.b.value("document.getElementById('examples').focus()")
        order = []
        while True:
            order.append(self.focused())
            if order[-1] == "panel" or len(order) > 40:
                break
            self.b.key("Tab")
        self.assertEqual(order, ["examples", "format", "link", "program", *[f"size of {d}{by}" for d in "ovx" for by in (", by a slider", "")], "run", "profile", "tab-report", "panel"])
        self.b.key("Tab", browser.SHIFT)
        self.b.key("ArrowRight")
        self.assertEqual(self.focused(), "tab-loops")
        self.b.wait("document.querySelector('#panel .nest')")
        self.b.key("End")
        self.assertEqual(self.b.value("[document.activeElement.id, document.activeElement.getAttribute('aria-selected')]"), ["tab-nki", "true"])
        self.b.key("ArrowRight")
        self.assertEqual(self.focused(), "tab-report")
        self.b.value("document.getElementById('program').focus()")
        self.b.value("program.setSelectionRange(program.value.indexOf('}') - 1, program.value.indexOf('}') - 1)")
        self.b.key("Enter")
        self.assertTrue(self.b.value("program.value.includes(';\\n    \\n}')"))  # as far in as the line before

    def test_from_c_to_the_program_by_keys(self):
        self.show("c")
        self.b.wait("document.querySelector('#panel .from')")
        self.b.value("document.getElementById('panel').focus()")
        seen = []
        for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
            self.b.key(key, browser.ALT)
            seen.append(self.b.value("[...document.querySelectorAll('#panel .from')].indexOf(document.querySelector('#panel .cursor'))"))
        self.assertTrue(seen[0] == seen[2] == 0 < seen[1], seen)
        line = self.b.value("+document.querySelector('#panel .cursor').dataset.line")
        self.assertIn(f"of line {line} of the program", self.text("#state"))
        self.b.key("Enter")
        self.assertEqual(self.b.value("[caretLine(), document.activeElement.id]"), [line, "program"])

    def test_what_was_asked_before_is_abandoned(self):
        self.b.value("(() => { window.asked = []; const f = window.fetch; window.fetch = (w, o) => { asked.push(o.signal); return f(w, o); }; })()")
        self.caret_behind("eo[j]")
        for letter in " + 1*2*3":
            self.b.type(letter)
        self.settled()
        self.b.value("[1, 2, 3].map(() => look())")
        self.assertEqual(self.b.value("asked.slice(-3).map(s => s.aborted)"), [True, True, False])
        self.settled()
        self.assertLess(self.b.value("asked.length"), 7)  # eight letters are one question or few


if browser.found() is None:
    print("skipped: no Chromium to look at the page with (Debian: chromium-headless-shell)")
    sys.exit(77)
unittest.main()
