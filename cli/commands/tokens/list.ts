/**
 * `causeway tokens add` and `list`: the pinned registry in `<home>/config/tokens.json`. The
 * sidecar reads it at its start, so a change needs a restart to count.
 */
import { join } from "node:path";
import { toChecksumAddress } from "../../../chain/address.js";
import {
  encodeTokenList,
  parseTokenList,
  type TokenEntry,
  type TokenListFault,
  TokenListError,
} from "../../../chain/token-list.js";
import { parseExchangeTokens } from "../../../ledger/assets/asset-registry.js";
import { ConfigError } from "../../../runtime/config/config.js";
import { type CommandContext, toJson } from "../../command-context.js";
import { PLAIN_MODE, readText, replaceFile } from "../../home/home-file.js";
import { CliError, systemCode } from "../../errors.js";
import { homePaths } from "../../home/home.js";
import { lockHome } from "../../home/home-lock.js";

/** What `tokens add` is given. */
export interface AddTokenOptions {
  readonly address: string;
  readonly symbol: string;
  readonly decimals: string;
}

/** Flags by the field of the list that they fill. */
const FLAGS: Readonly<Record<string, string>> = {
  "[0].contractAddress": "--address",
  "[0].symbol": "--symbol",
  "[0].decimals": "--decimals",
};

/** Said of an empty list. */
export const NO_TOKEN =
  "No token is listed; `causeway tokens add --address 0x... --symbol SYMBOL --decimals N` adds one.";

const RESTART =
  "Restart the kit for it to count, once it was held against its contract (causeway tokens check): its " +
  "parts read the list at their start, and the ledger keeps symbol and decimals for ever.";

/**
 * Adds a token at the end of the list; the contract need not exist yet.
 * @returns 0
 * @throws USAGE for wrong values, and a contract or symbol that is listed; HOME_INCOMPLETE,
 *   HOME_UNUSABLE
 */
export async function runAddToken(
  context: CommandContext,
  options: AddTokenOptions,
): Promise<number> {
  const paths = homePaths(context.home);
  const entry = parseNewToken(options);
  const tokens = await withListLock(context.home, async () => {
    const listed = await readTokens(context.home);
    const known = listed.find(({ contractAddress }) => contractAddress === entry.contractAddress);
    if (known !== undefined) {
      const { symbol, decimals } = known;
      const contract = toChecksumAddress(entry.contractAddress);
      const message =
        `${contract} is listed already, as ${symbol} with ${decimals} decimals. A line that no kit was ` +
        `started with yet is corrected in ${paths.tokens}; later it stays as it is.`;
      throw new CliError("USAGE", message);
    }
    refuseUnusable([...listed, entry], paths.tokens);
    const text = encodeTokenList([...listed, entry]);
    const next = parseList(text, paths.tokens);
    await replaceFile(paths.tokens, text, PLAIN_MODE);
    return next;
  });
  if (context.json) {
    context.print(toJson({ added: toWire(entry), tokens: tokens.map(toWire), restart: true }));
    return 0;
  }
  context.print(`Added ${entry.symbol} to ${paths.tokens}.`);
  context.print(RESTART);
  return 0;
}

/**
 * Prints the list in its order.
 * @returns 0
 */
export async function runListTokens(context: CommandContext): Promise<number> {
  const tokens = await readTokens(context.home);
  if (context.json) {
    context.print(toJson({ tokens: tokens.map(toWire) }));
    return 0;
  }
  for (const { contractAddress, symbol, decimals } of tokens) {
    context.print(`  ${toChecksumAddress(contractAddress)}  ${symbol}  ${decimals} decimals`);
  }
  if (tokens.length === 0) context.print(NO_TOKEN);
  return 0;
}

/**
 * The list of a home.
 * @throws HOME_INCOMPLETE where there is none or where it is wrong
 */
export async function readTokens(home: string): Promise<TokenEntry[]> {
  const { tokens } = homePaths(home);
  let text: string;
  try {
    text = await readText(tokens);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    const message = `${tokens} is missing; \`causeway init\` writes it.`;
    throw new CliError("HOME_INCOMPLETE", message, { cause: error });
  }
  return parseList(text, tokens);
}

/** An entry as the file and the JSON output have it. */
export function toWire({ contractAddress, symbol, decimals }: TokenEntry): object {
  return { contractAddress: toChecksumAddress(contractAddress), symbol, decimals };
}

/** A list that the exchange's services refuse would keep them from starting. */
function refuseUnusable(entries: readonly TokenEntry[], file: string): void {
  try {
    parseExchangeTokens(entries, file);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const parts = error.faults.map(
      ({ value, allowed }) => `--symbol is ${value}; allowed: ${allowed}`,
    );
    throw new CliError("USAGE", `${parts.join(". ")}.`, { cause: error });
  }
}

function parseNewToken({ address, symbol, decimals }: AddTokenOptions): TokenEntry {
  const number = /^[0-9]{1,3}$/.test(decimals) ? Number(decimals) : decimals;
  const text = JSON.stringify([{ contractAddress: address, symbol, decimals: number }]);
  try {
    const [entry] = parseTokenList(text);
    if (entry !== undefined) return entry;
    throw new CliError("USAGE", "No token was given.");
  } catch (error) {
    if (!(error instanceof TokenListError)) throw error;
    throw new CliError(
      "USAGE",
      sentence(error.faults, (key) => FLAGS[key] ?? key),
    );
  }
}

function parseList(text: string, file: string): TokenEntry[] {
  try {
    return parseTokenList(text);
  } catch (error) {
    if (!(error instanceof TokenListError)) throw error;
    const faults = sentence(error.faults, (key) => key);
    throw new CliError("HOME_INCOMPLETE", `${file} is wrong: ${faults}`, { cause: error });
  }
}

function sentence(faults: readonly TokenListFault[], nameOf: (key: string) => string): string {
  const parts = faults.map(
    ({ key, value, allowed }) => `${nameOf(key)} is ${value}; allowed: ${allowed}`,
  );
  return `${parts.join(". ")}.`;
}

/** The kit holds the home's own lock while it runs: the list has one of its own. */
async function withListLock<T>(home: string, work: () => Promise<T>): Promise<T> {
  const { config, tokens } = homePaths(home);
  const lock = await lockHome(join(config, "tokens.lock"), home).catch((error: unknown) => {
    if (!(error instanceof CliError) || error.code !== "HOME_LOCKED") throw error;
    const message = `Another command is changing ${tokens}; try again.`;
    throw new CliError("HOME_LOCKED", message, { cause: error, retriable: true });
  });
  try {
    return await work();
  } finally {
    await lock.release();
  }
}
