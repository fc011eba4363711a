/**
 * Jobs that wait for a worker. Estimates and all others take turns, and among each the clients do: payments
 * are estimated before they are signed, and do not wait until strangers have no more to ask.
 */
import { ClientLines, type OfClient } from "../../../runtime/turns/client-lines.js";
import type { SlotJob } from "./call-slot.js";

/** A job, and whose it is. */
export interface QueuedJob extends SlotJob, OfClient {}

/** So many jobs at most. */
export class CallQueue {
  private readonly estimates = new ClientLines<QueuedJob>();
  private readonly others = new ClientLines<QueuedJob>();
  private wasEstimate = false;

  constructor(private readonly maxJobs: number) {}

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /**
   * Adds a job behind its client's others of the kind.
   * @returns the job for which there is no room now, which may be this one: the last in the longest line
   */
  add(job: QueuedJob): QueuedJob | undefined {
    const lines = this.linesOf(job);
    lines.add(job);
    if (this.size <= this.maxJobs) return undefined;
    return lines.refuseOne(job, [this.estimates, this.others]);
  }

  /** The job whose turn it is. */
  next(): QueuedJob | undefined {
    const isEstimate = this.others.size === 0 || (this.estimates.size > 0 && !this.wasEstimate);
    const job = (isEstimate ? this.estimates : this.others).next();
    if (job !== undefined) this.wasEstimate = isEstimate;
    return job;
  }

  /** Takes a job out that is not waited for any more; nothing where it does not wait. */
  remove(job: QueuedJob): void {
    this.linesOf(job).remove(job);
  }

  /** Takes all out. */
  clear(): readonly QueuedJob[] {
    return [...this.estimates.clear(), ...this.others.clear()];
  }

  private get size(): number {
    return this.estimates.size + this.others.size;
  }

  private linesOf({ job }: QueuedJob): ClientLines<QueuedJob> {
    return job.work.kind === "estimateGas" ? this.estimates : this.others;
  }
}
