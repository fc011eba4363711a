/** Opens the ledger's database: migrations first, then proof that it belongs to this chain. */
import { errorMessage } from "../chain/errors.js";
import type { Hash32 } from "../chain/hex.js";
import type { Logger } from "../runtime/process/logger.js";
import { assertHoldsText } from "../runtime/sql/encoding.js";
import { moveNumbersOn } from "../runtime/sql/numbers-behind.js";
import { openPatiently } from "../runtime/sql/opening.js";
import { openDatabase, type Sql, type SqlDatabase } from "../runtime/sql/sql.js";
import { openSqlSession } from "../runtime/sql/sql-session.js";
import { SqlError } from "../runtime/sql/sql-errors.js";
import { LedgerError } from "./errors.js";
import { LedgerCore1760000000001 } from "./migrations/0001-core.js";
import { Withdrawals1760000000002 } from "./migrations/0002-withdrawals.js";
import { PayoutExits1760000000003 } from "./migrations/0003-payout-exits.js";
import { Recovery1760000000004 } from "./migrations/0004-recovery.js";
import { Access1760000000005 } from "./migrations/0005-access.js";
import { DepositEvidence1760000000006 } from "./migrations/0006-deposit-evidence.js";
import { Units1760000000007 } from "./migrations/0007-units.js";
import { Policy1760000000009 } from "./migrations/0009-policy.js";
import { Webhooks1760000000010 } from "./migrations/webhooks/0010-webhooks.js";
import { TamperEvidence1760000000011 } from "./migrations/0011-tamper-evidence.js";
import { Tokens1760000000012 } from "./migrations/0012-tokens.js";
import { Wallets1760000000013 } from "./migrations/0013-wallets.js";
import { Guards1760000000015 } from "./migrations/0015-guards.js";
import { PostingTime1760000000016 } from "./migrations/0016-posting-time.js";
import { LinkedKinds1760000000017 } from "./migrations/tamper/0017-linked-kinds.js";
import { WithdrawalPhases1760000000018 } from "./migrations/0018-withdrawal-phases.js";
import { Treasury1760000000019 } from "./migrations/treasury/0019-treasury.js";
import { Operators1760000000020 } from "./migrations/0020-operators.js";
import { CheaperRules1760000000021 } from "./migrations/rules/0021-cheaper-rules.js";
import { WebhookPruning1760000000022 } from "./migrations/webhooks/0022-webhook-pruning.js";
import { SweepHeights1760000000023 } from "./migrations/treasury/0023-sweep-heights.js";
import { TreasuryExits1760000000024 } from "./migrations/treasury/0024-treasury-exits.js";
import { LookupsByKey1760000000025 } from "./migrations/lookups/0025-lookups-by-key.js";
import { BookedPayments1760000000027 } from "./migrations/lookups/0027-booked-payments.js";
import { BalancesWithoutBound1760000000028 } from "./migrations/0028-balances-without-bound.js";
import { LinkedAddresses1760000000030 } from "./migrations/tamper/0030-linked-addresses.js";
import { PossiblePayments1760000000032 } from "./migrations/recovery/0032-possible-payments.js";
import { NumbersBehindAll1760000000031 } from "./migrations/recovery/0031-numbers-behind-all.js";
import { LookupsOfMany1760000000033 } from "./migrations/lookups/0033-lookups-of-many.js";
import { RoomForReceipts1760000000034 } from "./migrations/0034-room-for-receipts.js";
import { OutflowsOfLostBlocks1760000000029 } from "./migrations/recovery/0029-outflows-of-lost-blocks.js";
import { GasGivenAgain1760000000035 } from "./migrations/treasury/0035-gas-given-again.js";
import { RecoveredMinedAgain1760000000036 } from "./migrations/recovery/0036-recovered-mined-again.js";
import { FixedNames1760000000037 } from "./migrations/webhooks/0037-fixed-names.js";
import { LinkedPersons1760000000038 } from "./migrations/tamper/0038-linked-persons.js";
import { WhatAProposerSaw1760000000039 } from "./migrations/recovery/0039-what-a-proposer-saw.js";
import { WhoRemembers1760000000053 } from "./migrations/recovery/0053-who-remembers.js";
import { EntriesOfAddresses1760000000041 } from "./migrations/lookups/0041-entries-of-addresses.js";
import { BooksOfTokens1760000000042 } from "./migrations/lookups/0042-books-of-tokens.js";
import { KeptSums1760000000043 } from "./migrations/treasury/0043-kept-sums.js";
import { ColdMoves1760000000044 } from "./migrations/treasury/0044-cold-moves.js";
import { RareEndings1760000000045 } from "./migrations/lookups/0045-rare-endings.js";
import { KeptRuns1760000000046 } from "./migrations/tamper/0046-kept-runs.js";
import { ClaimsOfLeaving1760000000048 } from "./migrations/0048-claims-of-leaving.js";
import { StrandedMoves1760000000049 } from "./migrations/treasury/0049-stranded-moves.js";
import { RulesWithoutAPath1760000000050 } from "./migrations/rules/0050-rules-without-a-path.js";
import { CharactersOfTexts1760000000051 } from "./migrations/0051-characters-of-texts.js";
import { RulesOfTheOwner1760000000052 } from "./migrations/rules/0052-rules-of-the-owner.js";
import { KeysOfOnePerson1760000000059 } from "./migrations/rules/0059-keys-of-one-person.js";
import { OutflowsOfOtherCode1760000000064 } from "./migrations/tokens/0064-outflows-of-other-code.js";
import { QuickerChecks1760000000063 } from "./migrations/rules/0063-quicker-checks.js";
import { CodesOfTokens1760000000054 } from "./migrations/tokens/0054-codes-of-tokens.js";
import { TreasuryColumns1760000000055 } from "./migrations/treasury/0055-treasury-columns.js";
import { StatementEnds1760000000047 } from "./migrations/tamper/0047-statement-ends.js";
import { Bounds1760000000026 } from "./migrations/treasury/0026-bounds.js";
import { SeenNonces1760000000057 } from "./migrations/wallets/0057-seen-nonces.js";
import { storedAtoken, storedHash } from "./stored-values.js";

/** Version of the tables that this program understands; a higher one in the database is refused. */
export const LEDGER_FORMAT_VERSION = 4;

/** Connections per process: enough for a loop, a backfill and several HTTP requests at once. */
const POOL_SIZE = 10;

/** All migrations of both writers, in the order of their numbers. */
export const LEDGER_MIGRATIONS = [
  LedgerCore1760000000001,
  Withdrawals1760000000002,
  PayoutExits1760000000003,
  Recovery1760000000004,
  Access1760000000005,
  DepositEvidence1760000000006,
  Units1760000000007,
  Policy1760000000009,
  Webhooks1760000000010,
  TamperEvidence1760000000011,
  Tokens1760000000012,
  Wallets1760000000013,
  Guards1760000000015,
  PostingTime1760000000016,
  LinkedKinds1760000000017,
  WithdrawalPhases1760000000018,
  Treasury1760000000019,
  Operators1760000000020,
  CheaperRules1760000000021,
  WebhookPruning1760000000022,
  SweepHeights1760000000023,
  TreasuryExits1760000000024,
  LookupsByKey1760000000025,
  Bounds1760000000026,
  BookedPayments1760000000027,
  BalancesWithoutBound1760000000028,
  OutflowsOfLostBlocks1760000000029,
  LinkedAddresses1760000000030,
  NumbersBehindAll1760000000031,
  PossiblePayments1760000000032,
  LookupsOfMany1760000000033,
  RoomForReceipts1760000000034,
  GasGivenAgain1760000000035,
  RecoveredMinedAgain1760000000036,
  FixedNames1760000000037,
  LinkedPersons1760000000038,
  WhatAProposerSaw1760000000039,
  EntriesOfAddresses1760000000041,
  BooksOfTokens1760000000042,
  KeptSums1760000000043,
  ColdMoves1760000000044,
  RareEndings1760000000045,
  KeptRuns1760000000046,
  StatementEnds1760000000047,
  ClaimsOfLeaving1760000000048,
  StrandedMoves1760000000049,
  RulesWithoutAPath1760000000050,
  CharactersOfTexts1760000000051,
  RulesOfTheOwner1760000000052,
  WhoRemembers1760000000053,
  CodesOfTokens1760000000054,
  TreasuryColumns1760000000055,
  SeenNonces1760000000057,
  KeysOfOnePerson1760000000059,
  QuickerChecks1760000000063,
  OutflowsOfOtherCode1760000000064,
] as const;

/** The chain that a ledger keeps books for. */
export interface ChainIdentity {
  /** Hash of block 0. */
  readonly genesisHash: Hash32;
  /** EIP-155 chain id. */
  readonly chainId: bigint;
}

/** The ledger's database, migrated and checked. */
export type LedgerDatabase = SqlDatabase;

/** What `openLedger` needs. */
export interface OpenLedgerOptions {
  /** PostgreSQL URL; never logged, it holds the password. */
  readonly url: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly identity: ChainIdentity;
  /** Shown in `pg_stat_activity`; default "causeway-ledger". */
  readonly applicationName?: string;
  /** Default "migrate". */
  readonly olderTables?: OlderTables;
  /** Told why this takes long: tables of a former release are changed, minutes where they have many rows. */
  readonly busy?: (reason: string) => void;
}

/**
 * What is done with tables that are older than this program. There is no way back from a migration, and
 * processes of the release before may be at work: "refuse" is for who has not asked for one, and still makes
 * them where there are none; "leave" takes them as they are, for what must work at once; "any" takes even
 * those of a later release, for what only stops payments.
 */
export type OlderTables = "migrate" | "refuse" | "leave" | "any";

/**
 * Connects, checks that the database is empty or belongs to this chain, migrates, and writes the
 * identity on the first opening.
 * @throws FOREIGN_LEDGER, NEWER_LEDGER, MIGRATION_NEEDED, NUMBERS_BEHIND, DATABASE_ENCODING,
 *   DATABASE_COLLATION, and the driver's errors
 */
export async function openLedger(options: OpenLedgerOptions): Promise<LedgerDatabase> {
  const { url, log, signal, identity, olderTables = "migrate" } = options;
  let found: FoundTables | undefined;
  const database = await openDatabase({
    url,
    log,
    signal,
    applicationName: options.applicationName ?? "causeway-ledger",
    migrations: LEDGER_MIGRATIONS,
    poolSize: POOL_SIZE,
    // What only stops payments must get through.
    heedsOrder: olderTables !== "any",
    onMigrating() {
      if (found?.isEmpty === false) options.busy?.("brings the ledger's tables to this release");
    },
    // A foreign ledger must not be migrated either, so it is looked at before any change.
    async beforeMigrating(sql) {
      found = undefined;
      // What only stops payments says little, and must get through.
      if (olderTables !== "any") await assertHoldsText(sql);
      const hasIdentity = await checkIdentity(sql, identity);
      const done = await (olderTables === "any" ? readMigrations(sql) : checkMigrations(sql));
      const isEmpty = done.length === 0;
      const missing = [...knownMigrations()].filter((name) => !done.includes(name));
      // Where there are no tables yet nobody is at work on them.
      const mayMake = olderTables === "migrate" || (olderTables === "refuse" && isEmpty);
      if (olderTables === "refuse" && !isEmpty) refuseOlder(missing);
      const isMigrated = mayMake && missing.length > 0;
      found = { isEmpty, isMigrated, lacksIdentity: mayMake && !hasIdentity };
      return isMigrated;
    },
  }).catch((error: unknown) => {
    // What the look itself was refused is not about migrations.
    throw (found === undefined ? undefined : migrationRefused(error, found.isEmpty)) ?? error;
  });
  try {
    // A newer release may have migrated since the look before.
    if (found?.isMigrated === true) await checkMigrations(database);
    if (found?.lacksIdentity === true) {
      await writeIdentity(database, identity);
      await checkIdentity(database, identity);
    }
    const behind = await moveNumbersOn(database, { log });
    // What only stops payments must get through.
    if (olderTables !== "any") assertNumbersGoOn(behind);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** @throws NUMBERS_BEHIND */
function assertNumbersGoOn(behind: readonly string[]): void {
  if (behind.length === 0) return;
  throw new LedgerError(
    "NUMBERS_BEHIND",
    `the database is about to give numbers again that lie before those of rows (${behind.join(", ")}), as ` +
      "one that logical replication has filled does, and the service's role may not move them: " +
      "run `causeway migrate` as the owner",
    { details: { behind } },
  );
}

/** What `openLedger` saw before it changed anything. */
interface FoundTables {
  readonly isEmpty: boolean;
  /** Whether migrations were run behind it. */
  readonly isMigrated: boolean;
  /** Whether it is for this opening to write whose the tables are. */
  readonly lacksIdentity: boolean;
}

/** PostgreSQL's `insufficient_privilege`. */
const NO_PRIVILEGE = "42501";

/** The role of a service met tables that are older than its program, or none that it could make. */
function migrationRefused(cause: unknown, isEmpty: boolean): LedgerError | undefined {
  if (!(cause instanceof SqlError) || cause.details["sqlState"] !== NO_PRIVILEGE) return undefined;
  const migrate = "run `causeway migrate` as the owner first";
  const message = isEmpty
    ? "the database has no tables of a ledger yet, and its role may not make them " +
      `(${errorMessage(cause.cause)}): give it the database (ALTER DATABASE ... OWNER TO ...), or ${migrate}`
    : `the ledger's tables are older than this program, and its role may not change them: ${migrate}`;
  return new LedgerError("MIGRATION_NEEDED", message, { cause });
}

/**
 * The chain that an existing ledger belongs to; undefined for an empty database. For programs that
 * must start while their node is down.
 */
export async function readStoredIdentity(
  options: Omit<OpenLedgerOptions, "identity">,
): Promise<ChainIdentity | undefined> {
  const { url, log, signal, applicationName = "causeway-ledger" } = options;
  // One session, of which nothing is asked but this: a pool is several, and is looked at before it is used.
  const readOnce = async () => {
    const session = await openSqlSession({ url, log, applicationName });
    try {
      return await readMeta(session);
    } finally {
      await session.close();
    }
  };
  const stored = await openPatiently(readOnce, { log, signal });
  const chainId = stored.get("chain_id");
  const genesisHash = stored.get("genesis_hash");
  if (chainId === undefined || genesisHash === undefined) return undefined;
  return { chainId: storedAtoken(chainId), genesisHash: storedHash(genesisHash) };
}

async function readMeta(sql: Sql): Promise<ReadonlyMap<string, string>> {
  const tables = await sql.query<{ found: string | null }>(
    `SELECT to_regclass('meta')::text AS found`,
  );
  if (typeof tables[0]?.found !== "string") return new Map();
  const rows = await sql.query<{ key: string; value: string }>(`SELECT key, value FROM meta`);
  return new Map(rows.map((row) => [row.key, row.value]));
}

function identityRows(identity: ChainIdentity): Record<string, string> {
  return {
    format_version: String(LEDGER_FORMAT_VERSION),
    genesis_hash: identity.genesisHash,
    chain_id: identity.chainId.toString(),
  };
}

async function writeIdentity(database: SqlDatabase, identity: ChainIdentity): Promise<void> {
  const rows = identityRows(identity);
  await database.query(
    `INSERT INTO meta (key, value) SELECT * FROM unnest($1::text[], $2::text[])
     ON CONFLICT (key) DO NOTHING`,
    [Object.keys(rows), Object.values(rows)],
  );
}

/** Where the migrations that a database has had are noted. */
const MIGRATION_TABLE = "schema_migration";

/**
 * A migration of a later release may have given a column its meaning, or a row its rules, without any
 * statement of this one failing: such tables are not worked with (ADR 67).
 * @returns names of the migrations that the database has had
 * @throws NEWER_LEDGER
 */
async function checkMigrations(sql: Sql): Promise<readonly string[]> {
  const done = await readMigrations(sql);
  const unknown = unknownOf(done);
  if (unknown.length === 0) return done;
  throw new LedgerError(
    "NEWER_LEDGER",
    `the ledger's tables were changed by a release that this program does not know ` +
      `(${unknown.join(", ")}): start that release, or a newer one`,
    { details: { unknown } },
  );
}

/** Names of migrations that a database has had from a release that this program does not know. */
export async function laterMigrations(sql: Sql): Promise<readonly string[]> {
  return unknownOf(await readMigrations(sql));
}

function unknownOf(done: readonly string[]): readonly string[] {
  const known = knownMigrations();
  return done.filter((name) => !known.has(name));
}

/** @throws MIGRATION_NEEDED where this program has a migration that the database has not had */
function refuseOlder(missing: readonly string[]): void {
  if (missing.length === 0) return;
  throw new LedgerError(
    "MIGRATION_NEEDED",
    "the ledger's tables are older than this program, and this command changes none: stop the kit of the " +
      "release before, back up the database, then start this release or run `causeway migrate`",
    { details: { missing } },
  );
}

function knownMigrations(): ReadonlySet<string> {
  return new Set(LEDGER_MIGRATIONS.map((migration) => new migration().name));
}

/** Names of the migrations that a database has had, in their order. */
async function readMigrations(sql: Sql): Promise<readonly string[]> {
  const tables = await sql.query<{ found: string | null }>(
    `SELECT to_regclass('${MIGRATION_TABLE}')::text AS found`,
  );
  if (typeof tables[0]?.found !== "string") return [];
  const rows = await sql.query<{ name: string }>(`SELECT name FROM ${MIGRATION_TABLE} ORDER BY id`);
  return rows.map(({ name }) => name);
}

/** @returns whether the database says whose it is */
async function checkIdentity(sql: Sql, identity: ChainIdentity): Promise<boolean> {
  const stored = await readMeta(sql);
  const version = Number(stored.get("format_version") ?? LEDGER_FORMAT_VERSION);
  if (version > LEDGER_FORMAT_VERSION) {
    throw new LedgerError(
      "NEWER_LEDGER",
      `the ledger has format ${version}, this program knows ${LEDGER_FORMAT_VERSION}: ` +
        "start the version that wrote it, or a newer one",
      { details: { stored: version, supported: LEDGER_FORMAT_VERSION } },
    );
  }
  const expected = identityRows(identity);
  for (const key of ["chain_id", "genesis_hash"]) {
    const value = stored.get(key);
    if (value === undefined || value === expected[key]) continue;
    throw new LedgerError(
      "FOREIGN_LEDGER",
      `the ledger belongs to another chain (its ${key} is ${value}, the node's is ` +
        `${expected[key]}): use the database of this chain, or an empty one`,
      { details: { key, stored: value, node: expected[key] } },
    );
  }
  return Object.keys(expected).every((key) => stored.has(key));
}
