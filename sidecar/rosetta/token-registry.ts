/**
 * The tokens that this server knows, read once at start: their currencies are pinned, because an
 * amount's identity is a hash of the whole currency object and a contract's `symbol()` may change.
 */
import { createHash } from "node:crypto";
import { type Address, toChecksumAddress } from "../../chain/address.js";
import { encodeTokenList, type TokenEntry } from "../../chain/token-list.js";
import { loadTokenFile } from "../../runtime/config/token-file.js";
import { type Currency, type CurrencyKey, TOKEN_CURRENCY } from "./identifiers.js";

/** An ERC-20 with its currency, the same object wherever it appears. */
export interface Token extends TokenEntry {
  readonly currency: Currency;
}

/** What a currency in a request means; undefined when this server does not know it. */
export type KnownCurrency =
  | { readonly kind: "native" }
  | { readonly kind: "token"; readonly token: Token };

/** The registry: immutable for the life of a process. */
export class TokenRegistry {
  readonly tokens: readonly Token[];
  /** 16 hex digits of a digest over the list: another list is another version. */
  readonly version: string;
  private readonly byContract: ReadonlyMap<Address, Token>;

  constructor(entries: readonly TokenEntry[]) {
    this.tokens = Object.freeze(
      entries.map((entry) => ({ ...entry, currency: currencyOf(entry) })),
    );
    this.byContract = new Map(this.tokens.map((token) => [token.contractAddress, token]));
    const sorted = entries.toSorted((a, b) => (a.contractAddress < b.contractAddress ? -1 : 1));
    this.version = createHash("sha256").update(encodeTokenList(sorted)).digest("hex").slice(0, 16);
  }

  /** The token of a contract. */
  byAddress(contractAddress: Address): Token | undefined {
    return this.byContract.get(contractAddress);
  }

  /** The currency that is meant, if every part of it is as pinned. */
  resolve(key: CurrencyKey): KnownCurrency | undefined {
    const { symbol, decimals, contractAddress, validator, claim } = key;
    if (validator !== undefined || claim !== undefined) return undefined;
    if (contractAddress === undefined) {
      const { symbol: ours, decimals: places } = TOKEN_CURRENCY;
      return symbol === ours && decimals === places ? { kind: "native" } : undefined;
    }
    const token = this.byContract.get(contractAddress);
    if (token === undefined || token.symbol !== symbol || token.decimals !== decimals) {
      return undefined;
    }
    return { kind: "token", token };
  }
}

/**
 * Reads `<home>/config/tokens.json`; a home without the file has no tokens.
 * @throws ConfigError with every fault of the list
 */
export function loadTokenRegistry(home: string): TokenRegistry {
  return new TokenRegistry(loadTokenFile(home));
}

function currencyOf({ contractAddress, symbol, decimals }: TokenEntry): Currency {
  const metadata = Object.freeze({ contractAddress: toChecksumAddress(contractAddress) });
  return Object.freeze({ symbol, decimals, metadata });
}
