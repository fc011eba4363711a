/** Bounds of one search: how much it may read, and how long it may hold the event loop. */
import { breathe } from "../../../runtime/process/main-thread.js";
import { SidecarError } from "../../rosetta/errors.js";

/** Work of one search, in plain entries (a block of a posting list); about 3 s of one core. */
const MAX_SCANNED_POSTINGS = 2_000_000;

/** Counts what a search reads. */
export class ScanBudget {
  private spent = 0;

  constructor(
    private readonly signal: AbortSignal,
    private readonly limit: number = MAX_SCANNED_POSTINGS,
  ) {}

  /**
   * To be awaited now and then while reading.
   * @throws SEARCH_TOO_BROAD, the signal's reason
   */
  async spend(postings: number): Promise<void> {
    this.spent += postings;
    if (this.spent > this.limit) {
      throw new SidecarError("SEARCH_TOO_BROAD", {
        scanned: this.limit,
        narrow: "add an account, an address or a transaction hash, or lower max_block",
      });
    }
    // What level read ahead arrives without a turn of the event loop, so it is given one here.
    const pause = breathe(this.signal);
    if (pause !== undefined) await pause;
  }
}
