// A list of any length of which only the rows in sight are in the document. Rows have any height; it
// is measured when a row is first seen. What is in sight stays where it is, whatever comes above it.

import { Component, createRef, html } from "./vendor/preact.js";

const OVER = 500; // pixels that are drawn above and below what is in sight, once that is drawn
const AT_END = 30;
const PRINTED_MAX = 2000; // rows; of more, those around what is in sight

export class List extends Component {
  constructor(props) {
    super(props);
    this.scroller = createRef();
    this.slice = createRef();
    this.heights = new Map();
    this.usual = new Map(); // how high a row of a kind was, the last time
    this.over = 0;
    this.pinned = true;
    this.anchors = [];
    this.top = 0;
    this.tall = 0;
    this.wide = 0;
    this.rows = null;
    this.watched = new Set();
    this.resized = new ResizeObserver(() => { this.heed(); this.measure(); });
  }

  componentDidMount() {
    this.props.held.current = this;
    this.resized.observe(this.scroller.current);
    window.addEventListener("beforeprint", this.print);
    window.addEventListener("afterprint", this.print);
    this.measure();
    requestAnimationFrame(() => setTimeout(() => { this.over = OVER; this.forceUpdate(); }));
  }

  componentWillUnmount() {
    if (this.props.held.current === this) this.props.held.current = null;
    this.resized.disconnect();
    window.removeEventListener("beforeprint", this.print);
    window.removeEventListener("afterprint", this.print);
  }

  shouldComponentUpdate({ rows, seen }) {
    return rows !== this.props.rows || seen.some((each, at) => each !== this.props.seen[at]);
  }

  componentDidUpdate() {
    this.measure();
  }

  // The places of all rows, by what is known of their heights.
  lay(rows) {
    if (rows !== this.rows) {
      this.rows = rows;
      this.index = new Map(rows.map((row, at) => [row.key, at]));
      if (this.heights.size > 3 * rows.length + 2000) {
        for (const key of this.heights.keys()) if (!this.index.has(key)) this.heights.delete(key);
      }
    }
    const offsets = this.offsets && this.offsets.length === rows.length + 1
      ? this.offsets : new Float64Array(rows.length + 1);
    let at = 0;
    for (let i = 0; i < rows.length; i++) {
      offsets[i] = at;
      at += this.heights.get(rows[i].key) ?? this.usual.get(rows[i].kind) ?? 48;
    }
    offsets[rows.length] = at;
    this.offsets = offsets;
  }

  find(offset) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.offsets[middle + 1] <= offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Where the top should be, so that what was in sight still is.
  wanted() {
    const total = this.offsets[this.rows.length];
    if (this.pinned) return Math.max(0, total - this.tall);
    for (const { key, delta } of this.anchors) {
      const at = this.index.get(key);
      if (at !== undefined) return Math.max(0, this.offsets[at] - delta);
    }
    return Math.min(this.top, Math.max(0, total - this.tall));
  }

  measure() {
    const scroller = this.scroller.current;
    if (!scroller) return;
    this.tall = scroller.clientHeight;
    if (this.wide !== scroller.clientWidth) {
      if (this.wide) this.heights.clear();
      this.wide = scroller.clientWidth;
    }
    let changed = false;
    const seen = new Set();
    for (const child of this.slice.current.children) {
      const key = child.dataset.key;
      const height = child.getBoundingClientRect().height;
      if (!this.watched.has(child)) this.resized.observe(child);
      this.watched.delete(child);
      seen.add(child);
      if (Math.abs((this.heights.get(key) ?? -1) - height) > 0.4) {
        this.heights.set(key, height);
        const at = this.index.get(key);
        if (at !== undefined && !this.usual.has(this.rows[at].kind)) this.usual.set(this.rows[at].kind, height);
        changed = true;
      }
    }
    // Who is watched is kept in memory, so that what is out of sight is not.
    for (const gone of this.watched) this.resized.unobserve(gone);
    this.watched = seen;
    if (changed) this.lay(this.rows);
    this.settle(changed);
  }

  settle(changed) {
    const scroller = this.scroller.current;
    const wanted = this.wanted();
    const total = this.offsets[this.rows.length];
    // The document must be tall enough before it can be scrolled there.
    this.slice.current.parentNode.style.height = `${total}px`;
    if (Math.abs(scroller.scrollTop - wanted) > 0.5) scroller.scrollTop = wanted;
    this.top = scroller.scrollTop;
    const [start, end] = this.range();
    if (changed || start < this.start || end > this.end) {
      if (start !== this.start || end !== this.end || changed) this.forceUpdateSoon();
    }
    this.remember();
    if (this.props.onPlace) this.props.onPlace(this);
  }

  forceUpdateSoon() {
    if (this.again > 6) return; // what does not come to rest is drawn at the next scroll
    this.again = (this.again || 0) + 1;
    if (this.waiting) return;
    // Before anything is painted, and once for all that asked until then.
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.forceUpdate(); });
    setTimeout(() => (this.again = 0), 50);
  }

  print = (event) => {
    this.printing = event.type === "beforeprint";
    this.forceUpdate();
  };

  range() {
    if (this.printing) {
      const from = Math.max(0, Math.min(this.find(this.top) - PRINTED_MAX / 2, this.rows.length - PRINTED_MAX));
      return [from, Math.min(this.rows.length, from + PRINTED_MAX)];
    }
    const start = this.find(Math.max(0, this.top - this.over));
    const end = Math.min(this.rows.length, this.find(this.top + this.tall + this.over) + 1);
    return [start, end];
  }

  // The rows in sight, and where they stand: to find the place again.
  remember() {
    if (!this.rows.length) return;
    const first = this.find(this.top + 1);
    this.anchors = [];
    for (let at = first; at < Math.min(first + 8, this.rows.length); at++) {
      this.anchors.push({ key: this.rows[at].key, delta: this.offsets[at] - this.top });
    }
  }

  // Where somebody scrolled to. Browsers tell of it at the next frame; what is drawn before that must
  // not bring them back.
  heed() {
    const scroller = this.scroller.current;
    if (!scroller || !this.rows || Math.abs(scroller.scrollTop - this.top) < 0.5) return false;
    this.top = scroller.scrollTop;
    const end = scroller.scrollHeight - scroller.clientHeight - this.top;
    this.pinned = end < AT_END && this.props.follow !== false;
    this.remember();
    return true;
  }

  onScroll = () => {
    if (!this.heed()) return;
    const [start, until] = this.range();
    if (start < this.start || until > this.end) this.forceUpdate();
    if (this.props.onPlace) this.props.onPlace(this);
  };

  toEnd() {
    this.heed();
    this.pinned = true;
    this.measure();
    this.forceUpdate();
  }

  // Brings a row into sight; `middle`: to the middle, where it is not in sight yet.
  show(key, middle = false) {
    const at = this.index.get(key);
    if (at === undefined) return false;
    const from = this.offsets[at], to = this.offsets[at + 1];
    const room = 12;
    let top = this.top;
    if (middle && (from < top || to > top + this.tall)) top = from - this.tall / 3;
    else if (from < top + room) top = from - room;
    else if (to > top + this.tall - room) top = Math.min(from - room, to - this.tall + room);
    top = Math.max(0, top);
    if (top !== this.top) {
      this.pinned = false;
      this.anchors = [{ key, delta: from - top }];
      this.moving = true;
      this.forceUpdate();
    }
    return true;
  }

  render({ rows, row, label, busy }) {
    if (!this.moving) this.heed();
    this.moving = false;
    if (rows !== this.rows || !this.offsets) this.lay(rows);
    if (!this.tall) this.tall = window.innerHeight;
    this.top = this.wanted();
    [this.start, this.end] = this.range();
    const shown = [];
    for (let at = this.start; at < this.end; at++) shown.push(row(rows[at], at));
    return html`<div class="scroller" ref=${this.scroller} onScroll=${this.onScroll} tabindex="-1">
      <div class="canvas" style=${{ height: `${this.offsets[rows.length]}px` }}>
        <div class="slice" role="feed" aria-label=${label} aria-busy=${busy ? "true" : "false"} ref=${this.slice}
          style=${{ transform: `translateY(${this.offsets[this.start] || 0}px)` }}>${shown}</div>
      </div></div>`;
  }
}
