/** Sweeps beside tokens that lie and coins that somebody else moved: what is booked, and what freezes. */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { bookTreasuryFlows } from "../../../../ledger/treasury/treasury-flows.js";
import { callOf, contractAt, depositKey } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, PRICE, TreasuryBench } from "../treasury-bench.js";
import { newAddresses, treasuryForTests } from "./sweep-bench.js";

const { signal } = new AbortController();

let bench: TreasuryBench;

treasuryForTests((opened) => {
  bench = opened;
});

const register = newAddresses(() => bench);

/** Ends a transaction whose effects nobody wants. */
class Undone extends Error {
  constructor(readonly rows: unknown) {
    super("undone");
  }
}

const query = <Row extends object>(text: string) => bench.bench.ledger.owner.query<Row>(text);

describe("sweeps", () => {
  it("are not begun of a token that says it does not move, and end when it lies", async () => {
    const [silent, liar] = [await register(), await register()];
    await bench.bench.mine([
      callOf("MoodyToken", "mint", [silent.address, 10n]),
      { to: silent.address, value: 10n ** 15n },
    ]);
    await bench.bench.mine([callOf("MoodyToken", "setMood", [1])]);
    await bench.mine();
    bench.files.policy = bench.policyOf({ assets: { MOODY: ANY_SWEEP } });
    await bench.rounds(3);
    const of = async (address: Address) =>
      (await bench.sweeps()).filter((sweep) => sweep.address === address);
    expect(await of(silent.address)).toEqual([]);
    await bench.bench.mine([
      callOf("MoodyToken", "setMood", [2]),
      callOf("MoodyToken", "mint", [liar.address, 10n]),
      { to: liar.address, value: 10n ** 15n },
    ]);
    await bench.mine();
    await bench.rounds(4);
    expect((await of(liar.address)).map(({ state, reason }) => [state, reason])).toEqual([
      ["failed", "it was mined and moved nothing"],
    ]);
    expect(await bench.units(liar.address, "MOODY")).toBe(10n);
    await bench.bench.mine([callOf("MoodyToken", "setMood", [0])]);
    await bench.mine();
  });

  it("are booked where their token says that more left than there can be", async () => {
    const all = 2n ** 256n - 1n;
    const { address } = await register();
    await bench.bench.mine([
      callOf("MoodyToken", "mint", [address, 10n]),
      { to: address, value: 10n ** 15n },
    ]);
    await bench.mine();
    await bench.rounds(3);
    const [sweep] = (await bench.sweeps()).filter((one) => one.address === address);
    const txHash = sweep?.attempts[0]?.hash ?? keccak256Hex(new Uint8Array());
    const place = { role: "deposit-address" as const, txHash, height: 5, feeAtoken: 0n };
    const outflow = { ...place, asset: "MOODY", wallet: address, amountUnits: all };
    const outflows = Array.from({ length: 10 }, () => outflow);
    const flows = { walletInflows: [], outflows, deposits: [], rewinds: 1 };
    const units = await bench.bench.database
      .transaction(async (tx) => {
        expect(await bookTreasuryFlows(tx, flows)).toMatchObject({ outflows: [] });
        throw new Undone(
          await tx.query<{ units: string }>(
            `SELECT sum(p.amount_units)::text AS units FROM posting p
               JOIN journal_entry e ON e.id = p.journal_id
              WHERE e.idem_key = 'sweep-short:' || $1 || ':MOODY-r1'`,
            [txHash],
          ),
        );
      })
      .catch((error: unknown) => (error instanceof Undone ? error.rows : error));
    expect(units).toEqual([{ units: `${10n * all}` }]);
  });

  it("explain nothing that the same transaction took of other addresses", async () => {
    const [own, other] = [await register(), await register()];
    await bench.bench.mine([
      callOf("MoodyToken", "mint", [own.address, 10n]),
      { to: own.address, value: 10n ** 15n },
    ]);
    await bench.mine();
    const signedOf = async () => (await bench.sweeps()).find((one) => one.address === own.address);
    const sweeper = bench.sweeper();
    await sweeper.round(signal);
    await sweeper.round(signal);
    const txHash = (await signedOf())?.attempts[0]?.hash ?? keccak256Hex(new Uint8Array());
    const place = { asset: "MOODY", txHash, height: 5 };
    const fromAddress = { ...place, role: "deposit-address" as const, feeAtoken: 0n };
    const swept = { ...fromAddress, wallet: own.address, amountUnits: 10n };
    const taken = { ...fromAddress, wallet: other.address, amountUnits: 5n };
    const came = { ...place, wallet: WALLET, amountUnits: 10n, txIndex: 0, opIndex: 0 };
    const flows = { walletInflows: [came], outflows: [swept, taken], deposits: [], rewinds: 0 };
    const seen = await bench.bench.database
      .transaction(async (tx) => {
        const { outflows } = await bookTreasuryFlows(tx, flows);
        const kinds = await tx.query<{ kind: string }>(
          `SELECT kind FROM journal_entry WHERE memo LIKE $1 || '%' ORDER BY id`,
          [txHash],
        );
        const ended = await tx.query(`SELECT state FROM sweep WHERE address = $1`, [own.address]);
        throw new Undone({ outflows, kinds: kinds.map(({ kind }) => kind), ended });
      })
      .catch((error: unknown) => (error instanceof Undone ? error.rows : error));
    expect(seen).toEqual({
      outflows: [taken],
      kinds: ["sweep.out", "sweep.in"],
      ended: [{ state: "settled" }],
    });
    await bench.rounds(3, sweeper);
  });

  it("that a lost ledger made are explained by the chain alone", async () => {
    const { address, index } = await register();
    await bench.bench.mine([{ to: address, value: 10n ** 16n }]);
    await bench.mine();
    bench.files.policy = bench.policyOf({ assets: {} });
    const value = 10n ** 16n - 3_000_000n * PRICE;
    await bench.bench.mine([{ from: depositKey(index), to: WALLET, value }]);
    await bench.bench.caughtUp();
    await bench.assertEven();
    expect(await query(`SELECT 1 FROM foreign_outflow`)).toEqual([]);
  });

  it("freeze over a nonce that somebody else used, and are never signed again", async () => {
    const { address, index } = await register();
    await bench.bench.mine([{ to: address, value: 10n ** 16n }]);
    await bench.mine();
    // Behind a balancer receipts come from a node that has not come to the block.
    let isLate = true;
    let hasNoRoom = false;
    const { node } = bench;
    const receipts: typeof node.receipts = async (hashes, options) => {
      const answer = await node.receipts(hashes, options);
      if (hasNoRoom) {
        return { ...answer, untold: new Map(hashes.map((hash) => [hash, "too-large"])) };
      }
      return isLate ? { ...answer, height: answer.height - 1 } : answer;
    };
    const sweeper = bench.sweeper({ node: { ...node, receipts, send: async () => [] } });
    await sweeper.round(signal);
    await sweeper.round(signal);
    const other = { from: depositKey(index), to: contractAt("Payer"), value: 1n };
    await bench.bench.mine([{ ...other, to: depositKey(50_000).address }]);
    await bench.bench.caughtUp();
    const stateBehind = async (ms: number) => {
      bench.clock.ms += ms;
      await sweeper.round(signal);
      return (await bench.sweeps()).find((one) => one.address === address);
    };
    for (let round = 0; round < 2; round++) await stateBehind(3_000);
    isLate = false;
    // From here on the node could have one.
    expect((await stateBehind(3_000))?.state).toBe("signed");
    // What a node has and has no room for is not missing, and is waited for anew behind it.
    hasNoRoom = true;
    for (let round = 0; round < 2; round++) {
      expect((await stateBehind(3_000))?.state).toBe("signed");
    }
    hasNoRoom = false;
    expect((await stateBehind(3_000))?.state).toBe("signed");
    const sweep = await stateBehind(3_000);
    expect(sweep?.state).toBe("frozen");
    expect(sweep?.attempts).toHaveLength(1);
    expect(await bench.nonce(address)).toBe(1n);
  });
});
