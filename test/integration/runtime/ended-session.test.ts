/** A server that ends a session in the same breath in which it is ready: nobody's process ends by it. */
import { createServer, type Server } from "node:net";
import { once } from "node:events";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { Client } from "pg";
import { createLogger } from "../../../runtime/process/logger.js";
import { openSqlSession } from "../../../runtime/sql/sql-session.js";
import { openDatabase } from "../../../runtime/sql/sql.js";
import { createWakeQueue } from "../../../withdrawal-worker/queue.js";
import { until } from "../../helpers/until.js";

const log = createLogger({ component: "test", level: "silent" });
const { signal } = new AbortController();

let server: Server;
let url = "";
let sessions = 0;
let unheard: Error[] = [];
const note = (error: Error) => unheard.push(error);

/** A message of PostgreSQL's protocol: its kind, then length and body. */
function message(kind: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + body.length);
  return Buffer.concat([Buffer.from(kind), length, body]);
}

const FIELDS = ["SFATAL", "C57P01", "Mterminating connection due to administrator command", ""];
/** Authenticated, ready, and ended, in one piece. */
const WELCOME = Buffer.concat([
  message("R", Buffer.alloc(4)),
  message("Z", Buffer.from("I")),
  message("E", Buffer.from(FIELDS.join("\0") + "\0")),
]);

beforeEach(async () => {
  unheard = [];
  sessions = 0;
  server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      sessions += 1;
      socket.end(WELCOME);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const place = server.address();
  if (place === null || typeof place === "string") throw new Error("no port");
  url = `postgres://somebody:word@127.0.0.1:${place.port}/books`;
  process.on("uncaughtException", note);
});
afterEach(() => {
  process.off("uncaughtException", note);
  server.close();
});

it("is refused as a database that is not there", async () => {
  const options = { url, migrations: [], applicationName: "test", poolSize: 2, keepsPlans: true };
  const opened = openDatabase({ ...options, startTimeoutMs: 500, log, signal });
  await expect(opened).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
  expect(sessions).toBeGreaterThan(0);
  expect(unheard).toEqual([]);
});

it("is met by who wanted one session, with the first statement at the latest", async () => {
  const met = openSqlSession({ url, applicationName: "test", log }).then((session) =>
    session.query("SELECT 1"),
  );
  await expect(met).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
  expect(unheard).toEqual([]);
});

it("costs the wake queue another try", async () => {
  const onWake = () => undefined;
  const queue = createWakeQueue({ databaseUrl: url, redisUrl: undefined, onWake, log, signal });
  await until(() => sessions > 2, { timeoutMs: 20_000, what: "it has tried again" });
  await queue.stop();
  expect(unheard).toEqual([]);
});

it.each([
  ["while BullMQ, which makes it to listen on, does not listen to its errors yet", () => undefined],
  ["while it lets go of all listeners to end it", (client: Client) => client.removeAllListeners()],
])("is lost without a word %s", async (_when, letGo) => {
  const onWake = () => undefined;
  const queue = createWakeQueue({ databaseUrl: url, redisUrl: undefined, onWake, log, signal });
  const client = new Client({ connectionString: url });
  letGo(client);
  await client.connect();
  await queue.stop();
  expect(unheard).toEqual([]);
});
