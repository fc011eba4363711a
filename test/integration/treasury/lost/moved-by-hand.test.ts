/** Moves of the treasury that somebody pays by hand, and what ends them: no word about one stops the others. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import type { Hash32 } from "../../../../chain/hex.js";
import { present } from "../../../../chain/errors.js";
import {
  BREAK,
  customerAccount,
  NATIVE_ASSET,
  TREASURY,
} from "../../../../ledger/journal/accounts.js";
import { postJournal } from "../../../../ledger/journal/journal.js";
import { toWithdrawalId, type WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { endMoves, openMove, type RefusedEnding } from "../../../../ledger/treasury/moves.js";
import { readTreasury } from "../../../../ledger/treasury/treasury-figures.js";
import { ANY_REQUEST } from "../../../helpers/keys/signing.js";
import { Desk, TOKEN, WALLET } from "../../recovery/desk.js";
import { COLD, HouseOfWallets, KEYS } from "../../recovery/histories/house-of-wallets.js";
import { ANY_SWEEP } from "../treasury-bench.js";

const WHY = ["--reason", "paid by hand"];
const REASON = [...WHY, "--operator", "ann"];
const GAS_ATOKEN = 5_000n;
const BAND = { lowUnits: 0n, targetUnits: 250n * TOKEN, highUnits: 290n * TOKEN };

let house: HouseOfWallets;
let desk: Desk;
let before: Awaited<ReturnType<typeof unitsLeft>>;

beforeEach(async () => {
  house = await HouseOfWallets.open();
  desk = house.desk;
  const rules = { ...ANY_SWEEP, coldAddress: COLD, band: BAND };
  const treasury = { topUpMaxAtoken: 10n ** 15n, assets: new Map([["TOKEN", rules]]) };
  await house.setPolicy({}, treasury);
  // A wallet that nobody has looked at may hold anything.
  await desk.work(
    1,
    KEYS.map((key) => desk.laneOf(key)),
  );
  await desk.watch();
  before = await unitsLeft();
});
afterEach(() => house.close());

interface Move {
  readonly id: WithdrawalId;
  readonly units: bigint;
  readonly to: Address;
}

/** Those that are open. */
async function openMoves(): Promise<Move[]> {
  const rows = await desk.database.query<{ id: string; units: string; to: Address }>(
    `SELECT withdrawal_id AS id, amount_units::text AS units, destination AS to
       FROM treasury_move WHERE state = 'open' ORDER BY treasury_move.id`,
  );
  return rows.map(({ id, units, to }) => ({ id: toWithdrawalId(id), units: BigInt(units), to }));
}

/** The band asks for it. */
async function askForCold(): Promise<Move> {
  await desk.watch();
  await house.treasury();
  return present((await openMoves()).at(-1), "a move to cold storage");
}

async function askForGas(customer: string): Promise<Move> {
  const { address } = await desk.register(customer);
  const [sweep] = await desk.database.query<{ id: string }>(
    `INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, state)
     VALUES ($1, 'PLAIN', $2, 1, 21000, 'needs-gas') RETURNING id::text`,
    [address, WALLET],
  );
  const gas = { kind: "top-up", sweepId: Number(sweep?.id), destination: address } as const;
  const rest = { amountUnits: GAS_ATOKEN, afterId: 0 };
  const rules = { ...ANY_REQUEST, policy: desk.files.policy };
  const refusal = await openMove(desk.workerDatabase, { ...gas, ...rest }, rules);
  expect(refusal).toBeUndefined();
  return present((await openMoves()).at(-1), "gas");
}

/** Frozen, accepted as an outflow, and taken back. */
async function payByHand(move: Move): Promise<Hash32> {
  const hash = await acceptPaid(move);
  await desk.causeway("withdrawals", "cancel", move.id, ...WHY);
  return hash;
}

/** Frozen, and accepted as an outflow. */
async function acceptPaid({ id, units, to }: Move): Promise<Hash32> {
  const payment = desk.chain.cosmosPayment(WALLET, to, units);
  desk.chain.mine([payment]);
  desk.chain.mine();
  await desk.watch();
  const { hash } = payment;
  await desk.causeway("withdrawals", "release", "--acknowledge", hash, ...WHY);
  expect((await desk.read(id)).status).toBe("frozen");
  await desk.causeway("ledger", "accept-outflow", hash, "--account", "asset:break", ...REASON);
  return hash;
}

function adjust(key: string, sides: readonly [string, string], units: bigint, ...more: string[]) {
  const [debit, credit] = sides;
  const terms = ["--key", key, "--debit", debit, "--credit", credit, "--amount-atoken", `${units}`];
  return desk.causeway("ledger", "adjust", ...terms, ...more, ...REASON);
}

/** A round of the treasury ends, and nothing is in transit, missing or the treasury's. */
async function expectEven(): Promise<void> {
  for (let round = 0; round < 2; round += 1) await desk.endMoves();
  await desk.watch();
  const { policy } = desk.files.policy;
  // No further move is begun.
  await house.setPolicy({}, { ...present(policy.treasury, "a treasury"), assets: new Map() });
  await house.treasury();
  expect([await unitsLeft(), await openMoves(), await desk.breaks()]).toEqual([before, [], ""]);
}

/** What is nobody's, missing, on its way or the treasury's; suspense has the other wallets' coins. */
function unitsLeft() {
  return desk.database.query<Record<"account" | "asset" | "units", string>>(
    `SELECT account, asset, sum(units)::text AS units FROM (
       SELECT debit AS account, asset, amount_units AS units FROM posting
       UNION ALL SELECT credit, asset, -amount_units FROM posting) AS side
      WHERE account IN ('asset:break', 'asset:in_transit', 'liability:suspense')
         OR account LIKE '%treasury%'
      GROUP BY account, asset HAVING sum(units) <> 0 ORDER BY account, asset`,
  );
}

async function coldUnits(): Promise<bigint | undefined> {
  const figures = await readTreasury(desk.database);
  return figures.find(({ asset }) => asset === "TOKEN")?.coldUnits;
}

it("are no outflow of the treasury's own account, which has what its moves take back", async () => {
  const hash = `0x${"12".repeat(32)}`;
  const nobody = ["--account", "liability:customer:causeway:treasury", ...REASON];
  await expect(desk.causeway("ledger", "accept-outflow", hash, ...nobody)).rejects.toMatchObject({
    code: "INVALID_DECISION",
    message: "causeway:treasury stands for nobody",
  });
});

it("to cold storage end with the word that says so, which names the account where the coins are", async () => {
  const move = await askForCold();
  const hash = await payByHand(move);
  const { id, units } = move;
  await expect(
    desk.causeway("withdrawals", "release", id, "--paid-by", hash),
  ).rejects.toMatchObject({
    message: expect.stringContaining(
      "--debit asset:cold_storage --credit asset:break --amount-atoken N --withdrawal",
    ),
  });
  const named = ["--withdrawal", id];
  const treasury = "liability:customer:causeway:treasury";
  await expect(adjust("by-hand", [treasury, "asset:break"], units, ...named)).rejects.toMatchObject(
    {
      code: "INVALID_DECISION",
    },
  );
  await expect(
    adjust("by-hand", ["liability:suspense", "asset:break"], units, ...named),
  ).rejects.toMatchObject({
    message: `what ${id} was to pay is borne by asset:cold_storage, not by liability:suspense`,
  });
  await adjust("by-hand", ["asset:cold_storage", "asset:break"], units, ...named);
  expect((await desk.read(id)).status).toBe("cancelled");
  // Nothing is wrong with who bears it.
  const twice = adjust("twice", ["asset:cold_storage", "asset:break"], units, ...named);
  await expect(twice).rejects.toMatchObject({
    message: `${id} is no request in TOKEN that is frozen without a nonce`,
  });
  const nobody = ["equity:adjustment", "asset:break"] as const;
  await expect(adjust("nobody", nobody, units, ...named)).rejects.toMatchObject({
    message: expect.stringContaining("of the treasury's moves, asset:cold_storage or liability:"),
  });
  // Its hold is the treasury's to take back, and no person's to give.
  await expect(adjust("again", [treasury, "asset:break"], units)).rejects.toMatchObject({
    message: expect.stringContaining("causeway:treasury stands for nobody"),
  });
  await expectEven();
  expect([await coldUnits(), desk.paidAtoken(COLD)]).toEqual([units, units]);
});

it("of gas are borne by suspense, where the gas waits", async () => {
  const move = await askForGas("bob");
  await acceptPaid(move);
  const { id, units, to } = move;
  const [deposit] = await desk.database.query<{ id: string; status: string }>(
    `SELECT id, status FROM deposit WHERE address = $1`,
    [to],
  );
  expect(deposit?.status).toBe("suspense");
  const named = ["--withdrawal", id, "--deposit", present(deposit, "a deposit").id];
  await adjust("by-hand", ["liability:suspense", "asset:break"], units, ...named);
  expect(await desk.read(id)).toMatchObject({
    status: "cancelled",
    reason: expect.stringContaining("as liability:suspense bears"),
  });
  await expectEven();
});

it("that a word of a former release has left without its coins stop no other, and are named", async () => {
  const bad = await askForCold();
  const { id, units } = bad;
  await payByHand(bad);
  await desk.causeway("withdrawals", "release", id, "--not-paid");
  await postJournal(desk.database, {
    kind: "ledger.adjustment",
    idemKey: "adjustment:by-hand",
    effectiveHeight: null,
    postings: [
      { asset: NATIVE_ASSET, debit: customerAccount(TREASURY), credit: BREAK, amountUnits: units },
    ],
  });
  const other = await askForGas("carol");
  await desk.causeway("withdrawals", "cancel", other.id, ...WHY);
  const refused: RefusedEnding[] = [];
  const onRefused = (one: RefusedEnding) => void refused.push(one);
  expect(await endMoves(desk.workerDatabase, { onRefused })).toBe(1);
  expect(refused).toMatchObject([{ withdrawalId: id, error: { code: "INSUFFICIENT_BALANCE" } }]);
  // A round goes on beside it.
  await house.treasury();
  const back = ["asset:cold_storage", "liability:customer:causeway:treasury"] as const;
  await expect(adjust("more", back, units + 1n)).rejects.toMatchObject({
    code: "INVALID_DECISION",
    message: `${units} units of TOKEN at most are ${back[1]}'s to get back`,
  });
  await adjust("back", back, units);
  await expectEven();
  expect([await coldUnits(), desk.paidAtoken(COLD)]).toEqual([units, units]);
});
