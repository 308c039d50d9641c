// What the page asks of the server. Addresses are relative, so that it works below any prefix.

async function asked(path, options) {
  const answer = await fetch(path, { credentials: "same-origin", ...options });
  let body = null;
  try {
    body = await answer.json();
  } catch {
    // told below
  }
  if (!answer.ok || body === null) {
    const fault = new Error(body?.error?.message || `the server answered ${answer.status}`);
    fault.status = answer.status;
    throw fault;
  }
  return body;
}

const query = (fields) => {
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? "?" + new URLSearchParams(given) : "";
};
const part = encodeURIComponent;

export const health = () => asked("health");
export const conversations = (search, before) => asked("conversations" + query({ search, before, limit: 60 }));
export const older = (name) => asked(`conversations/${part(name)}/older`, { method: "POST" });
export const moments = (name) => asked(`inspect/${part(name)}/moments`);
export const moment = (name, view, at, from) => asked(`inspect/${part(name)}/at` + query({ view, at, from }));
export const behind = (name, view, key, at) => asked(`inspect/${part(name)}/node` + query({ view, key, at }));

// Follows a view: `told.snapshot`, `told.patch`, `told.state` ("open", "lost", "gone").
export function follow(name, view, told) {
  let source = null, over = false, timer = 0, failures = 0;
  const open = () => {
    source = new EventSource(`conversations/${part(name)}/stream` + query({ view }));
    source.addEventListener("open", () => { failures = 0; told.state("open"); });
    source.addEventListener("snapshot", (event) => told.snapshot(event.data));
    source.addEventListener("patch", (event) => told.patch(event.data));
    source.addEventListener("error", async () => {
      if (over) return;
      told.state("lost");
      if (source.readyState !== EventSource.CLOSED) return; // it comes back by itself
      source.close();
      failures++;
      timer = setTimeout(again, Math.min(15_000, 500 * 2 ** failures));
    });
  };
  // What is refused is asked for plainly, which says why.
  const again = async () => {
    try {
      await asked(`conversations/${part(name)}` + query({ view }));
    } catch (fault) {
      if (over) return;
      if (fault.status && fault.status < 500) return told.state("gone", fault.message);
    }
    if (!over) open();
  };
  open();
  return {
    close() { over = true; clearTimeout(timer); source.close(); },
    renew() { source.close(); open(); },
  };
}
