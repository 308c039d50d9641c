// What there is to read of a Node, part by part. Every part is text:
//   {is: "text" | "thought" | "error" | "output" | "note", text}   {is: "code", text, name}
//   {is: "change", before, after, name}   {is: "written", text, name}   {is: "fields", value}

import { Component, html, useState } from "./vendor/preact.js";
import { chunked, differences, fenced, line, patched, seam, size, styled, unstyled, visible } from "./text.js";

const INLINE_MAX = 8000;
const OUTPUT_MAX = 4000;
const TAIL = 2500;
const LINES_MAX = 160;

export function Parts({ parts }) {
  return parts.map((part, at) => html`<${Part} key=${at} part=${part} />`);
}

class Part extends Component {
  shouldComponentUpdate({ part }) {
    const old = this.props.part;
    return Object.keys({ ...old, ...part }).some((name) => old[name] !== part[name]);
  }

  render({ part }) {
    switch (part.is) {
      case "text": return html`<${Prose} text=${part.text} />`;
      case "thought": return html`<${Thought} text=${part.text} />`;
      case "code": return html`<${Code} text=${part.text} name=${part.name} />`;
      case "written": return html`<${Written} text=${part.text} name=${part.name} />`;
      case "change": return html`<${Change} before=${part.before} after=${part.after} name=${part.name} />`;
      case "output": return html`<${Output} text=${part.text} name=${part.name} />`;
      case "error": return html`<pre class="part error" dir="auto">${visible(unstyled(cut(part.text, OUTPUT_MAX)))}</pre>`;
      case "note": return html`<p class="part note" dir="auto">${visible(cut(part.text, 600))}</p>`;
      default: return html`<${Fields} value=${part.value} />`;
    }
  }
}

const cut = (text, most) => (text.length > most ? text.slice(0, seam(text, most)) + "…" : text);

// A text of any length: its beginning and its end, and all of it when asked for.
function Long({ text, most, wrap }) {
  const [all, setAll] = useState(false);
  if (text.length <= most) return wrap(text, "whole");
  if (all) return chunked(text).map((part, at) => html`<div class="chunk" key=${at}>${wrap(part, at)}</div>`);
  const head = seam(text, most - TAIL), tail = seam(text, text.length - TAIL);
  return html`${wrap(text.slice(0, head), "head")}
    <button class="more" onClick=${(event) => { event.stopPropagation(); setAll(true); }}>
      ${size(tail - head)} more</button>
    ${wrap(text.slice(tail), "tail")}`;
}

function Prose({ text }) {
  return html`<div class="part prose"><${Long} text=${text} most=${INLINE_MAX} wrap=${(piece, key) =>
    fenced(visible(piece)).map((part, at) => part.code
      ? html`<${Code} key=${key + at} text=${part.text} name=${part.name} />`
      : html`<${Paragraphs} key=${key + at} text=${part.text} />`)} /></div>`;
}

// Prose as it stands; only `code` and **what is meant** look so.
const MARKED = /(`[^`\n]{1,200}`|\*\*[^*\n]{1,200}\*\*)/;

function Paragraphs({ text }) {
  return text.split(/\n{2,}/).filter((each) => each.trim()).map((paragraph, at) => {
    const heading = /^(#{1,4}) (.+)$/.exec(paragraph.split("\n", 1)[0]);
    const rest = heading ? paragraph.slice(paragraph.indexOf("\n") + 1 || paragraph.length) : paragraph;
    return html`${heading && html`<p key=${"h" + at} class="heading" dir="auto">${heading[2]}</p>`}
      ${rest && html`<p key=${at} dir="auto">${inline(rest)}</p>`}`;
  });
}

function inline(text) {
  if (!MARKED.test(text)) return text;
  return text.split(MARKED).map((piece) => {
    if (piece.length > 2 && piece[0] === "`" && piece.at(-1) === "`") return html`<code>${piece.slice(1, -1)}</code>`;
    if (piece.length > 4 && piece.startsWith("**") && piece.endsWith("**")) return html`<strong>${piece.slice(2, -2)}</strong>`;
    return piece;
  });
}

function Thought({ text }) {
  const [open, setOpen] = useState(false);
  const long = text.length > 260 || text.split("\n", 4).length > 3;
  const shown = open || !long ? text : text.length > 260 ? "…" + text.slice(seam(text, text.length - 240)) : text;
  return html`<div class=${"part thought" + (open || !long ? "" : " short")}>
    <${Long} text=${visible(shown)} most=${INLINE_MAX} wrap=${(piece, key) => html`<p key=${key} dir="auto">${piece}</p>`} />
    ${long && html`<button class="more" aria-expanded=${String(open)} onClick=${(event) => { event.stopPropagation(); setOpen(!open); }}>
      ${open ? "less" : `thought, ${size(text.length)}`}</button>`}
  </div>`;
}

function Code({ text, name }) {
  const lines = patched(text);
  if (lines) return html`<${Lines} lines=${lines} name=${name} />`;
  return html`<figure class="part code">${name && html`<figcaption>${line(name, 120)}</figcaption>`}
    <pre tabindex="0"><${Long} text=${visible(text)} most=${INLINE_MAX} wrap=${(piece, key) => html`<code key=${key}>${piece}</code>`} /></pre></figure>`;
}

function Output({ text, name }) {
  const lines = patched(text);
  if (lines) return html`<${Lines} lines=${lines} name=${name} />`;
  return html`<figure class="part output">${name && html`<figcaption>${line(name, 120)}</figcaption>`}
    <pre tabindex="0" dir="auto"><${Long} text=${text} most=${OUTPUT_MAX} wrap=${(piece, key) => html`<span key=${key}>${styled(piece).map(shaded)}</span>`} /></pre></figure>`;
}

const shaded = ({ text, style }, at) => (style ? html`<span key=${at} class=${style}>${visible(text)}</span>` : visible(text));

function Written({ text, name }) {
  const looked = text.length > 60_000 ? text.slice(0, 60_000) : text;
  return html`<${Lines} name=${name} lines=${looked.split("\n").map((each) => ({ sign: "+", text: each }))} numbers
    rest=${text.length - looked.length} />`;
}

function Change({ before, after, name }) {
  return html`<${Lines} lines=${differences(before.slice(0, 60_000), after.slice(0, 60_000))} name=${name} />`;
}

const SIGNS = { "+": "added", "-": "gone", "@": "mark", " ": "same" };

function Lines({ lines, name, numbers, rest = 0 }) {
  const [all, setAll] = useState(false);
  const shown = all ? lines : lines.slice(0, LINES_MAX);
  const added = lines.filter((each) => each.sign === "+").length;
  const gone = lines.filter((each) => each.sign === "-").length;
  return html`<figure class="part lines">
    <figcaption>${name && html`<bdi>${line(name, 120)}</bdi>`}
      ${added > 0 && html`<span class="plus">+${added}</span>`}${gone > 0 && html`<span class="minus">−${gone}</span>`}</figcaption>
    <pre tabindex="0">${shown.map(({ sign, text }, at) => html`<div class=${SIGNS[sign]} key=${at}>
      <span class="sign" aria-hidden="true">${numbers ? at + 1 : sign}</span><span class="text">${visible(cut(text, 2000)) || " "}</span></div>`)}</pre>
    ${shown.length < lines.length && html`<button class="more" onClick=${(event) => { event.stopPropagation(); setAll(true); }}>
      ${lines.length - shown.length} more lines</button>`}
    ${rest > 0 && html`<p class="note">and ${size(rest)}</p>`}
  </figure>`;
}

// Any JSON value, as a tree that is opened where somebody looks.
export function Fields({ value, open = 1 }) {
  return html`<div class="part fields"><${Value} value=${value} depth=${0} open=${open} /></div>`;
}

const FIELDS_MAX = 60;

function Value({ value, depth, open }) {
  if (value === null || typeof value !== "object") return html`<${Leaf} value=${value} />`;
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  if (!entries.length) return html`<span class="leaf none">${list ? "[]" : "{}"}</span>`;
  if (depth > 40) return html`<span class="leaf none">…</span>`;
  return html`<dl>${entries.slice(0, FIELDS_MAX).map(([name, each]) => html`<${Field} key=${name} name=${name} value=${each} depth=${depth} open=${open} />`)}
    ${entries.length > FIELDS_MAX && html`<div class="field"><dt>…</dt><dd class="none">${entries.length - FIELDS_MAX} more</dd></div>`}</dl>`;
}

function Field({ name, value, depth, open }) {
  const nested = value !== null && typeof value === "object" && Object.keys(value).length > 0;
  const [shown, setShown] = useState(depth < open);
  if (!nested) return html`<div class="field"><dt><bdi>${line(name, 80)}</bdi></dt><dd><${Value} value=${value} depth=${depth + 1} open=${open} /></dd></div>`;
  return html`<div class=${"field nested" + (shown ? " shown" : "")}><dt><button aria-expanded=${String(shown)} onClick=${() => setShown(!shown)}>
      <bdi>${line(name, 80)}</bdi> <span class="none">${Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`}</span></button></dt>
    ${shown && html`<dd><${Value} value=${value} depth=${depth + 1} open=${open} /></dd>`}</div>`;
}

function Leaf({ value }) {
  if (typeof value === "string") {
    return html`<span class="leaf text" dir="auto"><${Long} text=${visible(value)} most=${3000} wrap=${(piece, key) => html`<span key=${key}>${piece || "“”"}</span>`} /></span>`;
  }
  return html`<span class=${"leaf " + (value === null ? "none" : typeof value)}>${String(value)}</span>`;
}
