/** The ledger without its node: the kill switch must work when everything else is down. */
import {
  type ChainIdentity,
  type OlderTables,
  openLedger,
  readStoredIdentity,
} from "../../ledger/database.js";
import { listKnownWallets } from "../../ledger/wallets/home-wallets.js";
import type { HotWallet } from "../../ledger/wallets/wallet.js";
import { createLogger } from "../../runtime/process/logger.js";
import { databaseUrl } from "../../runtime/config/service-urls.js";
import { CliError } from "../errors.js";
import { assertDatabaseAnswers } from "../probe/outside-services.js";
import { assertHome, type LedgerCommand, type OpenedLedger } from "./ledger-tools.js";

/** What can be had without a node. */
export interface LedgerAlone extends Pick<OpenedLedger, "database"> {
  /**
   * All hot wallets, as `OpenedLedger` has them. Asked for where they are needed: a keystore that cannot be
   * read keeps nobody from stopping payments or from taking a key back.
   * @throws INVALID_WALLET_FILE
   */
  readonly listWallets: () => Promise<readonly HotWallet[]>;
  /** The chain that the ledger was made for. */
  readonly identity: ChainIdentity;
}

/** For looking at what is stopped, and lifting it: tables of an older release are taken as they are. */
export const AT_ONCE: { readonly olderTables: OlderTables } = { olderTables: "leave" };

/** For what stops payments: it waits for no other release, whichever one made the tables. */
export const TO_STOP: { readonly olderTables: OlderTables } = { olderTables: "any" };

/**
 * Opens the ledger of a home for the chain that it was made for, runs the work and closes it.
 * @param options `olderTables`: default "refuse"; who only looks must not have migrated
 * @throws SERVICE_UNREACHABLE, HOME_INCOMPLETE when there is no home or no ledger yet; NEWER_LEDGER,
 * MIGRATION_NEEDED, settings and database faults
 */
export async function withLedgerAlone<T>(
  command: LedgerCommand,
  work: (opened: LedgerAlone) => Promise<T>,
  { olderTables = "refuse" }: { readonly olderTables?: OlderTables } = {},
): Promise<T> {
  const { home, env, portOffset, signal } = command;
  assertHome(command);
  const options = {
    url: databaseUrl({ home, env, portOffset }),
    log: createLogger({ component: "cli", level: "silent" }),
    signal,
    applicationName: "causeway-cli",
  };
  await assertDatabaseAnswers(options.url, "start the kit, or the server that DATABASE_URL names");
  const identity = await readStoredIdentity(options);
  if (identity === undefined) {
    throw new CliError(
      "HOME_INCOMPLETE",
      `There is no ledger yet for ${home}: start the kit once.`,
    );
  }
  const database = await openLedger({ ...options, identity, olderTables });
  try {
    const listWallets = () => listKnownWallets(database, home);
    return await work({ database, listWallets, identity });
  } finally {
    await database.close();
  }
}
