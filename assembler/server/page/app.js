// The page: what is open, what is selected, which moment is shown; keyboard and address.

import { Component, createRef, html, render } from "./vendor/preact.js";
import { Detail } from "./detail.js";
import { Icon } from "./icons.js";
import { List } from "./list.js";
import { isFailed, plug, present, searchable } from "./present.js";
import { Row } from "./row.js";
import * as server from "./source.js";
import { SPEEDS, Timeline, pace } from "./timeline.js";
import { ago, line } from "./text.js";
import { View } from "./view.js";

const KEYS = [
  ["j, k", "next, previous row"], ["g, G", "first, last row"], ["Enter", "details of the row"], ["o, Space", "show more of the row, fold a group"],
  ["x, X", "next, previous failure"], ["/", "find in this conversation"], ["n, N", "next, previous place found"], ["c", "conversations"], ["v", "the other view"],
  ["[, ]", "one moment back, on"], ["{, }", "previous, next mark"], ["p", "play, pause"], ["s", "speed"], ["l", "now: leave the past"],
  ["f", "fold or open all groups"], ["t", "light, dark, as the system"], ["Esc", "close, leave"], ["?", "this help"],
];
const ANYTIME = new Set(["c", "t", "?"]); // the keys that need no conversation
const THEMES = ["auto", "light", "dark"];
const SPOKEN_MS = 700;
const WRITTEN_MS = 200;

const kept = {
  get(name, otherwise) {
    try { return JSON.parse(localStorage.getItem(`assembler.${name}`)) ?? otherwise; } catch { return otherwise; }
  },
  set(name, value) {
    try { localStorage.setItem(`assembler.${name}`, JSON.stringify(value)); } catch { /* it is only not kept */ }
  },
};

class App extends Component {
  constructor() {
    super();
    this.list = createRef();
    this.find = createRef();
    this.searching = createRef();
    this.state = {
      conversations: [], next: null, search: "", views: ["chat"], fault: "", listed: false,
      name: null, view: null, connected: "", model: null, version: 0,
      selected: null, opened: new Set(), folded: new Set(), detail: false, told: null, toldFault: "",
      moments: null, marks: [], blind: "", at: null, playing: false, speed: 1,
      led: null, finding: "", hits: [], hit: 0, sidebar: false, help: false, theme: kept.get("theme", "auto"), status: "",
    };
    this.live = null; // the view as it is
    this.past = null; // the view at a moment
    this.pending = [];
    this.spoken = new Map();
    this.others = new Map(); // what is known of conversations that are not in the list
    this.act = {
      select: (key) => this.select(key), open: (key) => this.openDetail(key), toggle: (key) => this.toggle(key),
      fold: (group) => this.fold(group), travel: (at) => this.travel(at), play: () => this.play(), faster: () => this.faster(),
      mark: (by) => this.toMark(by), live: () => this.leavePast(), lead: (name) => this.go(name, null), shut: () => this.shut(), copy: (key) => this.copy(key),
    };
  }

  async componentDidMount() {
    window.assembler = this; // for who looks into it from the console
    this.dress(this.state.theme);
    document.addEventListener("keydown", this.key);
    window.addEventListener("hashchange", () => this.address());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) { this.drain(); this.refresh(); } });
    this.refreshing = setInterval(() => document.hidden || this.refresh(), 10_000);
    import("./plugin.js").then((module) => { plug(module); this.draw(); }, () => {});
    try {
      const told = await server.health();
      this.setState({ views: told.views });
    } catch (fault) {
      this.setState({ fault: fault.message });
    }
    await this.refresh();
    this.address();
  }

  // -- the address: #/conversation/view?node=…&at=… --------------------------------------------

  address() {
    if (location.hash === this.written) return;
    this.arriving = true; // what is written next stands for this address, and not behind it
    const [path, asked] = location.hash.replace(/^#\/?/, "").split("?");
    const [name, view] = path.split("/").map(decoded);
    const fields = new URLSearchParams(asked || "");
    if (!name) {
      // Nothing is asked for: on a wide screen the newest conversation is shown.
      const first = this.state.conversations.find((each) => !each.fault);
      if (!this.state.name && first && window.innerWidth > 900) this.go(first.conversation, null);
      else if (!this.state.name) this.setState({ sidebar: true });
      return;
    }
    this.go(name, view || null, { node: fields.get("node"), at: fields.has("at") ? Number(fields.get("at")) : null });
  }

  // Browsers take few changes of an address in a second: who travels has it changed at rest.
  writeSoon() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.write(), WRITTEN_MS);
  }

  write() {
    clearTimeout(this.writing);
    const { name, view, selected, at, detail } = this.state;
    if (!name) return;
    const fields = new URLSearchParams();
    if (selected && detail) fields.set("node", selected);
    if (at !== null) fields.set("at", at);
    const asked = String(fields);
    const path = `#/${encodeURIComponent(name)}/${encodeURIComponent(view)}`;
    // Another conversation or view is a step to go back from; a moment or a row is none.
    const further = this.written && !this.arriving && this.written.split("?")[0] !== path;
    this.arriving = false;
    this.written = path + (asked ? "?" + asked : "");
    if (location.hash !== this.written) history[further ? "pushState" : "replaceState"](null, "", this.written);
    const found = this.about(name);
    document.title = line(found?.title || name, 80);
  }

  copy(key) {
    const { name, view, at } = this.state;
    const fields = new URLSearchParams({ node: key, ...(at === null ? {} : { at }) });
    const link = `${location.href.split("#")[0]}#/${encodeURIComponent(name)}/${encodeURIComponent(view)}?${fields}`;
    navigator.clipboard?.writeText(link).then(() => this.say("link copied"), () => this.say(link));
  }

  // -- the list of conversations -----------------------------------------------------------------

  async refresh(search = this.state.search) {
    const asked = (this.asked = (this.asked || 0) + 1);
    try {
      const told = await server.conversations(search);
      if (asked !== this.asked) return;
      if (this.more) return;
      const whole = !search && !told.next, { name } = this.state;
      const missing = whole && name && !told.conversations.some((each) => each.conversation === name) ? name : null;
      this.setState({ conversations: told.conversations, next: told.next, listed: true, fault: "", missing });
    } catch (fault) {
      if (asked === this.asked) this.setState({ fault: fault.message, listed: true });
    }
  }

  // What is known of a conversation; of one that is not in the list it is asked for once.
  about(name) {
    const found = this.state.conversations.find((each) => each.conversation === name);
    if (found || !this.state.listed) return found;
    if (!this.others.has(name)) {
      this.others.set(name, null);
      server.conversations(name).then(({ conversations }) => {
        this.others.set(name, conversations.find((each) => each.conversation === name) ?? null);
        this.setState({}, () => this.write());
      }, () => {});
    }
    return this.others.get(name);
  }

  seek = (event) => {
    const search = event.target.value;
    this.more = false;
    this.setState({ search });
    clearTimeout(this.seeking);
    this.seeking = setTimeout(() => this.refresh(search), 120);
  };

  async further() {
    const told = await server.conversations(this.state.search, this.state.next);
    this.more = true;
    this.setState({ conversations: [...this.state.conversations, ...told.conversations], next: told.next });
  }

  // -- one conversation --------------------------------------------------------------------------

  go(name, view, { node = null, at = null } = {}) {
    view = view || this.state.view || this.state.views[0];
    const same = name === this.state.name;
    if (same && view === this.state.view && this.live) {
      if (node) { this.wanted = node; this.reveal(); }
      if (at !== null) this.travel(at);
      else if (this.state.at !== null) this.leavePast();
      return;
    }
    this.stop();
    clearTimeout(this.learning);
    this.learning = 0;
    this.following?.close();
    this.live = this.past = this.target = null;
    this.pending = [];
    this.wanted = node;
    this.turning = same ? this.state.at : at;
    this.rowsOf = null;
    if (!same) this.foldings = new Set(kept.get(`folded.${name}`, []));
    this.setState({
      name, view, connected: "opening", fault: "", selected: node, detail: !!node && window.innerWidth > 900, told: null, led: null, at: null, playing: false,
      sidebar: false, hits: [], finding: "", opened: new Set(),
      ...(same ? {} : { moments: null, marks: [], blind: "", folded: this.foldings }),
    });
    this.following = server.follow(name, view, {
      snapshot: (data) => this.loaded(name, JSON.parse(data)),
      patch: (data) => this.patched(data),
      state: (connected, fault) => {
        if (this.state.name !== name) return;
        this.setState({ connected, fault: fault || "" });
      },
    });
  }

  loaded(name, snapshot) {
    this.pending = [];
    const again = !!this.live;
    if (this.live) this.live.load(snapshot);
    else this.live = new View(snapshot);
    this.setState({ connected: "open" });
    this.draw();
    this.index();
    if (this.wanted) this.reveal();
    if (!this.state.moments) this.learn(name);
    else if (again) this.grown(); // what happened while nobody was connected
    if (this.state.moments && this.turning !== null) this.travel(this.turning);
    this.turning = this.state.moments ? null : this.turning;
  }

  patched(data) {
    this.pending.push(data);
    if (document.hidden) {
      // Nothing is drawn meanwhile, and nothing is piled up either.
      if (this.pending.length >= 50) this.drain();
    } else if (!this.framed) this.framed = requestAnimationFrame(() => this.drain());
  }

  drain() {
    this.framed = 0;
    const pending = this.pending;
    this.pending = [];
    if (!pending.length || !this.live) return;
    try {
      for (const data of pending) this.live.apply(JSON.parse(data), this.state.at === null ? this.hear : undefined);
    } catch (fault) {
      console.info("connecting again:", fault.message);
      return this.following.renew();
    }
    this.grown();
    if (this.state.at === null) this.draw();
  }

  // What happened while somebody looks makes the timeline longer.
  grown() {
    if (this.learning) return;
    const wait = Math.min(20_000, 1500 + 3 * (this.state.moments?.length || 0));
    this.learning = setTimeout(() => { this.learning = 0; this.learn(this.state.name); }, wait);
  }

  async learn(name) {
    try {
      const told = await server.moments(name);
      if (name !== this.state.name) return;
      const moments = told.moments.map(([op, type, text, time, marks]) => ({ op, type, text, time, marks }));
      if (told.fault) return this.setState({ moments: null, marks: [], blind: told.fault });
      const marks = moments.flatMap((each, at) => each.marks.map((mark) => ({ at, mark })));
      this.due = pace(moments);
      const turning = this.turning;
      this.turning = null;
      this.setState({ moments, marks, blind: "" }, () => turning !== null && turning !== undefined && this.travel(turning));
    } catch (fault) {
      if (name === this.state.name && fault.status !== 404) this.say(fault.message);
    }
  }

  draw() {
    this.setState({ version: this.state.version + 1 });
  }

  model() {
    return this.state.at === null ? this.live : this.past || this.live;
  }

  // The rows of what is shown; the same list while its shape is the same.
  rows() {
    const model = this.model();
    const { folded, version } = this.state;
    const now = this.rowsOf;
    if (now && now.model === model && now.shape === model.shape && now.folded === folded) return now.rows;
    const heads = new Map(), inside = new Map();
    for (const group of model.groups.values()) {
      if (group.members.length < 2) continue;
      heads.set(group.members[0], group);
      for (const member of group.members) inside.set(member, group);
    }
    const rows = [];
    for (const key of model.order) {
      const group = inside.get(key);
      const head = heads.get(key);
      if (head) rows.push({ key: head.key, group: head, folded: this.isFolded(head), kind: " head" });
      if (group && this.isFolded(group)) continue;
      // How it reads is found out when it is seen.
      rows.push({ key, depth: group ? 1 : 0, kind: model.nodes.get(key).kind });
    }
    this.rowsOf = { model, shape: model.shape, folded, version, rows, inside };
    return rows;
  }

  // A group may be called otherwise after a reload, so that it is known by whom it holds.
  isFolded(group) {
    const { folded } = this.state;
    return folded.size > 0 && (folded.has(group.key) || group.members.some((key) => folded.has(key)));
  }

  fold(group, to = !this.isFolded(group)) {
    const folded = new Set(this.state.folded);
    for (const key of [group.key, ...group.members]) to ? folded.add(key) : folded.delete(key);
    this.keepFolded(folded);
  }

  foldAll() {
    const groups = [...this.model().groups.values()].filter((group) => group.members.length > 1);
    const to = !groups.every((group) => this.isFolded(group));
    const folded = new Set(to ? groups.flatMap((group) => [group.key, ...group.members]) : []);
    this.keepFolded(folded);
    this.say(to ? "all groups folded" : "all groups open");
  }

  keepFolded(folded) {
    kept.set(`folded.${this.state.name}`, [...folded].slice(-5000));
    if (this.list.current) this.list.current.pinned = false;
    this.setState({ folded });
  }

  place = (list) => {
    const model = this.live;
    if (this.state.at !== null || !model || !model.window?.has_more || this.paging) return;
    if (list.top < 900) this.older();
  };

  async older() {
    this.paging = true;
    try {
      await server.older(this.state.name);
    } catch (fault) {
      this.say(fault.message);
    }
    // The page comes as a patch of its own.
    setTimeout(() => { this.paging = false; this.list.current?.measure(); }, 120);
  }

  // -- selecting ---------------------------------------------------------------------------------

  select(key, { focus = false } = {}) {
    if (key === null) return;
    if (key !== this.state.selected) this.setState({ selected: key, told: null, toldFault: "" }, () => {
      if (this.state.detail) this.look();
      this.write();
    });
    if (focus) this.focusRow(key);
  }

  focusRow(key) {
    const list = this.list.current;
    if (!list || !list.show(key)) return;
    requestAnimationFrame(() => list.slice.current?.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true }));
  }

  step(by) {
    const rows = this.rows();
    if (!rows.length) return;
    const at = rows.findIndex((row) => row.key === this.state.selected);
    const next = at < 0 ? (by > 0 ? this.list.current?.find(this.list.current.top + 1) ?? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + by));
    this.select(rows[next].key, { focus: true });
  }

  // Shows the Node that an address names; one that is not loaded yet is paged for.
  reveal() {
    const key = this.wanted;
    if (!key) return;
    const { live } = this;
    if (this.turning === null && this.state.at === null && !live.nodes.has(key) && live.window?.has_more) {
      const first = live.window.first;
      this.older().then(() => setTimeout(() => {
        if (live === this.live && live.window.first !== first) this.reveal();
      }, 150));
      return;
    }
    this.wanted = null;
    if (this.turning !== null) this.unseen = key;
    this.setState({ selected: key, detail: true }, () => {
      this.list.current?.show(key, true);
      this.look();
    });
  }

  openDetail(key = this.state.selected) {
    if (!key) return;
    const group = this.model().groups.get(key);
    if (group) return this.fold(group);
    this.setState({ selected: key, detail: true }, () => { this.look(); this.write(); this.inSight(key); });
  }

  // The rows become narrower beside the details, and higher: what is looked at stays in sight.
  inSight(key) {
    requestAnimationFrame(() => requestAnimationFrame(() => key === this.state.selected && this.list.current?.show(key)));
  }

  shut() {
    const key = this.state.selected;
    this.setState({ detail: false }, () => { this.write(); if (key) this.focusRow(key); });
  }

  toggle(key) {
    const opened = new Set(this.state.opened);
    if (!opened.delete(key)) opened.add(key);
    if (this.list.current) this.list.current.pinned = false;
    this.setState({ opened, selected: key });
  }

  async look() {
    const { name, view, selected, at, detail } = this.state;
    if (!detail || !selected || this.state.blind || !this.model()?.nodes.has(selected)) return;
    const asked = (this.looked = (this.looked || 0) + 1);
    try {
      const told = await server.behind(name, view, selected, at);
      if (asked === this.looked) this.setState({ told, toldAt: at, toldFault: "" });
      await this.leads(selected);
    } catch (fault) {
      if (asked === this.looked) this.setState({ told: null, toldFault: fault.status === 404 ? "" : fault.message });
    }
  }

  // The conversation that a row leads to, where there is one: it is called as the row's `leads`.
  async leads(key) {
    const node = this.model()?.nodes.get(key);
    const called = node && present(node).leads;
    if (!called || this.state.led?.key === key) return;
    const { conversations } = await server.conversations(called);
    const found = conversations.find((each) => each.title === called && !each.fault && each.conversation !== this.state.name);
    if (found) this.setState({ led: { key, conversation: found.conversation, events: found.events } });
  }

  lookSoon() {
    clearTimeout(this.lookingSoon);
    this.lookingSoon = setTimeout(() => this.look(), 150);
  }

  // -- time travel -------------------------------------------------------------------------------

  travel(to) {
    const { moments } = this.state;
    if (!moments) { this.turning = to; return; }
    to = Math.max(0, Math.min(moments.length - 1, Math.round(to) || 0));
    if (to === this.state.at && this.past) return;
    this.setState({ at: to });
    this.target = to;
    if (!this.travelling) this.travelling = this.reach().finally(() => (this.travelling = null));
  }

  // Goes to the moment that is wanted last; those in between are passed over.
  async reach() {
    const { name, view } = this.state;
    // What is set is seen later: whether it was left again says `target`.
    const current = () => name === this.state.name && view === this.state.view && this.target !== null;
    try {
      while (current() && (!this.past || this.past.revision !== this.target)) {
        const to = this.target, from = this.past?.revision ?? null;
        const told = await server.moment(name, view, to, from);
        if (!current()) return;
        if (from === null) this.past = new View(told);
        else this.past.apply(told, Math.abs(to - from) < 50 ? this.hear : undefined);
        this.setState({ version: this.state.version + 1 });
      }
      const key = this.unseen;
      this.unseen = null;
      if (key && this.past?.nodes.has(key)) this.setState({}, () => this.list.current?.show(key, true));
      this.lookSoon();
    } catch (fault) {
      this.past = this.target = null;
      this.stop();
      this.setState({ at: null });
      this.say(fault.message);
    }
  }

  leavePast() {
    this.stop();
    this.past = this.target = null;
    if (this.list.current) this.list.current.pinned = true;
    this.setState({ at: null }, () => { this.write(); this.look(); });
  }

  play() {
    const { playing, moments, at } = this.state;
    if (playing) return this.stop();
    if (!moments || moments.length < 2) return;
    const from = at === null || at >= moments.length - 1 ? 0 : at;
    this.travel(from);
    this.setState({ playing: true });
    if (this.list.current) this.list.current.pinned = true;
    let clock = performance.now(), played = this.due[from];
    const tick = (now) => {
      if (!this.state.playing) return;
      played += (now - clock) * this.state.speed;
      clock = now;
      let next = this.target;
      const last = this.state.moments.length - 1;
      while (next < last && this.due[next + 1] <= played) next++;
      if (next !== this.target) this.travel(next);
      if (next >= last) return this.setState({ playing: false });
      this.ticking = requestAnimationFrame(tick);
    };
    this.ticking = requestAnimationFrame(tick);
  }

  stop() {
    cancelAnimationFrame(this.ticking);
    if (this.state.playing) this.setState({ playing: false });
  }

  faster() {
    this.setState({ speed: SPEEDS[(SPEEDS.indexOf(this.state.speed) + 1) % SPEEDS.length] });
  }

  toMark(by) {
    const { marks, at, moments } = this.state;
    if (!moments) return;
    const now = at ?? moments.length - 1;
    const found = by > 0 ? marks.find((each) => each.at > now) ?? marks[0] : marks.findLast((each) => each.at < now) ?? marks.at(-1);
    if (!found) return this.say("no mark");
    this.travel(found.at);
    this.say(`${found.mark}, moment ${found.at}`);
  }

  // -- finding -----------------------------------------------------------------------------------

  index() {
    // Texts are made ready in idle time, so that the first key costs no more than the others.
    const model = this.live;
    let at = 0;
    const some = (deadline) => {
      if (model !== this.live) return;
      const order = model.order;
      while (at < order.length && deadline.timeRemaining() > 2) { const node = model.nodes.get(order[at++]); if (node) searchable(node); }
      if (at < order.length) requestIdleCallback(some);
    };
    if (window.requestIdleCallback) requestIdleCallback(some);
  }

  seekHere = (event) => {
    const began = performance.now();
    const finding = event.target.value;
    const wanted = finding.trim().toLowerCase();
    const model = this.model();
    // Who types on looks for less: only what was found can still be.
    const sought = this.sought;
    const among = sought?.wanted && wanted.startsWith(sought.wanted) && sought.model === model && sought.revision === model.revision
      ? sought.hits : model?.order;
    const hits = wanted && model ? among.filter((key) => searchable(model.nodes.get(key)).includes(wanted)) : [];
    this.sought = { wanted, hits, model, revision: model?.revision };
    this.hitting = new Set(hits);
    this.setState({ finding, hits, hit: hits.length - 1 });
    // Who types on is not held up by what is shown of it.
    cancelAnimationFrame(this.showing);
    this.showing = requestAnimationFrame(() => hits.length && hits === this.state.hits && this.toHit(0, hits.length - 1));
    this.soughtMs = performance.now() - began;
  };

  toHit(by, at = null) {
    const { hits, hit } = this.state;
    if (!hits.length) return;
    const next = at ?? (hit + by + hits.length) % hits.length;
    const key = hits[next];
    this.rows();
    const group = this.rowsOf.inside.get(key);
    if (group && this.isFolded(group)) this.fold(group, false);
    this.setState({ hit: next, selected: key }, () => this.list.current?.show(key, true));
  }

  // -- what failed -------------------------------------------------------------------------------

  // The keys of what failed, in order. A Node is looked at once: it is never changed in place.
  failed() {
    const model = this.model();
    const now = this.failedOf;
    if (now && now.model === model && now.revision === model.revision) return now.keys;
    const keys = model.order.filter((key) => isFailed(model.nodes.get(key)));
    this.failedOf = { model, revision: model.revision, keys };
    return keys;
  }

  // They are counted when there is time: rows come first.
  countFailed() {
    if (this.counting || !window.requestIdleCallback) return;
    this.counting = requestIdleCallback(() => {
      this.counting = 0;
      const model = this.model(), before = this.failedOf;
      if (!model || (before?.model === model && before.revision === model.revision)) return;
      const count = this.failed().length;
      if (before?.model !== model || before.keys.length !== count) this.setState({});
    }, { timeout: 1000 });
  }

  toFailed(by) {
    const keys = this.failed();
    if (!keys.length) return this.say("nothing failed in what is loaded");
    const { order } = this.model();
    const places = new Map(order.map((key, at) => [key, at]));
    const now = places.get(this.state.selected) ?? (by > 0 ? -1 : order.length);
    const found = by > 0 ? keys.find((key) => places.get(key) > now) ?? keys[0] : keys.findLast((key) => places.get(key) < now) ?? keys.at(-1);
    this.rows();
    const group = this.rowsOf.inside.get(found);
    if (group && this.isFolded(group)) this.fold(group, false);
    this.select(found);
    this.setState({}, () => { this.list.current?.show(found, true); this.focusRow(found); });
    this.say(`failure ${keys.indexOf(found) + 1} of ${keys.length}`);
  }

  // -- saying ------------------------------------------------------------------------------------

  // What a screen reader hears: stages, never pieces.
  hear = (old, node) => {
    const said = node && present(node);
    const before = old && present(old);
    if (!node) { if (before.layout === "row" && before.stage === "preparing") this.note(old.key, `${before.title} ${before.summary}: withdrawn`); return; }
    if (said.layout === "tail") return void (before?.stage !== said.stage && this.note(node.key, `${said.title} ${said.stage}`));
    if (said.stage && said.stage !== before?.stage) this.note(node.key, `${said.title || said.who} ${said.layout === "row" ? said.summary : ""}: ${said.stage}`);
  };

  note(key, text) {
    this.spoken.set(key, line(text, 120));
    if (!this.speaking) this.speaking = setTimeout(() => {
      this.speaking = 0;
      const all = [...this.spoken.values()];
      this.spoken.clear();
      this.setState({ status: all.slice(-3).join(". ") });
    }, SPOKEN_MS);
  }

  say(text) {
    this.setState({ status: text, toast: text });
    clearTimeout(this.toasting);
    this.toasting = setTimeout(() => this.setState({ toast: "" }), 3500);
  }

  // -- keyboard ----------------------------------------------------------------------------------

  key = (event) => {
    const field = event.target.matches?.("input, textarea, select");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return this.escape(event, field);
    if (field) {
      if (event.key === "Enter" && event.target === this.find.current) { event.preventDefault(); this.toHit(event.shiftKey ? -1 : 1); }
      if (event.key === "Enter" && event.target === this.searching.current) this.first();
      if (event.key === "ArrowDown" && event.target === this.searching.current) document.querySelector(".conversation")?.focus();
      return;
    }
    const onButton = event.target.matches?.("button, a, [role=tab], summary");
    if ((event.key === "Enter" || event.key === " ") && onButton) return;
    const does = this.keys[event.key];
    if (!does || (!this.model() && !ANYTIME.has(event.key))) return;
    event.preventDefault();
    does();
  };

  keys = {
    j: () => this.step(1), k: () => this.step(-1), ArrowDown: () => this.step(1), ArrowUp: () => this.step(-1),
    g: () => { const rows = this.rows(); if (rows.length) this.select(rows[0].key, { focus: true }); },
    G: () => { const rows = this.rows(); if (rows.length) { this.list.current?.toEnd(); this.select(rows.at(-1).key, { focus: true }); } },
    Enter: () => this.openDetail(), o: () => this.more1(), " ": () => this.more1(),
    "/": () => { this.find.current?.focus(); this.find.current?.select(); }, n: () => this.toHit(1), N: () => this.toHit(-1),
    x: () => this.toFailed(1), X: () => this.toFailed(-1),
    c: () => this.setState({ sidebar: true }, () => this.searching.current?.focus()),
    v: () => { const { views, view, name } = this.state; if (name) this.go(name, views[(views.indexOf(view) + 1) % views.length]); },
    "[": () => this.nudge(-1), "]": () => this.nudge(1), "{": () => this.toMark(-1), "}": () => this.toMark(1),
    p: () => this.play(), s: () => this.faster(), l: () => this.leavePast(), f: () => this.foldAll(), t: () => this.retheme(),
    "?": () => this.setState({ help: !this.state.help }),
  };

  nudge(by) {
    const { at, moments } = this.state;
    if (moments) this.travel((at ?? moments.length - 1) + by);
  }

  more1() {
    const key = this.state.selected;
    const group = key && this.model()?.groups.get(key);
    if (group) this.fold(group);
    else if (key) this.toggle(key);
  }

  first() {
    const found = this.state.conversations.find((each) => !each.fault);
    if (found) this.go(found.conversation, null);
  }

  escape(event, field) {
    if (this.state.help) return this.setState({ help: false });
    if (field) {
      if (event.target === this.find.current && this.state.finding) this.setState({ finding: "", hits: [] });
      event.target.blur();
      if (this.state.selected) this.focusRow(this.state.selected);
      if (this.state.sidebar && window.innerWidth <= 900 && this.state.name) this.setState({ sidebar: false });
      return;
    }
    if (this.state.detail) return this.shut();
    if (this.state.sidebar && this.state.name) return this.setState({ sidebar: false });
    if (this.state.at !== null) return this.leavePast();
  }

  retheme() {
    const theme = THEMES[(THEMES.indexOf(this.state.theme) + 1) % THEMES.length];
    kept.set("theme", theme);
    this.dress(theme);
    this.setState({ theme });
    this.say(`theme: ${theme === "auto" ? "as the system" : theme}`);
  }

  dress(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }

  // -- drawing -----------------------------------------------------------------------------------

  componentDidUpdate(_, before) {
    const { at, name, view, selected, detail } = this.state;
    if (name !== before.name || view !== before.view || detail !== before.detail) this.write();
    else if (at !== before.at) this.writeSoon();
    if (name !== before.name) document.querySelector(".conversation[aria-current]")?.scrollIntoView({ block: "nearest" });
    this.countFailed();
    if (this.state.help && !before.help) {
      this.helped = document.activeElement;
      document.querySelector(".help")?.focus();
    } else if (!this.state.help && before.help) this.helped?.focus?.({ preventScroll: true });
  }

  render(_, state) {
    const model = state.name ? this.model() : null;
    const node = model && state.selected ? model.nodes.get(state.selected) : null;
    const detail = state.detail && node;
    return html`<div class=${`app${state.sidebar ? " aside-open" : ""}${detail ? " with-detail" : ""}${state.at !== null ? " past" : ""}`}>
      ${this.sidebar(state)}
      <main class="main">
        ${state.name ? this.header(state, model) : null}
        ${state.name ? this.body(state, model) : html`<div class="nothing"><h1 class="hidden">Conversations</h1>
          ${this.nothing(state)}</div>`}
        ${state.name && state.moments && state.moments.length > 1 ? html`<${Timeline} moments=${state.moments} marks=${state.marks} at=${state.at}
          speed=${state.speed} playing=${state.playing} theme=${state.theme} act=${this.act} />` : null}
        ${state.blind ? html`<p class="blind">No timeline. ${line(state.blind, 200)}</p>` : null}
      </main>
      ${detail ? html`<${Detail} node=${node} told=${state.told?.key === node.key ? state.told : null} fault=${state.toldFault} led=${state.led?.key === node.key ? state.led : null} stale=${state.toldAt !== state.at} at=${state.at} act=${this.act} />` : null}
      ${state.help ? this.help() : null}
      <div class="hidden" role="status" aria-live="polite">${state.status}</div>
      ${state.toast ? html`<div class="toast" aria-hidden="true">${line(state.toast, 200)}</div>` : null}
    </div>`;
  }

  sidebar(state) {
    return html`<nav class="sidebar" aria-label="conversations">
      <div class="brand"><img src="page/icon.svg" alt="" width="22" height="22" /><span>Conversations</span>
        <button class="plain theme" onClick=${() => this.retheme()} aria-label=${`theme: ${state.theme}`} title="theme  t"><${Icon} name=${{ auto: "auto", light: "sun", dark: "moon" }[state.theme]} /></button></div>
      <div class="field-of"><${Icon} name="search" /><input ref=${this.searching} type="search" placeholder="Search  c" aria-label="search conversations"
        value=${state.search} onInput=${this.seek} autocomplete="off" spellcheck=${false} /></div>
      <ul class="conversations">${state.conversations.map((each) => html`<li key=${each.conversation}>
        <button class="conversation" disabled=${!!each.fault} aria-current=${each.conversation === state.name ? "true" : null}
          onClick=${() => this.go(each.conversation, null)} onKeyDown=${this.walk}>
          <span class="name" dir="auto">${line(each.title || each.conversation, 120)}</span>
          <span class="about">${each.live ? html`<span class="stage is-busy"><i></i>live</span>` : null}
            ${each.fault ? html`<span class="fault" dir="auto">${line(each.fault.replace(`${each.conversation}:`, ""), 160)}</span>`
              : html`${beside(each) && html`<bdi class="file">${line(beside(each), 60)}</bdi>`}
                ${each.events === null ? null : html`<span>${each.events === 1 ? "1 event" : `${each.events} events`}</span>`}<span class="ago">${ago(each.last_time)}</span>`}</span>
        </button></li>`)}
        ${state.listed && !state.conversations.length ? html`<li class="nothing-found">${state.search ? "Nothing found." : state.fault || "No conversation here yet. Recordings and transcripts that are put here come into the list by themselves."}</li>` : null}
        ${state.next ? html`<li><button class="further" onClick=${() => this.further()}>more</button></li>` : null}
      </ul></nav>
      <button class="veil" tabindex="-1" aria-label="close the list" onClick=${() => this.setState({ sidebar: false })}></button>`;
  }

  walk = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    if (!by) return;
    const all = [...document.querySelectorAll(".conversation")];
    const next = all[all.indexOf(event.currentTarget) + by];
    if (next) next.focus();
    else if (by < 0) this.searching.current.focus();
    event.preventDefault();
    event.stopPropagation();
  };

  header(state, model) {
    const found = this.about(state.name);
    const more = state.at === null && model?.window?.has_more;
    const failed = model && this.failedOf?.model === model ? this.failedOf.keys.length : 0;
    return html`<header class="top">
      <button class="plain menu" onClick=${() => this.setState({ sidebar: !state.sidebar })} aria-label="conversations" title="conversations  c"><${Icon} name="menu" /></button>
      <h1 dir="auto">${line(found?.title || state.name, 120)}</h1>
      ${this.liveness(state, model)}
      ${failed ? html`<button class="badge lost failures" onClick=${() => this.toFailed(1)} title="next failure  x"
        aria-label=${`${failed} failed, go to the next`}>${failed}${more ? "+" : ""} failed</button>` : null}
      <span class="space"></span>
      ${state.views.length > 1 && html`<div class="views" role="group" aria-label="view">${state.views.map((view) => html`<button key=${view}
        aria-pressed=${String(view === state.view)} onClick=${() => this.go(state.name, view)}>${view}</button>`)}</div>`}
      <div class="field-of find"><${Icon} name="search" /><input ref=${this.find} type="search" placeholder="Find  /" aria-label="find in this conversation"
        value=${state.finding} onInput=${this.seekHere} autocomplete="off" spellcheck=${false} />
        ${state.finding && html`<span class="hits" aria-live="polite">${state.hits.length ? `${state.hit + 1}/${state.hits.length}` : "0"}${more ? html`<span title="older messages are not loaded">+</span>` : ""}</span>`}</div>
      <button class="plain" onClick=${() => this.setState({ help: true })} aria-label="help" title="keys  ?"><${Icon} name="question" /></button>
    </header>`;
  }

  liveness(state, model) {
    if (state.at !== null) return html`<span class="badge past">the past</span>`;
    if (state.missing === state.name && model) return html`<span class="badge lost" title="it is not in the list any more: this is what was there">removed</span>`;
    if (state.connected === "lost") return html`<span class="badge lost">connecting…</span>`;
    if (model?.live || (model?.open && model.live === null)) return html`<span class="badge live"><i></i>${model.live ? "live" : "open"}</span>`;
    return null;
  }

  body(state, model) {
    if (state.connected === "gone") return html`<div class="nothing"><p>This conversation cannot be shown.</p><p class="none" dir="auto">${line(state.fault, 300)}</p></div>`;
    if (!model) return html`<div class="nothing"><p class="none">Loading…</p></div>`;
    const rows = this.rows();
    if (!rows.length) return html`<div class="nothing"><p class="none">${state.at === null ? "Nothing to show yet." : "Nothing was shown yet."}</p></div>`;
    const hitting = state.finding ? this.hitting : null;
    // What the rows are drawn from, beside the rows: while it is the same, none is drawn again.
    const seen = [model, state.version, state.selected, state.detail, state.opened, state.folded, hitting];
    const list = html`<${List} key=${`${state.name}/${state.view}`} held=${this.list} rows=${rows} seen=${seen} label="conversation" onPlace=${this.place}
      row=${({ key, group, folded, depth }, at) => html`<${Row} key=${key} id=${key} node=${group ? null : model.nodes.get(key)} group=${group && model.groups.get(key)}
        folded=${folded} depth=${depth} position=${at + 1} total=${rows.length} selected=${key === state.selected}
        current=${key === state.selected && state.detail} opened=${state.opened.has(key)} hit=${hitting?.has(key)} act=${this.act} />`} />`;
    return html`<div class="transcript">${model.window?.has_more && state.at === null ? html`<div class="older" aria-hidden="true"></div>` : null}${list}</div>`;
  }

  // What stands there while no conversation does.
  nothing(state) {
    if (!state.listed) return html`<p class="none">Looking for conversations…</p>`;
    if (state.fault) return html`<p>The server does not answer.</p><p class="none" dir="auto">${line(state.fault, 300)}</p>`;
    if (!state.conversations.length && !state.search) return html`<p class="none">Nothing to show yet.</p>`;
    return html`<p>Choose a conversation.</p><p class="none by-key">Press <kbd>?</kbd> for the keys.</p>`;
  }

  help() {
    return html`<div class="dialog" onClick=${(event) => event.target === event.currentTarget && this.setState({ help: false })}>
      <div class="help" role="dialog" aria-modal="true" aria-label="keys" tabindex="-1" onKeyDown=${trapped}><h2>Keys</h2>
        <dl>${KEYS.map(([keys, does]) => html`<div key=${keys}><dt>${keys.split(", ").map((each) => html`<kbd>${each}</kbd> `)}</dt><dd>${does}</dd></div>`)}</dl>
        <button onClick=${() => this.setState({ help: false })}>Close</button></div></div>`;
  }
}

// What tells a conversation apart beside its title: its name, or where that is the title, its folder.
function beside({ title, conversation }) {
  if (!title || title === conversation) return "";
  return conversation.endsWith("/" + title) ? conversation.slice(0, -title.length - 1) : conversation;
}

// A dialog keeps the focus.
function trapped(event) {
  if (event.key !== "Tab") return;
  event.preventDefault();
  event.currentTarget.querySelector("button").focus();
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

render(html`<${App} />`, document.getElementById("app"));
