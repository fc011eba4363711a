/**
 * Rounds as whoever watches the treasury sees them: the time of each is written into a file, and not while
 * its own home keeps it from all work though every round ends well.
 */
import { rm, writeFile } from "node:fs/promises";
import { errorMessage } from "../../chain/errors.js";
import type { LedgerGuard } from "../../ledger/guard/ledger-guard.js";
import { systemClock } from "../../runtime/process/clock.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { HomeSwitch } from "../kill-switch.js";
import type { PolicySource } from "../lane/lane-context.js";
import type { NowhereToSweep } from "./nowhere-to-sweep.js";
import type { Sweeper } from "./sweeper.js";

/** What a round does, and where it is written down that one was made. */
export interface RoundParts {
  readonly guard: Pick<LedgerGuard, "look">;
  readonly sweeper: Pick<Sweeper, "round">;
  readonly nowhere: Pick<NowhereToSweep, "look">;
  readonly homeSwitch: Pick<HomeSwitch, "look" | "trouble">;
  readonly policy: PolicySource;
  /** Where the time of the last round stands. */
  readonly file: string;
  /** How long that holds. */
  readonly holdsMs: number;
  readonly log: Logger;
}

/** Makes rounds, and writes down those of a treasury that works. */
export class WatchedRounds {
  readonly #parts: RoundParts;
  /** It was told that the policy has nothing swept. */
  #isBareTold = false;

  constructor(parts: RoundParts) {
    this.#parts = parts;
  }

  /**
   * One round.
   * @returns true when more may be begun at once
   * @throws what the sweeper throws, and database faults
   */
  async round(signal: AbortSignal): Promise<boolean> {
    const { guard, sweeper, log } = this.#parts;
    await guard.look(log);
    const isMore = await sweeper.round(signal);
    // Else whoever watches the file would take it for a treasury that works.
    if (!(await this.#standsStill())) await this.#note();
    return isMore;
  }

  /** Takes the word of the last round away: of a process that has ended it says nothing. */
  async forget(): Promise<void> {
    const { file, log } = this.#parts;
    try {
      await rm(file, { force: true });
    } catch (error) {
      log.debug({ file, reason: errorMessage(error) }, "the last round's word stays");
    }
  }

  /** Each reason is told when it begins. */
  async #standsStill(): Promise<boolean> {
    const { nowhere, homeSwitch } = this.#parts;
    await homeSwitch.look();
    await this.#tellBare();
    return (await nowhere.look()) || homeSwitch.trouble() !== undefined;
  }

  /** Whoever has not begun yet to have anything swept has a treasury that is well. */
  async #tellBare(): Promise<void> {
    const { policy, log } = this.#parts;
    const isBare = (await policy.current()).policy.treasury === undefined;
    if (isBare && !this.#isBareTold) {
      const what =
        "nothing is swept: config/policy.json of the treasury's home has no section treasury";
      log.warn({}, what);
    }
    this.#isBareTold = isBare;
  }

  /** A home that cannot be written costs whoever watches its word, and no sweep. */
  async #note(): Promise<void> {
    const { file, holdsMs, log } = this.#parts;
    const nowMs = systemClock.nowMs();
    const lines = [nowMs, nowMs + holdsMs].map((ms) => `${new Date(ms).toISOString()}\n`);
    try {
      await writeFile(file, lines.join(""));
    } catch (error) {
      log.debug({ file, reason: errorMessage(error) }, "the round is not noted");
    }
  }
}
