/**
 * Jobs that wait for a worker. Estimates and all others take turns, and among each the clients do: payments
 * are estimated before they are signed, and do not wait until strangers have no more to ask.
 */
import type { SlotJob } from "./call-slot.js";

/** A job, and whose it is: clients that cannot be told apart count as one. */
export interface QueuedJob extends SlotJob {
  readonly client: string;
}

/** Jobs of one kind by client, in the order of the clients' turns; no line is empty. */
type Lines = Map<string, QueuedJob[]>;

/** So many jobs at most. */
export class CallQueue {
  private readonly estimates: Lines = new Map();
  private readonly others: Lines = new Map();
  private size = 0;
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
    const own = lines.get(job.client) ?? [];
    own.push(job);
    lines.set(job.client, own);
    this.size += 1;
    if (this.size <= this.maxJobs) return undefined;
    let longest = own;
    for (const line of [...this.estimates.values(), ...this.others.values()]) {
      if (line.length > longest.length) longest = line;
    }
    const last = longest.at(-1);
    if (last !== undefined) this.remove(last);
    return last;
  }

  /** The job whose turn it is. */
  next(): QueuedJob | undefined {
    const isEstimate = this.others.size === 0 || (this.estimates.size > 0 && !this.wasEstimate);
    const lines = isEstimate ? this.estimates : this.others;
    const [line] = lines.values();
    const job = line?.[0];
    if (line === undefined || job === undefined) return undefined;
    this.wasEstimate = isEstimate;
    this.remove(job);
    // The client goes behind all others.
    if (lines.delete(job.client)) lines.set(job.client, line);
    return job;
  }

  /** Takes a job out that is not waited for any more; nothing where it does not wait. */
  remove(job: QueuedJob): void {
    const lines = this.linesOf(job);
    const line = lines.get(job.client) ?? [];
    const place = line.indexOf(job);
    if (place < 0) return;
    line.splice(place, 1);
    if (line.length === 0) lines.delete(job.client);
    this.size -= 1;
  }

  /** Takes all out. */
  clear(): readonly QueuedJob[] {
    const jobs = [this.estimates, this.others].flatMap((lines) => [...lines.values()].flat());
    this.estimates.clear();
    this.others.clear();
    this.size = 0;
    return jobs;
  }

  private linesOf({ job }: QueuedJob): Lines {
    return job.work.kind === "estimateGas" ? this.estimates : this.others;
  }
}
