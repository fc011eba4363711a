/**
 * A treasury that stood still in the middle of a round, as a frozen process or a machine that is moved
 * does, while others went on: what it had read counts no more.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { type Sweep, voidSweep } from "../../../../ledger/treasury/sweeps.js";
import {
  drainWallet,
  reactivateWallet,
  registerWallets,
  retireWallet,
} from "../../../../ledger/wallets/wallet-registry.js";
import { freezeSigning, releaseSigning } from "../../../../ledger/requests/signing-freeze.js";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import type { Sweeper } from "../../../../withdrawal-worker/treasury/sweeper.js";
import { standing } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";
import { callOf, depositKey } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, COLD, TreasuryBench } from "../treasury-bench.js";

const SECOND = parseAddress(depositKey(61_000).address.toLowerCase());

const AMOUNT = 10n ** 16n;

const word = { operator: "ann", reason: "rotation" };

const { signal } = new AbortController();

let bench: TreasuryBench;
let registered = 0;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await registerWallets(bench.bench.ledger.owner, [{ address: SECOND, label: "second", ...word }]);
  bench.wallets = [WALLET, SECOND];
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

afterEach(async () => {
  const { owner } = bench.bench.ledger;
  bench.files.policy = bench.policyOf({});
  await releaseSigning(owner, WALLET);
  await drainWallet(owner, WALLET, word).catch(() => undefined);
  await reactivateWallet(owner, WALLET, word);
  await bench.rounds(4);
});

/** A new customer's address with coins, booked. */
async function deposit(): Promise<Address> {
  const address = await bench.bench.register(`customer-${registered}`);
  registered += 1;
  await bench.bench.mine([{ to: address, value: AMOUNT }]);
  await bench.mine();
  return address;
}

/** A new customer's address with units of a token, and coins for their way where some are given. */
async function tokenDeposit(units: bigint, valueAtoken: bigint): Promise<Address> {
  const address = await bench.bench.register(`customer-${registered}`);
  registered += 1;
  const coins = valueAtoken === 0n ? [] : [{ to: address, value: valueAtoken }];
  await bench.bench.mine([callOf("PlainToken", "mint", [address, units]), ...coins]);
  await bench.mine();
  return address;
}

async function sweepsOf(address: Address): Promise<readonly Sweep[]> {
  return (await bench.sweeps()).filter((sweep) => sweep.address === address);
}

/** A treasury that stands still behind its look at the chain while something happens. */
function stillBehindView(happens: () => Promise<unknown>): Sweeper {
  const view: TreasuryBench["node"]["view"] = async (wallet, options) => {
    const answer = await bench.node.view(wallet, options);
    await happens();
    return answer;
  };
  return bench.sweeper({ node: { ...bench.node, view } });
}

/** @param height where somebody has looked and found nothing */
async function retire(height = bench.bench.chain.chain.view.head().height): Promise<void> {
  const { owner } = bench.bench.ledger;
  await drainWallet(owner, WALLET, word);
  const held = { balanceAtoken: 0n, tokens: [], height, dustAtoken: 0n, force: false };
  await retireWallet(owner, WALLET, { ...word, ...held });
}

describe("a treasury that stood still", () => {
  it("signs nothing towards a wallet that was retired meanwhile", async () => {
    const address = await deposit();
    await bench.sweeper().round(signal);
    expect(await sweepsOf(address)).toMatchObject([{ state: "ready", wallet: WALLET }]);
    const before = await bench.units(WALLET);
    await stillBehindView(() => retire()).round(signal);
    await bench.rounds(3);
    expect(await bench.units(WALLET)).toBe(before);
    expect(await sweepsOf(address)).toMatchObject([{ state: "settled", wallet: SECOND }]);
  });

  it("sends nothing towards a wallet that was frozen meanwhile", async () => {
    const address = await deposit();
    const mute = bench.sweeper({ node: { ...bench.node, send: async () => [] } });
    for (let round = 0; round < 2; round += 1) await mute.round(signal);
    expect(await sweepsOf(address)).toMatchObject([{ state: "signed", wallet: WALLET }]);
    const before = await bench.units(WALLET);
    const freeze = () => freezeSigning(bench.bench.ledger.owner, WALLET, "its key has leaked");
    await stillBehindView(freeze).round(signal);
    await bench.rounds(3);
    expect(await bench.units(WALLET)).toBe(before);
    expect(await sweepsOf(address)).toMatchObject([{ state: "settled", wallet: SECOND }]);
  });

  it("asks for no gas for a sweep that was given up meanwhile", async () => {
    const address = await tokenDeposit(5n, 0n);
    await bench.sweeper().round(signal);
    const [sweep] = await sweepsOf(address);
    expect(sweep).toMatchObject({ state: "needs-gas", topUp: "none" });
    let isOver = false;
    const { rpc } = bench.bench;
    const batch: typeof rpc.batch = async (calls, options) => {
      const answers = await rpc.batch(calls, options);
      if (isOver) return answers;
      isOver = true;
      await voidSweep(bench.worker, sweep?.id ?? 0, { reason: "dear", delayMs: 0 });
      await bench.sweeper().round(signal);
      return answers;
    };
    const still = { request: rpc.request.bind(rpc), batch, close: () => undefined };
    await bench.sweeper({ rpc: still }).round(signal);
    await bench.rounds(6);
    expect((await sweepsOf(address)).map(({ state, topUp }) => [state, topUp])).toEqual([
      ["void", "none"],
      ["settled", "arrived"],
    ]);
  });

  it("asks for no gas for a sweep that is given up while it waits for that commit", async () => {
    const address = await tokenDeposit(5n, 0n);
    await bench.sweeper().round(signal);
    const [sweep] = await sweepsOf(address);
    const { owner } = bench.bench.ledger;
    let asking: Promise<unknown> | undefined;
    let hasAsked = false;
    await standing(owner, async (tx) => {
      const inside: SqlDatabase = {
        ...owner,
        query: (text, values) => tx.query(text, values),
        transaction: (work) => work(tx),
      };
      await voidSweep(inside, sweep?.id ?? 0, { reason: "dear", delayMs: 0 });
      asking = bench
        .sweeper()
        .round(signal)
        .finally(() => (hasAsked = true));
      const waiting = `SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
                        WHERE NOT l.granted AND a.datname = current_database()`;
      await until(async () => hasAsked || (await owner.query(waiting)).length > 0, {
        timeoutMs: 20_000,
        what: "the treasury waits for who gives the sweep up",
      });
    });
    await asking;
    await bench.rounds(6);
    expect((await sweepsOf(address)).map(({ state, topUp }) => [state, topUp])).toEqual([
      ["void", "none"],
      ["settled", "arrived"],
    ]);
  });

  it("begins no sweep of units that another one has swept meanwhile, and asks for no gas", async () => {
    const address = await tokenDeposit(5n, 0n);
    let isOver = false;
    const estimate: TreasuryBench["node"]["estimate"] = async (wallet, payments, options) => {
      const answer = await bench.node.estimate(wallet, payments, options);
      if (isOver || wallet !== address) return answer;
      isOver = true;
      await bench.rounds(8);
      return answer;
    };
    await bench.sweeper({ node: { ...bench.node, estimate } }).round(signal);
    expect(isOver).toBe(true);
    await bench.rounds(6);
    expect((await sweepsOf(address)).map(({ state }) => state)).toEqual(["settled"]);
    expect(await bench.nonce(address)).toBe(1n);
  });

  it("moves nothing to cold storage that has been moved meanwhile", async () => {
    await bench.bench.mine([callOf("PlainToken", "mint", [WALLET, 1_000n])]);
    await bench.mine();
    const held = (await bench.units(WALLET, "PLAIN")) + (await bench.units(SECOND, "PLAIN"));
    const targetUnits = held - 300n;
    const band = { lowUnits: 0n, targetUnits, highUnits: targetUnits };
    bench.files.policy = bench.policyOf({
      assets: { PLAIN: { ...ANY_SWEEP, coldAddress: COLD, band } },
    });
    const client = createEvmClient(bench.bench.rpc);
    let isOver = false;
    const evm: typeof client = {
      ...client,
      getTransactionCount: client.getTransactionCount.bind(client),
      async tokenBalances(reads, options) {
        const answer = await client.tokenBalances(reads, options);
        if (isOver || !reads.some(({ account }) => account === WALLET)) return answer;
        isOver = true;
        await bench.rounds(4);
        return answer;
      },
    };
    await bench.lane.runRound(signal);
    await bench.bench.ledger.owner.query(
      `INSERT INTO hot_wallet (wallet, next_nonce, seen_balance_atoken, seen_height)
       VALUES ($1, 0, 0, 1) ON CONFLICT (wallet) DO UPDATE
          SET seen_balance_atoken = 0, seen_height = 1`,
      [SECOND],
    );
    await bench.sweeper({ evm }).round(signal);
    expect(isOver).toBe(true);
    await bench.rounds(3);
    expect(await bench.units(COLD, "PLAIN")).toBe(300n);
  });
});

it("keeps a wallet whose sweep was mined behind the block at which it was looked at", async () => {
  const address = await deposit();
  for (let round = 0; round < 2; round += 1) await bench.sweeper().round(signal);
  const { height } = bench.bench.chain.chain.view.head();
  await bench.mine();
  expect(await sweepsOf(address)).toMatchObject([{ state: "settled", blockNumber: height + 1 }]);
  await expect(retire(height)).rejects.toMatchObject({ code: "WALLET_NOT_EMPTY" });
});

it("brings tokens to a wallet that has given all of its own away", async () => {
  await bench.bench.mine([callOf("PlainToken", "mint", [WALLET, 100n])]);
  await bench.mine();
  const before = await bench.units(COLD, "PLAIN");
  const addresses = [await tokenDeposit(7n, 10n ** 15n), await tokenDeposit(8n, 10n ** 15n)];
  const band = { lowUnits: 0n, targetUnits: 0n, highUnits: 0n };
  bench.files.policy = bench.policyOf({
    assets: { PLAIN: { ...ANY_SWEEP, coldAddress: COLD, band } },
  });
  await bench.rounds(2);
  expect(await bench.units(COLD, "PLAIN")).toBeGreaterThan(before);
  await bench.rounds(1);
  for (const address of addresses) {
    expect(await sweepsOf(address)).toMatchObject([{ state: "settled" }]);
  }
});
