// A conversation in one file: all rows of the page, in one document that is scrolled as a whole.
// What is told stands in the element `told`; everything of it is text.

import { html, render } from "./vendor/preact.js";
import { Icon } from "./icons.js";
import { plug, present } from "./present.js";
import { Row } from "./row.js";
import { duration, line } from "./text.js";
import * as plugin from "./plugin.js";

const told = JSON.parse(document.getElementById("told").textContent);
const nodes = new Map(told.nodes.map((node) => [node.key, node]));
const groups = new Map(told.groups.filter((group) => group.members.length > 1).map((group) => [group.key, group]));
const root = document.getElementById("app");
const THEMES = ["auto", "light", "dark"];
const FIRST = 200; // so many rows are drawn at once, the others little by little
const MORE = 600;
const state = { limit: FIRST, selected: null, opened: new Set(), folded: new Set(), theme: 0, touched: false };
let kept = null; // what was open before the document was printed

const act = {
  select: (key) => { state.touched = true; state.selected = key; draw(); },
  open: (key) => act.toggle(key),
  toggle: (key) => { flip(state.opened, key); state.touched = true; state.selected = key; draw(); },
  fold: (group) => { flip(state.folded, group.key); draw(); },
};

function flip(set, key) {
  if (!set.delete(key)) set.add(key);
}

// The rows as they stand: a head before the first member of a group, members only where it is open.
function rows() {
  const heads = new Map(), inside = new Map();
  for (const group of groups.values()) {
    heads.set(group.members[0], group);
    for (const member of group.members) inside.set(member, group);
  }
  const found = [];
  for (const key of nodes.keys()) {
    const head = heads.get(key), group = inside.get(key);
    if (head) found.push({ key: head.key, group: head });
    if (!group || !state.folded.has(group.key)) found.push({ key, node: nodes.get(key), depth: group ? 1 : 0 });
  }
  return found;
}

function draw() {
  const shown = rows();
  state.shown = shown.map((row) => row.key);
  if (!state.shown.includes(state.selected)) state.selected = state.shown[0] ?? null;
  render(html`<main class="document">
    <${Head} />
    <div class=${"rows" + (state.touched ? "" : " untouched")} role="feed" aria-label="conversation" aria-busy=${String(shown.length > state.limit)}>${shown.slice(0, state.limit).map((row, at) => html`<${Row}
      key=${row.key} id=${row.key} node=${row.node} group=${row.group} depth=${row.depth} position=${at + 1} total=${shown.length}
      folded=${!!row.group && state.folded.has(row.key)} opened=${state.opened.has(row.key)} selected=${row.key === state.selected}
      current=${false} hit=${false} odd=${false} act=${act} />`)}</div>
    ${!shown.length && html`<p class="nothing">Nothing is shown in this conversation.</p>`}
    <footer><kbd>j</kbd> <kbd>k</kbd> next, previous row · <kbd>o</kbd> show more of it, fold a group · <kbd>e</kbd> open or close all · <kbd>f</kbd> fold or open all groups · <kbd>t</kbd> light or dark</footer>
  </main>`, root);
  if (shown.length > state.limit && !state.drawing) {
    state.drawing = true;
    setTimeout(() => { state.drawing = false; state.limit += MORE; draw(); });
  }
}

function drawAll() {
  state.limit = Infinity;
  draw();
}

function Head() {
  const turns = new Set(told.nodes.map((node) => node.turn).filter((turn) => turn !== null && turn !== undefined)).size;
  const counts = [many(nodes.size, "row"), groups.size && many(groups.size, "group"), turns && many(turns, "turn")].filter(Boolean);
  return html`<header class="about-it">
    <h1><bdi>${line(told.title, 200)}</bdi></h1>
    ${told.about && html`<p class="about" dir="auto">${line(told.about, 600)}</p>`}
    <p class="facts"><${When} /><span>${counts.join(" · ")}</span>${told.has_more && html`<span>what came before is not in this file</span>`}</p>
    <p class="tools"><button onClick=${openAll} aria-pressed=${String(allOpened())}>${allOpened() ? "close all" : "open all"}</button>
      ${groups.size > 0 && html`<button onClick=${foldAll} aria-pressed=${String(allFolded())}>${allFolded() ? "open groups" : "fold groups"}</button>`}
      <button onClick=${retheme} aria-label=${`colours: ${THEMES[state.theme]}`}><${Icon} name=${["auto", "sun", "moon"][state.theme]} /> ${THEMES[state.theme]}</button></p>
  </header>`;
}

const many = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

// Times of made-up clocks say nothing about when it was, only how long it took.
function When() {
  const [from, to] = told.time || [0, 0];
  const real = from > Date.UTC(2000) && to < 8.64e15;
  return html`${real && html`<time datetime=${new Date(from).toISOString()}>${new Date(from).toISOString().slice(0, 16).replace("T", " ")} UTC</time>`}
    ${to > from && html`<span>${duration(to - from)}</span>`}`;
}

const openable = () => [...nodes.values()].filter((node) => {
  const said = present(node);
  return said.layout === "alert" || (said.layout === "row" && said.opens !== false);
}).map((node) => node.key);
const allOpened = () => state.opened.size > 0 && state.opened.size >= openable().length;
const allFolded = () => groups.size > 0 && state.folded.size >= groups.size;

function openAll() {
  state.opened = new Set(allOpened() ? [] : openable());
  draw();
}

function foldAll() {
  state.folded = new Set(allFolded() ? [] : groups.keys());
  draw();
}

function retheme() {
  state.theme = (state.theme + 1) % THEMES.length;
  dress(THEMES[state.theme]);
  draw();
}

function dress(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function move(to) {
  if (!state.shown.length) return;
  state.touched = true;
  const at = Math.max(0, Math.min(to, state.shown.length - 1));
  state.selected = state.shown[at];
  if (at >= state.limit) drawAll();
  else draw();
  reach(state.selected);
}

function reach(key) {
  const row = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
}

const more = () => (groups.has(state.selected) ? act.fold(groups.get(state.selected)) : act.toggle(state.selected));
const KEYS = {
  j: () => move(state.shown.indexOf(state.selected) + (document.activeElement?.dataset.key ? 1 : 0)),
  k: () => move(state.shown.indexOf(state.selected) - 1),
  g: () => move(0), G: () => move(state.shown.length), o: more, Enter: more, " ": more,
  e: openAll, f: foldAll, t: retheme,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const does = KEYS[event.key];
  // Enter and the space bar are the row's only where it has the focus.
  if (!does || ((event.key === "Enter" || event.key === " ") && !event.target.dataset?.key)) return;
  event.preventDefault();
  does();
});

// `#node=KEY` shows a Node.
function address() {
  const key = new URLSearchParams(location.hash.slice(1)).get("node");
  if (!key || !nodes.has(key)) return;
  for (const group of groups.values()) if (group.members.includes(key)) state.folded.delete(group.key);
  state.touched = true;
  state.selected = key;
  drawAll();
  reach(key);
}

// Paper is white and cannot be opened: everything is, while it is printed.
addEventListener("beforeprint", () => {
  kept = { opened: state.opened, folded: state.folded };
  state.opened = new Set(openable());
  state.folded = new Set();
  dress("light");
  drawAll();
});
addEventListener("afterprint", () => {
  if (kept) Object.assign(state, kept);
  kept = null;
  dress(THEMES[state.theme]);
  draw();
});
addEventListener("hashchange", address);

plug(plugin);
draw();
address();
