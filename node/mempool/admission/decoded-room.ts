/**
 * Room for transactions that are decoded and not yet judged. Their number says little: lists take many
 * times their bytes once they are read. Whoever finds the room full waits with its transactions as bytes.
 */

/** Most that they weigh, bytes of memory as the pool counts them; 300,000 plain transfers reach it. */
const MOST_BYTES = 32 * 1024 * 1024;

/** What one call holds of the room. */
export interface RoomShare {
  /** Resolves when another transaction may be decoded: at once where nobody else holds anything. */
  enter(): Promise<void>;
  /** Counts one that was decoded. */
  hold(sizeBytes: number): void;
  /** All of the call's transactions are judged. */
  leave(): void;
}

/** One for each way in. Calls enter in the order in which they will be judged. */
export class DecodedRoom {
  private heldBytes = 0;
  private waiting: (() => void)[] = [];

  /** A share for one call. */
  share(): RoomShare {
    let ownBytes = 0;
    return {
      enter: async () => {
        while (this.heldBytes >= MOST_BYTES && this.heldBytes > ownBytes) {
          await new Promise<void>((resolve) => this.waiting.push(resolve));
        }
      },
      hold: (sizeBytes) => {
        ownBytes += sizeBytes;
        this.heldBytes += sizeBytes;
      },
      leave: () => {
        this.heldBytes -= ownBytes;
        ownBytes = 0;
        for (const wake of this.waiting.splice(0)) wake();
      },
    };
  }
}
