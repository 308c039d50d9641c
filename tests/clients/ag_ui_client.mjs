// An unmodified AG-UI client: `HttpAgent` of `@ag-ui/client`, its verifier on. Standard input is a
// list of scripts, each a list of streams; each stream is what a server on loopback answers to one
// run. For each script one line comes out: what the agent has then. Not here: tests.

import { createServer } from "node:http";
import { HttpAgent } from "@ag-ui/client";

let noted = [];
for (const level of ["warn", "error"]) {
  console[level] = (...said) => noted.push(said.map(String).join(" "));
}

let answer = "";
const server = createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(answer);
  });
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}/`;

async function play(streams) {
  noted = [];
  const agent = new HttpAgent({ url, threadId: "conversation" });
  const errors = [], customs = [], ended = [];
  const subscriber = {
    onRunFailed: ({ error }) => void errors.push(String(error)),
    onCustomEvent: ({ event }) => void customs.push([event.name, event.value]),
    onRunFinishedEvent: ({ outcome, pendingToolCallIds }) =>
      void ended.push([outcome, pendingToolCallIds ?? []]),
    onRunErrorEvent: ({ event }) => void ended.push(["error", event.message]),
    onToolCallEndEvent: ({ event }) => void ended.push(["call", event.toolCallId]),
  };
  for (answer of streams) {
    const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved" }));
    try {
      await agent.runAgent(resume.length ? { resume } : {}, subscriber);
    } catch (error) {
      errors.push(String(error));
    }
  }
  const { messages, pendingInterrupts } = agent;
  return { messages, interrupts: pendingInterrupts, errors, noted, customs, ended };
}

let text = "";
for await (const chunk of process.stdin) text += chunk;
for (const streams of JSON.parse(text)) {
  process.stdout.write(JSON.stringify(await play(streams)) + "\n");
}
server.close();
server.closeAllConnections();
