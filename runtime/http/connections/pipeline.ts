/**
 * Connections that ask on without waiting for their answers. One is not read any further while too many of
 * its requests are without an answer: Node itself only waits for a client that does not read what it is
 * sent. And what cannot be read on one is told behind those answers.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/**
 * Requests of one connection that are answered at the same time: far more than the browsers and
 * balancers that pipeline at all. What came in one piece with them is served all the same.
 */
const MAX_UNANSWERED = 32;

/** Knows what connections have asked and not been answered. */
export class PipelineBound {
  readonly #unanswered = new WeakMap<Duplex, Set<ServerResponse>>();
  /** Connections with something that cannot be read, which they are told behind their answers. */
  readonly #unread = new WeakSet<Duplex>();

  /** Takes a request in, until its response is closed. */
  count(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const open = this.#openOf(socket).add(response);
    const isTooMuch = () => open.size >= MAX_UNANSWERED;
    request.once("end", () => {
      if (!isTooMuch()) return;
      // Not at once: whoever begins to read a body, of the next request too, resumes the socket.
      setImmediate(() => {
        if (isTooMuch()) socket.pause();
      });
    });
    response.once("close", () => {
      open.delete(response);
      if (!isTooMuch() && socket.isPaused()) socket.resume();
    });
  }

  #openOf(socket: Duplex): Set<ServerResponse> {
    const known = this.#unanswered.get(socket);
    if (known !== undefined) return known;
    const open = new Set<ServerResponse>();
    this.#unanswered.set(socket, open);
    // Behind Node, which tells only the response whose turn it is that its connection is gone.
    socket.once("close", () => setImmediate(() => closeAll(open)));
    return open;
  }

  /**
   * Refuses what cannot be read on a connection, when what it asked before is answered: told earlier, the
   * refusal would be taken for the answer to a request that is carried out. A request whose own body
   * cannot be read has no other answer.
   */
  refuseUnread(socket: Duplex, refuse: () => void): void {
    if (this.#unread.has(socket)) return;
    const before = [...(this.#unanswered.get(socket) ?? [])].filter(({ req }) => req.complete);
    this.#unread.add(socket);
    if (before.length === 0) {
      refuse();
      return;
    }
    let left = before.length;
    for (const response of before) {
      response.once("close", () => {
        left -= 1;
        // Where the last of them ended the connection, there is nobody to tell.
        if (left === 0 && socket.writable) refuse();
      });
    }
  }
}

/** Closes responses that wait behind others, and that nobody will get any more. */
function closeAll(open: ReadonlySet<ServerResponse>): void {
  for (const response of open) {
    response.destroy();
    response.emit("close");
  }
}
