/**
 * A pooler between a process and PostgreSQL, as PgBouncer is one: it takes few parameters as a connection
 * opens, and either keeps one session for each client or gives a single one to all of them in turn.
 */
import { connect, createServer, type Socket } from "node:net";
import { freePort } from "../ports.js";

/** What PgBouncer lets a client ask for as it connects. */
const KNOWN_PARAMETERS = new Set([
  "user",
  "database",
  "application_name",
  "client_encoding",
  "DateStyle",
  "TimeZone",
  "standard_conforming_strings",
]);

/** Kinds of PostgreSQL's messages. */
const READY = "Z";
const TERMINATE = "X";
const AUTHENTICATION = "R";

/** Length of a message's kind and length. */
const HEAD_BYTES = 5;

/** A pooler that runs. */
export interface TestPooler {
  /** The database's URL through it. */
  readonly url: string;
  /** Connections that were opened so far. */
  clientCount(): number;
  close(): Promise<void>;
}

/** Starts one before a database. */
export async function startPooler(
  databaseUrl: string,
  mode: "session" | "transaction",
): Promise<TestPooler> {
  const url = new URL(databaseUrl);
  const upstream = { host: url.hostname, port: Number(url.port), noDelay: true };
  const sockets = new Set<Socket>();
  const shared = new SharedSession(() => open(connect(upstream)));
  const open = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    return socket;
  };
  let clients = 0;
  const server = createServer((client) => {
    clients += 1;
    open(client).once("data", (startup: Buffer) => {
      const unknown = startupParameters(startup).find((name) => !KNOWN_PARAMETERS.has(name));
      if (unknown !== undefined) {
        client.end(errorMessage(`unsupported startup parameter: ${unknown}`));
      } else if (mode === "session") {
        const session = open(connect(upstream));
        session.write(startup);
        session.pipe(client).pipe(session);
      } else {
        shared.join(client, startup);
      }
    });
  });
  url.port = String(await freePort());
  // The embedded server's own URL asks for some; nobody has a pooler before that.
  url.searchParams.delete("options");
  await new Promise<void>((resolve) => server.listen(Number(url.port), "127.0.0.1", resolve));
  return {
    url: url.href,
    clientCount: () => clients,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** One session for all clients: it is one's until it is ready again outside a transaction. */
class SharedSession {
  /** What the server said as the session began, behind the password: every client hears it. */
  #greeting: Buffer | undefined;
  #session: Socket | undefined;
  #owner: Socket | undefined;
  #unread = Buffer.alloc(0);
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly dial: () => Socket) {}

  join(client: Socket, startup: Buffer): void {
    client.on("data", (chunk: Buffer) => this.#say(client, chunk));
    if (this.#session === undefined) {
      this.#owner = client;
      this.#session = this.dial();
      this.#session.on("data", (chunk: Buffer) => this.#hear(chunk));
      this.#session.write(startup);
      return;
    }
    this.#taken(client, () => {
      client.write(this.#greeting ?? "");
      this.#free();
    });
  }

  #say(client: Socket, chunk: Buffer): void {
    if (chunk.toString("latin1", 0, 1) === TERMINATE && this.#greeting !== undefined) return;
    if (this.#owner === client) this.#session?.write(chunk);
    else this.#taken(client, () => this.#session?.write(chunk));
  }

  #taken(client: Socket, work: () => void): void {
    const take = () => {
      this.#owner = client;
      work();
    };
    if (this.#owner === undefined) take();
    else this.#waiting.push(take);
  }

  #free(): void {
    this.#owner = undefined;
    this.#waiting.shift()?.();
  }

  #hear(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk]);
    while (this.#unread.length >= HEAD_BYTES) {
      const bytes = 1 + this.#unread.readUInt32BE(1);
      if (this.#unread.length < bytes) return;
      const message = this.#unread.subarray(0, bytes);
      this.#unread = this.#unread.subarray(bytes);
      this.#pass(message);
    }
  }

  #pass(message: Buffer): void {
    const kind = message.toString("latin1", 0, 1);
    const isAuthenticated = kind === AUTHENTICATION && message.readUInt32BE(HEAD_BYTES) === 0;
    if (isAuthenticated || this.#isGreeting) this.#learn(message);
    this.#owner?.write(message);
    if (kind !== READY) return;
    this.#isGreeting = false;
    if (message.toString("latin1", HEAD_BYTES) === "I") this.#free();
  }

  #isGreeting = false;

  #learn(message: Buffer): void {
    this.#isGreeting = true;
    this.#greeting = Buffer.concat([this.#greeting ?? Buffer.alloc(0), message]);
  }
}

/** Names in a startup message: length, version, then names and values with an end each. */
function startupParameters(startup: Buffer): string[] {
  const words = startup.toString("latin1", 8).split("\0");
  return words.filter((word, index) => index % 2 === 0 && word !== "");
}

function errorMessage(text: string): Buffer {
  const body = Buffer.from(`SFATAL\0C08P01\0M${text}\0\0`);
  const head = Buffer.alloc(HEAD_BYTES);
  head.write("E");
  head.writeUInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}
