// The timeline: every moment of a recording on one strip, to drag, step and play through.

import { Component, createRef, html } from "./vendor/preact.js";
import { Icon } from "./icons.js";
import { duration, line } from "./text.js";

export const SPEEDS = [1, 2, 4, 8, 16, 32];
const PAUSE_MAX = 1500; // nobody waits longer for the next thing to happen

// Later times count from 1970; smaller ones before them are of events whose time nobody knows.
const EPOCH = 1e11;

// Milliseconds since the first moment whose time is known.
function sinceBegun(moments, time) {
  if (time === null || time === undefined) return 0;
  return time - moments.find((each) => each.time !== null && (each.time < EPOCH) === (time < EPOCH)).time; // this one, if no other
}

// When each moment is due, in milliseconds of playing at speed 1.
export function pace(moments) {
  const due = new Float64Array(moments.length);
  let before = null;
  for (let at = 1; at < moments.length; at++) {
    const time = moments[at].time;
    const apart = !time || before === null ? 0 : Math.min(PAUSE_MAX, Math.max(0, time - before));
    due[at] = due[at - 1] + Math.max(apart, 4);
    if (time) before = Math.max(before ?? time, time);
  }
  return due;
}

export class Timeline extends Component {
  constructor(props) {
    super(props);
    this.canvas = createRef();
    this.strip = createRef();
  }

  componentDidMount() {
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.strip.current);
    this.draw();
  }

  componentWillUnmount() {
    this.resized.disconnect();
  }

  componentDidUpdate(before) {
    if (before.moments !== this.props.moments || before.theme !== this.props.theme) this.draw();
  }

  draw() {
    const canvas = this.canvas.current, strip = this.strip.current;
    if (!canvas || !strip) return;
    const { moments, marks } = this.props;
    const wide = strip.clientWidth, tall = strip.clientHeight, ratio = window.devicePixelRatio || 1;
    canvas.width = wide * ratio;
    canvas.height = tall * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(strip);
    const colour = (name) => style.getPropertyValue(name).trim();
    const last = Math.max(1, moments.length - 1);
    // How much happens where, facts below and pieces above.
    const columns = Math.max(1, Math.min(Math.floor(wide / 3), last));
    const facts = new Float64Array(columns), pieces = new Float64Array(columns);
    for (let at = 1; at < moments.length; at++) {
      const column = Math.min(columns - 1, Math.floor(((at - 1) / last) * columns));
      if (moments[at].op === "delta" || moments[at].op === "chunk") pieces[column]++;
      else facts[column]++;
    }
    const most = Math.max(1, ...facts.map((each, at) => each + pieces[at]));
    const base = tall - 8, room = tall - 20, step = wide / columns;
    for (let column = 0; column < columns; column++) {
      const lower = facts[column] ? Math.max(2, (facts[column] / most) * room) : 0;
      const upper = pieces[column] ? Math.max(2, (pieces[column] / most) * room) : 0;
      pen.fillStyle = colour("--tick-piece");
      pen.fillRect(column * step, base - upper - lower, Math.max(1, step - 1), upper);
      pen.fillStyle = colour("--tick-fact");
      pen.fillRect(column * step, base - lower, Math.max(1, step - 1), lower);
    }
    for (const { at, mark } of marks) {
      const x = (at / last) * wide;
      pen.fillStyle = colour(MARKS[mark] || "--mark-other");
      pen.beginPath();
      pen.arc(Math.max(3, Math.min(wide - 3, x)), 6, 3, 0, 2 * Math.PI);
      pen.fill();
      pen.fillRect(Math.max(3, Math.min(wide - 3, x)) - 0.5, 8, 1, tall - 16);
    }
  }

  place(event) {
    const box = this.strip.current.getBoundingClientRect();
    const share = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    return Math.round(share * (this.props.moments.length - 1));
  }

  down = (event) => {
    event.preventDefault();
    this.strip.current.focus({ preventScroll: true });
    this.strip.current.setPointerCapture(event.pointerId);
    this.dragged = true;
    this.props.act.travel(this.place(event));
  };

  moved = (event) => {
    if (this.dragged) this.props.act.travel(this.place(event));
  };

  up = () => {
    this.dragged = false;
  };

  key = (event) => {
    const { at, moments, act } = this.props;
    const now = at ?? moments.length - 1;
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 }[event.key];
    if (by) act.travel(now + by);
    else if (event.key === "Home") act.travel(0);
    else if (event.key === "End") act.travel(moments.length - 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  render({ moments, marks, at, speed, playing, act }) {
    const last = moments.length - 1;
    const now = at ?? last;
    const moment = moments[now] || {};
    const since = sinceBegun(moments, moment.time);
    const words = moment.op === "begin" ? "the beginning" : [moment.op === moment.type ? "" : moment.op, moment.type].filter(Boolean).join(" ");
    const said = `moment ${now} of ${last}, ${words}${moment.marks?.length ? `, ${moment.marks.join(", ")}` : ""}`;
    return html`<section class=${"timeline" + (at === null ? " live" : "")} aria-label="timeline">
      <div class="controls">
        <button onClick=${() => act.travel(now - 1)} aria-label="one moment back" title="one moment back  ["><${Icon} name="left" /></button>
        <button class="play" onClick=${act.play} aria-label=${playing ? "pause" : "play"} title="play or pause  p"><${Icon} name=${playing ? "pause" : "play"} /></button>
        <button onClick=${() => act.travel(now + 1)} aria-label="one moment on" title="one moment on  ]"><${Icon} name="right" /></button>
        <button class="speed" onClick=${act.faster} aria-label=${`speed ${speed}`} title="speed  s">${speed}×</button>
        <button class="next" disabled=${!marks.length} onClick=${() => act.mark(1)} aria-label="next mark" title="next mark  }"><${Icon} name="end" /><span class="dots">${
          [...new Set(marks.map(({ mark }) => mark))].slice(0, 5).map((mark) => html`<i class=${`dot m-${mark}`} title=${mark}></i>`)}</span></button>
      </div>
      <div class="strip" ref=${this.strip} role="slider" tabindex="0" aria-label="moment" aria-valuemin="0" aria-valuemax=${last}
        aria-valuenow=${now} aria-valuetext=${said} onPointerDown=${this.down} onPointerMove=${this.moved} onPointerUp=${this.up}
        onPointerCancel=${this.up} onKeyDown=${this.key}>
        <canvas ref=${this.canvas} aria-hidden="true"></canvas>
        <div class="past" style=${{ transform: `scaleX(${last ? now / last : 1})` }}></div>
        <div class="head" style=${{ left: `${last ? (now / last) * 100 : 100}%` }}></div>
      </div>
      <div class="now"><b>${now}</b><span class="of"> / ${last}</span>
        <span class="what">${words}</span>${(moment.marks || []).map((mark) => html`<span class=${`flag m-${mark}`}>${mark}</span>`)}
        <span class="text"><bdi>${line(moment.text || "", 140)}</bdi></span>
        <span class="time">${since ? duration(since) : ""}</span>
        <button class=${"now-live" + (at === null ? " on" : "")} aria-pressed=${String(at === null)} onClick=${act.live}>now</button></div>
    </section>`;
  }
}

const MARKS = {
  anomaly: "--mark-anomaly", withdrawn: "--mark-withdrawn", fault: "--mark-fault",
  retry: "--mark-retry", permission: "--mark-permission", error: "--mark-fault",
};
