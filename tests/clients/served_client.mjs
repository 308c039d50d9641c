// The same clients, unmodified, of our own server: a chat of the AI SDK and AG-UI's `HttpAgent`. A
// line of standard input says what to do and, with `until`, when to go on; for each one line comes
// out, with what the client has. Not here: tests.

import { createInterface } from "node:readline";

const [kind, url] = process.argv.slice(-2);
const until = {
  idle: () => !client.isBusy(),
  preparing: () => client.isBusy() && client.calls().some(({ state }) => state === "input-streaming"),
};
const client = kind === "ai-sdk" ? await chatOf() : await agentOf();

async function chatOf() {
  const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } =
    await import("ai");
  class State {
    status = "ready";
    error = undefined;
    messages = [];
    pushMessage = (message) => void (this.messages = [...this.messages, message]);
    popMessage = () => void (this.messages = this.messages.slice(0, -1));
    replaceMessage = (at, message) =>
      void (this.messages = this.messages.map((old, i) => (i === at ? structuredClone(message) : old)));
    snapshot = (value) => structuredClone(value);
  }
  class Chat extends AbstractChat {}
  const errors = [];
  const begin = (messages = []) =>
    new Chat({
      id: "c",
      state: Object.assign(new State(), { messages }),
      transport: new DefaultChatTransport({
        api: url,
        prepareReconnectToStreamRequest: () => ({ api: url }),
      }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      onError: (error) => errors.push(String(error)),
    });
  let chat = begin();
  const parts = () => chat.messages.flatMap((message) => message.parts);
  return {
    isBusy: () => chat.status === "submitted" || chat.status === "streaming",
    calls: () => parts().filter(({ toolCallId }) => toolCallId),
    send: (text) => chat.sendMessage({ text }),
    stop: () => chat.stop(),
    // a page that is opened again, with the messages that it was given
    reload: (messages) => void (chat = begin(messages)),
    look: () => chat.resumeStream(),
    approve: async () => {
      for (const { approval, state } of client.calls()) {
        if (state === "approval-requested") {
          await chat.addToolApprovalResponse({ id: approval.id, approved: true });
        }
      }
    },
    shown: () => ({ messages: chat.messages, errors, status: chat.status }),
  };
}

async function agentOf() {
  const { HttpAgent } = await import("@ag-ui/client");
  const noted = [], errors = [];
  for (const level of ["warn", "error"]) {
    console[level] = (...said) => noted.push(said.map(String).join(" "));
  }
  // Who only looks has nothing to say.
  let looks = false;
  const ask = (to, init) => fetch(to, looks ? { headers: init.headers, signal: init.signal } : init);
  const begin = () => new HttpAgent({ url, threadId: "c", fetch: ask });
  let agent = begin(), running = 0;
  const run = (input, isLook) => {
    looks = isLook;
    running += 1;
    const failed = (error) => void errors.push(String(error));
    return agent.runAgent(input).catch(failed).finally(() => void (running -= 1));
  };
  return {
    isBusy: () => running > 0,
    calls: () =>
      agent.messages
        .flatMap(({ toolCalls }) => toolCalls ?? [])
        .map((call) => ({ ...call, state: agent.isRunning ? "input-streaming" : "" })),
    send: (text) => {
      agent.addMessage({ id: "typed", role: "user", content: text });
      return run({}, false);
    },
    stop: () => agent.abortRun(),
    reload: () => void (agent = begin()),
    look: () => run({}, true),
    approve: () => {
      const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved" }));
      return run({ resume }, false);
    },
    shown: () => ({ messages: agent.messages, interrupts: agent.pendingInterrupts, errors, noted }),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { action, said, until: when = "idle" } = JSON.parse(line);
  const done = client[action](said);
  if (when === "idle") await done;
  while (!until[when]()) await new Promise((again) => setTimeout(again, 1));
  process.stdout.write(JSON.stringify(client.shown()) + "\n");
}
