/** An opened ledger on a database of its own, for tests. */
import type { Address } from "../../../chain/address.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { type ChainIdentity, type LedgerDatabase, openLedger } from "../../../ledger/database.js";
import { type NewIncident, writeIncident } from "../../../ledger/incidents.js";
import { grantLedgerRoles, ledgerRole, type LedgerService } from "../../../ledger/roles.js";
import { registerWallets } from "../../../ledger/wallets/wallet-registry.js";
import { createLogger, type Logger } from "../../../runtime/process/logger.js";
import type { Sql, SqlDatabase } from "../../../runtime/sql/sql.js";
import { createFilledDatabase, runOnServer, type TestDatabase } from "./postgres.js";

/** A chain that no other test uses. */
export const TEST_IDENTITY: ChainIdentity = {
  genesisHash: keccak256Hex(Buffer.from("genesis of the tests")),
  chainId: 6940n,
};

/** A logger that says nothing. */
export const silentLog = createLogger({ component: "test", level: "silent" });

/** A logger whose lines of level `error` are read again: their fields and `msg`, without the time. */
export function errorLog(lines: Record<string, unknown>[]): Logger {
  const write = (line: string) => {
    const { time: _time, component: _component, level: _level, ...fields } = JSON.parse(line);
    lines.push(fields);
  };
  return createLogger({ component: "test", level: "error", destination: { write } });
}

/** The ledger of one test, with what ends it. */
export interface TestLedger {
  /** Opened as its owner, or in the role of the service that was named. */
  readonly database: LedgerDatabase;
  readonly url: string;
  /** URL of its owner. */
  readonly ownerUrl: string;
  /** Opened as its owner, for what tests do behind a service's back. */
  readonly owner: LedgerDatabase;
  drop(): Promise<void>;
}

/** Passwords of the services' roles in tests. */
export const TEST_PASSWORDS = { watcher: "w'atch", worker: "work%I", operator: "op erate" };

/**
 * A transaction that stands still while the test does something else. The server ends those of the
 * product after some seconds, in which a busy machine may not have come far.
 */
export function standing<T>(
  database: Pick<SqlDatabase, "transaction">,
  work: (tx: Sql) => Promise<T>,
): Promise<T> {
  return database.transaction(async (tx) => {
    await tx.query("SET LOCAL idle_in_transaction_session_timeout = 0");
    return work(tx);
  });
}

/** Migrates a new database and opens it, as its owner or in the role of a service. */
export async function openTestLedger(
  identity = TEST_IDENTITY,
  service?: LedgerService,
): Promise<TestLedger> {
  const { signal } = new AbortController();
  const options = { log: silentLog, signal, identity };
  const { url: ownerUrl, drop } = await createLedgerDatabase(identity);
  const owner = await openLedger({ ...options, url: ownerUrl });
  let [database, url] = [owner, ownerUrl];
  if (service !== undefined) {
    await grantLedgerRoles(owner, TEST_PASSWORDS);
    url = roleUrl(ownerUrl, service);
    database = await openLedger({ ...options, url });
  }
  return {
    database,
    url,
    ownerUrl,
    owner,
    async drop() {
      await Promise.all([database.close(), owner.close()]);
      await drop();
    },
  };
}

/** A database as the first opening by this chain's owner leaves it, made in a tenth of the time. */
export async function createLedgerDatabase(identity: ChainIdentity): Promise<TestDatabase> {
  const { signal } = new AbortController();
  const made = await createFilledDatabase("ledger", async (url) => {
    await (await openLedger({ url, log: silentLog, signal, identity })).close();
  });
  // A copy is another ledger, as each that is made is, and of its own chain.
  await runOnServer(
    made.url,
    `SET session_replication_role = replica;
     UPDATE meta SET value = CASE key WHEN 'ledger_id' THEN gen_random_uuid()::text
       WHEN 'genesis_hash' THEN '${identity.genesisHash}' ELSE '${identity.chainId}' END
     WHERE key IN ('ledger_id', 'genesis_hash', 'chain_id')`,
  );
  return made;
}

/** Registers wallets as a process does at its start. */
export async function registerTestWallets(
  database: LedgerDatabase,
  ...addresses: readonly Address[]
): Promise<void> {
  await registerWallets(
    database,
    addresses.map((address, index) => ({
      address,
      label: `wallet-${index}`,
      operator: "test",
      reason: "a wallet of the tests",
    })),
  );
}

/** The URL of a service's role on a database of the tests. */
export function roleUrl(ownerUrl: string, service: LedgerService): string {
  const url = new URL(ownerUrl);
  url.username = ledgerRole(url.pathname.slice(1), service);
  url.password = encodeURIComponent(TEST_PASSWORDS[service]);
  return url.href;
}

/** Opens an incident, as the watcher does in the middle of its work. */
export async function recordIncident(
  database: Pick<LedgerDatabase, "transaction">,
  incident: NewIncident,
): Promise<void> {
  await database.transaction((tx) => writeIncident(tx, incident));
}
