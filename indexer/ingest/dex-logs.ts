/**
 * Uniswap V2 on the wire: what factories and pairs log. Pure. Anybody can log the same; whether a
 * pair is one is asked of the pair itself (`token-facts.ts`). Source: uniswap v2-core 1.0.1.
 */
import { type Address, bytesToAddress } from "../../chain/address.js";
import { bytesToBigint, type Hash32, hexToBytes } from "../../chain/hex.js";
import type { JournaledLog } from "../../rpc-client/journal-codec.js";

/** keccak-256 of each event's signature. */
const DEX_TOPICS = {
  /** `PairCreated(address indexed,address indexed,address,uint256)` */
  pairCreated: "0x0d3648bd0f6ba80134a33ba9275ac585d9d315f0ad8355cddefde31afa28d0e9",
  /** `Sync(uint112,uint112)` */
  sync: "0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1",
  /** `Swap(address indexed,uint256,uint256,uint256,uint256,address indexed)` */
  swap: "0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822",
  /** `Mint(address indexed,uint256,uint256)` */
  mint: "0x4c209b5fc8ad50758f13e2e1088ba56a560dff690a1c6fef26394f4c03821c4f",
  /** `Burn(address indexed,uint256,uint256,address indexed)` */
  burn: "0xdccd412f0b1252819cb1fd330b93224ca42612892bb3f4f789976e6d81936496",
} as const;

/** What a log says, where it is one of these. */
export type DexEvent =
  | {
      readonly type: "pair";
      readonly factory: Address;
      readonly pair: Address;
      readonly token0: Address;
      readonly token1: Address;
    }
  | { readonly type: "sync"; readonly reserves: readonly [bigint, bigint] }
  | {
      readonly type: "swap";
      readonly sender: Address;
      readonly to: Address;
      /** In of token0 and token1, out of both. */
      readonly amounts: readonly [bigint, bigint, bigint, bigint];
    }
  | {
      readonly type: "mint" | "burn";
      readonly sender: Address;
      readonly to: Address | undefined;
      readonly amounts: readonly [bigint, bigint];
    };

/** Undefined for every other log, and for one that is not formed as the event is. */
export function dexEventOf({ address, topics, data }: JournaledLog): DexEvent | undefined {
  const signature: string | undefined = topics[0];
  const [, first, second] = topics;
  const layout = LAYOUTS.get(signature ?? "");
  if (layout === undefined || topics.length !== layout.topics) return undefined;
  if (data.length !== 2 + 64 * layout.words) return undefined;
  const bytes = hexToBytes(data);
  const word = (index: number) => bytesToBigint(bytes.subarray(32 * index, 32 * (index + 1)));
  switch (signature) {
    case DEX_TOPICS.pairCreated: {
      const pair = bytesToAddress(bytes.subarray(12, 32));
      return {
        type: "pair",
        factory: address,
        pair,
        token0: account(first),
        token1: account(second),
      };
    }
    case DEX_TOPICS.sync:
      return { type: "sync", reserves: [word(0), word(1)] };
    case DEX_TOPICS.swap: {
      const amounts = [word(0), word(1), word(2), word(3)] as const;
      return { type: "swap", sender: account(first), to: account(second), amounts };
    }
    case DEX_TOPICS.mint:
      return { type: "mint", sender: account(first), to: undefined, amounts: [word(0), word(1)] };
    default:
      return {
        type: "burn",
        sender: account(first),
        to: account(second),
        amounts: [word(0), word(1)],
      };
  }
}

const LAYOUTS: ReadonlyMap<string, { readonly topics: number; readonly words: number }> = new Map([
  [DEX_TOPICS.pairCreated, { topics: 3, words: 2 }],
  [DEX_TOPICS.sync, { topics: 1, words: 2 }],
  [DEX_TOPICS.swap, { topics: 3, words: 4 }],
  [DEX_TOPICS.mint, { topics: 2, words: 2 }],
  [DEX_TOPICS.burn, { topics: 3, words: 2 }],
]);

function account(topic: Hash32 | undefined): Address {
  return bytesToAddress(hexToBytes(topic ?? "0x").subarray(12));
}
