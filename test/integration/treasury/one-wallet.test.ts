/** Bands of several wallets together: whatever is paid, to cold storage too, is paid by one of them. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { openRefills } from "../../../ledger/treasury/refills.js";
import { registerWallets } from "../../../ledger/wallets/wallet-registry.js";
import { createHotWallet } from "../../../ledger/wallets/wallet-lease.js";
import { acceptWithdrawals } from "../../../ledger/withdrawals/withdrawals.js";
import { ANY_REQUEST } from "../../helpers/signing.js";
import { callOf } from "../tokens/token-bench.js";
import { requestOf, WALLET } from "../../helpers/exchange/house.js";
import { ANY_SWEEP, COLD, TreasuryBench } from "./treasury-bench.js";

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
  const band = { lowUnits: 50n, targetUnits: 100n, highUnits: 500n };
  const rules = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n, coldAddress: COLD, band };
  bench.files.policy = bench.policyOf({ assets: { PLAIN: rules } });
});
afterEach(() => bench.close());

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

async function ask(amountUnits: bigint): Promise<void> {
  const customerId = parseCustomerId("alice");
  const request = requestOf({ customerId, asset: "PLAIN", amountUnits });
  const [answer] = await acceptWithdrawals(bench.worker, [request], ANY_REQUEST);
  expect(answer?.outcome).toBe("accepted");
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
