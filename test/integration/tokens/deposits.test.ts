/**
 * Everything that looks like a deposit, on a real chain: coins and tokens that came are credited, each
 * once and no unit more; what only says so is recorded. Prints recall and precision.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import { listSightings } from "../../../ledger/assets/token-sightings.js";
import { acceptCode, readTokenStates } from "../../../ledger/assets/token-state.js";
import { TokenBook } from "../../../deposit-watcher/tokens/token-book.js";
import { customerBalances, listDeposits } from "../../../ledger/deposits/deposit-queries.js";
import { compileFixture } from "../../helpers/contracts/solidity.js";
import { listEvents } from "../../helpers/events.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { openTokenBook } from "../../helpers/services/watcher.js";
import { until } from "../../helpers/until.js";
import { WALLET } from "../../helpers/exchange/house.js";
import {
  callOf,
  contractAt,
  createdAt,
  depositKey,
  ISSUER,
  type Message,
  TokenBench,
  TOKENS,
} from "./token-bench.js";

/** Tokens that take of who receives. */
const RECEIVER_FEE = createdAt(8);
const RECEIVER_BURN = createdAt(9);

const LISTED = [
  ...TOKENS,
  { symbol: "TAKEN", contractAddress: RECEIVER_FEE, decimals: 18 },
  { symbol: "BURNT", contractAddress: RECEIVER_BURN, decimals: 18 },
];

let bench: TokenBench;
let alice: Address;
let bob: Address;

/** A transaction, the deposits that it must make, and what must be recorded of it. */
interface Case {
  readonly name: string;
  readonly kind: "native" | "ERC-20";
  readonly message: Message;
  /** "customer asset units", in any order. */
  readonly expected: readonly string[];
  /** Reasons of sightings. */
  readonly recorded?: readonly string[];
}

function nativeCases(): Case[] {
  const kind = "native" as const;
  const paid = (units: bigint) => [`alice TOKEN ${units}`];
  const payer = (method: string, args: readonly unknown[], value: bigint) =>
    callOf("Payer", method, args, value);
  const self = { from: depositKey(0), to: alice };
  return [
    { name: "plain", message: { to: alice, value: 1_001n }, expected: paid(1_001n) },
    {
      name: "with calldata",
      message: { to: alice, value: 1_002n, data: "0xa9059cbb0000" },
      expected: paid(1_002n),
    },
    {
      name: "out of inner calls",
      message: payer("forward", [[alice, alice], 501n, 2n], 1_002n),
      expected: [...paid(501n), ...paid(501n)],
    },
    {
      name: "SELFDESTRUCT payout",
      message: payer("destroyTo", [alice], 1_004n),
      expected: paid(1_004n),
    },
    {
      name: "undone inner frame of a successful one",
      message: payer("payThenRevertInside", [alice, 1_005n], 1_006n),
      expected: paid(1n),
    },
    { name: "failed transaction", message: payer("fail", [alice], 1_007n), expected: [] },
    { name: "zero value", message: { to: alice, value: 0n }, expected: [] },
    { name: "to itself", message: { ...self, value: 5n }, expected: [] },
  ].map((each) => ({ ...each, kind }));
}

function tokenCases(): Case[] {
  const kind = "ERC-20" as const;
  const plain = (method: string, args: readonly unknown[]) => callOf("PlainToken", method, args);
  const forge = (method: string, args: readonly unknown[]) => callOf("Forger", method, args);
  const from = ISSUER.address;
  const cases: Omit<Case, "kind">[] = [
    {
      name: "transfer",
      message: plain("transfer", [alice, 2_001n]),
      expected: ["alice PLAIN 2001"],
    },
    { name: "mint", message: plain("mint", [bob, 2_002n]), expected: ["bob PLAIN 2002"] },
    {
      name: "many logs of one transaction",
      message: plain("transferMany", [
        [alice, bob, alice],
        [11n, 22n, 33n],
      ]),
      expected: ["alice PLAIN 11", "bob PLAIN 22", "alice PLAIN 33"],
    },
    { name: "undone inner frame", message: plain("transferAndUndo", [alice, 7n]), expected: [] },
    { name: "zero units", message: plain("transfer", [alice, 0n]), expected: [] },
    {
      name: "to itself",
      message: { ...plain("transfer", [alice, 5n]), from: depositKey(0) },
      expected: [],
    },
    {
      name: "one of ours to another",
      message: { ...plain("transfer", [bob, 6n]), from: depositKey(0) },
      expected: ["bob PLAIN 6"],
    },
    {
      name: "fee on transfer",
      message: callOf("FeeToken", "transfer", [alice, 1_000n]),
      expected: ["alice FEE 990"],
      recorded: ["SHORTFALL"],
    },
    {
      name: "fee of who receives",
      message: { ...plain("transfer", [alice, 100n]), to: RECEIVER_FEE },
      expected: ["alice TAKEN 97"],
      recorded: ["SHORTFALL"],
    },
    {
      name: "fee of who receives, many logs",
      message: {
        ...plain("transferMany", [
          [alice, bob, alice],
          [100n, 200n, 300n],
        ]),
        to: RECEIVER_BURN,
      },
      expected: ["alice BURNT 100", "alice BURNT 288", "bob BURNT 194"],
      recorded: ["SHORTFALL", "SHORTFALL"],
    },
    {
      name: "log of another contract",
      message: forge("fungible", [from, alice, 9_999n]),
      expected: [],
      recorded: ["UNKNOWN_TOKEN"],
    },
    {
      name: "unlisted token",
      message: callOf("StrangeToken", "mint", [alice, 77n]),
      expected: [],
      recorded: ["UNKNOWN_TOKEN"],
    },
    {
      name: "listed token that lies",
      message: callOf("MoodyToken", "transfer", [alice, 123n]),
      expected: [],
      recorded: ["NOT_ARRIVED"],
    },
    {
      name: "ERC-721 topics",
      message: forge("nft", [from, alice, 42n]),
      expected: [],
      recorded: ["NFT"],
    },
    {
      name: "ERC-1155",
      message: forge("single", [from, alice, 1n, 5n]),
      expected: [],
      recorded: ["NFT"],
    },
    {
      name: "ERC-1155 batch",
      message: forge("batch", [from, alice, [1n, 2n]]),
      expected: [],
      recorded: ["NFT"],
    },
    {
      name: "nothing indexed",
      message: forge("unindexed", [from, alice, 8n]),
      expected: [],
      recorded: ["MALFORMED"],
    },
    {
      name: "behind a proxy",
      message: callOf("UpgradableProxy", "transfer", [alice, 3_003n]),
      expected: ["alice PROXY 3003"],
    },
  ];
  return cases.map((each) => ({ ...each, kind }));
}

beforeAll(async () => {
  bench = await TokenBench.open(undefined, LISTED);
  alice = await bench.register("alice");
  bob = await bench.register("bob");
  await bench.watch(LISTED);
  await bench.deploy();
  const compiled = compileFixture("DepositTokens.sol");
  const created = ["ReceiverFeeToken", "ReceiverBurnToken"];
  await bench.mine(created.map((name) => ({ data: compiled[name]?.bytecode ?? "" })));
  const minted = callOf("PlainToken", "mint", [ISSUER.address, 1_000_000n]);
  await bench.mine([
    { ...minted, to: RECEIVER_FEE },
    { ...minted, to: RECEIVER_BURN },
    callOf("PlainToken", "mint", [ISSUER.address, 1_000_000n]),
    callOf("FeeToken", "mint", [ISSUER.address, 1_000_000n]),
    callOf("UpgradableProxy", "mint", [ISSUER.address, 1_000_000n]),
    callOf("PlainToken", "mint", [alice, 500n]),
    callOf("MoodyToken", "setMood", [3n]),
    { to: alice, value: 10n ** 18n },
  ]);
});

afterAll(() => bench.close());

/** The lease of the watcher that books. */
async function leaseNow(): Promise<{ readonly epoch: bigint }> {
  const [row] = await bench.database.query<{ epoch: string }>(
    `SELECT lease_epoch::text AS epoch FROM watch_lease`,
  );
  return { epoch: BigInt(row?.epoch ?? "0") };
}

/** "customer asset units" of the deposits of a transaction in a state. */
async function depositsOf(hash: Hash32, state = "credited"): Promise<string[]> {
  const rows = await listDeposits(bench.database, { afterSeq: 0, limit: 1_000 });
  return rows
    .filter(({ txHash, status }) => txHash === hash && status === state)
    .map(({ customerId, asset, amountUnits }) => `${customerId} ${asset} ${amountUnits}`)
    .toSorted();
}

async function recordedOf(txHash: Hash32): Promise<string[]> {
  const rows = await listSightings(bench.database, { txHash, afterId: 0, limit: 100 });
  return rows.map(({ reason }) => reason);
}

describe("deposits on a real chain", () => {
  it("are all found, and nothing else is credited", async () => {
    const cases = [...nativeCases(), ...tokenCases()];
    // Some in one block, the others in blocks of their own: neither may matter.
    const half = Math.floor(cases.length / 2);
    const hashes = await bench.mine(cases.slice(0, half).map(({ message }) => message));
    for (const { message } of cases.slice(half)) hashes.push(...(await bench.mine([message])));
    await bench.mine([]);
    await bench.caughtUp();
    const table = new Map<string, { due: number; found: number; wrong: number }>();
    for (const [index, { name, kind, expected, recorded = [] }] of cases.entries()) {
      const hash = hashes[index] ?? ("0x" as Hash32);
      const credited = await depositsOf(hash);
      const counts = table.get(kind) ?? { due: 0, found: 0, wrong: 0 };
      const left = [...credited];
      for (const wanted of expected) {
        const at = left.indexOf(wanted);
        if (at >= 0) left.splice(at, 1);
        counts.found += at >= 0 ? 1 : 0;
      }
      table.set(kind, {
        due: counts.due + expected.length,
        found: counts.found,
        wrong: counts.wrong + left.length,
      });
      expect([name, credited]).toEqual([name, expected.toSorted()]);
      expect([name, await recordedOf(hash)]).toEqual([name, recorded]);
    }
    const rows = [...table].map(([kind, { due, found, wrong }]) => ({
      kind,
      cases: cases.filter((each) => each.kind === kind).length,
      deposits: due,
      recall: `${((100 * found) / due).toFixed(1)} %`,
      precision: `${((100 * found) / (found + wrong)).toFixed(1)} %`,
    }));
    console.table(rows);
    for (const { recall, precision } of rows)
      expect([recall, precision]).toEqual(["100.0 %", "100.0 %"]);
  });

  it("leave ledger and chain even in every asset", async () => {
    const report = await bench.reconcile();
    expect(report.internalBreaks).toEqual([]);
    expect(report.tokens.map(({ asset }) => asset)).toEqual([
      "BURNT",
      "FEE",
      "MOODY",
      "PLAIN",
      "PROXY",
      "TAKEN",
    ]);
    for (const { asset, lines } of [{ asset: "TOKEN", lines: report.lines }, ...report.tokens]) {
      // What the test itself took from a deposit address stands for a sweep that nobody asked for.
      const uneven = lines.flatMap(({ breaks }) => breaks.flatMap(({ causes }) => causes));
      const isOwn = asset === "PLAIN" || asset === "TOKEN";
      expect([asset, uneven.length > 0]).toEqual([asset, isOwn]);
    }
    const plain = report.tokens.find(({ asset }) => asset === "PLAIN");
    expect(plain?.lines[1]?.differenceUnits).toBe(-6n);
  });

  it("of a token whose proxy runs other code are held until a person accepts it", async () => {
    const before = await customerBalances(bench.database, parseCustomerId("alice"));
    const plainBefore = before?.find(({ asset }) => asset === "PLAIN")?.availableUnits ?? 0n;
    const [, paid = "0x" as Hash32, plain = "0x" as Hash32] = await bench.mine([
      callOf("UpgradableProxy", "upgradeTo", [contractAt("SecondPlain")]),
      callOf("UpgradableProxy", "transfer", [alice, 1_000n]),
      callOf("PlainToken", "transfer", [alice, 44n]),
    ]);
    await bench.mine([]);
    await bench.mine([]);
    await bench.caughtUp();
    expect(await depositsOf(paid, "held")).toEqual(["alice PROXY 990"]);
    // Others go on.
    expect(await depositsOf(plain)).toEqual(["alice PLAIN 44"]);
    const after = await customerBalances(bench.database, parseCustomerId("alice"));
    expect(after?.find(({ asset }) => asset === "PLAIN")?.availableUnits).toBe(plainBefore + 44n);
    const state = (await readTokenStates(bench.database)).get("PROXY");
    expect(state?.isPaused).toBe(true);
    const events = await listEvents(bench.database, { afterSeq: 0, limit: 1_000 });
    expect(events.filter(({ type }) => type === "token.paused")).toHaveLength(1);
    await expect(
      bench.ledger.owner.query(`UPDATE deposit SET status = 'credited' WHERE status = 'held'`),
    ).rejects.toThrow("stands still");

    const height = await bench.node.blockNumber({ signal: new AbortController().signal });
    const at = [{ contract: contractAt("UpgradableProxy"), at: height }];
    const [code] = await bench.node.tokenCodes(at, { signal: new AbortController().signal });
    if (code === undefined) throw new Error("no code");
    await acceptCode(bench.ledger.owner, { ...code, asset: "PROXY", height, by: "test" });
    await bench.mine([]);
    await bench.caughtUp();
    expect(await depositsOf(paid)).toEqual(["alice PROXY 990"]);
  });

  it("names foreign movements of the hot wallet's tokens", async () => {
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 900n])]);
    await bench.mine([]);
    await bench.caughtUp();
    const rows = await bench.ledger.owner.query<{ credit: string; amount: string }>(
      `SELECT credit, amount_units::text AS amount FROM posting
        WHERE is_wallet_account(debit) AND asset = 'PLAIN'`,
    );
    expect(rows).toEqual([{ credit: "liability:suspense", amount: "900" }]);
  });
});

describe("what lay at addresses before they counted", () => {
  it("goes to suspense, whichever came first, the address or the token", async () => {
    const carol = parseAddress(depositKey(2).address.toLowerCase());
    await bench.mine([callOf("PlainToken", "mint", [carol, 71n])]);
    await bench.mine([]);
    await bench.caughtUp();
    expect(await bench.register("carol")).toBe(carol);
    await until(
      async () => {
        const rows = await bench.database.query<{ amount: string }>(
          `SELECT p.amount_units::text AS amount FROM posting p
             JOIN journal_entry e ON e.id = p.journal_id
            WHERE e.kind = 'deposit.token_opening' AND p.asset = 'PLAIN'`,
        );
        return rows.length === 1 && rows[0]?.amount === "71";
      },
      { timeoutMs: 10_000, what: "the past of the address is booked" },
    );
    const report = await bench.reconcile();
    const plain = report.tokens.find(({ asset }) => asset === "PLAIN");
    expect(plain?.lines[1]?.differenceUnits).toBe(-6n);

    // The ledger learns of a token that has been around.
    const late = { symbol: "LATE", contractAddress: contractAt("StrangeToken"), decimals: 0 };
    const [signal, entries] = [new AbortController().signal, [...LISTED, late]];
    const parts = { database: bench.database, node: bench.node, hotWallet: WALLET, log: silentLog };
    await openTokenBook(parts, entries, { signal });
    await openTokenBook(parts, entries, { signal });
    const found = (await bench.reconcile()).tokens.find(({ asset }) => asset === "LATE");
    expect(found?.lines[1]).toMatchObject({ ledgerUnits: 77n, chainUnits: 77n, breaks: [] });
    // Whoever sweeps looks there, too.
    const due = await bench.database.query(
      `SELECT height >= 0 AS due FROM sweep_due WHERE asset = 'LATE'`,
    );
    expect(due).toEqual([{ due: true }]);
  });

  it("counts only with the code that the list names, and stops at any other", async () => {
    const contractAddress = contractAt("SecondPlain");
    const at = { contract: contractAddress, at: 1 };
    const [code] = await bench.node.tokenCodes([at], { signal: new AbortController().signal });
    const pinned = { symbol: "PINNED", contractAddress, decimals: 0, codeHash: code?.codeHash };
    const other = `0x${"0d".repeat(32)}` as Hash32;
    const wrong = { ...pinned, symbol: "WRONG", contractAddress: contractAt("Payer") };
    const late = { symbol: "LATE", contractAddress: contractAt("StrangeToken"), decimals: 0 };
    const entries = [...LISTED, late, pinned, { ...wrong, codeHash: other }];
    const { signal } = new AbortController();
    const parts = { database: bench.database, node: bench.node, hotWallet: WALLET, log: silentLog };
    const book = await openTokenBook(parts, entries, { signal });
    const header = await bench.node.getBlockHeader("latest", { signal });
    const head = { height: header?.height ?? 0, blockHash: header?.hash };
    // Another watcher has taken over since this one began to look.
    const { epoch } = await leaseNow();
    const behind = book.checkCodes(head, { lease: { epoch: epoch - 1n }, signal });
    await expect(behind).rejects.toMatchObject({ code: "WATCH_LEASE_LOST" });
    expect((await readTokenStates(bench.database)).get("WRONG")?.isPaused).toBe(false);
    const again = await openTokenBook(parts, entries, { signal });
    const reasons = await again.checkCodes(head, { lease: { epoch }, signal });
    expect(reasons).toEqual([expect.stringContaining("accept-code WRONG")]);
    const states = await readTokenStates(bench.database);
    expect(["PINNED", "WRONG"].map((asset) => states.get(asset)?.isPaused)).toEqual([false, true]);
  });

  it("is never taken over by a list that says otherwise", async () => {
    const parts = { database: bench.database, node: bench.node, hotWallet: WALLET, log: silentLog };
    const [plain, ...others] = LISTED;
    if (plain === undefined) throw new Error("no token");
    for (const entries of [
      others,
      [{ ...plain, decimals: 7 }, ...others],
      [{ ...plain, contractAddress: contractAt("Forger") }, ...others],
      [{ ...plain, symbol: "OTHER" }, ...others],
    ]) {
      await expect(TokenBook.open(parts, entries)).rejects.toMatchObject({
        code: "ASSET_CONTRADICTED",
      });
    }
    await expect(
      bench.ledger.owner.query(
        `INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
         VALUES (1, 9, 'NOBODY', 'asset:hot_wallet', 'liability:suspense', 1)`,
      ),
    ).rejects.toThrow("no asset is called NOBODY");
  });
});
