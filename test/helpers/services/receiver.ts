/** A receiver of webhooks whose manners a test chooses. */
import {
  createServer,
  type IncomingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";

/** One request as it came. */
export interface Received {
  readonly path: string;
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Answers by path; unknown paths are answered 204. */
export class Receiver {
  readonly received: Received[] = [];
  readonly manners = new Map<string, (response: ServerResponse, request: Received) => void>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const path = request.url ?? "";
        const id = String(request.headers["causeway-id"]);
        const body = Buffer.concat(chunks).toString("utf8");
        const one = { path, id, headers: request.headers, body };
        this.received.push(one);
        const answer = this.manners.get(path) ?? ((to: ServerResponse) => to.writeHead(204).end());
        answer(response, one);
      });
    });
  }

  static async open(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  /** Identifiers in the order of arrival at a path. */
  ids(path: string): string[] {
    return this.received.filter((one) => one.path === path).map(({ id }) => id);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
