/** Which account PostgreSQL runs as: it refuses root, so root lends it the account `nobody`. */
import { lchownSync, lstatSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/** An account that server programs are started as. */
export interface PostgresAccount {
  readonly uid: number;
  readonly gid: number;
}

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

/** True when the account may pass through the folder and all folders above it. */
export function canEnter(folder: string, account: PostgresAccount): boolean {
  const parent = dirname(folder);
  return canPass(folder, account) && (parent === folder || canEnter(parent, account));
}

/** True when the account may pass through the folder itself. */
export function canPass(folder: string, account: PostgresAccount): boolean {
  return (statSync(folder).mode & executeBit(folder, account)) !== 0;
}

/** True when the account may read everything below the folder (links are not followed). */
export function canReadTree(folder: string, account: PostgresAccount): boolean {
  return readdirSync(folder, { withFileTypes: true }).every((entry) => {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink()) {
      return true;
    }
    const bits = executeBit(path, account);
    const { mode } = lstatSync(path);
    // The execute bit of each class stands two places below its read bit.
    const canRead = (mode & (bits << 2)) !== 0;
    if (!entry.isDirectory()) {
      return canRead;
    }
    return canRead && (mode & bits) !== 0 && canReadTree(path, account);
  });
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

/** The execute bit of the permission class that applies to the account. */
function executeBit(path: string, account: PostgresAccount): number {
  const { uid, gid } = statSync(path);
  if (uid === account.uid) {
    return 0o100;
  }
  return gid === account.gid ? 0o010 : 0o001;
}
