/** What pages are made from. */
import type { Address } from "../../chain/address.js";
import type { Network } from "../../chain/networks.js";
import type { TokenEntry } from "../../chain/token-list.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { ChainSource } from "../sources/chain-source.js";
import type { ConsensusSource } from "../sources/consensus-source.js";
import type { IndexerSource } from "../sources/indexer-source.js";
import type { GovernanceSource } from "../sources/modules/governance-source.js";
import type { StakingSource } from "../sources/modules/staking-source.js";
import { type Content, el } from "../../web/html/element.js";
import { foreignName } from "../../web/html/format.js";
import { addressLink } from "../html/chain-links.js";
import type { AbiItem } from "../decode/abi-items.js";
import type { VerifiedContract, VerifiedStore } from "../verification/verified-store.js";
import { abisNow, type Verifier, verifiedNow } from "../verification/verifier.js";
import type { Texts } from "../text/catalogue.js";

/** The sources behind all pages. */
export interface PageContext {
  readonly network: Network;
  readonly chain: ChainSource;
  readonly consensus: ConsensusSource;
  readonly indexer: IndexerSource;
  readonly staking: StakingSource;
  readonly governance: GovernanceSource;
  /** Tokens of the home's own list, by contract: the only names that are vouched for. */
  readonly tokens: ReadonlyMap<Address, TokenEntry>;
  /** Origin under which readers reach the pages; "" where it is not known. */
  readonly publicUrl: string;
  /** Changes when the chain is another one than before: what was kept of it is not of this one. */
  readonly generation: () => number;
  /** The node in commands that readers are shown. */
  readonly commandUrls: { readonly rpc: string; readonly consensus: string };
  readonly clock: Clock;
  readonly contracts: ContractBook;
}

/** Verified contracts, and the way to verify more. */
export interface ContractBook {
  /** Undefined where the home has no place for them. */
  readonly store: VerifiedStore | undefined;
  /** Undefined where nothing is verified here. */
  readonly verifier: Verifier | undefined;
}

/** The verified contract of an address, if its code is still the one that was compared. */
export async function verifiedContract(
  { contracts: { store }, chain }: PageContext,
  address: Address,
  signal: AbortSignal,
): Promise<VerifiedContract | undefined> {
  return store === undefined ? undefined : verifiedNow({ store, chain }, address, signal);
}

/** Contracts of one page whose ABIs are looked up. */
const MAX_ABIS = 64;

/** ABIs of those of some contracts that are verified. */
export async function verifiedAbis(
  context: PageContext,
  addresses: readonly Address[],
  signal: AbortSignal,
): Promise<ReadonlyMap<Address, readonly AbiItem[]>> {
  const { chain, contracts } = context;
  const wanted = [...new Set(addresses)].slice(0, MAX_ABIS);
  if (contracts.store === undefined) return new Map();
  return abisNow({ store: contracts.store, chain }, wanted, signal);
}

/** How a token is written: vouched for by the home's list, else by its address alone. */
export interface TokenName {
  readonly symbol: string | undefined;
  readonly decimals: number | undefined;
}

/** The name that the home's list gives to a contract. */
export function listedToken(context: PageContext, contract: Address): TokenName {
  const entry = context.tokens.get(contract);
  return { symbol: entry?.symbol, decimals: entry?.decimals };
}

/** Link to a token with its name; what only the contract says is marked as that. */
export function tokenLink(
  context: PageContext,
  contract: Address,
  t: Texts,
  claimed?: string,
): Content {
  const { symbol } = listedToken(context, contract);
  const href = `/token/${contract}`;
  if (symbol !== undefined) return el("a", { href }, symbol);
  const name = claimed === undefined ? "" : foreignName(claimed);
  if (name === "") return addressLink(contract, t);
  return [el("a", { href }, el("bdi", {}, name)), " ", el("span", { class: "tag" }, t("claimed"))];
}
