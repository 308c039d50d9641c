// How the Nodes of the catalog read: see the page's `present.js` for what is given back.
// Everything is data for it: nothing here makes markup.

const LINE_MAX = 240;
const PEEK_LINES = 4;
const ABOUT = ["path", "file_path", "filename", "command", "cmd", "pattern", "query", "url"];
const BEFORE = ["old_string", "old_str", "old_text", "oldText"];
const AFTER = ["new_string", "new_str", "new_text", "newText"];
const WRITTEN = ["content", "contents", "file_text", "insert_text", "text"];
const CODE = ["command", "cmd", "code", "script"];
const PATCH = ["patch", "diff", "input"];

export function present(node) {
  const reads = READS[node.kind];
  return reads ? reads(node.data, node) : null;
}

const READS = {
  user: (data) => message(data, "You", "own"),
  steering: (data) => message(data, "You, in between", "own"),
  context: (data) => message(data, data.source?.name ? `Context: ${data.source.name}` : "Context", "aside"),
  assistant,
  tool,
  permission,
  retry,
  "turn-error": (data) => alert("Turn failed", error(data.error), data),
  "turn-limit": (data) => alert("Cut short", "the answer was cut: it became too long", data),
  "turn-tail": tail,
  compaction: (data) => row("layers", "Compaction", one(data.summary || "older messages became a summary"), data.status, data,
    () => (data.summary ? [{ is: "text", text: data.summary }] : [{ is: "fields", value: data }])),
  command: (data) => row("command", `/${data.name || "?"}`, one(plain(data.arguments)), data.status, data,
    () => [{ is: "fields", value: data.arguments }, ...outputs(data)].filter((part) => part.value !== null)),
  unknown: (data) => row("note", data.type, one(JSON.stringify(data.data)), "", data, () => [{ is: "fields", value: data.data }]),
  step,
};

function row(icon, title, summary, stage, data, parts, more = {}) {
  return { layout: "row", icon, title: String(title), summary, stage: stage || "", parts, ...more };
}

function alert(title, summary, data) {
  return { layout: "alert", icon: "alert", title, summary: one(summary), stage: "failed", parts: () => [{ is: "error", text: summary }, { is: "fields", value: data }] };
}

const message = (data, who, tone) => {
  const parts = blocks(data.content);
  return { layout: "said", who, tone, title: who, stage: "", summary: one(parts.map((part) => part.text || "").join(" ")), parts: () => parts };
};

function assistant(data) {
  const parts = blocks(data.blocks);
  return {
    layout: "said", who: "Assistant", tone: "other", title: "Assistant", stage: data.status === "settled" ? "" : data.status,
    summary: one(parts.map((part) => part.text || "").join(" ")), parts: () => parts,
  };
}

function blocks(list) {
  return (list || []).map((block) => {
    if (typeof block?.text === "string") return { is: block.type === "reasoning" ? "thought" : "text", text: block.text };
    if (block?.type === "json") return { is: "fields", value: block.value };
    if (block?.type === "image") return { is: "note", text: `an image (${block.media_type || block.mime_type || "of no stated type"})` };
    return { is: "fields", value: block };
  }).filter((part) => part.text !== "");
}

// -- calls ------------------------------------------------------------------------------------

function tool(data, node) {
  const shown = data.row || {};
  const generic = shown.icon === "tool" || !shown.title;
  const stage = data.waiting ? "waiting" : data.stage === "preparing" ? "preparing" : data.outcome || "running";
  const said = row(shown.icon || "tool", generic ? data.name || shown.title : shown.title, summary(data, generic), stage, data, () => call(data));
  said.opens = shown.expandable !== false;
  if (shown.icon === "agent") said.leads = node.id; // what a subagent does is called as its call
  said.lasted = data.finished && data.started ? data.finished - data.started : 0;
  if (data.stage === "preparing") said.peek = peek(data.arguments_text);
  else if (!data.outcome && data.output) said.peek = last(data.output);
  if (data.outcome === "failed" || data.outcome === "error") said.why = error(data.error) || first(data.content);
  return said;
}

function summary(data, generic) {
  const about = String(data.row?.summary || "");
  // The name is the title already.
  return generic && data.name && about.startsWith(data.name) ? about.slice(data.name.length).trim() : about;
}

// The end of what is being written, as it will read.
function peek(text) {
  if (!text || text.length < 40) return "";
  const end = text.slice(-900);
  const at = text.length > 900 ? 0 : Math.max(0, end.search(/":\s*"/));
  return last(unescaped(end.slice(at).replace(/^":\s*"/, "")));
}

function unescaped(text) {
  return text.replace(/\\u([0-9a-fA-F]{4})/g, (_, code) => String.fromCharCode(parseInt(code, 16)))
    .replace(/\\(?:n|r\\n)/g, "\n").replace(/\\t/g, "  ").replace(/\\(["\\/])/g, "$1").replace(/\\$/, "").replace(/"\s*\}\s*$/, "");
}

const last = (text) => text.slice(-900).split("\n").slice(-PEEK_LINES).map((each) => each.slice(0, 160)).join("\n");

function call(data) {
  return [
    ...written(data),
    ...(data.description ? [{ is: "note", text: plain(data.description.text ?? data.description) }] : []),
    ...(data.error ? [{ is: "error", text: error(data.error) }] : []),
    ...outputs(data),
  ];
}

// Arguments as what they mean: a change, a file, a command; the rest as fields.
function written(data) {
  const given = data.arguments;
  if (given === null || given === undefined) {
    if (!data.arguments_text) return [];
    const early = data.stage === "preparing";
    return [{ is: "code", text: early ? unescaped(data.arguments_text) : data.arguments_text, name: early ? "arguments so far" : "arguments as they came" }];
  }
  if (typeof given !== "object" || Array.isArray(given)) return [{ is: "fields", value: given }];
  const left = { ...given };
  const take = (names, test = (value) => typeof value === "string") => {
    const name = names.find((each) => each in left && test(left[each]));
    if (name === undefined) return undefined;
    const value = left[name];
    delete left[name];
    return value;
  };
  const parts = [];
  const name = ABOUT.slice(0, 3).map((each) => given[each]).find((each) => typeof each === "string");
  const edits = take(["edits"], (value) => Array.isArray(value) && value.every((each) => each && typeof each === "object"));
  for (const each of edits ? edits.slice(0, 50) : [left]) {
    const [before, after] = [BEFORE, AFTER].map((names) => (edits ? names.map((one) => each[one]).find((value) => typeof value === "string") : names.some((one) => one in left) ? take(names) : undefined));
    if (before !== undefined || after !== undefined) parts.push({ is: "change", before: before || "", after: after || "", name });
  }
  const patch = take(PATCH, (value) => typeof value === "string" && value.includes("\n"));
  if (patch !== undefined) parts.push({ is: "code", text: patch, name });
  const text = name ? take(WRITTEN, (value) => typeof value === "string") : undefined;
  if (text !== undefined) parts.push({ is: "written", text, name });
  const code = take(CODE);
  if (code !== undefined) parts.unshift({ is: "code", text: code, name: "" });
  if (parts.length && name) for (const each of ABOUT.slice(0, 3)) delete left[each];
  if (Object.keys(left).length || !parts.length) parts.push({ is: "fields", value: left });
  return parts;
}

function outputs(data) {
  const parts = [];
  if (data.output) parts.push({ is: "output", text: data.output, name: "output" });
  for (const part of typeof data.content === "string" ? [{ is: "text", text: data.content }] : blocks(data.content)) {
    if (part.is === "text" && part.text !== data.output) parts.push({ is: "output", text: part.text, name: "result" });
    else if (part.is !== "text") parts.push(part);
  }
  return parts;
}

// -- the rest ---------------------------------------------------------------------------------

function permission(data) {
  return row("key", "Permission", one(plain(data.input)), data.decision, data, () => [
    { is: "fields", value: data.input },
    ...(data.updated_input ? [{ is: "note", text: "allowed with other input:" }, { is: "fields", value: data.updated_input }] : []),
  ]);
}

function retry(data) {
  const newest = data.attempts?.at(-1) || {};
  const wait = newest.delay_ms ? `, waits ${newest.delay_ms / 1000} s` : "";
  return row("retry", "Try again", `${one(plain(newest.reason) || "no reason given")}, after try ${newest.number ?? "?"}${wait}`, data.status, data, () => [{ is: "fields", value: data.attempts }]);
}

function tail(data) {
  const said = [];
  if (data.duration_ms !== null) said.push(seconds(data.duration_ms));
  for (const [name, count] of Object.entries(data.calls || {})) said.push(`${count} × ${name}`);
  if (data.failed) said.push(`${data.failed} failed`);
  if (data.files?.length) said.push(`wrote ${data.files.length === 1 ? data.files[0] : `${data.files.length} files`}`);
  said.push(...tokens(data.usage));
  return { layout: "tail", title: "Turn", stage: data.status || "", summary: one(said.join(" · ")), parts: () => [{ is: "fields", value: data }] };
}

function step(data, node) {
  const said = [];
  if (data.started !== null && data.ended !== null) said.push(seconds(Math.max(0, data.ended - data.started)));
  const request = data.request || {};
  said.push([request.provider, request.model].filter(Boolean).join("/"));
  for (const each of data.attempts || []) if (each.outcome && each.outcome !== "completed") said.push(`try ${each.number} → ${each.outcome}${each.reason ? `: ${plain(each.reason)}` : ""}`);
  if (request.stop_reason) said.push(plain(request.stop_reason));
  const calls = data.calls?.length || 0;
  if (calls) said.push(`${calls} call${calls === 1 ? "" : "s"}`);
  said.push(...tokens(data.usage));
  const found = row("step", `Step ${node.id}`, one(said.filter(Boolean).join(" · ")), data.status, data, () => [{ is: "fields", value: data }]);
  if (data.error) found.why = error(data.error);
  return found;
}

function tokens(usage) {
  if (!usage) return [];
  const told = [["input_tokens", "in"], ["output_tokens", "out"], ["cache_read_tokens", "from cache"], ["cache_write_tokens", "to cache"]].filter(([name, word]) => typeof usage[name] === "number" && (usage[name] || !word.endsWith("cache"))).map(([name, word]) => `${usage[name].toLocaleString("en")} ${word}`);
  return told.length ? [`tokens ${told.join(", ")}`] : [];
}

function seconds(ms) {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function error(value) {
  if (!value) return "";
  if (typeof value === "string") return value;
  const said = [value.name, value.message].filter(Boolean).join(": ");
  return said || JSON.stringify(value);
}

function first(content) {
  for (const block of content || []) if (typeof block?.text === "string") return block.text.slice(0, LINE_MAX * 2);
  return "";
}

function plain(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return value.map(plain).join(", ");
  return Object.entries(value).slice(0, 12).map(([name, each]) => (ABOUT.includes(name) ? plain(each) : `${name}: ${plain(each)}`)).join("  ").slice(0, LINE_MAX * 4);
}

function one(text) {
  const said = String(text ?? "").slice(0, LINE_MAX * 2).replace(/\s+/g, " ").trim();
  return [...said].length > LINE_MAX ? [...said].slice(0, LINE_MAX - 1).join("") + "…" : said;
}
