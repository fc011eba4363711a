/** Proofs of reserves where more is held or owed than in one wallet's books: each test adds to the last. */
import { Wallet } from "ethers";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress, toChecksumAddress } from "../../../../chain/address.js";
import { leftOutText } from "../../../../cli/audit/reserves/commands.js";
import {
  customerAccount,
  DEPOSIT_ADDRESSES,
  parseCustomerId,
} from "../../../../ledger/journal/accounts.js";
import { postJournals } from "../../../../ledger/journal/journal.js";
import { nameColdAddresses } from "../../../../ledger/treasury/moves.js";
import { drainWallet, retireWallet } from "../../../../ledger/wallets/wallet-registry.js";
import { registerTestWallets } from "../../../helpers/services/ledger.js";
import { added, DEPOSITS, HEIGHT, HOT, keys, PAID, ReservesStage } from "./stage.js";

const { signal } = new AbortController();

let stage: ReservesStage;

beforeAll(async () => {
  stage = await ReservesStage.open();
});
afterAll(() => stage?.close());

describe("deposit addresses whose coins have been swept", () => {
  it("are left out: nothing is to be proven of them", async () => {
    // An address for each customer who ever paid in, of an exchange that sweeps.
    const swept = Array.from({ length: 1_000 }, (_, index) => ({
      address: parseAddress(`0x${(index + 1).toString(16).padStart(40, "0e")}`),
      role: "deposit-address" as const,
    }));
    const before = await stage.make();
    const told: number[] = [];
    const { contents, emptyLeftOut } = await stage.make(keys, swept, {}, [], (done) =>
      told.push(done),
    );
    expect(emptyLeftOut).toBe(swept.length);
    expect(stage.provenCount).toBe(contents.accounts.length);
    expect(contents.accounts).toEqual(before.contents.accounts);
    expect(contents.nodes.size).toBe(before.contents.nodes.size);
    expect(await stage.verify(contents)).toMatchObject({ accounts: 2, isCovered: true });
    expect(told.at(-1)).toBe(swept.length + 2);
  });

  it("are no wallets: a wallet that holds nothing signs", async () => {
    const empty = Wallet.createRandom();
    const address = parseAddress(empty.address);
    const key = { address, privateKey: Buffer.from(empty.privateKey.slice(2), "hex") };
    const { contents, emptyLeftOut } = await stage.make(
      keys,
      [{ address, role: "hot-wallet" }],
      {},
      [key],
    );
    expect(emptyLeftOut).toBe(0);
    expect(await stage.verify(contents)).toMatchObject({ accounts: 3, wallets: 2 });
  });
});

describe("a hot wallet whose key is not here", () => {
  const elsewhere = parseAddress(`0x${"7e".repeat(20)}`);
  const others = [{ address: elsewhere, role: "hot-wallet" as const }];
  const make = (leaveOut: readonly Address[], signers = keys, accounts = others) =>
    stage.make(signers, accounts, {}, [], undefined, { leaveOut });

  it("is named before anything is collected", async () => {
    await expect(make([])).rejects.toMatchObject({
      code: "BAD_OPTION",
      message: expect.stringContaining(toChecksumAddress(elsewhere)),
    });
    expect(stage.provenCount).toBe(0);
  });

  it("is left out by name where a person says so: nothing of it is proven", async () => {
    const whole = await stage.make();
    const { contents, unsignedLeftOut } = await make([elsewhere]);
    expect(unsignedLeftOut).toEqual([elsewhere]);
    expect(contents.accounts).toEqual(whole.contents.accounts);
    expect(await stage.verify(contents)).toMatchObject({ accounts: 2, wallets: 1 });
    // One whose key is here signs nothing, either, and its coins are not counted.
    const key = { address: elsewhere, privateKey: Buffer.from("22".repeat(32), "hex") };
    const left = await make([HOT], [key]);
    expect(left.unsignedLeftOut).toEqual([HOT]);
    const { reservesAtoken } = await stage.verify(whole.contents);
    expect(left.contents.accounts.map(({ address }) => address)).not.toContain(HOT);
    expect(reservesAtoken).toBeGreaterThan(PAID);
  });

  it("is of this ledger, and some other signs", async () => {
    for (const address of [DEPOSITS, parseAddress(`0x${"7f".repeat(20)}`)]) {
      await expect(make([address], keys, [])).rejects.toMatchObject({
        code: "BAD_OPTION",
        message: expect.stringContaining(toChecksumAddress(address)),
      });
    }
    await expect(make([HOT], keys, [])).rejects.toMatchObject({
      code: "BAD_OPTION",
      message: expect.stringContaining("nobody"),
    });
    expect(stage.provenCount).toBe(0);
  });
});

// From here on the ledger owes what cannot be.
describe("a token of which more is owed than there can be", () => {
  it("hides nothing that is owed of others: it alone is left out, by name", async () => {
    const most = 2n ** 256n - 1n;
    const debit = DEPOSIT_ADDRESSES;
    await stage.ledger.owner.query(
      `INSERT INTO asset (symbol, decimals, contract, from_height) VALUES ('LIAR', 18, $1, 0)`,
      [`0x${"7c".repeat(20)}`],
    );
    await stage.ledger.owner.transaction((tx) =>
      postJournals(tx, [
        {
          kind: "deposit.credit",
          idemKey: "lies",
          effectiveHeight: 2,
          postings: ["alice", "bob"].map((name) => ({
            asset: "LIAR",
            debit,
            credit: customerAccount(parseCustomerId(name)),
            amountUnits: most,
          })),
        },
      ]),
    );
    const { contents, liabilities, leftOut } = await stage.make();
    expect(leftOut).toEqual([{ asset: "LIAR", units: 2n * most }]);
    // A ledger one of whose tokens has no line any more credits nothing (ASSET_CONTRADICTED).
    const [advice] = leftOut.map(leftOutText);
    expect(advice).toContain("its line stays in tokens.json");
    expect(advice).toContain("ledger adjust, with --asset LIAR");
    expect(advice).not.toContain("from the list");
    expect(contents.liabilities.map(({ asset }) => asset)).toEqual(["TOKEN"]);
    expect(liabilities.map(({ asset }) => asset)).not.toContain("LIAR");
    expect((await stage.verify(contents)).owedAtoken).toBe(935n);
  });
});

// From here on the ledger has cold storage.
describe("cold storage", () => {
  const cold = parseAddress(added.address);
  const coldKey = { address: cold, privateKey: Buffer.from("22".repeat(32), "hex") };

  it("is in the proof where its key signs; without it, it is named as left out", async () => {
    const before = (await stage.verify((await stage.make()).contents)).reservesAtoken;
    await nameColdAddresses(stage.ledger.owner, [{ asset: "TOKEN", address: cold }]);
    const without = await stage.make();
    expect(without.coldLeftOut).toEqual([cold]);
    expect((await stage.verify(without.contents)).reservesAtoken).toBe(before);
    const whole = await stage.make(keys, [], {}, [coldKey]);
    expect(whole.coldLeftOut).toEqual([]);
    const proven = await stage.verify(whole.contents);
    expect(proven).toMatchObject({ accounts: 3, wallets: 2, reservesAtoken: before + PAID });
    const { signatures } = whole.contents;
    const unsigned = signatures.filter(({ address }) => address !== cold);
    await expect(stage.verify({ ...whole.contents, signatures: unsigned })).rejects.toMatchObject({
      code: "NOT_PROVEN",
    });
  });

  it("is not taken for proven by a key that signs nothing", async () => {
    const stranger = {
      address: parseAddress(`0x${"7d".repeat(20)}`),
      privateKey: coldKey.privateKey,
    };
    await expect(stage.make(keys, [], {}, [stranger])).rejects.toMatchObject({
      code: "BAD_OPTION",
      message: expect.stringContaining(toChecksumAddress(stranger.address)),
    });
  });
});

// From here on the ledger has more wallets, one of which was cold storage.
describe("of several wallets", () => {
  it("every one that is signed for is proven and signs; a retired one stands for nothing", async () => {
    const second = parseAddress(added.address);
    const third = parseAddress(`0x${"7d".repeat(20)}`);
    await registerTestWallets(stage.ledger.owner, HOT, second, third);
    const word = { operator: "test", reason: "the key is old" };
    await drainWallet(stage.ledger.owner, third, word);
    const empty = { balanceAtoken: 0n, tokens: [], height: 0, dustAtoken: 0n, force: false };
    await retireWallet(stage.ledger.owner, third, { ...word, ...empty });
    await expect(stage.make()).rejects.toThrow(toChecksumAddress(second));
    const secondKey = { address: second, privateKey: Buffer.from("22".repeat(32), "hex") };
    const { contents } = await stage.make([...keys, secondKey]);
    const proven = await stage.verify(contents);
    expect(proven).toMatchObject({ accounts: 3, wallets: 2, owedAtoken: 935n });
    const states = await Promise.all(
      [HOT, second, DEPOSITS].map((address) =>
        stage.chain.chain.view.proof(address, [], HEIGHT, signal),
      ),
    );
    const held = states.map(({ account }) => account.balanceAtoken);
    expect(held[1]).toBe(PAID);
    expect(proven.reservesAtoken).toBe(held.reduce((sum, units) => sum + units, 0n));
    const signatures = contents.signatures.filter(({ address }) => address === HOT);
    await expect(stage.verify({ ...contents, signatures })).rejects.toMatchObject({
      code: "NOT_PROVEN",
    });
  });

  it("one that was retired since counts with what it held in the block, where its key is here", async () => {
    const second = parseAddress(added.address);
    const key = { address: second, privateKey: Buffer.from("22".repeat(32), "hex") };
    const before = await stage.verify((await stage.make([...keys, key])).contents);
    const word = { operator: "test", reason: "the key is old" };
    await drainWallet(stage.ledger.owner, second, word);
    const empty = { balanceAtoken: 0n, tokens: [], height: 0, dustAtoken: 0n, force: false };
    await retireWallet(stage.ledger.owner, second, { ...word, ...empty });
    const whole = await stage.make([...keys, key]);
    expect(whole.retiredLeftOut).toEqual([]);
    expect(await stage.verify(whole.contents)).toMatchObject({
      wallets: 2,
      reservesAtoken: before.reservesAtoken,
    });
    const without = await stage.make();
    expect(without.retiredLeftOut).toEqual([second]);
    const { reservesAtoken } = await stage.verify(without.contents);
    expect(reservesAtoken).toBe(before.reservesAtoken - PAID);
  });
});
