/**
 * Reserves against liabilities: proofs over a real chain, liabilities of a real ledger, and whatever
 * is changed in the files is refused.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { verifyMessage, Wallet } from "ethers";
import { parseAddress, toChecksumAddress } from "../../../chain/address.js";
import { parseHash32 } from "../../../chain/hex.js";
import { atokenToToken } from "../../../chain/units.js";
import type { WalletKey } from "../../../chain/signing/keystore.js";
import { headerSource } from "../../../cli/audit/balance/collect.js";
import {
  runAuditReserves,
  runVerifyLiability,
  runVerifyReserves,
  type VerifyLiabilityOptions,
} from "../../../cli/audit/reserves/commands.js";
import {
  encodeLiability,
  liabilityFileName,
  parseLiability,
  verifyLiability,
} from "../../../cli/audit/reserves/liability-file.js";
import { type MadeReserves, makeReserves } from "../../../cli/audit/reserves/make-reserves.js";
import {
  encodeReserves,
  parseReserves,
  type ReservesContents,
} from "../../../cli/audit/reserves/reserves-file.js";
import { verifyReserves } from "../../../cli/audit/reserves/verify-reserves.js";
import { writeReserves } from "../../../cli/audit/reserves/write-reserves.js";
import {
  customerAccount,
  DEPOSIT_ADDRESSES,
  heldAccount,
  parseCustomerId,
  SUSPENSE,
  SUSPENSE_HOLDER,
} from "../../../ledger/journal/accounts.js";
import { postJournals } from "../../../ledger/journal/journal.js";
import {
  type LiabilityBooks,
  type OwnAddress,
  readLiabilities,
} from "../../../ledger/books/liabilities.js";
import { nameColdAddresses } from "../../../ledger/treasury/moves.js";
import { drainWallet, retireWallet } from "../../../ledger/wallets/wallet-registry.js";
import { encodeGenesis, type Genesis } from "../../../node/settings/genesis.js";
import { CometTestChain } from "../../helpers/chains/comet-chain.js";
import { proofNodeOf } from "../../helpers/chains/proof-node.js";
import {
  openTestLedger,
  registerTestWallets,
  type TestLedger,
} from "../../helpers/services/ledger.js";

const wallet = new Wallet(`0x${"11".repeat(32)}`);
/** Key of a wallet that is added at the end. */
const added = new Wallet(`0x${"22".repeat(32)}`);
const HOT = parseAddress(wallet.address);
const DEPOSITS = parseAddress(`0x${"5e".repeat(20)}`);
const PAID = 1_000_000n;
const HEIGHT = 3;
const keys = [{ address: HOT, privateKey: Buffer.from("11".repeat(32), "hex") }];
const { signal } = new AbortController();

let chain: CometTestChain;
let genesis: Genesis;
let ledger: TestLedger;
let folder: string;
let made: MadeReserves;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "causeway-reserves-"));
  chain = await CometTestChain.open(wallet.address);
  genesis = chain.genesis;
  const fields = { type: 0, chainId: 6940, nonce: 0, gasLimit: 21_000, gasPrice: 25_000_000 };
  const payment = await wallet.signTransaction({ ...fields, to: DEPOSITS, value: PAID });
  const funding = { ...fields, nonce: 1, to: added.address, value: PAID };
  const funded = await wallet.signTransaction(funding);
  for (let height = 1; height <= HEIGHT + 2; height += 1) {
    await chain.mine(height === 2 ? [payment, funded] : []);
  }
  ledger = await openTestLedger();
  await registerTestWallets(ledger.owner, HOT);
  await fillBooks();
  made = await make();
}, 120_000);
afterAll(async () => {
  await Promise.all([chain?.close(), ledger?.drop()]);
  rmSync(folder, { recursive: true, force: true });
});

/** Credits of block 2, a hold, coins of nobody, a deposit on its way, and a credit of block 5. */
async function fillBooks(): Promise<void> {
  const { owner } = ledger;
  await owner.query(`INSERT INTO customer (id) VALUES ('alice'), ('bob')`);
  const [alice, bob] = [parseCustomerId("alice"), parseCustomerId("bob")];
  const asset = "TOKEN";
  const credit = (key: string, height: number, to: typeof SUSPENSE, amountUnits: bigint) => ({
    kind: "deposit.credit",
    idemKey: key,
    effectiveHeight: height,
    postings: [{ asset, debit: DEPOSIT_ADDRESSES, credit: to, amountUnits }],
  });
  await owner.transaction(async (tx) => {
    await postJournals(tx, [
      credit("a", 2, customerAccount(alice), 700n),
      credit("b", 2, customerAccount(bob), 200n),
      credit("c", 2, SUSPENSE, 30n),
      credit("later", 5, customerAccount(bob), 999n),
    ]);
    const hold = { asset, debit: customerAccount(alice), credit: heldAccount(alice) };
    await postJournals(tx, [
      {
        kind: "withdrawal.hold",
        idemKey: "hold",
        effectiveHeight: null,
        postings: [{ ...hold, amountUnits: 100n }],
      },
    ]);
  });
  await owner.query(
    `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
     VALUES (0, $1, 'bob', 0, true)`,
    [DEPOSITS],
  );
  await owner.query(
    `INSERT INTO deposit (id, address, customer_id, asset, amount_units, status, height, block_hash,
                          tx_hash, tx_index, op_index)
     VALUES ('3-0-0', $1, 'bob', 'TOKEN', 5, 'detected', 3, $2, $2, 0, 0)`,
    [DEPOSITS, `0x${"0".repeat(64)}`],
  );
  const last = chain.chain.view.block(HEIGHT + 2)?.block.hash;
  await owner.query(`UPDATE watch_cursor SET height = 5, block_hash = $1`, [last]);
}

async function make(
  signers = keys,
  others: readonly OwnAddress[] = [],
  changes: Partial<LiabilityBooks> = {},
  named: readonly WalletKey[] = [],
): Promise<MadeReserves> {
  const read = await readLiabilities(ledger.owner, { height: HEIGHT });
  const books = { ...read, addresses: [...read.addresses, ...others], ...changes };
  const headers = headerSource({ url: chain.url, oldestHeight: async () => 1, signal });
  const node = proofNodeOf(() => chain);
  const source = { node, headers, genesis, height: HEIGHT, signal };
  return makeReserves({ source, books, keys: signers, named, nonce: "auditor 7" });
}

const verify = (contents: ReservesContents) =>
  verifyReserves(parseReserves(encodeReserves(contents)), genesis);

const liabilityOf = (customerId: string) => {
  const found = made.liabilities.find((liability) => liability.customerId === customerId);
  if (found === undefined) throw new Error(`no liability to ${customerId}`);
  return found;
};

describe("liabilities", () => {
  it("are those of no block where nothing is booked", async () => {
    const empty = await openTestLedger();
    try {
      const read = readLiabilities(empty.owner, { height: undefined });
      await expect(read).rejects.toMatchObject({ code: "HEIGHT_NOT_BOOKED" });
    } finally {
      await empty.drop();
    }
  });

  it("are what is owed as of a block, on its way or in suspense included", async () => {
    const { liabilities, addresses } = await readLiabilities(ledger.owner, {
      height: HEIGHT,
    });
    expect(liabilities).toEqual([
      { asset: "TOKEN", customerId: "alice", units: 700n },
      { asset: "TOKEN", customerId: "bob", units: 205n },
      { asset: "TOKEN", customerId: SUSPENSE_HOLDER, units: 30n },
    ]);
    expect(addresses).toEqual([
      { address: HOT, role: "hot-wallet" },
      { address: DEPOSITS, role: "deposit-address" },
    ]);
    await expect(readLiabilities(ledger.owner, { height: 6 })).rejects.toMatchObject({
      code: "HEIGHT_NOT_BOOKED",
    });
  });
});

describe("the files of a proof of reserves", () => {
  it("are there with those of the customers, or not at all", async () => {
    const customers = join(folder, "customers");
    const out = join(folder, "published.json");
    await writeReserves(made, { out, customers });
    const names = ["TOKEN-alice.json", "TOKEN-bob.json", "TOKEN-causeway%3Asuspense.json"];
    expect(readdirSync(customers).toSorted()).toEqual(names);
    const files = new Map(names.map((name) => [name, readFileSync(join(customers, name), "utf8")]));
    // Another month, the same folder, or the same file: what the customers have is of this one.
    const again = await make();
    const next = join(folder, "next.json");
    for (const options of [
      { out: next, customers },
      { out, customers: join(folder, "others") },
    ]) {
      await expect(writeReserves(again, options)).rejects.toMatchObject({
        code: "BAD_OPTION",
        message: expect.stringContaining("is there already"),
      });
    }
    rmSync(join(customers, "TOKEN-alice.json"));
    await expect(writeReserves(again, { out: next, customers })).rejects.toThrow("bob");
    expect(existsSync(next)).toBe(false);
    expect(existsSync(join(folder, "others"))).toBe(false);
    // No file of the run that failed is among them.
    expect(readdirSync(customers).toSorted()).toEqual(names.slice(1));
    for (const name of names.slice(1)) {
      expect(readFileSync(join(customers, name), "utf8")).toBe(files.get(name));
    }
    const missing = join(folder, "no-folder", "published.json");
    const nowhere = writeReserves(again, { out: missing, customers: join(folder, "others") });
    await expect(nowhere).rejects.toMatchObject({ code: "HOME_UNUSABLE" });
    expect(readdirSync(join(folder, "others"))).toEqual([]);
  });
});

it("is refused before anything is looked at where its file is there already", async () => {
  const out = join(folder, "of-last-month.json");
  writeFileSync(out, "somebody's");
  const said: string[] = [];
  // A home without genesis, keys and ledger.
  const context = { home: folder, portOffset: 0, json: false, env: {}, signal };
  const print = (line: string) => void said.push(line);
  expect(await runAuditReserves({ ...context, print }, { out, height: "1" }, print)).toBe(2);
  expect(said.join()).toContain(`${out} is there already`);
});

describe("a proof of reserves", () => {
  it("proves every account at one block, and what is owed", async () => {
    const proven = await verify(made.contents);
    const view = chain.chain.view;
    expect(proven).toMatchObject({ accounts: 2, wallets: 1, owedAtoken: 935n, isCovered: true });
    expect(proven.block.blockHash).toBe(view.block(HEIGHT)?.block.hash);
    const states = await Promise.all(
      [HOT, DEPOSITS].map((address) => view.proof(address, [], HEIGHT, signal)),
    );
    const held = states.map(({ account }) => account.balanceAtoken);
    expect(held[1]).toBe(PAID);
    expect(proven.reservesAtoken).toBe(held.reduce((sum, units) => sum + units, 0n));
    expect(proven.signedAtoken).toBe(held[0]);
    const [signature] = made.contents.signatures;
    const listed = [`${DEPOSITS} deposit-address`, `${HOT} hot-wallet`].toSorted();
    const accounts = ["causeway-reserves-accounts/1", ...listed].join("\n");
    const text = [
      "causeway-reserves/2: we hold the keys of these accounts, and owe what this root stands for.",
      `chain: ${genesis.cosmosChainId}`,
      `height: ${HEIGHT}`,
      `block: ${proven.block.blockHash}`,
      `ledger: ${made.contents.ledgerId}`,
      `accounts: 2, ${createHash("sha256").update(accounts).digest("hex")}`,
      `liabilities: ${proven.liabilitiesRoot}`,
      "nonce: auditor 7",
    ].join("\n");
    expect(verifyMessage(text, signature?.signature ?? "")).toBe(wallet.address);
  });

  it("is not made of books of another chain, nor of blocks that the node has not", async () => {
    const blockHash = parseHash32(`0x${"ab".repeat(32)}`);
    for (const height of [HEIGHT, HEIGHT + 2]) {
      const booked = { height, blockHash };
      await expect(make(keys, [], { booked })).rejects.toMatchObject({ code: "OTHER_CHAIN" });
    }
    const booked = { height: HEIGHT + 3, blockHash };
    await expect(make(keys, [], { booked })).rejects.toMatchObject({ code: "BAD_RANGE" });
  });

  it("is refused with anything changed", async () => {
    const good = made.contents;
    const [hot, deposits] = good.accounts;
    const [root] = good.liabilities;
    if (hot === undefined || deposits === undefined || root === undefined) throw new Error("parts");
    const changed: readonly ReservesContents[] = [
      { ...good, accounts: [hot, hot] },
      { ...good, accounts: [hot, { ...deposits, accountProof: hot.accountProof }] },
      { ...good, accounts: [hot, { ...deposits, accountProof: [] }] },
      { ...good, liabilities: [{ ...root, sumUnits: 1n }] },
      { ...good, liabilities: [] },
      { ...good, nonce: "auditor 8" },
      { ...good, height: HEIGHT - 1 },
      { ...good, signatures: [] },
      { ...good, signatures: [{ address: HOT, signature: `0x${"00".repeat(65)}` }] },
      { ...good, accounts: [hot, { ...deposits, role: "hot-wallet" }] },
      { ...good, chainId: "chain_1-1" },
      { ...good, accounts: [hot] },
      { ...good, ledgerId: "another ledger" },
    ];
    for (const contents of changed) {
      await expect(verify(contents)).rejects.toMatchObject({ code: "NOT_PROVEN" });
    }
  });

  it("is refused with an account that nobody signed for, whose coins are there", async () => {
    const stranger = { address: parseAddress(added.address), role: "deposit-address" } as const;
    const { accounts } = (await make(keys, [stranger])).contents;
    expect(accounts).toHaveLength(3);
    await expect(verify({ ...made.contents, accounts })).rejects.toMatchObject({
      code: "NOT_PROVEN",
    });
  });
});

/** As former releases made it: the wallets signed for less. */
async function ofFormerRelease(): Promise<ReservesContents> {
  const { block, liabilitiesRoot } = await verify(made.contents);
  const text = [
    "causeway-reserves/1: we hold the key of this address, and owe what this root stands for.",
    `chain: ${genesis.cosmosChainId}`,
    `height: ${HEIGHT}`,
    `block: ${block.blockHash}`,
    `liabilities: ${liabilitiesRoot}`,
    "nonce: auditor 7",
  ].join("\n");
  const signatures = [{ address: HOT, signature: await wallet.signMessage(text) }];
  return { ...made.contents, format: "causeway-reserves/1", signatures };
}

describe("a proof of reserves of a former release", () => {
  it("is read still, and is no proof of the new form by its name", async () => {
    const former = await ofFormerRelease();
    expect(await verify(former)).toMatchObject({ isCovered: true, areAccountsSigned: false });
    expect(await verify(made.contents)).toMatchObject({ areAccountsSigned: true });
    for (const [of, format] of [
      [former, "causeway-reserves/2"],
      [made.contents, "causeway-reserves/1"],
    ] as const) {
      await expect(verify({ ...of, format })).rejects.toMatchObject({ code: "NOT_PROVEN" });
    }
  });
});

describe("a customer's file", () => {
  it("proves that what is owed is in the sum that was signed", async () => {
    const { liabilitiesRoot } = await verify(made.contents);
    for (const [customer, units] of [
      ["alice", 700n],
      ["bob", 205n],
      [SUSPENSE_HOLDER, 30n],
    ] as const) {
      const file = parseLiability(encodeLiability(liabilityOf(customer)));
      expect(file.units).toBe(units);
      expect(verifyLiability(file)).toMatchObject({ root: { sumUnits: 935n }, liabilitiesRoot });
    }
    // Another look has other salts: files of two days tell nothing about the same leaf.
    const again = await make();
    const [one, other] = [made, again].map(({ contents }) => contents.liabilities[0]?.hash);
    expect(one).not.toBe(other);
  });

  it("has a file of its own, whatever others are called", () => {
    const ids = [
      ["TOKEN", "desk:7"],
      ["TOKEN", "desk_7"],
      ["TOKEN", "desk-7"],
      ["TOKEN-desk", "7"],
    ] as const;
    const names = ids.map(([asset, customerId]) => liabilityFileName({ asset, customerId }));
    expect(names).toEqual([
      "TOKEN-desk%3A7.json",
      "TOKEN-desk_7.json",
      "TOKEN-desk-7.json",
      "TOKEN%2Ddesk-7.json",
    ]);
  });

  it("says nothing about others", () => {
    const text = encodeLiability(liabilityOf("alice"));
    expect(text).toContain("alice");
    expect(text).not.toContain("bob");
    expect(text).not.toContain(liabilityOf("bob").salt);
  });

  it("is refused with anything changed", () => {
    const good = liabilityOf("alice");
    const [step, ...others] = good.steps;
    const [root] = good.roots;
    if (step === undefined || root === undefined) throw new Error("steps");
    for (const changed of [
      { ...good, units: 701n },
      { ...good, customerId: "bob" },
      { ...good, salt: "0".repeat(64) },
      { ...good, asset: "GOLD" },
      { ...good, steps: others },
      { ...good, steps: [{ ...step, sumUnits: step.sumUnits + 1n }, ...others] },
      { ...good, steps: [{ ...step, side: step.side === "left" ? "right" : "left" }, ...others] },
      { ...good, roots: [{ ...root, sumUnits: 934n }] },
    ] as const) {
      expect(() => verifyLiability(parseLiability(encodeLiability(changed)))).toThrow(
        expect.objectContaining({ code: "NOT_PROVEN" }),
      );
    }
    const negative = encodeLiability(good).replace(/"sumUnits": "\d+"/, '"sumUnits": "-5"');
    expect(() => parseLiability(negative)).toThrow(
      expect.objectContaining({ code: "BUNDLE_UNREADABLE" }),
    );
  });
});

describe("the commands", () => {
  it("check both files offline, one against the other", async () => {
    const write = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const genesisFile = write("genesis.json", encodeGenesis(genesis));
    const reserves = write("reserves.json", encodeReserves(made.contents));
    const other = write("other.json", encodeReserves((await make()).contents));
    const alice = write("alice.json", encodeLiability(liabilityOf("alice")));
    const printed: string[] = [];
    const context = { home: folder, portOffset: 0, json: false, env: {}, signal };
    const shown = { ...context, print: (line: string) => void printed.push(line) };
    const warn = (line: string) => void printed.push(line);
    expect(await runVerifyReserves(shown, reserves, { genesis: genesisFile }, warn)).toBe(0);
    expect(printed.at(-1)).toBe("Proven, and covered.");
    // A rich stranger's address among them costs nobody a signature: what that would be is told apart.
    const shownLine = (name: string) => printed.find((line) => line.startsWith(`  ${name}  `));
    const { reservesAtoken, signedAtoken } = await verify(made.contents);
    expect(shownLine("of wallets")).toContain(` ${atokenToToken(signedAtoken)} TOKEN, whose keys`);
    expect(shownLine("of addresses")).toContain(
      ` ${atokenToToken(reservesAtoken - signedAtoken)} TOKEN, which the wallets call deposit`,
    );
    expect(printed.at(-2)).not.toContain("did not sign for which accounts");
    const former = write("former.json", encodeReserves(await ofFormerRelease()));
    expect(await runVerifyReserves(shown, former, { genesis: genesisFile }, warn)).toBe(0);
    expect(printed.at(-2)).toContain("did not sign for which accounts");
    const check = (options: VerifyLiabilityOptions) =>
      runVerifyLiability(shown, alice, { genesis: genesisFile, ...options }, warn);
    expect(await check({})).toBe(0);
    expect(await check({ reserves })).toBe(0);
    expect(printed.at(-1)).toBe("It is in the sum that the wallets signed for.");
    expect(await check({ reserves: other })).toBe(1);
    expect(printed.at(-1)).toContain("other liabilities");
    const forPrograms = { ...shown, json: true };
    const options = { genesis: genesisFile, reserves: other };
    expect(await runVerifyLiability(forPrograms, alice, options, warn)).toBe(1);
    const { signatures } = made.contents;
    const unsigned = encodeReserves({ ...made.contents, signatures: signatures.slice(1) });
    const falseFile = write("false.json", unsigned);
    expect(await runVerifyReserves(forPrograms, falseFile, options, warn)).toBe(1);
    const documents = printed.filter((line) => line.startsWith("{"));
    expect(documents.map((line) => JSON.parse(line))).toEqual([
      { schemaVersion: 1, ok: false, reason: expect.stringContaining("other liabilities") },
      { schemaVersion: 1, ok: false, reason: expect.stringContaining("did not sign") },
    ]);
    expect(await check({ reserves: alice })).toBe(2);
    expect(await runVerifyReserves(shown, alice, { genesis: genesisFile }, warn)).toBe(2);
  });
});

// Behind the others: from here on the ledger owes what cannot be.
describe("a token of which more is owed than there can be", () => {
  it("hides nothing that is owed of others: it alone is left out, by name", async () => {
    const most = 2n ** 256n - 1n;
    const debit = DEPOSIT_ADDRESSES;
    await ledger.owner.query(
      `INSERT INTO asset (symbol, decimals, contract, from_height) VALUES ('LIAR', 18, $1, 0)`,
      [`0x${"7c".repeat(20)}`],
    );
    await ledger.owner.transaction((tx) =>
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
    const { contents, liabilities, leftOut } = await make();
    expect(leftOut).toEqual([{ asset: "LIAR", units: 2n * most }]);
    expect(contents.liabilities.map(({ asset }) => asset)).toEqual(["TOKEN"]);
    expect(liabilities.map(({ asset }) => asset)).not.toContain("LIAR");
    expect((await verify(contents)).owedAtoken).toBe(935n);
  });
});

// Behind the others: from here on the ledger has cold storage.
describe("cold storage", () => {
  const cold = parseAddress(added.address);
  const coldKey = { address: cold, privateKey: Buffer.from("22".repeat(32), "hex") };

  it("is in the proof where its key signs; without it, it is named as left out", async () => {
    const before = (await verify((await make()).contents)).reservesAtoken;
    await nameColdAddresses(ledger.owner, [{ asset: "TOKEN", address: cold }]);
    const without = await make();
    expect(without.coldLeftOut).toEqual([cold]);
    expect((await verify(without.contents)).reservesAtoken).toBe(before);
    const whole = await make(keys, [], {}, [coldKey]);
    expect(whole.coldLeftOut).toEqual([]);
    const proven = await verify(whole.contents);
    expect(proven).toMatchObject({ accounts: 3, wallets: 2, reservesAtoken: before + PAID });
    const { signatures } = whole.contents;
    const unsigned = signatures.filter(({ address }) => address !== cold);
    await expect(verify({ ...whole.contents, signatures: unsigned })).rejects.toMatchObject({
      code: "NOT_PROVEN",
    });
  });

  it("is not taken for proven by a key that signs nothing", async () => {
    const stranger = {
      address: parseAddress(`0x${"7d".repeat(20)}`),
      privateKey: coldKey.privateKey,
    };
    await expect(make(keys, [], {}, [stranger])).rejects.toMatchObject({
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
    await registerTestWallets(ledger.owner, HOT, second, third);
    const word = { operator: "test", reason: "the key is old" };
    await drainWallet(ledger.owner, third, word);
    const empty = { balanceAtoken: 0n, tokens: [], height: 0, dustAtoken: 0n, force: false };
    await retireWallet(ledger.owner, third, { ...word, ...empty });
    await expect(make()).rejects.toThrow(second);
    const secondKey = { address: second, privateKey: Buffer.from("22".repeat(32), "hex") };
    const { contents } = await make([...keys, secondKey]);
    const proven = await verify(contents);
    expect(proven).toMatchObject({ accounts: 3, wallets: 2, owedAtoken: 935n });
    const states = await Promise.all(
      [HOT, second, DEPOSITS].map((address) => chain.chain.view.proof(address, [], HEIGHT, signal)),
    );
    const held = states.map(({ account }) => account.balanceAtoken);
    expect(held[1]).toBe(PAID);
    expect(proven.reservesAtoken).toBe(held.reduce((sum, units) => sum + units, 0n));
    const signatures = contents.signatures.filter(({ address }) => address === HOT);
    await expect(verify({ ...contents, signatures })).rejects.toMatchObject({ code: "NOT_PROVEN" });
  });
});
