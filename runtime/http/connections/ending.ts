/** The orderly end of a server: whoever asks on is answered, told that this was all, and not cut off. */
import type { Server, ServerResponse } from "node:http";

/**
 * Ends a server: it takes no connections, and the next answer on each that is open is the last there
 * (`Connection: close`). A client that asks without a pause would otherwise be cut off in the middle of
 * a request, and not know whether it was carried out.
 * @param graceMs time for what is under way; what is open after it is cut off
 */
export async function endServer(server: Server, graceMs: number): Promise<void> {
  if (!server.listening) return;
  // Before whoever answers: an answer may be given in the same turn.
  server.prependListener("request", (_request, response: ServerResponse) => {
    response.shouldKeepAlive = false;
  });
  // `close` asks for it at once, which ends also connections whose next request is here and not read.
  const endIdle = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => undefined;
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  // Between two turns all is read that has come.
  setImmediate(() => setImmediate(endIdle));
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(timer);
}
