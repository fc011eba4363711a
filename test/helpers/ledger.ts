/** An opened ledger on a database of its own, for tests. */
import { keccak256Hex } from "../../chain/crypto.js";
import { type ChainIdentity, type LedgerDatabase, openLedger } from "../../ledger/database.js";
import { createLogger } from "../../runtime/logger.js";
import { createTestDatabase } from "./postgres.js";

/** A chain that no other test uses. */
export const TEST_IDENTITY: ChainIdentity = {
  genesisHash: keccak256Hex(Buffer.from("genesis of the tests")),
  chainId: 6940n,
};

/** A logger that says nothing. */
export const silentLog = createLogger({ component: "test", level: "silent" });

/** The ledger of one test, with what ends it. */
export interface TestLedger {
  readonly database: LedgerDatabase;
  readonly url: string;
  drop(): Promise<void>;
}

/** Migrates a new database and opens it. */
export async function openTestLedger(identity = TEST_IDENTITY): Promise<TestLedger> {
  const { url, drop } = await createTestDatabase();
  const { signal } = new AbortController();
  const database = await openLedger({ url, log: silentLog, signal, identity });
  return {
    database,
    url,
    async drop() {
      await database.close();
      await drop();
    },
  };
}
