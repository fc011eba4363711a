/** An opened ledger on a database of its own, for tests. */
import type { Address } from "../../../chain/address.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { type ChainIdentity, type LedgerDatabase, openLedger } from "../../../ledger/database.js";
import { grantLedgerRoles, ledgerRole, type LedgerService } from "../../../ledger/roles.js";
import { registerWallets } from "../../../ledger/wallets/wallet-registry.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { createFilledDatabase, createTestDatabase } from "./postgres.js";

/** A chain that no other test uses. */
export const TEST_IDENTITY: ChainIdentity = {
  genesisHash: keccak256Hex(Buffer.from("genesis of the tests")),
  chainId: 6940n,
};

/** A logger that says nothing. */
export const silentLog = createLogger({ component: "test", level: "silent" });

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

/** Migrates a new database and opens it, as its owner or in the role of a service. */
export async function openTestLedger(
  identity = TEST_IDENTITY,
  service?: LedgerService,
): Promise<TestLedger> {
  const { signal } = new AbortController();
  const options = { log: silentLog, signal, identity };
  const isUsual = identity === TEST_IDENTITY;
  const { url: ownerUrl, drop } = isUsual
    ? await createFilledDatabase("ledger", async (url) => {
        await (await openLedger({ ...options, url })).close();
      })
    : await createTestDatabase();
  const owner = await openLedger({ ...options, url: ownerUrl });
  // A copy is another ledger, as each that is made is.
  if (isUsual) await renameLedger(owner);
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

async function renameLedger(owner: LedgerDatabase): Promise<void> {
  await owner.transaction(async (tx) => {
    await tx.query(`SET LOCAL session_replication_role = replica`);
    await tx.query(`UPDATE meta SET value = gen_random_uuid()::text WHERE key = 'ledger_id'`);
  });
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
