/** The registry of the servers under test, and its currencies as they are on the wire. */
import { parseAddress } from "../../../chain/address.js";
import { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";

/** A currency in a request or reply. */
export interface WireCurrency {
  readonly symbol: string;
  readonly decimals: number;
  readonly metadata?: { readonly contractAddress: string };
}

export const CURRENCY: WireCurrency = { symbol: "TOKEN", decimals: 18 };
export const GOLD = {
  symbol: "GOLD",
  decimals: 6,
  metadata: { contractAddress: "0x6B175474E89094C44Da98b954EedeAC495271d0F" },
};
export const SILVER = {
  symbol: "SILVER",
  decimals: 18,
  metadata: { contractAddress: "0xdAC17F958D2ee523a2206206994597C13D831ec7" },
};

/** A currency as the registry takes it. */
export function tokenEntry({ symbol, decimals, metadata }: typeof GOLD) {
  return { contractAddress: parseAddress(metadata.contractAddress), symbol, decimals };
}

/** None of the contracts need exist. */
export const REGISTRY = new TokenRegistry([GOLD, SILVER].map(tokenEntry));
