/**
 * The pinned ERC-20 registry as text (`<home>/config/tokens.json`): what a token is called is
 * decided by whoever runs the kit, never by the contract, whose answers may change. Pure: no I/O.
 */
import { type Address, parseStrictAddress, toChecksumAddress } from "./address.js";
import { parseEditedJson } from "./encoding/edited-json.js";
import { AppError, errorMessage } from "./errors.js";
import { type Hash32, parseHash32 } from "./hex.js";
import { TOKEN_SYMBOL } from "./units.js";

/** One ERC-20 of the registry. */
export interface TokenEntry {
  readonly contractAddress: Address;
  readonly symbol: string;
  /** 0 to 255, as in ERC-20. */
  readonly decimals: number;
  /** Keccak-256 of the code that is trusted; absent: the first code that is seen. */
  readonly codeHash?: Hash32 | undefined;
}

/** One thing that is wrong with a list. */
export interface TokenListFault {
  /** For people: "[2].symbol", or "(whole file)". */
  readonly key: string;
  readonly value: string;
  readonly allowed: string;
}

/** The list as text cannot be used; `faults` names all that is wrong. */
export class TokenListError extends AppError<"INVALID_TOKEN_LIST"> {
  readonly faults: readonly TokenListFault[];

  constructor(faults: readonly TokenListFault[]) {
    const lines = faults.map(
      ({ key, value, allowed }) => `${key} = ${value} (allowed: ${allowed})`,
    );
    super("INVALID_TOKEN_LIST", lines.join("; "), { details: { faults } });
    this.faults = faults;
  }
}

/** Tokens that one server follows: each costs balance checks in the blocks that touch it. */
export const MAX_TOKENS = 1_000;

const FIELDS = ["contractAddress", "symbol", "decimals"];
const OPTIONAL_FIELDS = ["codeHash"];
const SYMBOL_PATTERN = /^[\x21-\x7e]{1,32}$/;
const MAX_SHOWN_VALUE = 80;

/**
 * Untrusted text to the entries, in the file's order.
 * @throws TokenListError with every fault at once
 */
export function parseTokenList(text: string): TokenEntry[] {
  const faults: TokenListFault[] = [];
  const items = readList(text, faults);
  const seen = new Set<Address>();
  const entries = items.flatMap((item, index) => {
    const entry = readEntry(item, `[${index}]`, faults);
    if (entry === undefined) return [];
    const { contractAddress } = entry;
    if (seen.has(contractAddress)) {
      const key = `[${index}].contractAddress`;
      faults.push({ key, value: show(contractAddress), allowed: "each contract once" });
    }
    seen.add(contractAddress);
    return [entry];
  });
  if (faults.length > 0) throw new TokenListError(faults);
  return entries;
}

/** The file's text: one entry a line, addresses checksummed. */
export function encodeTokenList(entries: readonly TokenEntry[]): string {
  if (entries.length === 0) return "[]\n";
  const lines = entries.map(({ contractAddress, symbol, decimals, codeHash }) => {
    const entry = {
      contractAddress: toChecksumAddress(contractAddress),
      symbol,
      decimals,
      codeHash,
    };
    return `  ${JSON.stringify(entry)}`;
  });
  return `[\n${lines.join(",\n")}\n]\n`;
}

function readList(text: string, faults: TokenListFault[]): readonly unknown[] {
  const whole = (value: string, allowed: string) => {
    faults.push({ key: "(whole file)", value, allowed });
    return [];
  };
  let value: unknown;
  try {
    value = parseEditedJson(text);
  } catch (error) {
    return whole(errorMessage(error), "JSON");
  }
  if (!Array.isArray(value)) return whole(show(value), "a list of tokens");
  if (value.length > MAX_TOKENS) return whole(`${value.length} tokens`, `at most ${MAX_TOKENS}`);
  return value;
}

function readEntry(item: unknown, at: string, faults: TokenListFault[]): TokenEntry | undefined {
  if (typeof item !== "object" || item === null || Array.isArray(item)) {
    faults.push({ key: at, value: show(item), allowed: `an object with ${FIELDS.join(", ")}` });
    return undefined;
  }
  const fields = item as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(fields).filter(isUnknownField)) {
    faults.push({ key: `${at}.${key}`, value: show(fields[key]), allowed: "no such field" });
  }
  const { symbol, decimals } = fields;
  const contractAddress = readAddress(fields["contractAddress"], `${at}.contractAddress`, faults);
  const isSymbol = typeof symbol === "string" && SYMBOL_PATTERN.test(symbol);
  if (!isSymbol || symbol === TOKEN_SYMBOL) {
    const allowed = `1 to 32 printable ASCII characters without spaces, not ${TOKEN_SYMBOL}`;
    faults.push({ key: `${at}.symbol`, value: show(symbol), allowed });
  }
  const isDecimals = typeof decimals === "number" && Number.isInteger(decimals);
  if (!isDecimals || decimals < 0 || decimals > 255) {
    faults.push({ key: `${at}.decimals`, value: show(decimals), allowed: "a whole number, 0-255" });
  }
  const codeHash = readCodeHash(fields["codeHash"], `${at}.codeHash`, faults);
  if (contractAddress === undefined || typeof symbol !== "string") return undefined;
  if (typeof decimals !== "number") return undefined;
  const entry = { contractAddress, symbol, decimals };
  return codeHash === undefined ? entry : { ...entry, codeHash };
}

function isUnknownField(name: string): boolean {
  return !FIELDS.includes(name) && !OPTIONAL_FIELDS.includes(name);
}

function readCodeHash(value: unknown, key: string, faults: TokenListFault[]): Hash32 | undefined {
  if (value === undefined) return undefined;
  try {
    return parseHash32(value);
  } catch {
    faults.push({ key, value: show(value), allowed: "0x and 64 lower-case hex digits" });
    return undefined;
  }
}

function readAddress(value: unknown, key: string, faults: TokenListFault[]): Address | undefined {
  try {
    return parseStrictAddress(value);
  } catch {
    const allowed = "0x and 40 hex digits, all lower case or with a right checksum";
    faults.push({ key, value: show(value), allowed });
    return undefined;
  }
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").slice(0, MAX_SHOWN_VALUE);
}
