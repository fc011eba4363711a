/** Sweeps that were begun when something stopped them: a token of other code, the kill switch, an incident. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { resumeCrediting, writeIncident } from "../../../../ledger/incidents.js";
import { readKillSwitch, setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import {
  type KillSwitchLevel,
  SWITCH_UNTOUCHED,
} from "../../../../ledger/kill-switch/kill-switch-level.js";
import type { Sweep } from "../../../../ledger/treasury/sweeps.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import type { Sweeper } from "../../../../withdrawal-worker/treasury/sweeper.js";
import { callOf } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, COLD, TreasuryBench } from "../treasury-bench.js";

const { signal } = new AbortController();

let bench: TreasuryBench;
let registered = 0;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());
afterEach(() => bench.rounds(4));

/** A new customer's address with coins, or with units of a token alone, booked. */
async function deposit(kind: "coins" | "token"): Promise<Address> {
  const address = await bench.bench.register(`customer-${registered}`);
  registered += 1;
  const mint = callOf("PlainToken", "mint", [address, 5n]);
  await bench.bench.mine([kind === "coins" ? { to: address, value: 10n ** 16n } : mint]);
  await bench.mine();
  return address;
}

async function sweepsOf(address: Address): Promise<readonly Sweep[]> {
  return (await bench.sweeps()).filter((sweep) => sweep.address === address);
}

/** State and count of signatures of each sweep of an address. */
async function statesOf(address: Address): Promise<readonly (readonly [string, number])[]> {
  return (await sweepsOf(address)).map(({ state, attempts }) => [state, attempts.length]);
}

/** As the watcher does where the contract runs other code. */
function pause(paused: boolean): Promise<unknown> {
  return bench.bench.ledger.owner.query(
    `UPDATE token_state SET paused = $1, reason = CASE WHEN $1 THEN 'drill' ELSE '' END,
            changed_by = 'test' WHERE asset = 'PLAIN'`,
    [paused],
  );
}

/** As an hour later, for sweeps and for what is to be looked at. */
async function anHourLater(): Promise<void> {
  await bench.bench.ledger.owner.transaction(async (tx) => {
    await tx.query(`ALTER TABLE sweep DISABLE TRIGGER sweep_guard`);
    await tx.query(`UPDATE sweep SET changed_at = changed_at - interval '1 hour'`);
    await tx.query(`ALTER TABLE sweep ENABLE TRIGGER sweep_guard`);
    await tx.query(`UPDATE sweep_due SET due_at = due_at - interval '2 hours'`);
  });
}

it.each([
  { what: "before its gas is asked for", rounds: 1 },
  { what: "while its gas is on the way", rounds: 2 },
])("signs nothing for a token whose code changed $what, until it is taken", async ({ rounds }) => {
  const address = await deposit("token");
  await bench.rounds(rounds);
  expect(await statesOf(address)).toEqual([["needs-gas", 0]]);
  const [before] = await sweepsOf(address);
  await pause(true);
  await bench.rounds(3);
  expect(await statesOf(address)).toEqual([["needs-gas", 0]]);
  expect((await sweepsOf(address))[0]?.givenAtoken).toBe(before?.givenAtoken);
  // It keeps nobody's place for ever.
  await anHourLater();
  await bench.rounds(2);
  expect(await statesOf(address)).toEqual([["void", 0]]);
  expect(await bench.units(address, "PLAIN")).toBe(5n);
  await pause(false);
  await anHourLater();
  await bench.rounds(5);
  expect((await statesOf(address)).at(-1)).toEqual(["settled", 1]);
  expect(await bench.units(address, "PLAIN")).toBe(0n);
});

it("signs nothing for a token whose code changed when its nonce was taken", async () => {
  const address = await bench.bench.register(`customer-${registered}`);
  registered += 1;
  await bench.bench.mine([
    callOf("PlainToken", "mint", [address, 5n]),
    { to: address, value: 10n ** 15n },
  ]);
  await bench.mine();
  await bench.sweeper().round(signal);
  expect(await statesOf(address)).toEqual([["ready", 0]]);
  await pause(true);
  await bench.rounds(2);
  expect(await statesOf(address)).toEqual([["ready", 0]]);
  await pause(false);
  await bench.rounds(2);
  expect((await statesOf(address))[0]).toEqual(["settled", 1]);
});

it("asks for no refill of a token whose code changed, and sends none of it to cold storage", async () => {
  await bench.bench.mine([callOf("PlainToken", "mint", [WALLET, 5n])]);
  await bench.mine();
  await bench.rounds(1);
  const held = await bench.units(WALLET, "PLAIN");
  const keep = (lowUnits: bigint, highUnits: bigint) => {
    const band = { lowUnits, targetUnits: lowUnits, highUnits };
    const rules = { ...ANY_SWEEP, coldAddress: COLD, band };
    bench.files.policy = bench.policyOf({ assets: { PLAIN: rules } });
  };
  const asked = () =>
    bench.bench.ledger.owner.query(
      `SELECT 'refill' AS kind, state FROM refill_request
       UNION ALL SELECT kind, state FROM treasury_move WHERE kind = 'cold'`,
    );
  await pause(true);
  keep(held + 100n, held + 200n);
  await bench.rounds(1);
  keep(0n, 1n);
  await bench.rounds(1);
  expect(await asked()).toEqual([]);
  await pause(false);
  keep(held + 100n, held + 200n);
  await bench.rounds(1);
  expect(await asked()).toEqual([{ kind: "refill", state: "open" }]);
  // Nobody sends what runs other code, for as long as it does.
  await pause(true);
  await bench.rounds(1);
  expect(await asked()).toEqual([{ kind: "refill", state: "withdrawn" }]);
  await pause(false);
  bench.files.policy = bench.policyOf({});
});

/** A treasury that knows the ledger's switch alone, and stands still behind its look while something happens. */
function stillBehindView(
  happens: () => Promise<unknown>,
  send: TreasuryBench["node"]["send"] = (raws, options) => bench.node.send(raws, options),
): Sweeper {
  const view: TreasuryBench["node"]["view"] = async (wallet, options) => {
    const answer = await bench.node.view(wallet, options);
    await happens();
    return answer;
  };
  const killSwitch = { read: () => readKillSwitch(bench.worker) };
  return bench.sweeper({ killSwitch, node: { ...bench.node, view, send } });
}

it("signs nothing behind a kill switch that the ledger was told in the middle of a round", async () => {
  const address = await deposit("coins");
  await bench.sweeper().round(signal);
  expect(await statesOf(address)).toEqual([["ready", 0]]);
  const { owner } = bench.bench.ledger;
  const set = (level: KillSwitchLevel) =>
    setKillSwitch(owner, { level, reason: "drill", by: "ann" });
  await stillBehindView(() => set("stop-sign")).round(signal);
  await set("none");
  expect(await statesOf(address)).toEqual([["ready", 0]]);
});

it("asks for nothing of hot wallets behind a switch that stops new requests in the home's file alone", async () => {
  const address = await deposit("token");
  const stopped = bench.sweeper({
    killSwitch: { read: async () => ({ ...SWITCH_UNTOUCHED, level: "stop-new" }) },
  });
  for (let round = 0; round < 3; round += 1) await stopped.round(signal);
  expect((await sweepsOf(address)).map(({ state, topUpId }) => [state, topUpId])).toEqual([
    ["needs-gas", 0],
  ]);
  await bench.rounds(5);
  expect((await statesOf(address)).at(-1)).toEqual(["settled", 1]);
});

/** As the watcher does where the chain is in doubt. */
function openDrill(): Promise<unknown> {
  const incident = { kind: "NODES_DISAGREE", height: 1, message: "drill", details: {} } as const;
  return bench.bench.ledger.owner.transaction((tx) => writeIncident(tx, incident));
}

it("signs nothing behind an incident that was opened in the middle of a round", async () => {
  const address = await deposit("coins");
  await bench.sweeper().round(signal);
  expect(await statesOf(address)).toEqual([["ready", 0]]);
  await stillBehindView(openDrill).round(signal);
  expect(await resumeCrediting(bench.bench.ledger.owner, "ann")).toBe(1);
  expect(await statesOf(address)).toEqual([["ready", 0]]);
});

it("sends nothing behind an incident that was opened in the middle of a round", async () => {
  const address = await deposit("coins");
  const raws: string[] = [];
  const note: TreasuryBench["node"]["send"] = async (sent) => {
    raws.push(...sent);
    return [];
  };
  const mute = bench.sweeper({ node: { ...bench.node, send: note } });
  for (let round = 0; round < 2; round += 1) await mute.round(signal);
  expect([await statesOf(address), raws.length]).toEqual([[["signed", 1]], 1]);
  await stillBehindView(openDrill, note).round(signal);
  expect(await resumeCrediting(bench.bench.ledger.owner, "ann")).toBe(1);
  expect(raws).toHaveLength(1);
});

/** What the log of a treasury says, and how often it began to open a move. */
function watched(given: Parameters<TreasuryBench["sweeper"]>[0] = {}) {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  let opened = 0;
  const { worker } = bench;
  const sweeper = bench.sweeper({
    log: createLogger({ component: "test", destination }),
    database: {
      ...worker,
      query: (text, values) => worker.query(text, values),
      transaction: (work) =>
        worker.transaction((tx) =>
          work({
            ...tx,
            query: (text, values) => {
              if (text.includes("pg_advisory_xact_lock(hashtextextended")) opened += 1;
              return tx.query(text, values);
            },
          }),
        ),
    },
    ...given,
  });
  return { sweeper, lines, opened: () => opened };
}

describe("while new withdrawals are stopped", () => {
  const throwSwitch = (level: KillSwitchLevel) =>
    setKillSwitch(bench.bench.ledger.owner, { level, reason: "drill", by: "test" });

  it("asks for gas of nobody, round after round, without a word and without a write", async () => {
    for (let count = 0; count < 3; count += 1) await deposit("token");
    const { sweeper, lines, opened } = watched();
    await throwSwitch("stop-new");
    bench.killSwitch = { ...SWITCH_UNTOUCHED, level: "stop-new" };
    for (let round = 0; round < 5; round += 1) await sweeper.round(signal);
    await throwSwitch("none");
    bench.killSwitch = SWITCH_UNTOUCHED;
    expect((await bench.sweeps()).filter(({ state }) => state === "needs-gas")).toHaveLength(3);
    expect([lines, opened()]).toEqual([[], 0]);
  });

  it("ends its asking with the first refusal where the switch is newer than the round", async () => {
    for (let count = 0; count < 3; count += 1) await deposit("token");
    const { sweeper, lines, opened } = watched();
    await sweeper.round(signal);
    await throwSwitch("stop-new");
    await sweeper.round(signal);
    await throwSwitch("none");
    expect([lines.length, opened()]).toEqual([1, 1]);
    expect(lines[0]).toContain("WITHDRAWALS_STOPPED");
  });

  it("begins no move to cold storage, and says once why one is refused", async () => {
    const keep = (coldAddress: Address) => {
      const band = { lowUnits: 0n, targetUnits: 1n, highUnits: 1n };
      const rules = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n, coldAddress, band };
      bench.files.policy = bench.policyOf({ assets: { TOKEN: rules } });
    };
    const customers = await bench.bench.register("cold-customer");
    await bench.rounds(1);
    const { sweeper, lines, opened } = watched();
    keep(customers);
    await throwSwitch("stop-new");
    bench.killSwitch = { ...SWITCH_UNTOUCHED, level: "stop-new" };
    for (let round = 0; round < 2; round += 1) await sweeper.round(signal);
    await throwSwitch("none");
    bench.killSwitch = SWITCH_UNTOUCHED;
    expect([lines, opened()]).toEqual([[], 0]);
    for (let round = 0; round < 3; round += 1) await sweeper.round(signal);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("OWN_WALLET");
    bench.files.policy = bench.policyOf({});
    await sweeper.round(signal);
    keep(customers);
    await sweeper.round(signal);
    expect(lines).toHaveLength(2);
    bench.files.policy = bench.policyOf({});
  });
});
