// One view: its Nodes in order and its groups, as snapshots and patches say. Nodes are never changed
// in place, so that whoever keeps one may compare it by identity.

export class View {
  constructor(snapshot) {
    this.load(snapshot);
  }

  load(snapshot) {
    this.name = snapshot.view;
    this.revision = snapshot.revision;
    this.nodes = new Map(snapshot.nodes.map((node) => [node.key, node]));
    this.order = snapshot.nodes.map((node) => node.key);
    this.groups = new Map(snapshot.groups.map((group) => [group.key, group]));
    this.window = snapshot.window;
    this.live = snapshot.live;
    this.open = snapshot.open;
    this.shape = (this.shape || 0) + 1; // another order, or other groups
    this.at = null;
  }

  // The next revision; `told(old, node)` hears of every Node that is put. Throws when one is missing.
  apply(patch, told = () => {}) {
    if (patch.from !== this.revision) throw new Error("a patch is missing");
    let ring = null;
    const structure = () => (ring = ring || new Ring(this.order));
    for (const op of patch.ops) {
      if (op.op === "put") {
        const { node, after } = op;
        const old = this.nodes.get(node.key);
        if (ring || !old || this.left(node.key) !== after) structure().put(node.key, after);
        this.nodes.set(node.key, node);
        told(old, node);
      } else if (op.op === "text") {
        const old = this.nodes.get(op.key);
        this.nodes.set(op.key, grown(old, op.path, op.text));
      } else if (op.op === "move") {
        structure().put(op.key, op.after);
        this.nodes.set(op.key, { ...this.nodes.get(op.key), anchor: op.anchor });
      } else if (op.op === "remove") {
        structure().take(op.key);
        told(this.nodes.get(op.key), null);
        this.nodes.delete(op.key);
      } else if (op.op === "put-group") {
        this.groups.set(op.group.key, op.group);
        this.shape++;
      } else if (op.op === "remove-group") {
        this.groups.delete(op.key);
        this.shape++;
      }
    }
    if (ring) {
      this.order = ring.order();
      this.at = null;
      this.shape++;
    }
    for (const name of ["window", "live", "open"]) if (name in patch) this[name] = patch[name];
    this.revision = patch.to;
  }

  left(key) {
    const at = this.index(key);
    return at > 0 ? this.order[at - 1] : null;
  }

  index(key) {
    this.at = this.at || new Map(this.order.map((each, at) => [each, at]));
    return this.at.has(key) ? this.at.get(key) : -1;
  }
}

// Keys in a linked ring, so that a put costs no search.
class Ring {
  constructor(order) {
    this.next = new Map();
    this.before = new Map();
    let last = null;
    for (const key of order) {
      this.join(last, key);
      last = key;
    }
    this.join(last, null);
  }

  join(left, right) {
    this.next.set(left, right);
    this.before.set(right, left);
  }

  take(key) {
    if (!this.next.has(key)) return;
    this.join(this.before.get(key), this.next.get(key));
    this.next.delete(key);
    this.before.delete(key);
  }

  put(key, after) {
    this.take(key);
    const next = this.next.get(after);
    this.join(after, key);
    this.join(key, next);
  }

  order() {
    const found = [];
    for (let key = this.next.get(null); key !== null; key = this.next.get(key)) found.push(key);
    return found;
  }
}

function grown(value, [key, ...path], text) {
  const copy = Array.isArray(value) ? [...value] : { ...value };
  copy[key] = path.length ? grown(value[key], path, text) : value[key] + text;
  return copy;
}
