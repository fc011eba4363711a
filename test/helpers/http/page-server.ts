/** A server that answers some paths with fixed pages, and all others with 404. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A running one. */
export interface PageServer {
  /** Host and port. */
  readonly place: string;
  close(): Promise<void>;
}

/** @param pages by path, with its query */
export async function servePages(pages: Readonly<Record<string, string>>): Promise<PageServer> {
  const server = createServer((request, response) => {
    request.resume();
    const page = pages[request.url ?? ""];
    response.writeHead(page === undefined ? 404 : 200).end(page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    place: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
