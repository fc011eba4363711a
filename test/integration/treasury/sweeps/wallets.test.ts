/**
 * Sweeps and the wallets that they go to: one that is drained, retired or frozen meanwhile is given
 * nothing more, and no sweep waits for it for ever.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { openRefills } from "../../../../ledger/treasury/refills.js";
import {
  findSweep,
  freezeSweep,
  releaseSweep,
  type Sweep,
} from "../../../../ledger/treasury/sweeps.js";
import {
  drainWallet,
  reactivateWallet,
  registerWallets,
  retireWallet,
} from "../../../../ledger/wallets/wallet-registry.js";
import { freezeSigning, releaseSigning } from "../../../../ledger/requests/signing-freeze.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { NowhereToSweep } from "../../../../withdrawal-worker/treasury/nowhere-to-sweep.js";
import type { Sweeper } from "../../../../withdrawal-worker/treasury/sweeper.js";
import { callOf, depositKey } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, COLD, PRICE, TreasuryBench } from "../treasury-bench.js";

const SECOND = parseAddress(depositKey(60_000).address.toLowerCase());

const AMOUNT = 10n ** 16n;
const TRANSFER_FEE = 21_000n * PRICE;

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

async function sweepOf(address: Address): Promise<Sweep | undefined> {
  return (await bench.sweeps()).find((sweep) => sweep.address === address);
}

/** A treasury whose node takes nothing: what it signs is stored, and never sent. */
function mute(): Sweeper {
  return bench.sweeper({ node: { ...bench.node, send: async () => [] } });
}

const drain = () => drainWallet(bench.bench.ledger.owner, WALLET, word);

const retire = (force: boolean) =>
  retireWallet(bench.bench.ledger.owner, WALLET, {
    ...word,
    balanceAtoken: 0n,
    tokens: [],
    height: bench.bench.chain.chain.view.head().height,
    dustAtoken: 0n,
    force,
  });

/** Nothing came to the first wallet, and the second one has it. */
async function expectTakenBySecond(address: Address, rounds = 4): Promise<void> {
  const before = [await bench.units(WALLET), await bench.units(SECOND)] as const;
  await bench.rounds(rounds);
  const sweep = await sweepOf(address);
  expect([sweep?.state, sweep?.wallet]).toEqual(["settled", SECOND]);
  expect([await bench.units(address), await bench.nonce(address)]).toEqual([0n, 1n]);
  expect(await bench.units(WALLET)).toBe(before[0]);
  const last = sweep?.attempts.at(-1)?.gasPriceAtoken ?? 0n;
  expect(await bench.units(SECOND)).toBe(before[1] + AMOUNT - 21_000n * last);
}

describe("a sweep", () => {
  it("that is not signed yet goes to another wallet when its own is drained", async () => {
    const address = await deposit();
    await bench.sweeper().round(signal);
    expect(await sweepOf(address)).toMatchObject({ state: "ready", wallet: WALLET });
    await drain();
    await expectTakenBySecond(address);
    expect((await sweepOf(address))?.attempts).toHaveLength(1);
    expect(await bench.units(address)).toBe(0n);
  });

  it("whose bytes a pool lost goes to another wallet when its own is retired", async () => {
    const address = await deposit();
    for (let round = 0; round < 2; round += 1) await mute().round(signal);
    expect(await sweepOf(address)).toMatchObject({ state: "signed", wallet: WALLET });
    await drain();
    await expect(retire(false)).rejects.toMatchObject({
      code: "WALLET_NOT_EMPTY",
      details: { openSweeps: 1 },
    });
    await retire(true);
    await expectTakenBySecond(address);
    expect((await sweepOf(address))?.attempts.map(({ wallet }) => wallet)).toEqual([
      WALLET,
      SECOND,
    ]);
  });

  it("of a token goes to another wallet when its own is frozen", async () => {
    const address = await bench.bench.register("holder");
    await bench.bench.mine([
      callOf("PlainToken", "mint", [address, 5n]),
      { to: address, value: 10n ** 15n },
    ]);
    await bench.mine();
    for (let round = 0; round < 2; round += 1) await mute().round(signal);
    expect(await sweepOf(address)).toMatchObject({ asset: "PLAIN", state: "signed" });
    await freezeSigning(bench.bench.ledger.owner, WALLET, "its key has leaked");
    await bench.rounds(5);
    expect(await bench.units(SECOND, "PLAIN")).toBe(5n);
    expect(await bench.units(WALLET, "PLAIN")).toBe(0n);
  });

  it("goes where it was signed for before when that wallet is the only one again, and no price is left", async () => {
    const address = await deposit();
    const { owner } = bench.bench.ledger;
    // What is signed is at the cap: for a wallet that has it the bytes would be the same.
    const gas = { ...bench.settings.gas, priceCapAtoken: PRICE };
    const settings = { ...bench.settings, gas };
    const capped = bench.sweeper({ settings, node: { ...bench.node, send: async () => [] } });
    for (let round = 0; round < 2; round += 1) await capped.round(signal);
    await freezeSigning(owner, WALLET, "somebody looks");
    await capped.round(signal);
    expect((await sweepOf(address))?.attempts.map(({ wallet }) => wallet)).toEqual([
      WALLET,
      SECOND,
    ]);
    await freezeSigning(owner, SECOND, "its key has leaked");
    await releaseSigning(owner, WALLET);
    await bench.rounds(3, bench.sweeper({ settings }));
    await releaseSigning(owner, SECOND);
    expect(await sweepOf(address)).toMatchObject({ state: "settled", wallet: WALLET });
    expect(await bench.units(address)).toBe(0n);
  });

  it("is sent to nobody while no wallet may be given coins, and as it was signed afterwards", async () => {
    const address = await deposit();
    for (let round = 0; round < 2; round += 1) await mute().round(signal);
    bench.wallets = [WALLET];
    await freezeSigning(bench.bench.ledger.owner, WALLET, "somebody looks");
    const before = await bench.units(WALLET);
    await bench.rounds(3);
    expect(await bench.nonce(address)).toBe(0n);
    await releaseSigning(bench.bench.ledger.owner, WALLET);
    await bench.rounds(3);
    bench.wallets = [WALLET, SECOND];
    const sweep = await sweepOf(address);
    expect([sweep?.state, sweep?.attempts.length]).toEqual(["settled", 1]);
    expect(await bench.units(WALLET)).toBe(before + AMOUNT - TRANSFER_FEE);
  });

  it("is not sent when sending is stopped while its round goes on", async () => {
    const address = await deposit();
    for (let round = 0; round < 2; round += 1) await mute().round(signal);
    const untouched = bench.killSwitch;
    let sent = 0;
    const sweeper = bench.sweeper({
      node: {
        ...bench.node,
        view: async (wallet, options) => {
          const view = await bench.node.view(wallet, options);
          const level = "stop-broadcast" as const;
          bench.killSwitch = { level, reason: "drill", by: "test", at: undefined };
          return view;
        },
        send: async () => {
          sent += 1;
          return [];
        },
      },
    });
    await sweeper.round(signal);
    bench.killSwitch = untouched;
    expect([sent, (await sweepOf(address))?.state]).toEqual([0, "signed"]);
  });

  it("that froze before it was signed is signed when its nonce is free after all", async () => {
    const address = await deposit();
    await bench.sweeper().round(signal);
    const id = (await sweepOf(address))?.id ?? 0;
    expect(await freezeSweep(bench.worker, id, "a node showed another nonce")).toBe(true);
    await bench.rounds(2);
    expect(await findSweep(bench.worker, id)).toMatchObject({ state: "frozen", attempts: [] });
    await releaseSweep(bench.bench.ledger.owner, id, { isNonceUsed: false, reason: "it is free" });
    await bench.rounds(3);
    expect(await findSweep(bench.worker, id)).toMatchObject({ state: "settled" });
    expect(await bench.units(address)).toBe(0n);
  });

  it("that is frozen takes nobody's place", async () => {
    const frozen = await deposit();
    await bench.sweeper().round(signal);
    const id = (await sweepOf(frozen))?.id ?? 0;
    await freezeSweep(bench.worker, id, "drill");
    const settings = { ...bench.settings, sweepsAtOnce: 1 };
    const others = [await deposit(), await deposit()];
    await bench.rounds(7, bench.sweeper({ settings }));
    for (const address of others) expect(await bench.units(address)).toBe(0n);
    expect(await bench.nonce(frozen)).toBe(0n);
    await releaseSweep(bench.bench.ledger.owner, id, { isNonceUsed: false, reason: "drill" });
  });
});

/** A treasury that looks whether it has a wallet to sweep to, with what its log says. */
function nowhereOf(wallets: () => readonly Address[]) {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const nowhere = new NowhereToSweep({
    database: bench.worker,
    wallets,
    policy: { current: async () => bench.files.policy },
    clock: bench.clock,
    log: createLogger({ component: "test", destination }),
  });
  return { nowhere, lines };
}

it("is told once, and is no round of work, where none that takes coins is of the treasury's home", async () => {
  let known: readonly Address[] = [WALLET];
  const { nowhere, lines } = nowhereOf(() => known);
  expect(await nowhere.look()).toBe(false);
  await drain();
  const address = await deposit();
  await bench.rounds(2, bench.sweeper({ wallets: () => known }));
  expect(await sweepOf(address)).toBeUndefined();
  expect([await nowhere.look(), await nowhere.look()]).toEqual([true, true]);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(SECOND);
  known = [WALLET, SECOND];
  expect(await nowhere.look()).toBe(false);
});

describe("a wallet whose key no worker holds", () => {
  /** No lane runs here: it would say that it has the first one's. */
  async function roundsOfTreasury(count: number): Promise<void> {
    for (let round = 0; round < count; round += 1) {
      bench.clock.ms += 3_000;
      await bench.sweeper().round(signal);
      await bench.mine();
    }
  }

  const keysHeld = (until: string, wallets: readonly Address[]) =>
    bench.bench.ledger.owner.query(
      `UPDATE hot_wallet SET key_held_until = clock_timestamp() + $1::interval
        WHERE wallet = ANY ($2::text[])`,
      [until, wallets],
    );

  afterEach(() => {
    bench.keyless = [];
    bench.files.policy = bench.policyOf({});
  });

  it.each([
    ["has let the time go by", "-1 s"],
    ["said it by a clock that went back since", "3 min"],
  ])("is given nothing where who had it %s, though it is the first", async (_what, until) => {
    bench.keyless = [WALLET];
    await bench.holdKeys();
    await keysHeld(until, [WALLET]);
    const address = await deposit();
    const before = await bench.units(WALLET);
    await roundsOfTreasury(4);
    expect(await sweepOf(address)).toMatchObject({ state: "settled", wallet: SECOND });
    expect(await bench.units(WALLET)).toBe(before);
  });

  it("gets no bytes that were signed for it before, but others do", async () => {
    const address = await deposit();
    for (let round = 0; round < 2; round += 1) await mute().round(signal);
    expect(await sweepOf(address)).toMatchObject({ state: "signed", wallet: WALLET });
    bench.keyless = [WALLET];
    await keysHeld("-1 s", [WALLET]);
    await roundsOfTreasury(3);
    expect(await sweepOf(address)).toMatchObject({ state: "settled", wallet: SECOND });
  });

  it("is named where no other takes coins either: nothing is signed, nor given gas", async () => {
    const holder = await bench.bench.register("gasless");
    await bench.bench.mine([callOf("PlainToken", "mint", [holder, 5n])]);
    await bench.mine();
    await mute().round(signal);
    expect(await sweepOf(holder)).toMatchObject({ state: "needs-gas" });
    const { nowhere, lines } = nowhereOf(() => bench.wallets);
    expect(await nowhere.look()).toBe(false);
    bench.keyless = [WALLET, SECOND];
    await keysHeld("-1 s", [WALLET, SECOND]);
    const address = await deposit();
    await roundsOfTreasury(3);
    expect(await sweepOf(address)).toBeUndefined();
    const moves = await bench.worker.query(
      `SELECT 1 FROM treasury_move m JOIN sweep s ON s.id = m.sweep_id WHERE s.address = $1`,
      [holder],
    );
    expect([moves, await bench.units(address)]).toEqual([[], AMOUNT]);
    // A worker that starts has some time to say which keys it has.
    expect([await nowhere.look(), lines]).toEqual([true, []]);
    bench.clock.ms += 30_000;
    expect([await nowhere.look(), await nowhere.look()]).toEqual([true, true]);
    expect(lines).toHaveLength(1);
    for (const wallet of [WALLET, SECOND]) expect(lines[0]).toContain(wallet);
    expect(lines[0]).toContain("no worker says that it holds the key");
    bench.keyless = [];
    await bench.holdKeys();
    expect(await nowhere.look()).toBe(false);
    await bench.rounds(6);
    expect(await bench.units(address)).toBe(0n);
  });

  it("has nothing that the band counts", async () => {
    await bench.holdKeys();
    await bench.bench.ledger.owner.query(
      `UPDATE hot_wallet SET seen_balance_atoken = 0, seen_height = 1 WHERE wallet = $1`,
      [SECOND],
    );
    await bench.bench.mine([
      callOf("PlainToken", "mint", [WALLET, 1_000n]),
      callOf("PlainToken", "mint", [SECOND, 100n]),
    ]);
    await bench.mine();
    const units = await bench.units(SECOND, "PLAIN");
    const band = { lowUnits: 500n, targetUnits: 500n, highUnits: 600n };
    bench.files.policy = bench.policyOf({
      assets: { PLAIN: { ...ANY_SWEEP, coldAddress: COLD, band } },
    });
    bench.keyless = [WALLET];
    await keysHeld("-15 min", [WALLET]);
    await bench.sweeper().round(signal);
    expect(await openRefills(bench.worker)).toMatchObject([
      { asset: "PLAIN", amountUnits: 500n - units },
    ]);
  });
});
