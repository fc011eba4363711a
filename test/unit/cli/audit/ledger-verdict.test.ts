/** Books as a forger writes them, with hashes that are right: what each release tells has to be told. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { runVerifyLedger } from "../../../../cli/audit/ledger/commands.js";
import type { ExportLine } from "../../../../cli/audit/ledger/export-file.js";
import { type LedgerVerdict, verifyLedger } from "../../../../cli/audit/ledger/verify-ledger.js";
import {
  type CanonicalValue,
  type Link,
  type LinkKind,
  nextLink,
  rootHash,
  rowDigest,
} from "../../../../ledger/tamper/link-rules.js";

/** The key is by default what the row says that it is. */
type Row = readonly [LinkKind, readonly CanonicalValue[], key?: number];
type Told = Partial<Record<"deposits" | "withdrawals" | "wallets" | "decisions", number>>;

const TIME = "2026-11-01T00:00:00.000000Z";
const WALLET = `0x${"5a".repeat(20)}`;

const event = (n: number, type: string, data: object): Row => [
  "event",
  [`${n}`, "1", type, JSON.stringify(data), TIME],
];
const ofDeposit = { depositId: "1-0-0", customerId: "alice" };

/** What every release links. */
const BOOKS: readonly Row[] = [
  event(1, "deposit.detected", ofDeposit),
  event(2, "withdrawal.accepted", { withdrawalId: "wd_1", customerId: "alice" }),
  ["deposit", ["1", "1-0-0", WALLET, "TOKEN", "7", "1", "0xb", "0xc", "0", "0", "0", TIME]],
  ["withdrawal", ["1", "wd_1", "key", "hash", "alice", "TOKEN", "0xd", "0xd", "1", null, TIME]],
];

/** What the newest one links, too. */
const PERSONS: readonly Row[] = [
  ["wallet", ["1", WALLET, "hot", "0"]],
  ["wallet_change", ["1", WALLET, null, "active", "first", "ann", TIME]],
];

const DEPOSIT = { type: "deposit", ...ofDeposit, status: "detected" } as const;
const WITHDRAWAL = { type: "withdrawal", withdrawalId: "wd_1", status: "accepted" } as const;
const HOT = {
  type: "wallet",
  address: WALLET,
  status: "active",
  reason: "first",
  operator: "ann",
} as const;
const ALL: Told = { deposits: 1, withdrawals: 1, wallets: 1, decisions: 0 };

function linesOf(
  rows: readonly Row[],
  told: Told,
  kept: readonly ExportLine[],
): readonly ExportLine[] {
  const root = { ledgerId: "a ledger", genesisHash: `0x${"ab".repeat(32)}` };
  let head: Pick<Link, "n" | "hash"> = { n: 0, hash: rootHash(root) };
  const links = rows.map(([kind, row, key = Number(row[0])]): ExportLine => {
    const link = nextLink(head, { kind, key, digest: rowDigest(row) });
    head = link;
    return { type: "link", ...link, row: [...row] };
  });
  const ledger = { type: "ledger", format: "causeway-ledger-export/1", ...root } as const;
  const about = { chainId: "chain_6940-1", exportedAt: TIME, links: head.n, head: head.hash };
  return [{ ...ledger, ...about, ...told }, ...links, ...kept];
}

function verdictOf(...books: Parameters<typeof linesOf>): Promise<LedgerVerdict> {
  return verifyLedger(
    (async function* () {
      yield* linesOf(...books);
    })(),
  );
}

it("proves an export of today, and those of former releases, which told less", async () => {
  const today = await verdictOf([...BOOKS, ...PERSONS], ALL, [DEPOSIT, WITHDRAWAL, HOT]);
  expect(today).toMatchObject({ faults: [], areDepositsTold: true, arePersonsTold: true });
  for (const [told, kept, areDepositsTold, areWithdrawalsTold] of [
    [{ deposits: 1, withdrawals: 1 }, [DEPOSIT, WITHDRAWAL], true, true],
    [{ deposits: 1 }, [DEPOSIT], true, false],
    [{}, [], false, false],
  ] as const) {
    expect(await verdictOf(BOOKS, told, kept)).toMatchObject({
      faults: [],
      areDepositsTold,
      areWithdrawalsTold,
      arePersonsTold: false,
    });
  }
});

it("names what is left out by an export that pretends to be of a former release", async () => {
  const rows = [...BOOKS, ...PERSONS];
  const deposits = /^the export does not say whose deposits are, and has what came with a later/;
  const withdrawals = /^the export does not say what became of withdrawals, and has what came/;
  const pretended = async (told: Told, kept: readonly ExportLine[], of: readonly Row[] = rows) =>
    (await verdictOf(of, told, kept)).faults;
  const { deposits: _d, ...noDeposits } = ALL;
  expect(await pretended(noDeposits, [WITHDRAWAL, HOT])).toEqual([expect.stringMatching(deposits)]);
  const { withdrawals: _w, ...noWithdrawals } = ALL;
  expect(await pretended(noWithdrawals, [DEPOSIT, HOT])).toEqual([
    expect.stringMatching(withdrawals),
  ]);
  // Without the wallets either: their rows are in the chain.
  expect(await pretended({}, [])).toEqual([
    expect.stringMatching(deposits),
    expect.stringMatching(withdrawals),
    "of 1 wallets the export says of 0 how they stand",
  ]);
  // Deposits were told of before withdrawals were.
  expect(await pretended({ withdrawals: 1 }, [WITHDRAWAL], BOOKS)).toEqual([
    expect.stringMatching(deposits),
  ]);
});

it("holds a link's key against the row that it is about", async () => {
  const told: Told = { deposits: 0, withdrawals: 0 };
  const faultsOf = async (...rows: readonly Row[]) => (await verdictOf(rows, told, [])).faults;
  const address: Row = ["address", ["0", WALLET, "alice", "0", TIME], 1];
  const twice = event(1, "token.paused", {});
  expect(await faultsOf(twice, address)).toEqual([]);
  const [kind, row] = twice;
  expect(await faultsOf(twice, [kind, row, 2])).toEqual([
    'event 2 (token.paused) is another one by its first field, "1"',
  ]);
  expect(await faultsOf(["address", address[1], 2])).toEqual([
    expect.stringMatching(/^address 2 \(0x5a.*\) is another one by its first field, "0"$/),
  ]);
  expect(await faultsOf(["kill_switch", [" 1", "none", "r", "ann", TIME], 1])).toEqual([
    'kill switch 1 (none) is another one by its first field, " 1"',
  ]);
});

it("names a deposit that stands otherwise than the last event about it", async () => {
  const stands = async (status: string, ...events: readonly string[]) => {
    const rows = [...BOOKS, ...events.map((type, index) => event(index + 9, type, ofDeposit))];
    const kept = [{ ...DEPOSIT, status }, WITHDRAWAL];
    return (await verdictOf(rows, { deposits: 1, withdrawals: 1 }, kept)).faults;
  };
  // Former releases held deposits that were detected without an event of their own.
  for (const [status, ...events] of [
    ["detected"],
    ["held"],
    ["held", "deposit.held"],
    ["credited", "deposit.held", "deposit.credited"],
    ["suspense", "deposit.suspense"],
    ["suspense", "deposit.held", "deposit.suspense"],
    ["reversed", "deposit.credited", "deposit.reversed"],
  ] as const) {
    expect({ status, faults: await stands(status, ...events) }).toEqual({ status, faults: [] });
  }
  for (const [status, last, ...events] of [
    ["suspense", "deposit.detected"],
    ["reversed", "deposit.detected"],
    ["reversed", "deposit.held", "deposit.held"],
    ["held", "deposit.suspense", "deposit.suspense"],
    ["detected", "deposit.reversed", "deposit.reversed"],
    ["credited", "deposit.held", "deposit.held"],
    ["credited", "deposit.forged", "deposit.credited", "deposit.forged"],
  ] as const) {
    expect({ status, last, faults: await stands(status, ...events) }).toEqual({
      status,
      last,
      faults: [`deposit 1-0-0 is ${status}, and the last that was told is ${last}`],
    });
  }
});

describe("who asked for a withdrawal", () => {
  const decision = (rules: object, stage = "accept", id = 1): Row => [
    "decision",
    [`${id}`, "wd_1", "policy", stage, "approve", JSON.stringify(rules), TIME],
  ];
  const approval = (keyId: string, said = "approve"): Row => [
    "approval",
    ["1", "wd_1", keyId, said, "as asked", "policy", "digest", null, null, TIME],
  ];
  const verdict = async (rows: readonly Row[], requestedBy?: string | null) => {
    const told = requestedBy === undefined ? {} : { requestedBy };
    const kept = [DEPOSIT, { ...WITHDRAWAL, ...told }];
    return (await verdictOf([...BOOKS, ...rows], { deposits: 1, withdrawals: 1 }, kept)).faults;
  };

  it("may reject it, and be named by no release but the newest", async () => {
    const asked = decision({ approvals: 1, requestedBy: "asker" });
    expect(await verdict([asked, approval("bea")], "asker")).toEqual([]);
    expect(await verdict([asked, approval("asker", "reject")], "asker")).toEqual([]);
    expect(await verdict([decision({ requestedBy: null }), approval("bea")], null)).toEqual([]);
    // Of a former release: neither its decisions nor its exports say it.
    expect(await verdict([decision({ approvals: 1 }), approval("asker")])).toEqual([]);
    expect(await verdict([decision({ approvals: 1 }), approval("bea")], "asker")).toEqual([]);
    expect(await verdict([decision({ requestedBy: "asker" }, "slot"), approval("asker")])).toEqual(
      [],
    );
  });

  it("never approves it, whoever the row says that it was", async () => {
    const asked = decision({ approvals: 1, requestedBy: "asker" });
    const fault = 'withdrawal wd_1 was approved by "asker", who asked for it';
    expect(await verdict([asked, approval("asker")], "asker")).toEqual([fault]);
    expect(await verdict([approval("asker"), asked], "asker")).toEqual([fault]);
    expect(await verdict([asked, approval("asker")], "ann")).toEqual([
      'withdrawal wd_1 was asked for by "ann", and the decision that took it says by "asker"',
      fault,
    ]);
  });

  it("is told as the decision says that took it, and by no other one", async () => {
    const asked = decision({ requestedBy: "asker" });
    expect(await verdict([asked], null)).toEqual([
      'withdrawal wd_1 was asked for by null, and the decision that took it says by "asker"',
    ]);
    expect(await verdict([asked])).toEqual([
      "the export does not say who asked for withdrawal wd_1, and the decision that took it does",
    ]);
    const other = decision({ requestedBy: "ann" }, "accept", 2);
    expect(await verdict([other, asked], "ann")).toEqual([
      'withdrawal wd_1 was taken as asked for by "ann" and by "asker"',
    ]);
  });
});

it("says what rows without a link stand on", async () => {
  const [, row] = event(5, "deposit.detected", ofDeposit);
  const late: ExportLine = {
    type: "unlinked",
    kind: "event",
    key: 5,
    isLate: false,
    row: [...row],
  };
  const lines = linesOf([...BOOKS, ...PERSONS], ALL, [late, DEPOSIT, WITHDRAWAL, HOT]);
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  const sha256 = createHash("sha256").update(text).digest("hex");
  const home = mkdtempSync(join(tmpdir(), "causeway-verdict-"));
  const file = join(home, "export.jsonl");
  writeFileSync(file, `${text}${JSON.stringify({ type: "end", lines: lines.length, sha256 })}\n`);
  const printed: string[] = [];
  const print = (line: string) => void printed.push(line);
  const { signal } = new AbortController();
  const context = { home, portOffset: 0, json: false, env: {}, signal, print };
  expect(await runVerifyLedger(context, file, {}, print)).toBe(0);
  rmSync(home, { recursive: true });
  expect(printed.find((line) => line.startsWith("  not linked yet"))).toMatch(
    /1: the exporter's word alone says that they are new/,
  );
});

describe("an export of more than memory holds", () => {
  const EACH = 20;
  const numbers = Array.from({ length: EACH }, (_, index) => index + 1);
  const rows = numbers.flatMap((n): Row[] => [
    event(2 * n - 1, "deposit.detected", { depositId: `${n}-0-0`, customerId: "alice" }),
    event(2 * n, "withdrawal.accepted", { withdrawalId: `wd_${n}`, customerId: "alice" }),
  ]);
  const lines = linesOf(rows, { deposits: 0, withdrawals: 0, wallets: 0, decisions: 0 }, []);
  const check = (most: number) =>
    verifyLedger(
      (async function* () {
        yield* lines;
      })(),
      undefined,
      most,
    );

  it("ends with a word for it, and what to do", async () => {
    await expect(check(2 * EACH)).rejects.toMatchObject({
      code: "TOO_LARGE",
      message: expect.stringContaining("--max-old-space-size"),
    });
  });

  it("is checked where it does, each row by one record and each name once", async () => {
    // The customer's name, and the two types of events.
    expect((await check(2 * EACH + 3)).faults).toEqual([]);
  });
});

describe("an export of more balances than one map takes", () => {
  /** As many entries as a map of this engine takes, which has no room for millions. */
  const MOST = 3_000;
  const names = Array.from({ length: 2 * MOST }, (_, index) => `c${index}`);
  const postings = names.map((name, index) => {
    return [`${index}`, "0", "TOKEN", "asset:deposits", `liability:customer:${name}`, "7"];
  });
  const entry: Row = ["entry", ["1", "1", "all", "credit", "{}", TIME, postings]];
  const balances = names.map((customerId) => {
    return { type: "balance", customerId, asset: "TOKEN", available: "7", held: "0" } as const;
  });
  const UsualMap = Map;
  class SmallMap<Key, Value> extends Map<Key, Value> {
    override set(key: Key, value: Value): this {
      if (this.size < MOST || this.has(key)) return super.set(key, value);
      throw new RangeError("Map maximum size exceeded");
    }
  }
  const check = (kept: readonly ExportLine[]) => {
    globalThis.Map = SmallMap;
    const lines = async function* () {
      yield* linesOf([entry], { deposits: 0, withdrawals: 0, wallets: 0, decisions: 0 }, kept);
    };
    return verifyLedger(lines(), undefined, 3 * MOST, MOST / 2);
  };
  afterEach(() => {
    globalThis.Map = UsualMap;
  });

  it("is held against its postings all the same, each account by one record", async () => {
    const verdict = await check(balances);
    expect(verdict).toMatchObject({ faults: [], balances: names.length });
    const sums = new Set([...verdict.accounts].map(([, units]) => units));
    expect(sums).toEqual(new Set([7n * BigInt(names.length), -7n]));
  });
});
