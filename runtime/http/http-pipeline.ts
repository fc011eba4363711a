/**
 * Bound of pipelining: a connection is not read any further while too many of its requests are
 * without an answer. Node itself only waits for a client that does not read what it is sent.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

type Socket = IncomingMessage["socket"];

/**
 * Requests of one connection that are answered at the same time: far more than the browsers and
 * balancers that pipeline at all. What came in one piece with them is served all the same.
 */
const MAX_UNANSWERED = 32;

/** Counts what connections have asked and not been answered. */
export class PipelineBound {
  readonly #unanswered = new WeakMap<Socket, number>();

  /** Takes a request in, until its response is closed. */
  count(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    this.#unanswered.set(socket, this.#of(socket) + 1);
    const isTooMuch = () => this.#of(socket) >= MAX_UNANSWERED;
    request.once("end", () => {
      if (!isTooMuch()) return;
      // Not at once: whoever begins to read a body, of the next request too, resumes the socket.
      setImmediate(() => {
        if (isTooMuch()) socket.pause();
      });
    });
    response.once("close", () => {
      const left = this.#of(socket) - 1;
      this.#unanswered.set(socket, left);
      if (left < MAX_UNANSWERED && socket.isPaused()) socket.resume();
    });
  }

  #of(socket: Socket): number {
    return this.#unanswered.get(socket) ?? 0;
  }
}
