/** What is cold storage and what is not, and moves to it that are not paid. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { customerBalances } from "../../../../ledger/deposits/deposit-queries.js";
import { readTreasury } from "../../../../ledger/treasury/treasury-figures.js";
import { registerWallets } from "../../../../ledger/wallets/wallet-registry.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { Desk, WALLET as HOT } from "../../recovery/desk.js";
import { contractAt, depositKey } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, TreasuryBench } from "../treasury-bench.js";

const ONE = 10n ** 18n;

/** Of the home's later wallet, and of a cold storage before it. */
const FORMER_COLD = depositKey(70_000);

let bench: TreasuryBench;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 4n * ONE }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

/** All above one coin is to go there. */
function storeAt(coldAddress: Address): void {
  const band = { lowUnits: 0n, targetUnits: ONE, highUnits: ONE };
  bench.files.policy = bench.policyOf({ assets: { TOKEN: { ...ANY_SWEEP, coldAddress, band } } });
}

function moves(): Promise<{ state: string; status: string }[]> {
  return bench.bench.ledger.owner.query(
    `SELECT m.state, w.status FROM treasury_move m JOIN withdrawal w ON w.id = m.withdrawal_id
      ORDER BY m.id`,
  );
}

const figures = async (database = bench.worker) =>
  (await readTreasury(database)).find(({ asset }) => asset === "TOKEN");

it("is given by a person what a lost ledger had moved there, and what it had sent back", async () => {
  const desk = await Desk.openWithAlice();
  try {
    const cold = testAddress(0xc01d);
    await desk.request({ key: "x", customer: "alice", to: cold, amountAtoken: 3n * ONE });
    await desk.work();
    const [hash = ""] = desk.ownHashes();
    desk.chain.mine([desk.chain.payment(cold, HOT, ONE)]);
    await desk.watch();
    await desk.useEmptyDatabase();
    await desk.watch();
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    const word = ["--reason", "the address of our vault", "--operator", "ann"];
    const adjust = (key: string, debit: string, credit: string, units: bigint) => {
      const sides = ["--debit", debit, "--credit", credit, "--amount-atoken", `${units}`];
      return desk.causeway("ledger", "adjust", "--key", key, ...sides, ...word);
    };
    await desk.causeway("ledger", "write-off-payment", hash, ...word);
    await adjust("cold:1", "asset:cold_storage", "expense:write_off", 3n * ONE);
    await adjust("cold:2", "liability:suspense", "asset:cold_storage", ONE);
    expect((await figures(desk.database))?.coldUnits).toBe(2n * ONE);
    expect(await desk.breaks()).toBe("");
  } finally {
    await desk.close();
  }
});

describe("cold storage", () => {
  it("is no deposit address: a customer would be credited with the exchange's coins", async () => {
    const address = await bench.bench.register("customer");
    storeAt(address);
    await bench.rounds(4);
    expect(await moves()).toEqual([]);
    expect(await bench.units(address)).toBe(0n);
    const balances = await customerBalances(bench.worker, parseCustomerId("customer"));
    expect(balances?.every(({ availableUnits }) => availableUnits === 0n) ?? true).toBe(true);
  });

  it("that refuses is not asked again in every round", async () => {
    storeAt(contractAt("SecondPlain"));
    await bench.rounds(6);
    expect(await moves()).toEqual([{ state: "void", status: "failed" }]);
    // As ten minutes later.
    await bench.bench.ledger.owner.query(
      `ALTER TABLE treasury_move DISABLE TRIGGER treasury_move_guard;
       UPDATE treasury_move SET created_at = created_at - interval '10 minutes';
       ALTER TABLE treasury_move ENABLE TRIGGER treasury_move_guard`,
    );
    storeAt(parseAddress(`0x${"c1".repeat(20)}`));
    await bench.rounds(4);
    expect(await moves()).toEqual([
      { state: "void", status: "failed" },
      { state: "arrived", status: "settled" },
    ]);
    expect(await figures()).toMatchObject({ inTransitUnits: 0n });
  });

  it("that became a hot wallet is none any more: what it sends is in suspense", async () => {
    const wallet = parseAddress(FORMER_COLD.address.toLowerCase());
    storeAt(wallet);
    await bench.rounds(1);
    await registerWallets(bench.bench.ledger.owner, [
      { address: wallet, label: "second", operator: "ann", reason: "it pays now" },
    ]);
    await bench.bench.mine([{ to: wallet, value: ONE }]);
    await bench.bench.caughtUp();
    const before = await figures();
    await bench.bench.mine([{ from: FORMER_COLD, to: WALLET, value: ONE / 2n }]);
    await bench.bench.caughtUp();
    expect((await figures())?.coldUnits).toBe(before?.coldUnits);
    expect(
      await bench.bench.ledger.owner.query(
        `SELECT kind FROM journal_entry ORDER BY id DESC LIMIT 1`,
      ),
    ).toEqual([{ kind: "wallet.inflow" }]);
  });
});
