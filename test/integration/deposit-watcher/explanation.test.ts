/** Why a transaction was credited or not, as far as the ledger and its block tell by themselves. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../chain/address.js";
import { parseHash32 } from "../../../chain/hex.js";
import {
  type ExplanationParts,
  explainTransaction,
} from "../../../deposit-watcher/api/explanation.js";
import { explainAssets } from "../../../deposit-watcher/api/asset-explanations.js";
import { readTokenAssets } from "../../../ledger/assets/asset-registry.js";
import { bookOpening, openingEntry } from "../../../ledger/assets/token-opening.js";
import { recordSightings, type SightingReason } from "../../../ledger/assets/token-sightings.js";
import { insertDeposits } from "../../../ledger/blocks/new-deposits.js";
import type { DepositStatus } from "../../../ledger/deposits/deposit-queries.js";
import { type CustomerId, parseCustomerId, UNASSIGNED } from "../../../ledger/journal/accounts.js";
import { postJournals } from "../../../ledger/journal/journal.js";
import { NodeFault, RpcError } from "../../../rpc-client/errors.js";
import { openTestLedger, type TestLedger } from "../../helpers/services/ledger.js";
import { HOT, registerAddress, STRANGER } from "../../helpers/services/watcher.js";

const ALICE = parseCustomerId("alice");
const HASH = parseHash32(`0x${"ab".repeat(32)}`);
const address = parseAddress(`0x${"01".repeat(20)}`);
/** Registered later, where a test does it. */
const younger = parseAddress(`0x${"03".repeat(20)}`);
const GOLD = parseAddress(`0x${"02".repeat(20)}`);
const STRAY = parseAddress(`0x${"04".repeat(20)}`);

let ledger: TestLedger;

beforeEach(async () => {
  ledger = await openTestLedger();
  await registerAddress(ledger.database, ALICE, { deriveAddress: () => address, issuedBelow: 0 });
});
afterEach(() => ledger.drop());

/** One transaction with a deposit of each state, in the order of its operations; the last one is of an asset. */
async function book(
  states: readonly DepositStatus[],
  { lastAsset = "TOKEN", customerId = ALICE } = {},
): Promise<void> {
  const rows = states.map((status, opIndex) => ({
    status,
    deposit: {
      address,
      customerId,
      asset: opIndex === states.length - 1 ? lastAsset : "TOKEN",
      amountUnits: 1n,
      height: 5,
      blockHash: HASH,
      txHash: HASH,
      txIndex: 0,
      opIndex,
      creditable: status !== "suspense",
    },
  }));
  await ledger.database.transaction((tx) => insertDeposits(tx, rows));
}

/** What the same transaction brought, or claimed to bring, and what is not credited. */
async function sight(reason: SightingReason, at = address, contract = GOLD): Promise<void> {
  const opIndex = 1_000_000_000 + Number(contract !== GOLD);
  const place = { height: 5, blockHash: HASH, txHash: HASH, txIndex: 0, opIndex };
  const claim = { contract, standard: "erc20", sender: undefined, claimed: 7n } as const;
  const sightings = [{ ...place, ...claim, address: at, reason }];
  await ledger.database.transaction((tx) => recordSightings(tx, sightings, 0));
}

/** The ledger knows the answer, but for what is given: nobody else is asked. */
async function explain(asked: Parameters<typeof partsOf>[0] = {}) {
  return explainTransaction(partsOf(asked), HASH, new AbortController());
}

/** Codes asset by asset, by symbol or contract. */
async function assetsOf(asked: Parameters<typeof partsOf>[0] = {}) {
  const parts = partsOf(asked);
  const explained = await explainTransaction(parts, HASH, new AbortController());
  const assets = await explainAssets(parts, HASH, explained, new AbortController());
  for (const { message } of assets) expect(message).toMatch(/\.$/);
  return assets.map(({ asset, contract, code }) => `${asset ?? contract} ${code}`);
}

function partsOf({
  node: told = {},
  source = { block: nobody },
  customerId = ALICE,
}: {
  readonly node?: Partial<ExplanationParts["node"]>;
  readonly source?: ExplanationParts["source"];
  readonly customerId?: CustomerId;
} = {}) {
  const node = {
    transactionStatus: nobody,
    getTransactionReceipt: nobody,
    getBlockHeader: nobody,
    blockJournal: nobody,
    ...told,
  };
  const watched = {
    customerOf: (one: Address) => ([address, younger].includes(one) ? customerId : undefined),
    assetOf: (contract: Address) => (contract === GOLD ? "GOLD" : undefined),
    walletFrom: (one: Address) => (one === HOT ? 0 : undefined),
  };
  return { database: ledger.database, node, source, watched };
}

function nobody(): Promise<never> {
  return Promise.reject(new Error("the ledger knows the answer"));
}

/** As a token of the list that counts from a block on; what was there before block 0 needs no opening. */
async function listGold(fromHeight: number): Promise<void> {
  await ledger.owner.query(
    `INSERT INTO asset (symbol, contract, decimals, from_height) VALUES ('GOLD', $1, 6, $2)`,
    [GOLD, fromHeight],
  );
  await ledger.owner.query(
    `INSERT INTO token_state (asset, opened, changed_by) VALUES ('GOLD', $1, 'registry')`,
    [fromHeight === 0],
  );
}

it.each([
  ["suspense", "SUSPENSE"],
  ["held", "HELD"],
  ["detected", "CONFIRMING"],
] as const)(
  "a deposit that is %s is told behind a hundred that are credited",
  async (state, code) => {
    await book([...Array.from({ length: 100 }, () => "credited" as const), state]);
    const found = await explain();
    expect(found.code).toBe(code);
    expect(found.deposits).toHaveLength(100);
    expect(found.deposits.at(-1)).toMatchObject({ opIndex: 100, status: state });
  },
);

it("a token's deposit that is held is explained by its own token, whatever else came with it", async () => {
  await listGold(0);
  await ledger.owner.query(`UPDATE token_state SET paused = true, reason = 'it runs other code'`);
  await book(["credited", "held"], { lastAsset: "GOLD" });
  const { code, message } = await explain();
  expect([code, message]).toEqual([
    "HELD",
    "The deposit is held: GOLD is paused: it runs other code.",
  ]);
});

it.each([
  ["UNKNOWN_TOKEN", "which is not listed here: it is recorded, not credited."],
  ["SHORTFALL", "The token claims 7 units that the balance of the address did not rise by."],
] as const)("a credited deposit does not hide what came beside it: %s", async (reason, words) => {
  await book(["credited"]);
  expect((await explain()).message).toBe("Its deposits are credited.");
  await sight(reason);
  const { code, message } = await explain();
  expect(code).toBe("CREDITED");
  expect(message).toMatch(/^Its deposits are credited\. Beside that: /);
  expect(message.endsWith(words)).toBe(true);
});

it.each([
  [ALICE, ALICE, "or a person has to decide about them after a loss"],
  [UNASSIGNED, UNASSIGNED, "causeway ledger assign-address"],
  [UNASSIGNED, ALICE, "causeway ledger assign-deposit"],
])(
  "what lies in suspense for %s names what it waits for: now %s's",
  async (of, customerId, words) => {
    await ledger.owner.query(`INSERT INTO customer (id) VALUES ($1) ON CONFLICT DO NOTHING`, [of]);
    await book(["suspense"], { customerId: of });
    const { code, message } = await explain({ customerId });
    expect(code).toBe("SUSPENSE");
    expect(message).toContain(words);
  },
);

describe("a transaction that brings several assets", () => {
  const away = () =>
    Promise.reject(new NodeFault("NODE_UNREACHABLE", "no connection", { retriable: true }));
  const readTo = (height: number) =>
    ledger.owner.query(`UPDATE watch_cursor SET height = $1, block_hash = $2`, [height, HASH]);
  const receipt = {
    transactionHash: HASH,
    blockHash: HASH,
    height: 5,
    transactionIndex: 0,
    from: STRANGER,
    to: GOLD,
    contractAddress: undefined,
    status: 1,
    gasUsed: 1n,
    effectiveGasPriceAtoken: 1n,
    transfers: [GOLD, STRAY].map((contract) => {
      return { contract, from: STRANGER, to: address, units: 7n };
    }),
  } as const;

  it("has the state of the deposits of each, and what is recorded of each other token", async () => {
    await readTo(9);
    await listGold(0);
    await ledger.owner.query(`UPDATE token_state SET paused = true, reason = 'it runs other code'`);
    await book(["credited", "held"], { lastAsset: "GOLD" });
    await sight("SHORTFALL");
    await sight("NFT", address, STRAY);
    const node = { getTransactionReceipt: away };
    expect(await assetsOf({ node, source: { block: away } })).toEqual([
      "TOKEN CREDITED",
      "GOLD HELD",
      "GOLD TOKEN_NOT_ARRIVED",
      `${STRAY} TOKEN_NOT_CREDITED`,
    ]);
  });

  it("has those, too, that only its logs tell: of before a token was listed, and of no list", async () => {
    await readTo(9);
    await listGold(8);
    await book(["detected"]);
    const source = { block: away };
    const node = { getTransactionReceipt: async () => receipt };
    expect(await assetsOf({ node, source })).toEqual([
      "TOKEN CONFIRMING",
      "GOLD NOT_READ_YET",
      `${STRAY} TOKEN_NOT_CREDITED`,
    ]);
  });

  it("has an asset of which no deposit is listed, where it made more than are", async () => {
    await readTo(9);
    await listGold(0);
    const many = Array.from({ length: 100 }, (): DepositStatus => "detected");
    await book([...many, "credited"], { lastAsset: "GOLD" });
    const node = { getTransactionReceipt: async () => receipt };
    expect(await assetsOf({ node, source: { block: away } })).toEqual([
      "TOKEN CONFIRMING",
      "GOLD CREDITED",
      `${STRAY} TOKEN_NOT_CREDITED`,
    ]);
  });

  it("has none of them while its block is not read", async () => {
    await readTo(4);
    await book(["detected"]);
    expect(await assetsOf()).toEqual([]);
  });
});

describe("a transaction that the node does not know", () => {
  const pruned = new RpcError("pruned history unavailable", {
    rpcCode: 4444,
    method: "eth_getBlockByNumber",
  });
  const unknownTo = (getBlockHeader: ExplanationParts["node"]["getBlockHeader"]) =>
    explain({ node: { transactionStatus: async () => ({ status: "unknown" }), getBlockHeader } });

  it("is told by what was recorded of it, whose block the node may have deleted since", async () => {
    await sight("UNKNOWN_TOKEN");
    const found = await unknownTo(() => Promise.reject(pruned));
    expect([found.code, found.height]).toEqual(["TOKEN_NOT_CREDITED", 5]);
    expect(found.message).toContain(GOLD);
  });

  it("was never seen only by a node that has all blocks", async () => {
    const never = await unknownTo(async () => undefined);
    const message = "The node has never seen a transaction of this hash.";
    expect(never).toMatchObject({ code: "UNKNOWN_TRANSACTION", message, deposits: [] });
    const gone = await unknownTo(() => Promise.reject(pruned));
    expect(gone.code).toBe("UNKNOWN_TRANSACTION");
    expect(gone.message).not.toContain("never");
    expect(gone.message).toContain("deleted its oldest blocks");
  });
});

describe("units of a listed token that were there before they counted", () => {
  /** Blocks below it are read: who is registered now counts from it on. */
  const readBelow = (height: number) =>
    ledger.owner.query(`UPDATE watch_cursor SET height = $1, block_hash = $2`, [height - 1, HASH]);
  const registerYounger = () =>
    registerAddress(ledger.database, ALICE, { deriveAddress: () => younger, issuedBelow: 0 });
  const pastIsBooked = () => ledger.owner.query(`UPDATE deposit_address SET backfilled = true`);

  /** A transaction of block 5 that brought some, as the operations of its block or its logs tell. */
  function explainGold(to: Address, by: "operation" | "log", { height = 5, from = STRANGER } = {}) {
    const operation = {
      index: 0,
      type: "ERC20_TRANSFER",
      status: "SUCCESS",
      isNative: false,
      contract: GOLD,
    } as const;
    const operations = [
      { ...operation, address: from, amountAtoken: -7n, relatedIndexes: [] },
      { ...operation, index: 1, address: to, amountAtoken: 7n, relatedIndexes: [0] },
    ];
    const transactions = [
      { hash: HASH, index: 0, operations: by === "operation" ? operations : [] },
    ];
    const block = { height, hash: HASH, parentHash: HASH, timestampMs: 0, transactionCount: 1 };
    const sizes = { accountCount: 2, sizeBytes: 0 };
    const receipt = {
      transactionHash: HASH,
      blockHash: HASH,
      height,
      transactionIndex: 0,
      from,
      to: GOLD,
      contractAddress: undefined,
      status: 1,
      gasUsed: 1n,
      effectiveGasPriceAtoken: 1n,
      transfers: [{ contract: GOLD, from, to, units: 7n }],
    } as const;
    return explain({
      node: {
        transactionStatus: async () => ({ status: "included", height, index: 0 }),
        getTransactionReceipt: async () => receipt,
      },
      source: {
        block: async () => ({
          ...block,
          ...sizes,
          transactions: async () => transactions,
          addresses: () => new Set<Address>(),
        }),
      },
    });
  }

  async function expectPartOfSum(asked: ReturnType<typeof explainGold>): Promise<void> {
    const { code, message, deposits } = await asked;
    expect([code, deposits]).toEqual(["SUSPENSE", []]);
    expect(message).toContain("GOLD arrived before the address or the token was registered");
    expect(message).toContain("as a part of one sum");
  }

  /** As the watcher opens it. */
  async function open(): Promise<void> {
    const [token] = await readTokenAssets(ledger.database);
    if (token === undefined) throw new Error("no token");
    const balances = [{ asset: "GOLD", address, amountUnits: 7n, isHotWallet: false }];
    await bookOpening(ledger.database, token, { balances, rewinds: 0, bookedPasts: 0 });
  }

  it.each(["operation", "log"] as const)(
    "lie in suspense for an address by its past: %s",
    async (by) => {
      await listGold(0);
      await readBelow(20);
      const { fromHeight } = await registerYounger();
      expect(fromHeight).toBe(20);
      expect(await explainGold(younger, by)).toMatchObject({ code: "NOT_READ_YET" });
      await ledger.database.transaction((tx) =>
        postJournals(tx, [
          openingEntry({ address: younger, fromHeight }, { asset: "GOLD", amountUnits: 7n }, 0),
        ]),
      );
      await pastIsBooked();
      await expectPartOfSum(explainGold(younger, by));
      // Of a block that counts they would be a deposit.
      await readBelow(21);
      const { code, message } = await explainGold(younger, by, { height: 20 });
      expect([code, message]).toEqual(["NOT_READ_YET", expect.stringContaining("has no deposit")]);
      expect((await explainGold(younger, by, { from: younger })).code).toMatch(/^NO/);
    },
  );

  it.each(["operation", "log"] as const)(
    "lie in suspense by the token's opening: %s",
    async (by) => {
      await readBelow(20);
      await listGold(20);
      expect(await explainGold(address, by)).toMatchObject({ code: "NOT_READ_YET" });
      await open();
      await expectPartOfSum(explainGold(address, by));
    },
  );

  it("are not said to lie where nothing was booked of them", async () => {
    await listGold(0);
    await readBelow(20);
    await registerYounger();
    await pastIsBooked();
    expect(await explainGold(younger, "log")).toMatchObject({ code: "TOKEN_NOT_ARRIVED" });
  });

  it("lie there, too, where they were seen before the token was listed", async () => {
    await readBelow(20);
    await sight("UNKNOWN_TOKEN");
    expect(await explainGold(address, "log")).toMatchObject({ code: "TOKEN_NOT_CREDITED" });
    await listGold(20);
    expect(await explainGold(address, "log")).toMatchObject({ code: "NOT_READ_YET" });
    await open();
    await expectPartOfSum(explainGold(address, "log"));
    await book(["credited"]);
    const { code, message } = await explain();
    expect(code).toBe("CREDITED");
    expect(message).toMatch(/^Its deposits are credited\. Beside that: .*as a part of one sum/);
  });

  it("are the exchange's own at a hot wallet", async () => {
    await readBelow(20);
    await listGold(20);
    await sight("UNKNOWN_TOKEN", HOT);
    expect(await explainGold(HOT, "log")).toMatchObject({ code: "NOT_A_DEPOSIT" });
  });

  it("are not called unlisted where the token writes them in its own way", async () => {
    await listGold(0);
    await readBelow(20);
    await sight("MALFORMED");
    const { code, message } = await explainGold(address, "log");
    expect(code).toBe("TOKEN_NOT_CREDITED");
    expect(message).not.toContain("not listed");
  });
});
