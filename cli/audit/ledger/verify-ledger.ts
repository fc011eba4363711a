/**
 * Checks an export with nothing but itself: every link follows and is about the row that stands
 * there, no row lies behind the chain, every entry's debits are its credits, the balances that are
 * kept follow from the postings, every deposit is whose the last event about it says, every withdrawal
 * in the state that its last event tells and approved by nobody who asked for it (`verify-requesters.ts`),
 * and every wallet and every decision as what persons did about it left it (`verify-persons.ts`). The first
 * thing that does not hold is named.
 */
import { MAX_WORD } from "../../../chain/hex.js";
import {
  firstFieldOf,
  LINK_KINDS,
  linkHash,
  type LinkKind,
  rootHash,
  rowDigest,
} from "../../../ledger/tamper/link-rules.js";
import type { ExportLine } from "./export-file.js";
import { KeySet } from "./key-set.js";
import { PersonsCheck } from "./verify-persons.js";
import { MAP_ENTRIES, RecordRoom, recordsThatFit, SameTexts, ToldRows } from "./told-rows.js";
import { RequestersCheck, type ToldRequester } from "./verify-requesters.js";

/** What an export came to. */
export interface LedgerVerdict {
  readonly ledgerId: string;
  readonly links: number;
  readonly head: string;
  readonly rows: Readonly<Record<LinkKind, number>>;
  readonly postings: number;
  readonly balances: number;
  /** Rows that no link is about yet: newer than the last look of the chainer. */
  readonly waiting: number;
  /** Whether the export says whose deposits are; those of former releases do not. */
  readonly areDepositsTold: boolean;
  /** Whether it says what became of withdrawals. */
  readonly areWithdrawalsTold: boolean;
  /** Whether it says how wallets and decisions of persons stand. */
  readonly arePersonsTold: boolean;
  /** What does not hold, the first first, at most `MAX_FAULTS`; empty when all does. */
  readonly faults: readonly string[];
  /** Sums of all accounts, by asset and account; every asset's sums add up to zero. */
  readonly accounts: Iterable<readonly [name: string, units: bigint]>;
}

/** Faults that are shown: behind the first one many follow. */
const MAX_FAULTS = 20;

/** Places of an entry's fields (`linked-rows.ts`). */
const ENTRY = { idemKey: 2, postings: 6 } as const;
const POSTING_FIELDS = 6;

/** Places of an event's fields. */
const EVENT = { type: 2, data: 3 } as const;

/**
 * Kinds of rows that came later than what exports say of withdrawals, and later than what they say of
 * deposits: what has some of them and leaves that out is of no release.
 */
const SINCE_WITHDRAWALS = kindsSince("proposal");
const SINCE_DEPOSITS = kindsSince("address");

function kindsSince(first: LinkKind): readonly LinkKind[] {
  return LINK_KINDS.slice(LINK_KINDS.indexOf(first));
}

type Row = Extract<ExportLine, { readonly type: "link" }>["row"];

type DepositLine = Extract<ExportLine, { readonly type: "deposit" }>;
type WithdrawalLine = Extract<ExportLine, { readonly type: "withdrawal" }>;

/** What an export tells of one deposit. */
interface ToldDeposit {
  /** By the last event about it; undefined before there is one. */
  lastType: string | undefined;
  lastCustomerId: string | undefined;
  /** By its line; undefined before that is read. */
  status: string | undefined;
  customerId: string | undefined;
}

/** What it tells of one withdrawal. */
interface ToldWithdrawal extends ToldRequester {
  /** The type of the last event about it. */
  lastType: string | undefined;
  /** By its line; undefined before that is read. */
  status: string | undefined;
}

/** What it tells of one account in one asset; undefined before it does. */
interface ToldAccount {
  /** What its postings add up to. */
  posted: bigint | undefined;
  /** What is kept as its balance. */
  kept: bigint | undefined;
}

/** What a line says of a row, with a link or without. */
interface RowLine {
  readonly kind: LinkKind;
  readonly key: number;
  readonly row: Row;
}

/**
 * Checks all lines.
 * @param knownHead a link's hash that somebody wrote down earlier; it must be one of the chain's
 * @param mostRecords deposits, withdrawals and accounts that are kept until the end is read, with the names
 *   in them
 * @param mapEntries accounts of one map
 * @throws TOO_LARGE where there are more
 */
export async function verifyLedger(
  lines: AsyncIterable<ExportLine>,
  knownHead?: string,
  mostRecords = recordsThatFit(),
  mapEntries = MAP_ENTRIES,
): Promise<LedgerVerdict> {
  const check = new LedgerCheck(knownHead, new RecordRoom(mostRecords), mapEntries);
  for await (const line of lines) check.take(line);
  return check.verdict();
}

class LedgerCheck {
  readonly #faults: string[] = [];
  readonly #rows: Record<LinkKind, number> = {
    event: 0,
    entry: 0,
    deposit: 0,
    withdrawal: 0,
    asset: 0,
    token_state: 0,
    sighting: 0,
    activation: 0,
    listing: 0,
    decision: 0,
    approval: 0,
    verdict: 0,
    kill_switch: 0,
    address: 0,
    assignment: 0,
    proposal: 0,
    outcome: 0,
    wallet: 0,
    wallet_change: 0,
    acknowledgement: 0,
    rewind: 0,
  };
  readonly #accounts: ToldRows<ToldAccount>;
  readonly #texts: SameTexts;
  readonly #deposits: ToldRows<ToldDeposit>;
  readonly #withdrawals: ToldRows<ToldWithdrawal>;
  /** Deposits and withdrawals that have a line. */
  #owned = 0;
  #stated = 0;
  readonly #persons = new PersonsCheck((text) => this.#fault(text));
  readonly #requesters: RequestersCheck;
  readonly #keys = new Map<LinkKind, KeySet>();
  #ledger: Extract<ExportLine, { readonly type: "ledger" }> | undefined;
  #before = { n: 0, hash: "" };
  #isKnownHeadSeen: boolean;
  #postings = 0;
  #balances = 0;
  #waiting = 0;

  constructor(
    private readonly knownHead: string | undefined,
    room: RecordRoom,
    mapEntries: number,
  ) {
    this.#isKnownHeadSeen = knownHead === undefined;
    this.#texts = new SameTexts(room);
    const create = () => ({ posted: undefined, kept: undefined });
    this.#accounts = new ToldRows<ToldAccount>(room, create, mapEntries);
    const untold = { lastType: undefined, status: undefined };
    this.#deposits = new ToldRows(room, () => {
      return { ...untold, lastCustomerId: undefined, customerId: undefined };
    });
    this.#withdrawals = new ToldRows(room, () => {
      return { ...untold, decidedBy: undefined, requestedBy: undefined };
    });
    const kept = { withdrawals: this.#withdrawals, texts: this.#texts, room };
    this.#requesters = new RequestersCheck(kept, (text) => this.#fault(text));
  }

  take(line: ExportLine): void {
    if (this.#ledger === undefined && line.type !== "ledger") {
      this.#fault("the first line does not name a ledger");
      return;
    }
    if (line.type === "ledger") this.#takeLedger(line);
    else if (line.type === "link") this.#takeLink(line);
    else if (line.type === "unlinked") this.#takeUnlinked(line);
    else if (line.type === "balance") this.#takeBalance(line);
    else if (line.type === "deposit") this.#takeDeposit(line);
    else if (line.type === "withdrawal") this.#takeWithdrawal(line);
    else if (line.type === "wallet") this.#persons.takeWallet(line);
    else if (line.type === "decision") this.#persons.takeDecision(line);
  }

  verdict(): LedgerVerdict {
    const { links = 0, head = "", ledgerId = "" } = this.#ledger ?? {};
    if (this.#before.n !== links || this.#before.hash !== head) {
      this.#fault(`the chain ends at link ${this.#before.n}, and the export says ${links}`);
    }
    if (!this.#isKnownHeadSeen) {
      this.#fault(
        `no link has the hash ${this.knownHead}: this is another chain than the known one`,
      );
    }
    this.#checkBalances();
    this.#checkAssets();
    this.#checkDeposits();
    this.#checkWithdrawals();
    const { wallets, decisions } = this.#ledger ?? {};
    this.#persons.check({ wallets, decisions }, this.#rows);
    this.#requesters.check();
    return {
      ledgerId,
      links: this.#before.n,
      head: this.#before.hash,
      rows: this.#rows,
      postings: this.#postings,
      balances: this.#balances,
      waiting: this.#waiting,
      areDepositsTold: this.#ledger?.deposits !== undefined,
      areWithdrawalsTold: this.#ledger?.withdrawals !== undefined,
      arePersonsTold: wallets !== undefined,
      faults: this.#faults,
      accounts: { [Symbol.iterator]: () => this.#postedAccounts() },
    };
  }

  #takeLedger(line: Extract<ExportLine, { readonly type: "ledger" }>): void {
    if (this.#ledger !== undefined) this.#fault("a second ledger begins");
    this.#ledger = line;
    this.#before = { n: 0, hash: rootHash(line) };
    this.#isKnownHeadSeen ||= this.knownHead === this.#before.hash;
  }

  #takeLink(link: Extract<ExportLine, { readonly type: "link" }>): void {
    const name = nameOf(link.kind, link.key, link.row);
    if (link.n !== this.#before.n + 1 || link.previous !== this.#before.hash) {
      this.#fault(`link ${link.n} (${name}) does not follow link ${this.#before.n}`);
    }
    if (linkHash(link) !== link.hash) this.#fault(`link ${link.n} (${name}) has another hash`);
    if (link.row === null) this.#fault(`${name} is gone: link ${link.n} was about it`);
    else if (rowDigest(link.row) !== link.digest) {
      this.#fault(`${name} was changed after link ${link.n} was made: ${JSON.stringify(link.row)}`);
    }
    this.#before = { n: link.n, hash: link.hash };
    this.#isKnownHeadSeen ||= link.hash === this.knownHead;
    this.#count(link, name);
  }

  #takeUnlinked(line: Extract<ExportLine, { readonly type: "unlinked" }>): void {
    const name = nameOf(line.kind, line.key, line.row);
    if (line.isLate) this.#fault(`${name} was put among rows that had their links`);
    else this.#waiting += 1;
    this.#count(line, name);
  }

  #takeBalance(line: Extract<ExportLine, { readonly type: "balance" }>): void {
    const { customerId, asset } = line;
    this.#balances += 1;
    // The last line alone would count, and a false one before it would go through with it.
    const available = this.#accounts.of(`${asset} liability:customer:${customerId}`);
    if (available.kept !== undefined) {
      this.#fault(`the balance of ${customerId} in ${asset} is there twice`);
    }
    available.kept = BigInt(line.available);
    const heldUnits = BigInt(line.held);
    // Of most nothing is held: that needs no record.
    if (heldUnits !== 0n) {
      this.#accounts.of(`${asset} liability:held:${customerId}`).kept = heldUnits;
    }
    const sums = { customer: available.kept, held: heldUnits };
    for (const [account, units] of Object.entries(sums)) {
      if (units >= 0n) continue;
      this.#fault(`the balance of liability:${account}:${customerId} in ${asset} is below zero`);
    }
  }

  #takeDeposit({ depositId, customerId, status }: DepositLine): void {
    const record = this.#deposits.of(depositId);
    if (record.status === undefined) this.#owned += 1;
    else this.#fault(`deposit ${depositId} is there twice`);
    record.status = this.#texts.one(status);
    record.customerId = this.#texts.one(customerId);
  }

  #takeWithdrawal(line: WithdrawalLine): void {
    const { withdrawalId, status } = line;
    this.#requesters.takeWithdrawal(line);
    const record = this.#withdrawals.of(withdrawalId);
    if (record.status === undefined) this.#stated += 1;
    else this.#fault(`withdrawal ${withdrawalId} is there twice`);
    record.status = this.#texts.one(status);
  }

  /**
   * What an event says of a deposit or a withdrawal; one that cannot be read has another digest, and
   * is named.
   */
  #hear(row: Row): void {
    const [type, text] = [row?.[EVENT.type], row?.[EVENT.data]];
    if (
      typeof type !== "string" ||
      !/^(deposit|withdrawal)\./.test(type) ||
      typeof text !== "string"
    )
      return;
    const read = fieldsOf(text);
    const [depositId, customerId] = [read("depositId"), read("customerId")];
    const withdrawalId = read("withdrawalId");
    if (type.startsWith("withdrawal.")) {
      if (typeof withdrawalId !== "string") return;
      this.#withdrawals.of(withdrawalId).lastType = this.#texts.one(type);
    } else if (typeof depositId === "string" && typeof customerId === "string") {
      const record = this.#deposits.of(depositId);
      record.lastType = this.#texts.one(type);
      record.lastCustomerId = this.#texts.one(customerId);
    }
  }

  #count(line: RowLine, name: string): void {
    const { kind, key, row } = line;
    this.#rows[kind] += 1;
    const keys = this.#keys.get(kind) ?? new KeySet();
    this.#keys.set(kind, keys);
    if (!keys.add(key)) this.#fault(`${name} is there twice`);
    if (kind === "event") this.#hear(row);
    if (row !== null) {
      // One row under two keys would count twice.
      if (row[0] !== firstFieldOf(line)) {
        this.#fault(`${name} is another one by its first field, ${JSON.stringify(row[0])}`);
      }
      this.#persons.hear(kind, row);
      this.#requesters.hear(kind, row);
    }
    if (kind !== "entry" || row === null) return;
    const postings = row[ENTRY.postings];
    if (!Array.isArray(postings)) {
      this.#fault(`${name} has no postings`);
      return;
    }
    for (const posting of postings) this.#post(posting, name);
  }

  /** One posting moves one amount from its credit's account to its debit's. */
  #post(posting: unknown, name: string): void {
    const fields = Array.isArray(posting) && posting.length === POSTING_FIELDS ? posting : [];
    const [, , asset, debit, credit, amount] = fields.map(String);
    const isAmount = amount !== undefined && /^[1-9][0-9]{0,77}$/.test(amount);
    if (!isAmount || asset === undefined || debit === credit || BigInt(amount) > MAX_WORD) {
      this.#fault(`${name} has a posting that does not balance: ${JSON.stringify(posting)}`);
      return;
    }
    this.#postings += 1;
    this.#move(`${asset} ${debit}`, BigInt(amount));
    this.#move(`${asset} ${credit}`, -BigInt(amount));
  }

  #move(account: string, units: bigint): void {
    const record = this.#accounts.of(account);
    record.posted = (record.posted ?? 0n) + units;
  }

  /** Of every deposit that has a row the export says whose it is. */
  #checkDeposits(): void {
    const wanted = this.#ledger?.deposits;
    const [rows, owned] = [this.#rows.deposit, this.#owned];
    const { withdrawals, wallets } = this.#ledger ?? {};
    if (wanted === undefined && owned > 0) {
      this.#fault("the export says of deposits whose they are, and not of how many");
    } else if (wanted === undefined) {
      this.#checkLeftOut("whose deposits are", SINCE_DEPOSITS, withdrawals ?? wallets);
    }
    if (wanted !== undefined && (wanted !== owned || wanted !== rows)) {
      this.#fault(`of ${rows} deposits the export says of ${owned} whose they are`);
    }
    for (const [depositId, told] of this.#deposits) {
      if (told.status !== undefined) this.#checkDeposit(depositId, told);
    }
  }

  /** By the last event of all: a line that stands before it says nothing else. */
  #checkDeposit(depositId: string, told: ToldDeposit): void {
    const { lastType, lastCustomerId, status, customerId } = told;
    if (lastType === undefined) {
      this.#fault(`deposit ${depositId} is told by no event`);
      return;
    }
    if (lastCustomerId !== customerId) {
      this.#fault(`deposit ${depositId} is ${customerId}'s, and was ${lastCustomerId}'s when told`);
    }
    // Former releases told of a token that was paused, and not of what had been detected of it.
    const isHeldSince = status === "held" && lastType === "deposit.detected";
    if (lastType === `deposit.${status}` || isHeldSince) return;
    this.#fault(`deposit ${depositId} is ${status}, and the last that was told is ${lastType}`);
  }

  /** Exports of former releases told less, and had nothing of what came later. */
  #checkLeftOut(what: string, later: readonly LinkKind[], laterCount: number | undefined): void {
    if (laterCount === undefined && later.every((kind) => this.#rows[kind] === 0)) return;
    this.#fault(`the export does not say ${what}, and has what came with a later release`);
  }

  /** Of every withdrawal that has a row the export says what became of it, as its last event does. */
  #checkWithdrawals(): void {
    const wanted = this.#ledger?.withdrawals;
    const [rows, stated] = [this.#rows.withdrawal, this.#stated];
    if (wanted === undefined && stated > 0) {
      this.#fault("the export says what became of withdrawals, and not of how many");
    } else if (wanted === undefined) {
      this.#checkLeftOut("what became of withdrawals", SINCE_WITHDRAWALS, this.#ledger?.wallets);
    }
    if (wanted !== undefined && (wanted !== stated || wanted !== rows)) {
      this.#fault(`of ${rows} withdrawals the export says of ${stated} what became of them`);
    }
    for (const [withdrawalId, { status, lastType: told }] of this.#withdrawals) {
      if (status === undefined || told === `withdrawal.${status}`) continue;
      const last =
        told === undefined ? "no event tells of it" : `the last that was told is ${told}`;
      this.#fault(`withdrawal ${withdrawalId} is ${status}, and ${last}`);
    }
  }

  /** A liability is what was credited less what was debited. */
  #checkBalances(): void {
    const uneven: string[] = [];
    for (const [name, { posted = 0n, kept }] of this.#accounts) {
      const isOwed = kept !== undefined || / liability:(customer|held):/.test(name);
      if (isOwed && -posted !== (kept ?? 0n)) uneven.push(name);
    }
    for (const name of uneven.toSorted().slice(0, MAX_FAULTS)) {
      const { posted = 0n, kept = 0n } = this.#accounts.of(name);
      this.#fault(`the balance of ${name} is kept as ${kept}, and its postings say ${-posted}`);
    }
  }

  *#postedAccounts(): Generator<readonly [name: string, units: bigint]> {
    for (const [name, { posted }] of this.#accounts) {
      if (posted !== undefined) yield [name, posted];
    }
  }

  #checkAssets(): void {
    const sums = new Map<string, bigint>();
    for (const [name, units] of this.#postedAccounts()) {
      const [asset = ""] = name.split(" ");
      sums.set(asset, (sums.get(asset) ?? 0n) + units);
    }
    for (const [asset, sum] of sums) {
      if (sum !== 0n) this.#fault(`debits and credits in ${asset} differ by ${sum}`);
    }
  }

  #fault(text: string): void {
    if (this.#faults.length < MAX_FAULTS) this.#faults.push(text);
  }
}

/** Fields of an event's data; of what cannot be read there are none. */
function fieldsOf(text: string): (field: string) => unknown {
  try {
    const data: unknown = JSON.parse(text);
    return (field) => Reflect.get(Object(data), field);
  } catch {
    return () => undefined;
  }
}

/** A row's name for people: entries by their natural key, others by their identifier. */
function nameOf(kind: LinkKind, key: number, row: Row): string {
  const known = kind === "entry" ? row?.[ENTRY.idemKey] : kind === "event" ? row?.[2] : row?.[1];
  const what = kind === "entry" ? "journal entry" : kind.replace("_", " ");
  return typeof known === "string" ? `${what} ${key} (${known})` : `${what} ${key}`;
}
