/** What is said of a deposit whose block the chain lost, and how much one plan undoes. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { parseHash32 } from "../../../chain/hex.js";
import { explainTransaction } from "../../../deposit-watcher/api/explanation.js";
import { entriesOfDeposit } from "../../../ledger/deposits/deposit-evidence.js";
import { planRewind } from "../../../ledger/recovery/older-chain.js";
import { Desk, TOKEN } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

describe("a deposit that was reversed", () => {
  it("is explained as that, with the entries that undid it", async () => {
    const { address } = await desk.register("bob");
    await desk.watch();
    const kept = desk.chain.head;
    desk.pay([address, TOKEN]);
    for (let block = 0; block < 3; block += 1) desk.chain.mine();
    await desk.watch();
    const [row] = await desk.database.query<{ id: string; tx_hash: string }>(
      `SELECT id, tx_hash FROM deposit WHERE customer_id = 'bob'`,
    );
    desk.chain.rollBack(kept);
    for (let block = 0; block < 12; block += 1) desk.chain.mine();
    await desk.watch();
    const chain = {
      headHeight: () => Promise.resolve(desk.chain.head),
      blockHash: (height: number) => Promise.resolve(desk.chain.blocks[height]?.hash),
      areMined: (hashes: readonly string[]) => Promise.resolve(hashes.map(() => false)),
    };
    // More than a plan holds is refused, never cut: the cursor would go back over all of it.
    const cut = planRewind(desk.database, chain, { maxRows: 0 });
    await expect(cut).rejects.toMatchObject({ code: "RECOVERY" });
    expect((await planRewind(desk.database, chain, { maxRows: 1 }))?.deposits).toHaveLength(1);
    await desk.causeway("recover", "--apply");
    await desk.watch();
    expect(await desk.availableAtoken("bob")).toBe(0n);
    const nobody = () => Promise.reject(new Error("the ledger knows the answer"));
    const parts = {
      database: desk.database,
      node: { transactionStatus: nobody, getTransactionReceipt: nobody },
      source: { block: nobody, close: () => undefined },
      watched: {
        customerOf: () => undefined,
        assetOf: () => undefined,
        walletFrom: () => undefined,
      },
    };
    const hash = parseHash32(row?.tx_hash);
    const { code, deposits } = await explainTransaction(parts, hash, { signal: desk.signal });
    expect([code, deposits.map(({ status }) => status)]).toEqual(["REVERSED", ["reversed"]]);
    const entries = await entriesOfDeposit(desk.database, row?.id ?? "");
    expect(entries.map(({ kind }) => kind)).toEqual(["deposit.credit", "deposit.reversal"]);
  });
});
