// What is behind one Node: what it says, how it came to be so, its events and deltas, its State.

import { Component, html } from "./vendor/preact.js";
import { Icon } from "./icons.js";
import { Fields, Parts } from "./parts.js";
import { present } from "./present.js";
import { Stage } from "./row.js";
import { line } from "./text.js";

const TABS = ["content", "changes", "events", "state", "json"];

export class Detail extends Component {
  constructor(props) {
    super(props);
    this.state = { tab: "content" };
  }

  render({ node, told, fault, led, stale, act }, { tab }) {
    const said = present(node);
    const tabs = told ? TABS : ["content", "json"];
    const shown = tabs.includes(tab) ? tab : "content";
    return html`<aside class=${"detail" + (told && stale ? " stale" : "")} aria-label="details">
      <header>
        <div class="names"><h2 dir="auto">${line(said.who || said.title, 80)}</h2><${Stage} stage=${said.stage} />
          <button class="plain" onClick=${act.shut} aria-label="close details" title="close  Esc"><${Icon} name="close" /></button></div>
        <p class="key"><code>${line(node.key, 120)}</code>${node.turn !== null && html`<span>turn ${node.turn}${node.step !== null ? `, step ${node.step}` : ""}</span>`}
          <button class="copy" onClick=${() => act.copy(node.key)}>copy link</button></p>
      </header>
      <div class="tabs" role="tablist" aria-label="what to show">${tabs.map((each) => html`<button role="tab" key=${each} id=${`tab-${each}`}
        aria-selected=${String(each === shown)} aria-controls="panel" tabindex=${each === shown ? "0" : "-1"}
        onClick=${() => this.setState({ tab: each })} onKeyDown=${(event) => this.key(event, tabs)}>${each}${
          each === "events" && told.items_count ? html`<small>${told.items_count}</small>` : ""}${
          each === "changes" && told.changed ? html`<small>${told.changed}</small>` : ""}</button>`)}</div>
      <div class="panel" id="panel" role="tabpanel" aria-labelledby=${`tab-${shown}`} tabindex="0">
        ${told?.anomalies?.map((odd) => html`<p class="odd"><${Icon} name="alert" /> ${odd.kind} <button class="link" onClick=${() => act.travel(odd.moment)}>moment ${odd.moment}</button></p>`)}
        ${fault && html`<p class="note">${fault}</p>`}
        ${led && shown === "content" && html`<button class="lead-on" onClick=${() => act.lead(led.conversation)}><${Icon} name="right" />
          <span>Open its own conversation</span>${led.events ? html`<small>${led.events} events</small>` : null}</button>`}
        ${this[`of_${shown}`](node, said, told)}
      </div>
    </aside>`;
  }

  key(event, tabs) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(this.state.tab) + by + tabs.length) % tabs.length];
    this.setState({ tab: next }, () => document.getElementById(`tab-${next}`)?.focus());
  }

  of_content(node, said) {
    // What a part says in full needs no line above it.
    const again = said.parts().some((part) => part.text && line(part.text) === said.summary);
    return html`${said.summary && !again && said.layout !== "said" && html`<p class="lead" dir="auto">${said.summary}</p>`}<${Parts} parts=${said.parts()} />`;
  }

  of_changes(node, said, told) {
    const { act, at } = this.props;
    return html`<ol class="changes">${told.changes.map((each) => html`<li key=${each.at} class=${at !== null && each.at <= at && at <= each.to ? "current" : ""}>
      <button class="link" onClick=${() => act.travel(each.at)}>${each.at === each.to ? each.at : `${each.at}–${each.to}`}</button>
      <div><b>${each.what}</b>${each.times > 1 && html` <span class="none">${each.times}×</span>`}
        ${each.fields.map((field) => html`<div class="field" key=${field.name}><span class="name">${field.name}</span> ${
          "grew" in field ? html`<span class="grew">+${field.grew}</span>` : html`<del>${line(field.before, 160)}</del> <ins>${line(field.after, 160)}</ins>`}</div>`)}</div>
    </li>`)}</ol>`;
  }

  of_events(node, said, told) {
    return html`<ol class="events">${told.items.map((item) => html`<${Item} key=${item.position.join(".")} item=${item} />`)}</ol>
      ${told.items.length < told.items_count && html`<p class="note">the first and the last ${told.items.length / 2} of ${told.items_count}</p>`}`;
  }

  of_state(node, said, told) {
    return html`<p class="key"><code>${told.context || ""}</code><span>${told.location ? told.location.kind : ""}</span></p><${Fields} value=${told.state ?? null} />`;
  }

  of_json(node) {
    return html`<${Fields} value=${node} open=${2} />`;
  }
}

class Item extends Component {
  render({ item }, { open }) {
    return html`<li class=${item.is}><button class="head" aria-expanded=${String(!!open)} onClick=${() => this.setState({ open: !open })}>
      <span class="at">${item.is === "event" ? item.seq : `${item.position[0]}·${item.position[1]}`}</span>
      <span class="type">${item.type}</span>${item.role === "start" && html`<span class="role">start</span>`}
      <span class="data"><bdi>${line(JSON.stringify(item.data), 120)}</bdi></span></button>
      ${open && html`<${Fields} value=${item} open=${2} />`}</li>`;
  }
}
