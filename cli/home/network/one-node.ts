/** Whether a folder is the home of one node, and what a person is told where it is not. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../../chain/errors.js";
import { CliError } from "../../errors.js";
import { type HomePaths, homePaths, isKitHome, isNodeHome } from "../home.js";
import { kitNodes } from "./kit-nodes.js";

/**
 * Refuses what is no home of a single node; a kit's home with a node of its own is one.
 * @throws HOME_INCOMPLETE where there is no node's home, HOME_UNUSABLE where it cannot be read, USAGE where
 * there are some in it
 */
export function assertOneNode(paths: HomePaths): void {
  if (!isNodeHome(paths)) {
    const homes = nodeHomesIn(paths.home);
    if (homes.length > 0) throw severalNodes(paths.home, homes);
    assertMissing(paths.genesis);
    throw new CliError(
      "HOME_INCOMPLETE",
      `${paths.home} is no node's home (${paths.genesis} is missing): make one with ` +
        "`causeway init --network ...` or `causeway testnet --validators N`.",
    );
  }
  const nodes = isKitHome(paths) ? kitNodes(paths.home) : [];
  if (nodes.length < 2) return;
  throw severalNodes(
    paths.home,
    nodes.map(({ home }) => home),
  );
}

/** A home that this user may not read is no reason to make another one. */
function assertMissing(file: string): void {
  try {
    statSync(file);
  } catch (cause) {
    const code = errorCode(cause) ?? "";
    if (code === "ENOENT" || code === "ENOTDIR") return;
    throw new CliError("HOME_UNUSABLE", `${file} cannot be read (${code})`, { cause });
  }
}

/** Homes of nodes right in a folder, as `causeway testnet` writes them; none where it cannot be read. */
function nodeHomesIn(folder: string): readonly string[] {
  try {
    const inside = readdirSync(folder).map((name) => join(folder, name));
    return inside.filter((home) => isNodeHome(homePaths(home))).toSorted();
  } catch {
    return [];
  }
}

function severalNodes(folder: string, homes: readonly string[]): CliError {
  const named = homes.join(", ");
  return new CliError("USAGE", `${folder} has homes of nodes in it; name one of them: ${named}.`);
}
