/** Bands of several wallets together: whatever is paid, to cold storage too, is paid by one of them. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import type { TreasuryBand } from "../../../../ledger/policy/policy.js";
import { openRefills } from "../../../../ledger/treasury/refills.js";
import { drainWallet, registerWallets } from "../../../../ledger/wallets/wallet-registry.js";
import { createHotWallet } from "../../../../ledger/wallets/wallet-lease.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { acceptWithdrawals } from "../../../../ledger/withdrawals/withdrawals.js";
import { ANY_REQUEST } from "../../../helpers/keys/signing.js";
import { callOf, ISSUER } from "../../tokens/token-bench.js";
import { requestOf, WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, COLD, TreasuryBench } from "../treasury-bench.js";

/** A wallet whose worker stands still. */
const SECOND = parseAddress(`0x${"5e".repeat(20)}`);

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeEach(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.mine();
  const { owner } = bench.bench.ledger;
  const word = { operator: "ann", reason: "two pay" };
  await registerWallets(owner, [{ address: SECOND, label: "second", ...word }]);
  await createHotWallet(owner, { wallet: SECOND, firstNonce: 0n });
  await owner.query(
    `UPDATE hot_wallet SET seen_balance_atoken = 0, seen_height = 1 WHERE wallet = $1`,
    [SECOND],
  );
  bench.wallets = [WALLET, SECOND];
  keep({ lowUnits: 50n, targetUnits: 100n, highUnits: 500n });
});
afterEach(() => bench.close());

function keep(band: TreasuryBand, coldAddress = COLD): void {
  const rules = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n, coldAddress, band };
  bench.files.policy = bench.policyOf({ assets: { PLAIN: rules } });
}

/** The tokens' issuer is cold storage from now on. */
function keepAtIssuer(band = { lowUnits: 50n, targetUnits: 100n, highUnits: 500n }): void {
  keep(band, parseAddress(ISSUER.address.toLowerCase()));
}

/** Somebody sends from there. */
async function sendFromCold(to: Address, units: bigint): Promise<void> {
  const issuer = ISSUER.address;
  await bench.bench.mine([
    callOf("PlainToken", "mint", [issuer, units]),
    callOf("PlainToken", "transfer", [to, units]),
  ]);
  await bench.mine();
}

/** What the wallets and alice have of the token. */
async function give(units: readonly [first: bigint, second: bigint, alice: bigint]): Promise<void> {
  const alice = await bench.bench.register("alice");
  const holders = [WALLET, SECOND, alice];
  await bench.bench.mine(
    units.map((each, index) => callOf("PlainToken", "mint", [holders[index], each])),
  );
  await bench.mine();
  await bench.mine();
  await bench.lane.runRound(signal);
}

async function ask(amountUnits: bigint): Promise<WithdrawalId> {
  const customerId = parseCustomerId("alice");
  const request = requestOf({ customerId, asset: "PLAIN", amountUnits });
  const [answer] = await acceptWithdrawals(bench.worker, [request], ANY_REQUEST);
  if (answer?.outcome !== "accepted") throw new Error(answer?.outcome);
  return answer.withdrawal.id;
}

const moves = () =>
  bench.bench.ledger.owner.query(
    `SELECT state, amount_units::text AS units FROM treasury_move ORDER BY id`,
  );

/** As so many minutes later, of moves. */
const later = (minutes: number) =>
  bench.bench.ledger.owner.query(
    `ALTER TABLE treasury_move DISABLE TRIGGER treasury_move_guard;
     UPDATE treasury_move SET created_at = created_at - interval '${minutes} minutes';
     ALTER TABLE treasury_move ENABLE TRIGGER treasury_move_guard`,
  );

it("sends of a token to cold storage what the fullest wallet has beside its open payment", async () => {
  await give([1_000n, 900n, 5n]);
  await ask(5n);
  await bench.lane.runRound(signal);
  await bench.sweeper().round(signal);
  expect(await moves()).toEqual([{ state: "open", units: "995" }]);
  await bench.rounds(4);
  expect((await moves())[0]).toEqual({ state: "arrived", units: "995" });
});

it("gives a move up that no wallet has any more, and decides it anew by what there is", async () => {
  await give([1_000n, 300n, 5n]);
  await bench.sweeper().round(signal);
  expect(await moves()).toEqual([{ state: "open", units: "1000" }]);
  const { owner } = bench.bench.ledger;
  // A payment comes first.
  await owner.query(`UPDATE withdrawal SET next_try_at = now() + interval '1 hour'`);
  await ask(5n);
  await bench.lane.runRound(signal);
  await later(4);
  await bench.sweeper().round(signal);
  await bench.sweeper().round(signal);
  expect(await moves()).toEqual([{ state: "open", units: "1000" }]);
  await later(1);
  await bench.sweeper().round(signal);
  await bench.sweeper().round(signal);
  expect(await moves()).toEqual([{ state: "void", units: "1000" }]);
  await later(5);
  await bench.rounds(4);
  expect((await moves())[1]).toEqual({ state: "arrived", units: "995" });
});

it("lets one that a wallet has wait for its worker", async () => {
  await give([1_000n, 300n, 5n]);
  await bench.sweeper().round(signal);
  await later(9);
  await bench.sweeper().round(signal);
  await bench.sweeper().round(signal);
  expect(await moves()).toEqual([{ state: "open", units: "1000" }]);
});

it("asks for a refill of one wallet where none alone has what is waited for, and moves nothing", async () => {
  await give([600n, 500n, 900n]);
  await ask(900n);
  await bench.rounds(2);
  expect(await openRefills(bench.worker)).toMatchObject([
    { asset: "PLAIN", amountUnits: 300n, wallet: WALLET },
  ]);
  await bench.bench.mine([callOf("PlainToken", "mint", [WALLET, 300n])]);
  await bench.mine();
  await bench.rounds(4);
  expect(await openRefills(bench.worker)).toEqual([]);
  expect(await bench.units(WALLET, "PLAIN")).toBe(0n);
  expect(await moves()).toEqual([]);
});

it("asks for it at another wallet once the first may be given nothing, and counts what came", async () => {
  keepAtIssuer();
  await give([600n, 500n, 900n]);
  await ask(900n);
  await bench.rounds(2);
  await sendFromCold(WALLET, 100n);
  const [first] = await openRefills(bench.worker);
  expect(first).toMatchObject({ amountUnits: 300n, cameUnits: 100n, wallet: WALLET });
  const { owner } = bench.bench.ledger;
  await drainWallet(owner, WALLET, { operator: "ann", reason: "its key has leaked" });
  // Whoever looks before the treasury does is not sent there either.
  expect(await openRefills(bench.worker)).toEqual([]);
  await bench.sweeper().round(signal);
  // 500 of 900 are there, and 100 are to be left.
  expect(await openRefills(bench.worker)).toEqual([
    { ...first, amountUnits: 600n, wallet: SECOND, wallets: [SECOND] },
  ]);
  await owner.query(`UPDATE hot_wallet SET key_held_until = now() - interval '1 second'`);
  expect(await openRefills(bench.worker)).toEqual([]);
});

it("names the wallet, and more, in a request that was for any when a large payment comes to wait", async () => {
  await give([20n, 10n, 60n]);
  await bench.sweeper().round(signal);
  const [first] = await openRefills(bench.worker);
  expect(first).toMatchObject({ amountUnits: 70n, wallet: undefined });
  const id = await ask(60n);
  await bench.sweeper().round(signal);
  const asked = await openRefills(bench.worker);
  expect(asked).toEqual([{ ...first, amountUnits: 130n, wallet: WALLET, wallets: [WALLET] }]);
  // It is taken back, and with it what was asked for it.
  await cancelWithdrawal(bench.worker, id, "not wanted any more");
  await bench.sweeper().round(signal);
  expect(await openRefills(bench.worker)).toEqual([first]);
});

it("follows what is paid meanwhile only where the request would leave the wallets below their band", async () => {
  await give([20n, 10n, 60n]);
  await bench.sweeper().round(signal);
  const amount = async () => (await openRefills(bench.worker))[0]?.amountUnits;
  expect(await amount()).toBe(70n);
  await ask(15n);
  await bench.sweeper().round(signal);
  expect(await amount()).toBe(70n);
  for (const units of [15n, 15n, 15n]) await ask(units);
  await bench.sweeper().round(signal);
  expect(await amount()).toBe(130n);
});

it("fills it by no coins that went to another wallet, which are weighed with all that is there", async () => {
  keepAtIssuer();
  await give([600n, 500n, 900n]);
  await ask(900n);
  await bench.rounds(2);
  await sendFromCold(SECOND, 300n);
  const [first] = await openRefills(bench.worker);
  expect(first).toMatchObject({ amountUnits: 300n, cameUnits: 0n, wallet: WALLET });
  await bench.sweeper().round(signal);
  expect(await openRefills(bench.worker)).toEqual([
    { ...first, amountUnits: 100n, wallet: SECOND, wallets: [SECOND] },
  ]);
  await sendFromCold(SECOND, 100n);
  expect(await openRefills(bench.worker)).toEqual([]);
  const { owner } = bench.bench.ledger;
  const requests = `SELECT state, came_units::text AS came FROM refill_request`;
  expect(await owner.query(requests)).toEqual([{ state: "filled", came: "100" }]);
});

it("shows what is for any wallet with those that have a worker with their key, and not without one", async () => {
  await give([20n, 10n, 0n]);
  await bench.sweeper().round(signal);
  const [first] = await openRefills(bench.worker);
  expect(first).toMatchObject({ wallet: undefined, wallets: [WALLET, SECOND] });
  const { owner } = bench.bench.ledger;
  const end = (wallet: Address) =>
    owner.query(
      `UPDATE hot_wallet SET key_held_until = now() - interval '1 second' WHERE wallet = $1`,
      [wallet],
    );
  await end(WALLET);
  expect(await openRefills(bench.worker)).toEqual([{ ...first, wallets: [SECOND] }]);
  await end(SECOND);
  expect(await openRefills(bench.worker)).toEqual([]);
  await bench.sweeper().round(signal);
  expect(await openRefills(bench.worker)).toEqual([first]);
});

describe("while the worker of one wallet is away", () => {
  /** Its word that it holds the key has ended by then. */
  async function away(wallet: Address, forTime: string): Promise<void> {
    bench.keyless = [wallet];
    await bench.bench.ledger.owner.query(
      `UPDATE hot_wallet SET key_held_until = clock_timestamp() - $1::interval WHERE wallet = $2`,
      [forTime, wallet],
    );
  }

  it("asks nobody for the coins that it has, until that has lasted", async () => {
    await give([40n, 60n, 0n]);
    await bench.holdKeys();
    await away(SECOND, "1 s");
    await bench.rounds(2);
    expect(await openRefills(bench.worker)).toEqual([]);
    await away(SECOND, "14 min 50 s");
    await bench.sweeper().round(signal);
    expect(await openRefills(bench.worker)).toEqual([]);
    await away(SECOND, "15 min");
    await bench.sweeper().round(signal);
    expect(await openRefills(bench.worker)).toMatchObject([{ amountUnits: 60n }]);
  });

  it("waits for none who said it by a clock that went back since", async () => {
    await give([40n, 60n, 0n]);
    await bench.holdKeys();
    await away(SECOND, "-1 day");
    await bench.sweeper().round(signal);
    expect(await openRefills(bench.worker)).toMatchObject([
      { amountUnits: 60n, wallet: undefined },
    ]);
  });

  it("waits for none whose wallet is given nothing anyway", async () => {
    await give([20n, 50n, 0n]);
    await bench.holdKeys();
    const { owner } = bench.bench.ledger;
    await drainWallet(owner, SECOND, { operator: "ann", reason: "its key is lost" });
    await away(SECOND, "1 s");
    await bench.sweeper().round(signal);
    expect(await openRefills(bench.worker)).toMatchObject([{ amountUnits: 80n }]);
  });

  it("raises no request, nor names a wallet in it, but lowers it", async () => {
    await give([20n, 10n, 40n]);
    await bench.sweeper().round(signal);
    const [first] = await openRefills(bench.worker);
    expect(first).toMatchObject({ amountUnits: 70n, wallet: undefined });
    await away(WALLET, "1 s");
    const id = await ask(40n);
    await bench.sweeper().round(signal);
    const here = { ...first, wallets: [SECOND] };
    expect(await openRefills(bench.worker)).toEqual([here]);
    await cancelWithdrawal(bench.worker, id, "not wanted any more");
    await bench.bench.mine([callOf("PlainToken", "mint", [SECOND, 35n])]);
    await bench.mine();
    await bench.sweeper().round(signal);
    expect(await openRefills(bench.worker)).toEqual([{ ...here, amountUnits: 55n }]);
  });
});

describe("between the low end of the band and its target", () => {
  beforeEach(() => keep({ lowUnits: 10n, targetUnits: 80n, highUnits: 200n }));

  it("asks no more for a payment that is gone", async () => {
    await give([30n, 30n, 40n]);
    const id = await ask(40n);
    await bench.sweeper().round(signal);
    expect(await openRefills(bench.worker)).toMatchObject([{ amountUnits: 10n, wallet: WALLET }]);
    await cancelWithdrawal(bench.worker, id, "not wanted any more");
    await bench.rounds(2);
    const { owner } = bench.bench.ledger;
    expect(await owner.query(`SELECT state FROM refill_request`)).toEqual([{ state: "withdrawn" }]);
  });

  it("goes on asking for what low wallets are to have, and for no more than that", async () => {
    keepAtIssuer({ lowUnits: 10n, targetUnits: 80n, highUnits: 200n });
    await give([3n, 3n, 5n]);
    await bench.sweeper().round(signal);
    const [asked] = await openRefills(bench.worker);
    expect(asked).toMatchObject({ amountUnits: 74n, wallet: undefined });
    await bench.bench.mine([callOf("PlainToken", "mint", [WALLET, 20n])]);
    await bench.rounds(3);
    expect(await openRefills(bench.worker)).toEqual([{ ...asked, amountUnits: 54n }]);
    await sendFromCold(SECOND, 30n);
    await bench.bench.mine([callOf("PlainToken", "mint", [WALLET, 5n])]);
    await bench.rounds(3);
    expect(await openRefills(bench.worker)).toEqual([
      { ...asked, amountUnits: 49n, cameUnits: 30n },
    ]);
    // What is paid meanwhile raises nothing.
    const id = await ask(5n);
    await bench.sweeper().round(signal);
    await cancelWithdrawal(bench.worker, id, "not wanted any more");
    expect(await openRefills(bench.worker)).toMatchObject([{ amountUnits: 49n }]);
  });
});
