/** Rounds of a treasury that its own home stops: they end well, so that only this says that nothing is done. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "@jest/globals";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import { encodeKillSwitch } from "../../../../ledger/kill-switch/kill-switch-file.js";
import {
  type KillSwitchState,
  SWITCH_UNTOUCHED,
} from "../../../../ledger/kill-switch/kill-switch-level.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../../ledger/policy/policy.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createKillSwitch, HomeSwitch } from "../../../../withdrawal-worker/kill-switch.js";
import { NowhereToSweep } from "../../../../withdrawal-worker/treasury/nowhere-to-sweep.js";
import { WatchedRounds } from "../../../../withdrawal-worker/treasury/watched-rounds.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { TreasuryBench } from "../treasury-bench.js";

const { signal } = new AbortController();
const STOPPED: KillSwitchState = {
  level: "stop-sign",
  reason: "an incident",
  by: "ann",
  at: "2026-01-01T00:00:00.000Z",
};

let bench: TreasuryBench;
let folder: string;
let file: string;
let noted: string;
let lines: string[];
let rounds: WatchedRounds;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.mine();
  await bench.holdKeys();
});
afterAll(() => bench.close());

beforeEach(async () => {
  bench.files.policy = bench.policyOf({});
  folder = mkdtempSync(join(tmpdir(), "causeway-rounds-"));
  file = join(folder, "kill-switch.json");
  noted = join(folder, "treasury-round");
  writeFileSync(file, encodeKillSwitch(SWITCH_UNTOUCHED));
  lines = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLogger({ component: "test", destination });
  const sql = bench.worker;
  const policy = { current: async () => bench.files.policy };
  const wallets = () => bench.wallets;
  rounds = new WatchedRounds({
    guard: { look: async () => undefined },
    sweeper: bench.sweeper({ killSwitch: createKillSwitch({ sql, file }), log }),
    nowhere: new NowhereToSweep({ database: sql, wallets, policy, clock: bench.clock, log }),
    homeSwitch: new HomeSwitch({ sql, file, log }),
    policy,
    file: noted,
    holdsMs: 60_000,
    log,
  });
});
afterEach(() => rmSync(folder, { recursive: true }));

/** One round. @returns whether whoever watches sees it */
async function isNoted(): Promise<boolean> {
  await rounds.forget();
  await rounds.round(signal);
  return existsSync(noted);
}

it("are written down while this home stops no more than the ledger", async () => {
  expect([await isNoted(), await isNoted()]).toEqual([true, true]);
  await setKillSwitch(bench.bench.ledger.owner, STOPPED);
  writeFileSync(file, encodeKillSwitch(STOPPED));
  expect([await isNoted(), await isNoted(), await isNoted()]).toEqual([true, true, true]);
  await setKillSwitch(bench.bench.ledger.owner, { ...STOPPED, level: "none" });
  writeFileSync(file, encodeKillSwitch(SWITCH_UNTOUCHED));
  expect(lines).toEqual([]);
});

it("are told once and not written down where this home's file is gone, unreadable or still raised", async () => {
  for (const [content, words] of [
    [undefined, /stop-broadcast by this home's own kill-switch.json .*ENOENT/],
    ["{", /stop-broadcast by this home's own kill-switch.json/],
    [encodeKillSwitch(STOPPED), /stop-sign by this home's own .* by ann: an incident/],
  ] as const) {
    lines = [];
    rmSync(file);
    if (content !== undefined) writeFileSync(file, content);
    // Who lifts it may be between the two places at the first look.
    await isNoted();
    expect([content, await isNoted(), await isNoted()]).toEqual([content, false, false]);
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: "warn",
      reason: expect.stringMatching(words),
    });
    writeFileSync(file, encodeKillSwitch(SWITCH_UNTOUCHED));
    expect(await isNoted()).toBe(true);
  }
});

it("are told once where this home's policy has nothing swept", async () => {
  bench.files.policy = hashPolicy(PERMISSIVE_POLICY);
  expect([await isNoted(), await isNoted()]).toEqual([true, true]);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("no section treasury");
  bench.files.policy = bench.policyOf({});
  await isNoted();
  bench.files.policy = hashPolicy(PERMISSIVE_POLICY);
  await isNoted();
  expect(lines).toHaveLength(2);
});
