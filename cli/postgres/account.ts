/** Which account PostgreSQL runs as: it refuses root, so root lends it the account `nobody`. */
import { lchownSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Owner } from "../../runtime/files/owner.js";

/** An account that server programs are started as. */
export type PostgresAccount = Owner;

/** User and group id of `nobody`, present by convention on every Unix. */
const NOBODY: PostgresAccount = { uid: 65_534, gid: 65_534 };

/**
 * The account for server programs: undefined means "as this process". As root it is the owner of
 * an existing cluster (a home made by an ordinary user stays that user's), else `nobody`.
 */
export function accountFor(clusterPath: string | undefined): PostgresAccount | undefined {
  if (process.getuid?.() !== 0) {
    return undefined;
  }
  if (clusterPath !== undefined) {
    const { uid, gid } = statSync(clusterPath);
    return uid === 0 ? NOBODY : { uid, gid };
  }
  return NOBODY;
}

/** Gives a folder and everything below it to the account. */
export function giveTree(folder: string, account: PostgresAccount): void {
  lchownSync(folder, account.uid, account.gid);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      giveTree(path, account);
    } else {
      lchownSync(path, account.uid, account.gid);
    }
  }
}
