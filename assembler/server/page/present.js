// How a Node reads, when nobody who knows the business says it: by fields that any Node may have.
// A catalog may bring its own module (`plugin.js`), which is asked first.
//
// `present(node)` gives
//   layout   "said" (a message), "row" (one line), "tail" (the end of something), "alert"
//   who, tone   of what is said: whose it is, and "own", "other" or "aside"
//   icon, title, summary, stage   of a row; the stage is one short word
//   peek     what is being written right now, its end alone
//   leads    the title of a conversation of its own that it leads to
//   parts()  what there is to read, when it is opened: see `parts.js`

import { line } from "./text.js";

const STAGE_FIELDS = ["stage", "status", "state", "decision", "outcome"];
const TEXT_FIELDS = ["summary", "text", "message", "content", "output", "title", "name"];
const made = new WeakMap();
let plugin = null;

export function plug(module) {
  plugin = module;
}

export function present(node) {
  let found = made.get(node);
  if (!found) {
    found = { ...generic(node), ...asked(node) };
    made.set(node, found);
  }
  return found;
}

function asked(node) {
  if (!plugin || !plugin.present) return null;
  try {
    return plugin.present(node);
  } catch (fault) {
    console.warn("the catalog's module failed at a Node:", node.kind, fault.name);
    return null;
  }
}

function generic(node) {
  const data = node.data || {};
  const row = data.row && typeof data.row === "object" ? data.row : {};
  const text = row.summary ?? first(data, TEXT_FIELDS);
  return {
    layout: "row",
    icon: row.icon,
    title: String(row.title ?? node.kind),
    summary: line(text === undefined ? JSON.stringify(data) : plainly(text)),
    stage: String(row.stage ?? first(data, STAGE_FIELDS) ?? ""),
    parts: () => [{ is: "fields", value: data }],
  };
}

function first(data, names) {
  for (const name of names) {
    const value = data[name];
    if (value !== undefined && value !== null && value !== "") return value;
  }
  return undefined;
}

export function plainly(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) {
    return value.slice(0, 20).map((each) => (each && typeof each.text === "string" ? each.text : plainly(each))).join("  ");
  }
  return JSON.stringify(value)?.slice(0, 2000) ?? "";
}

// The tone of a stage, by its word. Words that are not here are neutral.
const TONES = {
  good: ["succeeded", "allow", "allowed", "completed", "done", "settled", "closed", "result"],
  bad: ["failed", "error", "deny", "denied", "unsettled", "limit", "lost"],
  busy: ["running", "open", "start", "started"],
  early: ["preparing", "queued"],
  waits: ["waiting", "pending"],
  off: ["cancelled", "interrupted", "withdrawn", "abandoned"],
};
const tones = new Map(Object.entries(TONES).flatMap(([tone, words]) => words.map((word) => [word, tone])));

export function tone(stage) {
  return tones.get(stage) || "none";
}

export function isFailed(node) {
  const found = present(node);
  return found.layout !== "tail" && tone(found.stage) === "bad";
}

// All that can be found in a Node, in small letters. Long texts are searched in their beginning.
const searched = new WeakMap();
const SEARCHED_MAX = 20_000;

export function searchable(node) {
  let found = searched.get(node);
  if (found === undefined) {
    const said = [node.key];
    gather(node.data, said, 0);
    found = said.join("\n").toLowerCase();
    searched.set(node, found);
  }
  return found;
}

function gather(value, said, depth) {
  if (typeof value === "string") said.push(value.length > SEARCHED_MAX ? value.slice(0, SEARCHED_MAX) : value);
  else if (typeof value === "number") said.push(String(value));
  else if (value && typeof value === "object" && depth < 8) for (const each of Object.values(value)) gather(each, said, depth + 1);
}
