/**
 * Turns for what clients ask dearly. Anybody may ask, and a question can be made to take its whole
 * time-out: so few of a kind run at once that they leave connections to the node, and turns of the
 * event loop, to others.
 */
import { clientOf } from "../../runtime/turns/client-address.js";
import type { HttpRequest } from "../../runtime/http/http-route.js";
import { Turns } from "../../runtime/turns/turns.js";
import { SidecarError } from "./errors.js";

/** Of one kind, those that wait for their turn; more are told to come again. */
const MAX_WAITING = 128;

/** Who asks. */
export type Asker = Pick<HttpRequest, "signal" | "remoteAddress">;

/** The turns of one kind of question: clients have them one after the other. */
export class ClientTurns {
  private readonly turns: Turns;

  /** @param what what there may be too much of, as its plural: "calls" */
  constructor(what: string, maxRunning: number) {
    this.turns = new Turns({
      maxRunning,
      maxWaiting: MAX_WAITING,
      full: () =>
        new SidecarError("SERVER_BUSY", { reason: `too many ${what} are asked for at once` }),
    });
  }

  /** Runs the work in its turn. @throws SERVER_BUSY, the signal's reason, and what the work throws */
  run<Result>({ signal, remoteAddress }: Asker, work: () => Promise<Result>): Promise<Result> {
    return this.turns.run(signal, work, clientOf(remoteAddress));
  }
}
