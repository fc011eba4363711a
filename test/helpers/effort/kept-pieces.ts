/** Which of many objects something still holds: what garbage collection leaves of them. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Pieces of a message, without holding them. */
export class KeptPieces {
  /** All that were noted. */
  count = 0;
  private readonly noted: WeakRef<object>[] = [];

  note(piece: object): void {
    this.count += 1;
    this.noted.push(new WeakRef(piece));
  }

  /** How many somebody else holds. */
  async kept(): Promise<number> {
    // Within the turn in which it was noted none is let go of.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    return this.noted.filter((piece) => piece.deref() !== undefined).length;
  }
}
