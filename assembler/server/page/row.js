// One row of the list: a Node, or the head of a group.

import { Component, html } from "./vendor/preact.js";
import { Icon } from "./icons.js";
import { Parts } from "./parts.js";
import { present, tone } from "./present.js";
import { duration, line, unstyled, visible } from "./text.js";

export class Row extends Component {
  shouldComponentUpdate(next) {
    const now = this.props;
    return now.node !== next.node || now.group !== next.group || now.selected !== next.selected ||
      now.opened !== next.opened || now.folded !== next.folded || now.hit !== next.hit || now.depth !== next.depth ||
      now.position !== next.position || now.total !== next.total || now.current !== next.current || now.odd !== next.odd;
  }

  render(props) {
    const { id, position, total, selected, current, depth, hit, odd, act } = props;
    const said = props.group ? null : present(props.node);
    const kind = props.group ? "head" : said.layout;
    const name = ["row", kind === "row" ? "as-line" : kind, said && said.tone ? `of-${said.tone}` : "", depth ? "inside" : "", selected ? "selected" : "", hit ? "hit" : "", odd ? "odd" : "", said && said.layout === "said" && said.stage === "running" ? "writing" : ""];
    return html`<article class=${name.filter(Boolean).join(" ")} data-key=${id} tabindex=${selected ? "0" : "-1"}
      aria-posinset=${position} aria-setsize=${total} aria-label=${label(props, said)} aria-current=${current ? "true" : null}
      onClick=${() => act.select(id)} onDblClick=${() => act.open(id)}>
      ${props.group ? html`<${Head} ...${props} />` : LAYOUTS[kind]?.(props, said) ?? LAYOUTS.row(props, said)}
    </article>`;
  }
}

function label({ node, group, folded }, said) {
  if (group) return `${group.title || group.kind}, ${group.members.length} rows, ${folded ? "folded" : "open"}`;
  return line([said.who || said.title, said.layout === "alert" ? "" : said.stage, said.summary].filter(Boolean).join(", "), 200);
}

function Head({ group, id, folded, act }) {
  return html`<button class="fold" tabindex="-1" aria-expanded=${String(!folded)} onClick=${(event) => { event.stopPropagation(); act.select(id); act.fold(group); }}>
    <span class="twist"><${Icon} name="down" /></span>
    <span class="title" dir="auto">${line(String(group.title || group.kind), 160)}</span>
    <span class="count">${group.members.length}</span>
    ${group.status === "open" && html`<${Stage} stage="open" />`}
  </button>`;
}

export function Stage({ stage }) {
  if (!stage) return null;
  return html`<span class=${`stage is-${tone(stage)}`}><i aria-hidden="true"></i>${line(stage, 24)}</span>`;
}

const opens = (said, node, opened, act) => html`<button class="open" tabindex="-1" aria-expanded=${String(opened)}
  aria-label=${opened ? "show less" : "show more"} onClick=${(event) => { event.stopPropagation(); act.toggle(node.key); }}><${Icon} name="down" /></button>`;

const LAYOUTS = {
  said({ node, id, act }, said) {
    const over = ["", "settled", "done", "completed"].includes(said.stage);
    return html`<div class="who"><span>${line(said.who || said.title, 60)}</span>${!over && html`<${Stage} stage=${said.stage} />`}
      ${said.note && html`<span class="aside">${said.note}</span>`}</div>
      <div class="body"><${Parts} parts=${said.parts()} /></div>`;
  },
  row({ node, opened, act }, said) {
    const can = said.opens !== false;
    return html`<div class="line">
        <span class=${`mark is-${tone(said.stage)}`}><${Icon} name=${said.icon} /></span>
        <span class="title" dir="auto">${line(said.title, 80)}</span>
        <span class="summary" dir="auto">${visible(said.summary || "")}</span>
        ${said.lasted > 0 && html`<span class="lasted">${duration(said.lasted)}</span>`}
        <${Stage} stage=${said.stage} />
        ${can ? opens(said, node, opened, act) : html`<span class="open"></span>`}
      </div>
      ${said.peek && !opened && html`<pre class="peek" aria-hidden="true" dir="auto">${visible(unstyled(said.peek))}</pre>`}
      ${said.why && !opened && html`<p class="why" dir="auto">${line(unstyled(said.why), 300)}</p>`}
      ${opened && can && html`<div class="body"><${Parts} parts=${said.parts()} /></div>`}`;
  },
  tail(_, said) {
    return html`<div class="line"><${Stage} stage=${said.stage} /><span class="summary" dir="auto">${visible(said.summary || "")}</span></div>`;
  },
  alert({ node, opened, act }, said) {
    return html`<div class="line"><span class="mark is-bad"><${Icon} name=${said.icon || "alert"} /></span>
      <span class="title" dir="auto">${line(said.title, 80)}</span><span class="summary" dir="auto">${visible(said.summary || "")}</span>
      ${opens(said, node, opened, act)}</div>
      ${opened && html`<div class="body"><${Parts} parts=${said.parts()} /></div>`}`;
  },
};
