// Unmodified clients of the AI SDK: the engine of `useChat` (`AbstractChat` with its
// `DefaultChatTransport`) and `readUIMessageStream`. Standard input is a list of scripts, each a list
// of `[how, stream]`: `send` and `resume` are what a chat does, `read` is a reader of its own; the
// stream is what a server on loopback answers. For each script one line comes out. Not here: tests.

import { createServer } from "node:http";
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses as isAnswered,
  readUIMessageStream,
  safeValidateUIMessages,
} from "ai";

let answer = "", asked = "";
const server = createServer((request, response) => {
  asked = `${request.method} ${request.url}`;
  request.resume();
  request.on("end", () => {
    if (answer === "") {
      response.writeHead(204).end();
      return;
    }
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "x-vercel-ai-ui-message-stream": "v1",
    });
    response.end(answer);
  });
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const api = `http://127.0.0.1:${server.address().port}/chat`;

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

class Chat extends AbstractChat {
  constructor(init) {
    super({ ...init, state: new State() });
  }
}

async function read(transport, errors) {
  const stream = await transport.sendMessages({ chatId: "c", messages: [], trigger: "submit-message" });
  const messages = new Map();
  const onError = (error) => errors.push(String(error));
  for await (const message of readUIMessageStream({ stream, onError })) messages.set(message.id, message);
  return [...messages.values()];
}

async function approve(chat) {
  const asked = chat.lastMessage.parts.filter(({ state }) => state === "approval-requested");
  for (const { approval } of asked) {
    await chat.addToolApprovalResponse({ id: approval.id, approved: true });
  }
  while (chat.status === "submitted" || chat.status === "streaming") await new Promise(setImmediate);
}

async function play(script) {
  const errors = [], called = [], states = [];
  const transport = new DefaultChatTransport({ api });
  const chat = new Chat({
    id: "c",
    transport,
    sendAutomaticallyWhen: script.some(([how]) => how === "approve") ? isAnswered : undefined,
    onError: (error) => errors.push(String(error)),
    onToolCall: ({ toolCall }) => void called.push(toolCall.toolCallId),
  });
  let read_ = [];
  for (const [how, stream] of script) {
    answer = stream;
    if (how === "begin") {
      const checked = await safeValidateUIMessages({ messages: stream });
      if (!checked.success) errors.push(String(checked.error));
      chat.messages = stream;
      continue;
    }
    if (how === "send") await chat.sendMessage({ text: "go" });
    else if (how === "approve") await approve(chat);
    else if (how === "resume") await chat.resumeStream();
    else read_ = await read(transport, errors);
    states.push([asked, chat.status]);
  }
  return { messages: [...chat.messages, ...read_], errors, called, states };
}

let text = "";
for await (const chunk of process.stdin) text += chunk;
for (const script of JSON.parse(text)) {
  process.stdout.write(JSON.stringify(await play(script)) + "\n");
}
server.close();
server.closeAllConnections();
