// Texts as people may see them: controls made visible, long ones cut, lines compared.
// Whatever comes in is text and stays text: nothing here makes markup.

// Controls, and the marks that turn the direction of what follows: seen, not obeyed.
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;
const CONTROLS_ALL = new RegExp(CONTROLS.source, "g");

export function visible(text) {
  const plain = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  return CONTROLS.test(plain) ? plain.replace(CONTROLS_ALL, pictured) : plain;
}

function pictured(control) {
  const code = control.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `\u27e8${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

// Colours that a terminal would show: `31` and the like. What else a terminal does stays visible.
const STYLES = /\u001b\[([0-9;]*)m/;
const STYLES_ALL = new RegExp(STYLES.source, "g");

export function unstyled(text) {
  return text.includes("\u001b[") ? text.replace(STYLES_ALL, "") : text;
}

// A text as pieces of one colour each: [{text, style}]; `style` is null, or names: "bold c1".
export function styled(text) {
  if (!text.includes("\u001b[")) return [{ text, style: null }];
  let bold = false, colour = "";
  return text.split(STYLES).map((piece, at) => {
    if (at % 2 === 0) return { text: piece, style: [bold && "bold", colour].filter(Boolean).join(" ") || null };
    const codes = piece.split(";").map(Number);
    for (let i = 0; i < codes.length; i++) {
      const code = codes[i];
      if (code === 0) { bold = false; colour = ""; }
      else if (code === 1) bold = true;
      else if (code === 22) bold = false;
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) colour = `c${code % 10}`;
      else if (code === 39) colour = "";
      else if (code === 38 || code === 48) i += codes[i + 1] === 5 ? 2 : 4; // a colour of many: none of ours
    }
    return null;
  }).filter((each) => each && each.text);
}

// Where a text may be cut without breaking a character in two.
export function seam(text, at) {
  if (at <= 0 || at >= text.length) return Math.max(0, Math.min(at, text.length));
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

// One line of at most `most` characters. Looks at no more of the text than that needs.
export function line(text, most = 240) {
  const looked = text.length > most * 2 ? text.slice(0, seam(text, most * 2)) : text;
  const said = visible(looked).replace(/\s+/g, " ").trim();
  if (said.length > most) return said.slice(0, seam(said, most - 1)) + "…";
  return looked.length < text.length ? said + "…" : said;
}

// A text in parts of bounded size, cut at line breaks where there are any.
export function chunked(text, most = 6000) {
  const parts = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + most);
    if (end < text.length) {
      const broken = text.lastIndexOf("\n", end);
      end = broken > at + most / 2 ? broken + 1 : seam(text, end);
    }
    parts.push(text.slice(at, end));
    at = end;
  }
  return parts;
}

// Prose with its fenced code apart: [{code: false, text}, {code: true, text, name}].
export function fenced(text) {
  if (!text.includes("```")) return [{ code: false, text }];
  const parts = [];
  let lines = [], name = null;
  const close = (code, label) => {
    if (lines.length && (code || lines.some((each) => each.trim()))) {
      parts.push({ code, text: lines.join("\n").replace(/^\n+|\n+$/g, ""), name: label });
    }
    lines = [];
  };
  for (const each of text.split("\n")) {
    const fence = /^\s{0,3}```\s*([\w+#.-]*)\s*$/.exec(each);
    if (fence && name === null) { close(false); name = fence[1]; }
    else if (name !== null && /^\s{0,3}```\s*$/.test(each)) { close(true, name); name = null; }
    else lines.push(each);
  }
  close(name !== null, name);
  return parts;
}

export function size(count) {
  if (count < 1000) return `${count} characters`;
  if (count < 1e6) return `${(count / 1e3).toFixed(count < 1e4 ? 1 : 0)} k characters`;
  return `${(count / 1e6).toFixed(1)} M characters`;
}

export function duration(ms) {
  if (!(ms >= 0)) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function ago(time, now = Date.now()) {
  const seconds = (now - time) / 1000;
  if (!time || seconds < -60) return "";
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 86_400 * 14) return `${Math.floor(seconds / 86_400)} d`;
  return new Date(time).toISOString().slice(0, 10);
}

const LINES_MAX = 1200;

// Two texts line by line: [{sign: " ", "-" or "+", text}]. Long ones are not aligned inside.
export function differences(before, after) {
  const left = before.split("\n"), right = after.split("\n");
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head++;
  let tail = 0;
  while (
    tail < left.length - head && tail < right.length - head &&
    left[left.length - 1 - tail] === right[right.length - 1 - tail]
  ) tail++;
  const same = (lines) => lines.map((text) => ({ sign: " ", text }));
  const middle = aligned(left.slice(head, left.length - tail), right.slice(head, right.length - tail));
  return [...same(left.slice(Math.max(0, head - 3), head)), ...middle,
    ...same(left.slice(left.length - tail, left.length - tail + 3))];
}

function aligned(left, right) {
  const all = (lines, sign) => lines.map((text) => ({ sign, text }));
  if (!left.length || !right.length || left.length * right.length > LINES_MAX * 200) {
    return [...all(left, "-"), ...all(right, "+")];
  }
  const width = right.length + 1;
  const best = new Uint32Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      best[i * width + j] = left[i] === right[j]
        ? best[(i + 1) * width + j + 1] + 1
        : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const found = [];
  let i = 0, j = 0;
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      found.push({ sign: " ", text: left[i] }); i++; j++;
    } else if (j >= right.length || (i < left.length && best[(i + 1) * width + j] >= best[i * width + j + 1])) {
      found.push({ sign: "-", text: left[i++] });
    } else found.push({ sign: "+", text: right[j++] });
  }
  return found;
}

// A text that is a patch already, as lines; null for any other.
export function patched(text) {
  if (!/^(diff --git |--- |\*\*\* Begin Patch|@@ )/m.test(text.slice(0, 2000))) return null;
  return text.split("\n").map((each) => {
    const sign = /^(\+\+\+|---|\*\*\*|@@|diff |index )/.test(each) ? "@" : "+-".includes(each[0] || " ") ? each[0] : " ";
    return { sign, text: sign === "@" ? each : each.slice(1) };
  });
}
