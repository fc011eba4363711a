/** What was signed within a day, by clocks that are set: never less than a day, and not for as long as one ran ahead. */
import { beforeEach, expect, it } from "@jest/globals";
import { SignerTotals } from "../../../../withdrawal-worker/signers/signer-totals.js";
import { freshFile } from "../../../helpers/keys/signing.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

class HandClock {
  ms = 20_000 * DAY_MS;
  nowMs = () => this.ms;
  monotonicMs = () => this.ms;
}

let clock: HandClock;
let file: string;
let totals: SignerTotals;
let nonce: number;

beforeEach(() => {
  clock = new HandClock();
  file = freshFile("signer-totals");
  nonce = 0;
  restart();
});

function restart(): void {
  totals = new SignerTotals(file, clock);
}

const signed = () => totals.signedUnits("TOKEN");

/** Signs a payment that is on disk before. */
async function sign(amountUnits: bigint): Promise<void> {
  nonce += 1;
  // As whoever judges it.
  signed();
  await totals.count([{ slot: `wallet ${nonce}`, asset: "TOKEN", amountUnits, meaning: "paid" }]);
}

it("counts what a clock that ran ahead signed for a day from when it was set right", async () => {
  clock.ms += 30 * DAY_MS;
  await sign(900n);
  clock.ms -= 30 * DAY_MS;
  expect(signed()).toBe(900n);
  await sign(1n);
  clock.ms += DAY_MS;
  // It is known to whoever comes next, too.
  restart();
  expect(signed()).toBe(901n);
  clock.ms += HOUR_MS;
  expect(signed()).toBe(0n);
  restart();
  await sign(2n);
  // Nor does it count once more when its time comes.
  clock.ms += 29 * DAY_MS;
  restart();
  expect(signed()).toBe(0n);
});

it("counts it for a day where nothing was written since, and by every process", async () => {
  const other = new SignerTotals(file, clock);
  clock.ms += 30 * DAY_MS;
  totals.note([{ slot: "wallet 0", asset: "TOKEN", amountUnits: 5n, meaning: "paid" }]);
  await sign(900n);
  clock.ms -= 30 * DAY_MS;
  other.look();
  for (const each of [totals, other]) expect(each.signedUnits("TOKEN")).toBe(905n);
  clock.ms += DAY_MS;
  for (const each of [totals, other]) expect(each.signedUnits("TOKEN")).toBe(905n);
  clock.ms += HOUR_MS;
  for (const each of [totals, other]) expect(each.signedUnits("TOKEN")).toBe(0n);
});

it("counts it for a day where the clock is set back in several steps", async () => {
  clock.ms += 30 * DAY_MS;
  await sign(900n);
  clock.ms -= 10 * DAY_MS;
  await sign(1n);
  clock.ms -= 20 * DAY_MS;
  expect(signed()).toBe(901n);
  clock.ms += DAY_MS;
  expect(signed()).toBe(901n);
  clock.ms += HOUR_MS;
  expect(signed()).toBe(0n);
});

it("forgets nothing of the day for a clock that was late for a while", async () => {
  await sign(900n);
  clock.ms -= 400 * DAY_MS;
  await sign(1n);
  // It starts late again and again.
  clock.ms += 2 * HOUR_MS;
  restart();
  expect(signed()).toBe(901n);
  clock.ms += 400 * DAY_MS;
  restart();
  expect(signed()).toBe(900n);
  await sign(2n);
  clock.ms -= 300 * DAY_MS;
  restart();
  expect(signed()).toBe(902n);
  clock.ms += 300 * DAY_MS + 21 * HOUR_MS;
  expect(signed()).toBe(902n);
  clock.ms += 3 * HOUR_MS;
  expect(signed()).toBe(2n);
});
