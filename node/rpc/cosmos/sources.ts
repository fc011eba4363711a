/** What the queries read of the node. */
import { type Address, parseAnyAddress } from "../../../chain/address.js";
import type { Height } from "../../../chain/hex.js";
import type { Descriptors } from "../../../chain/protobuf/descriptors.js";
import { encodeMessage } from "../../../chain/protobuf/codec.js";
import type { ProtoMessage } from "../../../chain/protobuf/values.js";
import type { Atoken } from "../../../chain/units.js";
import type { CallWorkers } from "../../execution/calls/call-port.js";
import type { SdkTransactions } from "../../view/sdk-transactions.js";
import type { ModulesAt } from "../../modules/reads/modules-at.js";
import type { VestingReads } from "../../modules/reads/vesting-reads.js";
import type { CometChain } from "../comet/ports.js";
import { invalidArgument } from "./errors.js";

/** Accounts of the chain itself. */
export interface ModuleAccount {
  readonly name: string;
  readonly address: Address;
  /** "minter", "burner", "staking" */
  readonly permissions: readonly string[];
}

/** What a node tells of itself. */
export interface NodeDescription {
  readonly moniker: string;
  /** 40 hex digits (D24). */
  readonly nodeId: string;
  /** `tcp://host:port`. */
  readonly p2pListenAddress: string;
  readonly rpcListenAddress: string;
  /** Version of the program. */
  readonly version: string;
  /** As in app.toml, for example "0.025atoken". */
  readonly minimumGasPrices: string;
  readonly pruningKeepRecent: string;
  readonly pruningInterval: string;
  readonly haltHeight: number;
}

/** Everything behind the queries. */
export interface QuerySources {
  readonly types: Descriptors;
  readonly chain: CometChain;
  readonly transactions: SdkTransactions;
  readonly calls: CallWorkers;
  readonly evmChainId: bigint;
  readonly node: NodeDescription;
  /** State of staking and what belongs to it; undefined where the validators have no stake. */
  readonly modules: ModulesAt | undefined;
  readonly moduleAccounts: readonly ModuleAccount[];
  readonly burnAddress: Address;
  /** Inflation at a height, in whole percent a year (D13). */
  inflationPercent(height: Height): bigint;
  /** Coins that genesis locks. */
  readonly vesting: VestingReads;
}

/** Total supply after a height, atoken. */
export function supplyAtoken({ chain }: QuerySources, height: Height): Atoken {
  const supply = chain.view.supply(height);
  if (supply === undefined) throw new RangeError(`the supply after block ${height} is missing`);
  return supply.totalAtoken;
}

/** Modules of a chain whose validators have stake, which alone has the queries of these modules. */
export type ModuleSources = QuerySources & { readonly modules: ModulesAt };

/** A message in an Any. */
export function anyOf(types: Descriptors, name: string, message: ProtoMessage): ProtoMessage {
  return { type_url: `/${name}`, value: encodeMessage(types.message(name), message) };
}

/**
 * An account as clients write it: bech32 of accounts, or 0x hex.
 * @throws INVALID_ARGUMENT
 */
export function accountOf(text: string): Address {
  if (text === "") throw invalidArgument("empty address string is not allowed");
  try {
    return parseAnyAddress(text);
  } catch {
    throw invalidArgument(
      `invalid address: expected addr1... or 0x hex, got "${text.slice(0, 100)}"`,
    );
  }
}
