/** Transfers that their token refuses: of everybody, of one hot wallet, of one destination. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { keccak256 } from "../../../chain/hashes.js";
import type { Hex } from "../../../chain/hex.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { type LedgerDatabase, openLedger } from "../../../ledger/database.js";
import {
  acceptWithdrawals,
  findWithdrawal,
  type Withdrawal,
} from "../../../ledger/withdrawals/withdrawals.js";
import type { LaneSettings } from "../../../withdrawal-worker/lane/lane-context.js";
import { MAX_LEASE_MS } from "../../../ledger/lease.js";
import { createLaneGuard } from "../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../withdrawal-worker/lane/lane-ledger.js";
import { Lane } from "../../../withdrawal-worker/lane/lane.js";
import type { PaymentEstimate } from "../../../withdrawal-worker/lane/wallet-node.js";
import type { EstimateMeaning } from "../../../withdrawal-worker/withdrawal-state.js";
import {
  freshAddress,
  House,
  requestOf,
  WALLET,
  WALLET_KEY,
} from "../../helpers/exchange/house.js";
import { createPatientNode } from "../../helpers/exchange/patient-node.js";
import { registerTestWallets, roleUrl, silentLog } from "../../helpers/services/ledger.js";
import { ANY_REQUEST, laneRules } from "../../helpers/keys/signing.js";
import { PATIENCE_MS, until } from "../../helpers/until.js";
import { callOf, TokenBench, TOKENS } from "./token-bench.js";

const { signal } = new AbortController();

const SECOND_KEY = keccak256(Buffer.from("second hot wallet, which the issuer knows nothing of"));
const SECOND = privateKeyToAddress(SECOND_KEY);
const BARE_KEY = keccak256(Buffer.from("hot wallet that has coins alone"));
const BARE = privateKeyToAddress(BARE_KEY);

let bench: TokenBench;
let house: House;
let worker: LedgerDatabase;
/** What the lanes sent since the last block. */
let sent: Hex[] = [];
/** Recipients that the first lane's node was asked about, by exchange. */
let asked: (Address | undefined)[][] = [];
/** What the node says of a wallet's transfers to itself; undefined where it is asked. */
let toItself: EstimateMeaning | undefined;

beforeAll(async () => {
  bench = await TokenBench.open();
  house = await House.open();
  const alice = await bench.register("alice");
  await registerTestWallets(bench.database, SECOND, BARE);
  await bench.watch();
  await bench.deploy();
  await bench.mine([
    ...[WALLET, SECOND, alice].map((to) => callOf("MoodyToken", "mint", [to, 10_000n])),
    ...[WALLET, SECOND, BARE].map((to) => ({ to, value: 10n ** 18n })),
  ]);
  await bench.mine([]);
  await bench.mine([]);
  await bench.caughtUp();
  const identity = { chainId: 6940n, genesisHash: genesisHash() };
  worker = await openLedger({
    url: roleUrl(bench.ledger.ownerUrl, "worker"),
    log: silentLog,
    signal,
    identity,
  });
});

afterAll(async () => {
  await worker.close();
  await house.close();
  await bench.close();
});

beforeEach(() => {
  asked = [];
  toItself = undefined;
});

afterEach(() => mood(0n));

const genesisHash = () => bench.chain.chain.view.genesis().block.hash;

/** What the token does from the next block on; an address has it blacklisted. */
const mood = (one: bigint | Address) =>
  bench.mine([callOf("MoodyToken", "setMood", [BigInt(one)])]);

/** A lane of the bench's ledger and chain; each of a wallet has the same lease. */
function laneOf(privateKey: Uint8Array, given: Partial<LaneSettings> = {}): Lane {
  // Nothing keeps its place for others for long.
  const settings = { scanIntervalMs: 1, ...given };
  const context = house.context(settings, PATIENCE_MS, privateKey);
  const wallet = privateKeyToAddress(privateKey);
  const node = createPatientNode(bench.rpc, { chainId: 6940n, genesisHash: genesisHash() });
  const { gas } = context.settings;
  const isFaked = ({ transfer }: PaymentEstimate) =>
    transfer?.to === wallet ? toItself : undefined;
  return new Lane(
    {
      ...context,
      ...laneRules({
        privateKey,
        chainId: 6940n,
        limits: { gasPriceCapAtoken: gas.priceCapAtoken, gasLimitMax: gas.limitMax },
        sql: worker,
        contractOf: (asset) => TOKENS.find(({ symbol }) => symbol === asset)?.contractAddress,
      }),
      ledger: createLaneLedger(worker),
      guard: createLaneGuard({ database: worker, wallet, log: silentLog }),
      node: {
        ...node,
        estimate: async (payer, payments, options) => {
          if (payer === WALLET) asked.push(payments.map(({ transfer }) => transfer?.to));
          const meanings = await node.estimate(payer, payments, options);
          return meanings.map((meaning, index) => {
            const payment = payments[index];
            return (payment && isFaked(payment)) ?? meaning;
          });
        },
        send: async (raws, options) => {
          sent.push(...raws);
          return node.send(raws, options);
        },
      },
    },
    wallet,
  );
}

async function accept(amountUnits: bigint): Promise<Withdrawal> {
  const request = requestOf({ asset: "MOODY", amountUnits, destination: freshAddress() });
  const [outcome] = await acceptWithdrawals(worker, [request], ANY_REQUEST);
  if (outcome?.outcome !== "accepted") throw new Error(JSON.stringify(outcome));
  return outcome.withdrawal;
}

async function read({ id }: Withdrawal): Promise<Withdrawal> {
  const found = await findWithdrawal(worker, id);
  if (found === undefined) throw new Error("it is gone");
  return found;
}

const hurry = () =>
  bench.ledger.owner.query(`UPDATE withdrawal SET next_try_at = now() WHERE status = 'accepted'`);

/** A second passes for it, unless it has ended. */
const age = ({ id }: Withdrawal) =>
  bench.ledger.owner.query(
    `UPDATE withdrawal SET next_try_at = next_try_at - interval '1 s'
      WHERE id = $1 AND status = 'accepted'`,
    [id],
  );

async function mineSent(): Promise<void> {
  const raws = [...new Set(sent)];
  sent = [];
  await bench.mine([], raws);
  await bench.caughtUp();
}

/** Lets the second wallet be one that pays, and pay nothing. */
const standBy = () => laneOf(SECOND_KEY, { leaseMs: MAX_LEASE_MS }).runRound(signal);

async function settles(lane: Lane, withdrawal: Withdrawal): Promise<Withdrawal> {
  await until(
    async () => {
      house.clock.ms += 3_000;
      await hurry();
      await lane.runRound(signal);
      await mineSent();
      return (await read(withdrawal)).status === "settled";
    },
    { timeoutMs: 60_000, what: `${withdrawal.id} is settled` },
  );
  return read(withdrawal);
}

describe("a token that refuses", () => {
  it("everybody fails payouts that no other wallet may pay", async () => {
    await mood(WALLET);
    const refused = await accept(30n);
    await laneOf(WALLET_KEY).runRound(signal);
    expect(await read(refused)).toMatchObject({
      status: "failed",
      reason: "the token refuses: execution reverted: account is blacklisted",
    });
  });

  it("everybody makes payouts wait where there are other wallets, until it goes on", async () => {
    // By an answer, and by reverting, as one that has the payer blacklisted.
    for (const [how, words] of [
      [1n, "the token answers that it does not transfer"],
      [WALLET, "execution reverted: account is blacklisted"],
    ] as const) {
      await mood(how);
      await standBy();
      const lane = laneOf(WALLET_KEY);
      const waiting = await accept(30n);
      for (let round = 0; round < 3; round += 1) {
        house.clock.ms += 3_000;
        await hurry();
        await lane.runRound(signal);
      }
      const { status, reason } = await read(waiting);
      expect({ status, reason }).toEqual({
        status: "accepted",
        reason: `waits: the token refuses: ${words}`,
      });
      await mood(0n);
      await settles(lane, waiting);
    }
  });

  it("is asked once for each amount, and only where it refused", async () => {
    const lane = laneOf(WALLET_KEY);
    const passing = await accept(10n);
    await lane.runRound(signal);
    expect(asked).toEqual([[passing.destination]]);
    await mood(WALLET);
    await standBy();
    const refused = [await accept(10n), await accept(10n), await accept(11n)];
    asked = [];
    await lane.runRound(signal);
    expect(asked).toEqual([refused.map(({ destination }) => destination), [WALLET, WALLET]]);
    await mood(0n);
    for (const each of [passing, ...refused]) await settles(lane, each);
  });

  it("one destination fails that payout alone, without a nonce", async () => {
    const [refused, other] = [await accept(30n), await accept(30n)];
    await mood(refused.destination);
    await settles(laneOf(WALLET_KEY), other);
    const found = await read(refused);
    expect(found).toMatchObject({ status: "failed", nonce: undefined });
    expect(found.reason).toBe(
      "the destination refuses: execution reverted: account is blacklisted",
    );
  });

  it.each<[string, EstimateMeaning, string]>([
    ["does not answer", { kind: "unknown", reason: "busy" }, "could not estimate it (busy)"],
    ["has too little", { kind: "no-funds" }, "free balance does not cover it"],
  ])("fails nobody while the node %s behind it", async (_, meaning, words) => {
    const refused = await accept(30n);
    await mood(refused.destination);
    toItself = meaning;
    const lane = laneOf(WALLET_KEY);
    await lane.runRound(signal);
    const { status, reason } = await read(refused);
    expect([status, reason]).toEqual(["accepted", expect.stringContaining(words)]);
    toItself = undefined;
    await hurry();
    await lane.runRound(signal);
    expect((await read(refused)).status).toBe("failed");
  });

  it("one hot wallet leaves its payouts to another one", async () => {
    await mood(WALLET);
    const first = laneOf(WALLET_KEY, { retryDelayMs: 3_600_000, scanIntervalMs: 3_600_000 });
    const second = laneOf(SECOND_KEY, { scanIntervalMs: 1_000, leaseMs: MAX_LEASE_MS });
    for (const lane of [first, second]) await lane.runRound(signal);
    const waiting = await accept(30n);
    await first.runRound(signal);
    expect(asked.at(-1)).toEqual([WALLET]);
    // It keeps its place, and the first lane does not ask again.
    const [due] = await bench.ledger.owner.query(
      `SELECT next_try_at <= now() AS "isDue" FROM withdrawal WHERE id = $1`,
      [waiting.id],
    );
    expect(due).toEqual({ isDue: true });
    await until(
      async () => {
        house.clock.ms += 3_000;
        for (const lane of [first, second]) await lane.runRound(signal);
        await mineSent();
        return (await read(waiting)).status === "settled";
      },
      { timeoutMs: 60_000, what: "the second wallet pays it" },
    );
    expect((await read(waiting)).wallet).toBe(SECOND);
    expect((await bench.reconcile()).clean).toBe(true);
  });

  it("one destination fails that payout in the end, where nobody may transfer to himself", async () => {
    await standBy();
    const stall = { repriceAfterMs: 30_000, giveUpAfterMs: 1, alarmAfterMs: 60_000 };
    const lane = laneOf(WALLET_KEY, { stall });
    const refused = await accept(30n);
    await mood(refused.destination);
    toItself = { kind: "refused-by-destination", reason: "execution reverted: to oneself" };
    const reason =
      "the token refuses: execution reverted: account is blacklisted " +
      "(of a transfer to the wallet itself: execution reverted: to oneself)";
    // Others have their time first, however old it is.
    await until(
      async () => {
        await age(refused);
        await lane.runRound(signal);
        return (await read(refused)).reason !== undefined;
      },
      { timeoutMs: 60_000, what: "it waits" },
    );
    expect(await read(refused)).toMatchObject({ status: "accepted", reason: `waits: ${reason}` });
    await settles(lane, await accept(30n));
    for (let round = 0; round < 5; round += 1) {
      await age(refused);
      await lane.runRound(signal);
    }
    expect(await read(refused)).toMatchObject({ status: "failed", reason, nonce: undefined });
  });

  it("fails nothing by what it said before, once it goes on", async () => {
    await standBy();
    await mood(WALLET);
    const stall = { repriceAfterMs: 30_000, giveUpAfterMs: 1, alarmAfterMs: 60_000 };
    const lane = laneOf(WALLET_KEY, { stall, scanIntervalMs: 1_000 });
    const waiting = await accept(30n);
    await until(
      async () => {
        await age(waiting);
        await lane.runRound(signal);
        return (await read(waiting)).reason !== undefined;
      },
      { timeoutMs: 60_000, what: "it was put off" },
    );
    // Due anew, it is asked about and left to others; then the token goes on.
    await hurry();
    await lane.runRound(signal);
    await mood(0n);
    for (let round = 0; round < 8; round += 1) {
      await age(waiting);
      await lane.runRound(signal);
    }
    await mineSent();
    await settles(lane, waiting);
  });

  it("one hot wallet is said to, and not that another one lacks its units", async () => {
    await mood(WALLET);
    const lanes = [BARE_KEY, WALLET_KEY].map((key) => laneOf(key, { scanIntervalMs: 1_000 }));
    for (const lane of lanes) await lane.runRound(signal);
    const waiting = await accept(30n);
    const reasons = new Set<string | undefined>();
    for (let round = 0; round < 20; round += 1) {
      house.clock.ms += 1_000;
      await age(waiting);
      for (const lane of lanes) await lane.runRound(signal);
      reasons.add((await read(waiting)).reason);
    }
    expect([...reasons]).toEqual([
      undefined,
      "waits: the token refuses: execution reverted: account is blacklisted",
    ]);
  });
});
