/** Replies that clients do not take: bounded over all connections of a server, and in time. */
import type { Server, ServerResponse } from "node:http";
import { systemClock } from "../../process/clock.js";
import { CLIENT_PATIENCE, COUNTED_BYTES, HeldBytes, holdUntilClosed } from "../held-bytes.js";

/** For one server: hundreds of the largest blocks, or pages of lists. */
const USUAL_UNSENT_BYTES = 128 * 1024 * 1024;

/** Lets go of clients that do not take what the server has to say. */
export function boundUnsent(
  server: Server,
  unsent = new HeldBytes({ maxBytes: USUAL_UNSENT_BYTES, ...CLIENT_PATIENCE }, systemClock),
): void {
  // Before whoever answers: an answer may be given in the same turn.
  server.prependListener("request", (_request, response: ServerResponse) => {
    response.once("prefinish", () => {
      const sizeBytes = response.writableLength;
      if (sizeBytes <= COUNTED_BYTES) return;
      holdUntilClosed(unsent, response, () => response.destroy()).update(sizeBytes);
    });
  });
}
