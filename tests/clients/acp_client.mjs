// An unmodified ACP client: the SDK that editors use. What it was sent on standard input comes out
// as it read it, one update on a line; what it refuses goes to standard error. Not here: tests.

import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const nobody = new Writable({ write: (chunk, encoding, done) => done() });
const stream = ndJsonStream(Writable.toWeb(nobody), Readable.toWeb(process.stdin));
const connection = client({ name: "test" })
  .onNotification(methods.client.session.update, ({ params }) => {
    process.stdout.write(JSON.stringify(params) + "\n");
  })
  .connect(stream);
await connection.closed;
