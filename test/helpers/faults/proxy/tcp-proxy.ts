/**
 * TCP between a process and a server, byte for byte, with faults on command: nobody listens, a
 * connection is reset before or after the server has it, bytes of one direction are held back, or
 * PostgreSQL's connection is cut at a commit.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "../../ports.js";

/** Bytes from the process to the server, or back. */
export type Direction = "up" | "down";

/** What becomes of a commit: it never arrives, or it happens and its answer never comes back. */
export type CommitCut = "before" | "after";

/** One connection through the proxy. */
interface Link {
  readonly incoming: Socket;
  readonly outgoing: Socket;
  /** Bytes that wait for a direction to be let go. */
  readonly held: Record<Direction, Buffer[]>;
  /** The commit is on its way: the first byte of an answer ends the connection. */
  isDoomed: boolean;
}

/** How PostgreSQL's clients send a commit that is a statement of its own. */
const COMMIT = Buffer.from("COMMIT\0");

/** A proxy that runs. */
export class TcpProxy {
  /** Faults that happened, by name; a scenario that met none has shown nothing. */
  readonly hits = new Map<string, number>();
  readonly #links = new Set<Link>();
  readonly #heldDirections = new Set<Direction>();
  #server: Server | undefined;
  #maxLinks = Infinity;
  #cutCommit: () => CommitCut | undefined = () => undefined;

  private constructor(
    private upstream: { readonly host: string; readonly port: number },
    /** Where it listens, on 127.0.0.1. */
    readonly port: number,
  ) {}

  /** Starts one on a free port. */
  static async start(upstream: { readonly host: string; readonly port: number }) {
    const proxy = new TcpProxy(upstream, await freePort());
    await proxy.listen();
    return proxy;
  }

  /** This URL with the proxy in the server's place. */
  through(url: string): string {
    const changed = new URL(url);
    changed.hostname = "127.0.0.1";
    changed.port = String(this.port);
    return changed.href;
  }

  /** Ends every connection at once; new ones are taken. */
  reset(): void {
    for (const link of this.#links) this.#end(link, "reset");
  }

  /** Leads to another server of this machine from now on, as an address that moves. */
  redirect(port: number): void {
    this.upstream = { host: "127.0.0.1", port };
    this.reset();
  }

  /** Ends every connection and listens no more, as a server that is down. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#note("refused");
    await new Promise<void>((resolve) => {
      if (server === undefined) return resolve();
      server.close(() => resolve());
      this.reset();
    });
  }

  /** Takes connections again. */
  async listen(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer((incoming) => this.#open(incoming));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.port, "127.0.0.1", resolve);
    });
  }

  /** Holds what goes in these directions; nobody is told, as in a network that is cut. */
  hold(...directions: readonly Direction[]): void {
    for (const direction of directions) this.#heldDirections.add(direction);
  }

  /** Lets go what was held, in its order: late words of a process that was cut off. */
  release(): void {
    this.#heldDirections.clear();
    for (const link of this.#links) {
      for (const chunk of link.held.up.splice(0)) link.outgoing.write(chunk);
      for (const chunk of link.held.down.splice(0)) link.incoming.write(chunk);
      if (link.incoming.destroyed) link.outgoing.end();
    }
  }

  /** Takes so many connections at once and resets further ones. */
  limit(maxLinks: number): void {
    this.#maxLinks = maxLinks;
  }

  /** Asked at every commit of PostgreSQL what becomes of it. */
  cutCommits(decide: () => CommitCut | undefined): void {
    this.#cutCommit = decide;
  }

  /** No fault any more. */
  async heal(): Promise<void> {
    this.#maxLinks = Infinity;
    this.#cutCommit = () => undefined;
    this.release();
    await this.listen();
  }

  async close(): Promise<void> {
    await this.refuse();
  }

  #note(fault: string): void {
    this.hits.set(fault, (this.hits.get(fault) ?? 0) + 1);
  }

  #open(incoming: Socket): void {
    if (this.#links.size >= this.#maxLinks) {
      this.#note("one too many");
      incoming.resetAndDestroy();
      return;
    }
    const outgoing = connect({ ...this.upstream, noDelay: true });
    incoming.setNoDelay(true);
    const link: Link = { incoming, outgoing, held: { up: [], down: [] }, isDoomed: false };
    this.#links.add(link);
    incoming.on("data", (chunk: Buffer) => this.#up(link, chunk));
    outgoing.on("data", (chunk: Buffer) => this.#down(link, chunk));
    for (const socket of [incoming, outgoing]) socket.on("error", () => undefined);
    outgoing.on("close", () => this.#end(link));
    incoming.on("close", () => {
      // What is held was said before: it still arrives, though nobody waits for the answer.
      if (link.held.up.length === 0) this.#end(link);
    });
  }

  #up(link: Link, chunk: Buffer): void {
    const cut = chunk.includes(COMMIT) ? this.#cutCommit() : undefined;
    if (cut === "before") return this.#end(link, "cut before the commit");
    if (cut === "after") link.isDoomed = true;
    if (!this.#isHeld(link, "up", chunk)) link.outgoing.write(chunk);
  }

  #down(link: Link, chunk: Buffer): void {
    if (link.isDoomed) return this.#end(link, "cut after the commit");
    if (!this.#isHeld(link, "down", chunk)) link.incoming.write(chunk);
  }

  #isHeld(link: Link, direction: Direction, chunk: Buffer): boolean {
    if (!this.#heldDirections.has(direction)) return false;
    this.#note(`held ${direction}`);
    link.held[direction].push(chunk);
    return true;
  }

  #end(link: Link, fault?: string): void {
    if (!this.#links.delete(link)) return;
    if (fault !== undefined) this.#note(fault);
    link.incoming.resetAndDestroy();
    link.outgoing.destroy();
  }
}
