/** TCP between two nodes, which the test can cut: connections end, and new ones are refused. */
import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

/** Way from one node to another. */
interface Way {
  readonly from: number;
  readonly to: number;
  readonly server: Server;
  readonly sockets: Set<Socket>;
}

/** All ways between the nodes of a network; each node dials the others through its own. */
export class Ways {
  private readonly ways: Way[] = [];
  private isCut: (from: number, to: number) => boolean = () => false;

  /** Makes the way from one node to the port of another. @returns where the first one dials */
  async open(link: { from: number; to: number; port: number }): Promise<number> {
    const { from, to, port } = link;
    const sockets = new Set<Socket>();
    const server = createServer((incoming) => {
      if (this.isCut(from, to)) return incoming.destroy();
      const outgoing = connect({ host: "127.0.0.1", port });
      for (const [one, other] of [
        [incoming, outgoing],
        [outgoing, incoming],
      ] as const) {
        sockets.add(one);
        one.once("error", () => other.destroy());
        one.once("close", () => {
          sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
      return undefined;
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.ways.push({ from, to, server, sockets });
    const { port: own } = server.address() as AddressInfo;
    return own;
  }

  /** Lets nothing pass between nodes of different groups; a node that is named nowhere is alone. */
  split(...groups: readonly (readonly number[])[]): void {
    const groupOf = (index: number) => groups.findIndex((group) => group.includes(index));
    this.isCut = (from, to) => groupOf(from) !== groupOf(to) || groupOf(from) < 0;
    for (const { from, to, sockets } of this.ways) {
      if (!this.isCut(from, to)) continue;
      for (const socket of sockets) socket.destroy();
    }
  }

  /** Everything passes again. */
  heal(): void {
    this.isCut = () => false;
  }

  /** Ends all of it. */
  close(): void {
    this.split();
    for (const { server } of this.ways) server.close();
  }
}
