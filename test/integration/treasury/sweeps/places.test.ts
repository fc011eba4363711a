/**
 * How long a sweep keeps its place among those that are under way: never for ever, whatever became of
 * the policy meanwhile, and nothing is signed twice over its nonce.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { storeSweepAttempts, type Sweep, voidSweep } from "../../../../ledger/treasury/sweeps.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import type { Sweeper } from "../../../../withdrawal-worker/treasury/sweeper.js";
import { callOf, depositKey } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, PRICE, TreasuryBench } from "../treasury-bench.js";

const { signal } = new AbortController();

let bench: TreasuryBench;
let registered = 0;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

beforeEach(() => {
  bench.files.policy = bench.policyOf({});
});

const register = () => bench.bench.register(`customer-${registered++}`);

/** A new customer's address with coins, booked. */
async function coins(): Promise<Address> {
  const address = await register();
  await bench.bench.mine([{ to: address, value: 10n ** 16n }]);
  await bench.mine();
  return address;
}

/** A new customer's address with a token and the gas for it, booked. */
async function tokens(gasAtoken = 10n ** 15n): Promise<Address> {
  const address = await register();
  await bench.bench.mine([
    callOf("PlainToken", "mint", [address, 5n]),
    ...(gasAtoken > 0n ? [{ to: address, value: gasAtoken }] : []),
  ]);
  await bench.mine();
  return address;
}

/** The treasury has one place. */
const oneAtOnce = () => ({ settings: { ...bench.settings, sweepsAtOnce: 1 } });

/** The same over a pool that takes nothing of an address. */
function withoutBytesOf(address: Address): Sweeper {
  const send: TreasuryBench["node"]["send"] = async (raws, options) => {
    const own = (await sweepsOf(address)).flatMap(({ attempts }) => attempts);
    const others = raws.filter((raw) => own.every((attempt) => attempt.raw !== raw));
    return others.length === 0 ? [] : bench.node.send(others, options);
  };
  return bench.sweeper({ ...oneAtOnce(), node: { ...bench.node, send } });
}

const only = (asset: string) => bench.policyOf({ assets: { [asset]: ANY_SWEEP } });

async function sweepsOf(address: Address): Promise<readonly Sweep[]> {
  return (await bench.sweeps()).filter((sweep) => sweep.address === address);
}

async function statesOf(address: Address): Promise<readonly string[]> {
  return (await sweepsOf(address)).map(({ state }) => state);
}

/** As an hour later, for sweeps and for what is to be looked at. */
async function anHourLater(): Promise<void> {
  await bench.bench.ledger.owner.transaction(async (tx) => {
    await tx.query(`ALTER TABLE sweep DISABLE TRIGGER sweep_guard`);
    await tx.query(`UPDATE sweep SET changed_at = changed_at - interval '1 hour'`);
    await tx.query(`ALTER TABLE sweep ENABLE TRIGGER sweep_guard`);
    await tx.query(`UPDATE sweep_due SET due_at = due_at - interval '1 hour'`);
  });
}

const lookNow = () =>
  bench.bench.ledger.owner.query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);

it("of an asset that left the policy before it was signed ends, and its nonce is free again", async () => {
  const left = await coins();
  const treasury = bench.sweeper(oneAtOnce());
  await treasury.round(signal);
  expect(await statesOf(left)).toEqual(["ready"]);
  bench.files.policy = only("PLAIN");
  const other = await tokens();
  await bench.rounds(1, treasury);
  await anHourLater();
  await bench.rounds(5, treasury);
  expect([await statesOf(left), await bench.nonce(left)]).toEqual([["void"], 0n]);
  expect(await bench.units(other, "PLAIN")).toBe(0n);

  bench.files.policy = only("TOKEN");
  await lookNow();
  await bench.rounds(4, treasury);
  expect(await statesOf(left)).toEqual(["void", "settled"]);
  expect([await bench.units(left), await bench.nonce(left)]).toEqual([0n, 1n]);
});

it("of an asset that left the policy takes no other's place once it is signed, and still arrives", async () => {
  const left = await coins();
  const mute = bench.sweeper({ node: { ...bench.node, send: async () => [] } });
  for (let round = 0; round < 2; round += 1) await mute.round(signal);
  expect(await statesOf(left)).toEqual(["signed"]);
  bench.files.policy = only("PLAIN");
  const other = await tokens();
  const quiet = withoutBytesOf(left);
  await bench.rounds(5, quiet);
  expect(await bench.units(other, "PLAIN")).toBe(0n);
  expect(await statesOf(left)).toEqual(["signed"]);
  await bench.rounds(3, bench.sweeper(oneAtOnce()));
  expect([await statesOf(left), await bench.units(left)]).toEqual([["settled"], 0n]);
});

it("that no block takes for long takes no other's place, and still arrives when one does", async () => {
  const left = await coins();
  const quiet = withoutBytesOf(left);
  for (let round = 0; round < 2; round += 1) await quiet.round(signal);
  expect(await statesOf(left)).toEqual(["signed"]);
  const other = await coins();
  await bench.rounds(3, quiet);
  expect(await statesOf(other)).toEqual([]);
  await anHourLater();
  await bench.rounds(4, quiet);
  expect([await statesOf(left), await statesOf(other)]).toEqual([["signed"], ["settled"]]);
  const [late] = await sweepsOf(left);
  expect(late?.isLate).toBe(true);
  await bench.rounds(3, bench.sweeper(oneAtOnce()));
  expect([await statesOf(left), await bench.units(left)]).toEqual([["settled"], 0n]);
});

it("is named as one that no block takes only while its nonce is not used", async () => {
  const left = await coins();
  const quiet = withoutBytesOf(left);
  for (let round = 0; round < 2; round += 1) await quiet.round(signal);
  await anHourLater();
  const told: unknown[] = [];
  const write = (line: string) => told.push(JSON.parse(line).addresses);
  const log = createLogger({ component: "test", level: "warn", destination: { write } });
  const node = { ...bench.node, send: async () => [] };
  const { rpc } = bench.bench;
  /** A block has it, and the watcher has not come there. */
  const batch: typeof rpc.batch = async (calls, options) => {
    const answers = await rpc.batch(calls, options);
    return answers.map((answer, index) => {
      const call = calls[index];
      const isNonce = call?.method === "eth_getTransactionCount" && call.params[0] === left;
      return isNonce ? { ok: true as const, result: "0x1" } : answer;
    });
  };
  await bench.sweeper({ node, log, rpc: { ...rpc, batch } }).round(signal);
  expect([told, (await sweepsOf(left))[0]?.isLate]).toEqual([[], true]);
  await bench.sweeper({ node, log }).round(signal);
  expect(told).toEqual([[left]]);
  await bench.rounds(3);
  expect(await statesOf(left)).toEqual(["settled"]);
});

it("whose gas rose above the policy's before it was given ends, and comes again later", async () => {
  const address = await tokens(0n);
  const treasury = bench.sweeper();
  await treasury.round(signal);
  expect(await statesOf(address)).toEqual(["needs-gas"]);
  bench.files.policy = bench.policyOf({ topUpMaxAtoken: 1n });
  await bench.rounds(1, treasury);
  expect(await statesOf(address)).toEqual(["needs-gas"]);
  await anHourLater();
  await bench.rounds(1, treasury);
  expect(await statesOf(address)).toEqual(["void"]);
  bench.files.policy = bench.policyOf({});
  await lookNow();
  await bench.rounds(6, treasury);
  expect(await bench.units(address, "PLAIN")).toBe(0n);
});

/** A sweep that was decided, and that nothing is signed for. */
async function decided(): Promise<{ readonly address: Address; readonly index: number }> {
  bench.files.policy = only("TOKEN");
  const index = registered;
  const address = await coins();
  await bench.sweeper().round(signal);
  expect(await statesOf(address)).toEqual(["ready"]);
  bench.files.policy = only("PLAIN");
  return { address, index };
}

it("whose nonce somebody else used is not given up, however old it is: it freezes", async () => {
  const { address, index } = await decided();
  await bench.bench.mine([{ from: depositKey(index), to: depositKey(50_000).address, value: 1n }]);
  await bench.bench.caughtUp();
  await anHourLater();
  const treasury = bench.sweeper();
  await treasury.round(signal);
  expect([await statesOf(address), await bench.nonce(address)]).toEqual([["ready"], 1n]);
  bench.clock.ms += 4_000;
  await treasury.round(signal);
  const [sweep] = await sweepsOf(address);
  expect([sweep?.state, sweep?.reason]).toEqual([
    "frozen",
    "nonce 0 was used by a transaction that this kit did not sign",
  ]);
});

it("is not frozen for a receipt that the treasury waited for while it stood still", async () => {
  const { address, index } = await decided();
  await bench.bench.mine([{ from: depositKey(index), to: depositKey(50_000).address, value: 1n }]);
  await bench.bench.caughtUp();
  let isStanding = false;
  const receipts: TreasuryBench["node"]["receipts"] = async (hashes, options) => {
    const found = await bench.node.receipts(hashes, options);
    if (isStanding) bench.clock.ms += 3_600_000;
    isStanding = false;
    return found;
  };
  const treasury = bench.sweeper({ node: { ...bench.node, receipts } });
  // None is there, at this look and at the next, in the middle of which it stands still.
  await treasury.round(signal);
  bench.clock.ms += 100;
  isStanding = true;
  await treasury.round(signal);
  expect([isStanding, await statesOf(address)]).toEqual([false, ["ready"]]);
  // At looks that are far enough apart none is there.
  await treasury.round(signal);
  expect(await statesOf(address)).toEqual(["frozen"]);
});

it("is not given up while no wallet may be given coins", async () => {
  const { address } = await decided();
  await anHourLater();
  const freeze = (frozen: boolean) =>
    bench.bench.ledger.owner.query(
      `INSERT INTO signing_freeze (wallet, frozen, reason) VALUES ($1, $2, 'drill')
       ON CONFLICT (wallet) DO UPDATE SET frozen = excluded.frozen`,
      [WALLET, frozen],
    );
  await freeze(true);
  await bench.sweeper().round(signal);
  expect(await statesOf(address)).toEqual(["ready"]);
  await freeze(false);
  await bench.sweeper().round(signal);
  expect(await statesOf(address)).toEqual(["void"]);
});

it("is either signed or given up, whoever of two comes first", async () => {
  const signed = async (id: number, n: number) =>
    storeSweepAttempts(bench.worker, [
      {
        sweepId: id,
        n,
        wallet: WALLET,
        raw: "0x01",
        hash: parseHash32(`0x${id.toString(16).padStart(64, "0")}`),
        gasPriceAtoken: 1n,
      },
    ]);
  const end = (id: number) => voidSweep(bench.worker, id, { reason: "drill", delayMs: 0 });
  bench.files.policy = only("TOKEN");
  const [first, second] = [await coins(), await coins()];
  await bench.sweeper().round(signal);
  const [one] = await sweepsOf(first);
  const [other] = await sweepsOf(second);
  if (one === undefined || other === undefined) throw new Error("no sweep");
  expect(await end(one.id)).toBe(true);
  expect((await signed(one.id, 0)).size).toBe(0);
  expect((await signed(other.id, 0)).size).toBe(1);
  expect(await end(other.id)).toBe(false);
  const attempts = await bench.worker.query(
    `SELECT sweep_id::integer AS id FROM sweep_attempt WHERE sweep_id = ANY ($1::bigint[])`,
    [[one.id, other.id]],
  );
  expect(attempts).toEqual([{ id: other.id }]);
});

it("of a token whose gas does not pay for a spike is made as dear as it allows, then by what comes", async () => {
  const address = await tokens(0n);
  const deaf = { ...bench.node, send: async () => [] };
  for (let round = 0; round < 5; round += 1) await bench.step(bench.sweeper({ node: deaf }));
  const prices = async () => {
    const [sweep] = await sweepsOf(address);
    return sweep?.attempts.map(({ gasPriceAtoken }) => gasPriceAtoken);
  };
  expect([await statesOf(address), await prices()]).toEqual([["signed"], [PRICE]]);
  const dear = bench.sweeper({
    settings: { ...bench.settings, repriceAfterMs: 0 },
    node: {
      ...deaf,
      view: async (wallet, options) => {
        const view = await bench.node.view(wallet, options);
        return { ...view, suggestedPriceAtoken: 2n * PRICE };
      },
    },
  });
  // It was given a quarter more than its fee.
  const dearest = (5n * PRICE) / 4n;
  for (let round = 0; round < 2; round += 1) await dear.round(signal);
  expect(await prices()).toEqual([PRICE, dearest]);
  await bench.bench.mine([{ to: address, value: 10n ** 15n }]);
  await bench.mine();
  await dear.round(signal);
  expect(await prices()).toEqual([PRICE, dearest, 2n * PRICE]);
  for (let round = 0; round < 2; round += 1) await bench.step(bench.sweeper());
  expect([(await statesOf(address))[0], await bench.units(address, "PLAIN")]).toEqual([
    "settled",
    0n,
  ]);
});

it("is made no dearer while the chain stands still: no price is paid where nobody makes blocks", async () => {
  const address = await coins();
  const node = { ...bench.node, send: async () => [] };
  const treasury = bench.sweeper({ settings: { ...bench.settings, repriceAfterMs: 0 }, node });
  const attempts = async () => (await sweepsOf(address))[0]?.attempts.length;
  for (let round = 0; round < 5; round += 1) await treasury.round(signal);
  expect([await statesOf(address), await attempts()]).toEqual([["signed"], 1]);
  // One block may have been under way when it was sent.
  await bench.mine();
  await treasury.round(signal);
  expect(await attempts()).toBe(1);
  await bench.mine();
  for (let round = 0; round < 3; round += 1) await treasury.round(signal);
  expect(await attempts()).toBe(2);
});

it("of which more are late than are looked at together is made dearer in its turn, or freezes", async () => {
  const from = registered;
  const late = [await coins(), await coins(), await coins()];
  const looked = new Set<unknown>();
  const { rpc } = bench.bench;
  const batch: typeof rpc.batch = (calls, options) => {
    for (const { params } of calls) looked.add(params[0]);
    return rpc.batch(calls, options);
  };
  const deaf = { ...bench.node, send: async () => [] };
  for (let round = 0; round < 2; round += 1) await bench.sweeper({ node: deaf }).round(signal);
  expect(await Promise.all(late.map(statesOf))).toEqual([["signed"], ["signed"], ["signed"]]);
  await anHourLater();
  const { settings } = oneAtOnce();
  const treasury = bench.sweeper({
    settings: { ...settings, repriceAfterMs: 0 },
    node: deaf,
    rpc: { ...rpc, batch },
  });
  /** One of them is looked at in a round, whichever: rounds until something holds, or for long. */
  const roundsUntil = async (holds: () => boolean | Promise<boolean>) => {
    for (let round = 0; round < 60 && !(await holds()); round += 1) await treasury.round(signal);
    return holds();
  };
  const each = (isMeant: (sweep: Sweep) => boolean) => async () =>
    (await Promise.all(late.map(sweepsOf))).flat().every(isMeant);
  const eachIsLooked = each(({ address }) => looked.has(address));
  looked.clear();
  expect(await roundsUntil(eachIsLooked)).toBe(true);
  for (let block = 0; block < 2; block += 1) await bench.mine();
  expect(await roundsUntil(each(({ attempts }) => attempts.length === 2))).toBe(true);
  await bench.bench.mine(
    late.map((_, index) => {
      return { from: depositKey(from + index), to: depositKey(50_001).address, value: 1n };
    }),
  );
  await bench.bench.caughtUp();
  await anHourLater();
  looked.clear();
  expect(await roundsUntil(eachIsLooked)).toBe(true);
  bench.clock.ms += 4_000;
  expect(await roundsUntil(each(({ state }) => state === "frozen"))).toBe(true);
});
