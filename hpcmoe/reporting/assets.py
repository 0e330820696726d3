"""Style and script of the HTML report, inlined so that the page is one file without requests."""

_LIGHT = {
    "page": "#ffffff", "ink": "#1c2024", "soft": "#5f6872", "line": "#e1e5ea", "band": "#f6f7f9",
    "accent": "#2457c5", "near": "#1a7245", "mid": "#8a5a00", "far": "#b3261e", "warn": "#fff4dc",
    "warn-line": "#e0a526", "info": "#eaf1fd", "info-line": "#7ba2ee",
}  # fmt: skip
_DARK = {
    "page": "#14171b", "ink": "#e4e7eb", "soft": "#98a2ad", "line": "#2d333b", "band": "#1b1f25",
    "accent": "#8ab0ff", "near": "#66c795", "mid": "#e2b04d", "far": "#f28b82", "warn": "#2d2512",
    "warn-line": "#a87a1a", "info": "#172236", "info-line": "#3c5c9c",
}  # fmt: skip


def _theme(selector: str, scheme: str, colors: dict[str, str]) -> str:
    return (
        f"{selector} {{ color-scheme: {scheme}; "
        + " ".join(f"--{n}: {c};" for n, c in colors.items())
        + " }\n"
    )


_THEMES = (
    _theme(":root", "light", _LIGHT)
    + f"@media (prefers-color-scheme: dark) {{ {_theme(':root:not([data-theme=light])', 'dark', _DARK)} }}\n"
    + _theme(":root[data-theme=dark]", "dark", _DARK)
)

STYLE = (
    _THEMES
    + """
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
.layout { display: grid; grid-template-columns: minmax(0, 1fr); max-width: 100rem; margin: 0 auto; }
main { padding: 1.5rem 1rem 4rem; min-width: 0; }
nav { padding: 1rem; border-bottom: 1px solid var(--line); font-size: .875rem; line-height: 1.4;
  min-width: 0; }
nav summary { font-weight: 600; cursor: pointer; }
nav ul { list-style: none; margin: .35rem 0 .9rem; padding: 0; }
nav li { padding: .14rem 0; }
nav .part { font-weight: 600; margin: .6rem 0 0; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 3rem 0 .5rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 2rem 0 .3rem; }
p { margin: .4rem 0; max-width: 75ch; overflow-wrap: anywhere; }
.origin { color: var(--soft); font-size: .875rem; margin: 0 0 1rem;
  display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; }
.origin b { font-weight: 600; color: var(--ink); overflow-wrap: anywhere; }
.notice { border-left: 4px solid var(--info-line); background: var(--info); border-radius: 4px;
  padding: .6rem .9rem; margin: .7rem 0; max-width: 60rem; }
.notice.warning { border-color: var(--warn-line); background: var(--warn); }
.notice p { margin: 0; max-width: none; }
.notice ul { margin: .35rem 0 0; padding-left: 1.2rem; font-size: .9rem; }
.reading { font-size: .9rem; max-width: 60rem; }
.reading summary { cursor: pointer; color: var(--accent); }
.reading dl { display: grid; grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr);
  gap: .3rem 1rem; margin: .6rem 0; }
.reading dt { font-weight: 600; }
.reading dd { margin: 0; }
.sample { color: var(--soft); font-size: .875rem; }
.sample.hole { color: var(--far); font-weight: 600; }
.note { color: var(--soft); font-size: .82rem; }
.scroll { overflow-x: auto; margin: .5rem 0; border: 1px solid var(--line); border-radius: 6px;
  max-width: 100%; width: fit-content; }
.scroll.tall { max-height: 80vh; overflow-y: auto; }
table { border-collapse: separate; border-spacing: 0; font-size: .875rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .75rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
tbody tr:last-child > * { border-bottom: 0; }
thead th { background: var(--band); font-weight: 600; vertical-align: bottom; white-space: normal;
  max-width: 11rem; }
thead th.num { min-width: 5rem; }
thead th.group { text-align: center; border-left: 1px solid var(--line); }
.tall thead th { position: sticky; top: 0; z-index: 2; }
.num { text-align: right; }
wbr { display: none; }
tbody th { font-weight: 500; position: sticky; left: 0; background: var(--page); z-index: 1; }
tbody tr:hover > * { background: var(--band); }
td.wrap, tbody th.wrap { white-space: normal; min-width: 11rem; max-width: 26rem; }
td.wrap.long { overflow-wrap: anywhere; max-width: 44rem; }
.line { display: block; }
.ours { font-weight: 600; }
.published, .tag { color: var(--soft); }
.small { font-size: .8rem; }
.scaled { font-style: italic; }
.mark { color: var(--far); font-size: .78rem; font-weight: 600; }
.near { color: var(--near); } .mid { color: var(--mid); } .far { color: var(--far); }
.status-failed { color: var(--far); font-weight: 600; } .status-missing { color: var(--soft); }
#theme { font: inherit; font-size: .8rem; color: var(--ink); background: var(--band); cursor: pointer;
  border: 1px solid var(--line); border-radius: 6px; padding: .25rem .6rem; margin: 0 0 .8rem; }
figure { margin: 1.5rem 0 2rem; }
figure .scroll { border: 0; width: 100%; color: var(--ink); }
figure svg { display: block; width: 100%; height: auto; max-height: 90vh; }
figcaption { font-size: .875rem; max-width: 75ch; }
figcaption b { display: block; }
.status-holds { color: var(--near); font-weight: 600; }
.status-direction { color: var(--mid); font-weight: 600; }
.status-fails { color: var(--far); font-weight: 600; } .status-open { color: var(--soft); }
.lead { font-size: 1.02rem; max-width: 70ch; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .85rem; margin: .4rem 0; }
.key i { display: inline-block; width: .85em; height: .85em; border-radius: 2px; margin-right: .35em;
  vertical-align: -.08em; outline: 1px solid var(--line); }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; margin: 0;
  cursor: pointer; text-align: inherit; }
th button:hover, th[aria-sort] button { color: var(--accent); }
th[aria-sort=ascending] button::after { content: " \\2191"; }
th[aria-sort=descending] button::after { content: " \\2193"; }
input[type=search] { font: inherit; font-size: .9rem; color: inherit; background: var(--page);
  border: 1px solid var(--line); border-radius: 6px; padding: .35rem .6rem; width: min(100%, 24rem); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media (max-width: 40rem) {
  wbr { display: inline; }
  h1 { font-size: 1.4rem; }
  th, td { padding: .35rem .5rem; }
  tbody th, tbody th.wrap { max-width: 8.5rem; min-width: 6.8rem; white-space: normal;
    overflow-wrap: break-word; }
  .reading dl { grid-template-columns: minmax(0, 1fr); } .reading dd { margin-bottom: .4rem; }
}
@media (min-width: 75rem) {
  .layout { grid-template-columns: 17rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; border-bottom: 0;
    border-right: 1px solid var(--line);
    padding: 1.5rem 1.2rem; }
  main { padding: 1.75rem 2.5rem 5rem; }
}
@media print { nav { display: none; } .scroll { overflow: visible; } .tall { max-height: none; } }
"""
)

SCRIPT = """
const root = document.documentElement, themes = ["auto", "light", "dark"];
const remember = value => { try { localStorage.setItem("hpcmoe-theme", value); } catch {} };
const remembered = () => { try { return localStorage.getItem("hpcmoe-theme"); } catch { return null; } };
const themeButton = document.getElementById("theme");
const setTheme = value => {
  if (value === "auto") delete root.dataset.theme; else root.dataset.theme = value;
  themeButton.textContent = "Theme: " + value;
  themeButton.dataset.value = value;
};
setTheme(themes.includes(remembered()) ? remembered() : "auto");
themeButton.addEventListener("click", () => {
  const next = themes[(themes.indexOf(themeButton.dataset.value) + 1) % themes.length];
  setTheme(next); remember(next);
});
if (matchMedia("(min-width: 75rem)").matches) {
  const contents = document.querySelector("nav details");
  if (contents) contents.open = true;
}
const leafHeads = table => {
  const leaves = [], taken = [];
  [...table.tHead.rows].forEach((row, y) => {
    let x = 0;
    for (const cell of row.cells) {
      while (taken[y]?.[x]) x++;
      for (let dy = 0; dy < cell.rowSpan; dy++) for (let dx = 0; dx < cell.colSpan; dx++)
        (taken[y + dy] ??= [])[x + dx] = true;
      if (cell.colSpan === 1) leaves[x] = cell;
      x += cell.colSpan;
    }
  });
  return leaves;
};
for (const table of document.querySelectorAll("main table")) {
  const body = table.tBodies[0], heads = leafHeads(table);
  const value = (row, i) => row.cells[i].dataset.v ?? row.cells[i].textContent.trim();
  const compare = (a, b) => isNaN(a) || isNaN(b) ? a.localeCompare(b, undefined, {numeric: true}) : a - b;
  if (body.rows.length > 1) heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button"; button.title = "sort";
    button.append(...head.childNodes); head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...[...body.rows].sort((a, b) => {
        const [x, y] = [value(a, i), value(b, i)];
        return x === "" || y === "" ? (x === "") - (y === "") : down ? compare(y, x) : compare(x, y);
      }));
    });
  });
  const filter = document.getElementById(table.dataset.filter);
  filter?.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}
"""
