/**
 * Whose a database folder is that lies outside its home. The home only links to it: a copy of the home
 * links to the same one, and a kit on the copy would stop the server of the other kit and keep the books
 * of two chains in one ledger. The folder says itself which home it is of.
 */
import { createHash } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { errorCode } from "../../chain/errors.js";
import { SECRET_MODE, replaceFile } from "../../runtime/files/durable-file.js";
import { SHARED_FOLDER } from "./binaries.js";
import { EmbeddedPostgresError, folderError } from "./errors.js";
import { findServer } from "./survivor.js";

/** File in the database folder with the absolute path of its home; PostgreSQL leaves it alone. */
const OWNER_FILE = "causeway-home";

/** Where the database of a home lies that PostgreSQL's account may not enter. */
export function sharedPlaceOf(home: string): string {
  const hash = createHash("sha256").update(realpathSync(home)).digest("hex").slice(0, 16);
  return join(SHARED_FOLDER, hash);
}

/**
 * Makes a linked database folder this home's, unless another home links to it, too. A home that was
 * moved takes its database along.
 * @param link where the home links from
 * @throws CLUSTER_SHARED before anything is touched, FOLDER_UNUSABLE
 */
export async function claimCluster(folder: string, home: string, link: string): Promise<void> {
  const own = realpathSync(home);
  const owner = readOwner(folder);
  if (owner === own) return;
  const isOthers = owner === undefined ? isServedForOthers(folder, own) : linksTo(owner, folder);
  if (isOthers) {
    throw new EmbeddedPostgresError(
      "CLUSTER_SHARED",
      `the database in ${folder} is that of ${owner ?? "another home whose kit runs"}, and ${own} ` +
        "is a copy that links to the same one: give the copy a database of its own. Stop both, then " +
        `cp -a ${folder} ${folder}-copy && ln -sfn ${folder}-copy ${link}`,
      { details: { folder, owner } },
    );
  }
  await replaceFile(join(folder, OWNER_FILE), `${own}\n`, SECRET_MODE).catch((error: unknown) => {
    throw folderError(folder, error);
  });
}

function readOwner(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, OWNER_FILE), "utf8").trim();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw folderError(folder, error);
  }
}

/** Folders of former releases do not say whose they are: their name does, and whether they are used. */
function isServedForOthers(folder: string, own: string): boolean {
  if (dirname(folder) !== SHARED_FOLDER || basename(folder) === basename(sharedPlaceOf(own))) {
    return false;
  }
  return findServer(folder) !== undefined;
}

function linksTo(home: string, folder: string): boolean {
  try {
    return realpathSync(join(home, "data", "postgres")) === folder;
  } catch (error) {
    // What cannot be looked at is there, and somebody else's.
    return !["ENOENT", "ENOTDIR"].includes(errorCode(error));
  }
}
