/** What contracts run: their code's hash, and the implementation that a proxy names. */
import { type Address, parseAddress } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { type Hash32, hexToBytes, toQuantity, ZERO_HASH } from "../../chain/hex.js";
import { readHash, readHex } from "../answer-fields.js";
import { encodeStateAt, type StateAt } from "../at.js";
import { type JsonRpcClient, resultOf, type RpcCall, type RpcOptions } from "../json-rpc.js";
import { isExecutionFailure, MAX_QUERIES_AT_ONCE } from "./token-balances.js";

/**
 * Where proxies keep their implementation. EIP-1967: keccak256("eip1967.proxy.implementation") - 1.
 * ZeppelinOS, whose proxy USDC has kept: keccak256("org.zeppelinos.proxy.implementation"). EIP-1822:
 * keccak256("PROXIABLE").
 */
const IMPLEMENTATION_SLOTS = [
  "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc",
  "0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3",
  "0xc5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7",
];

/** Where they keep whom they ask for it: keccak256("eip1967.proxy.beacon") - 1, EIP-1967. */
const BEACON_SLOT = "0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50";

/** Code and all slots. */
const CALLS_PER_CONTRACT = 1 + IMPLEMENTATION_SLOTS.length + 1;

/** Contracts asked about in one exchange: 24 KiB of code each, as hex. */
const CONTRACTS_AT_ONCE = 50;

/** Selector of `implementation()`, which a beacon answers. */
const IMPLEMENTATION_VIEW = "0x5c60da1b";

/** Gas of that: fixed, as that of `balanceOf` is; a read of one slot takes some 23,500. */
const BEACON_GAS = 100_000n;

/** What a contract runs after a block. */
export interface NodeTokenCode {
  readonly codeHash: Hash32;
  /**
   * Zeros where no slot for an implementation is set; the word of the one that is; where more are, or one
   * for a beacon is, the Keccak-256 of all of them and of what the beacon answers. Whoever may change one of
   * them may set another one beside it: none hides any.
   */
  readonly implementation: Hash32;
}

/** Reads of code. */
export interface TokenCodeCalls {
  /** In the order of the queries; undefined where no code is. */
  tokenCodes(
    queries: readonly { readonly contract: Address; readonly at: StateAt }[],
    options: RpcOptions,
  ): Promise<(NodeTokenCode | undefined)[]>;
}

/** A contract that a node was asked about. */
interface Asked {
  readonly contract: Address;
  readonly at: StateAt;
  readonly code: string;
  /** Words of the slots for an implementation, then that for a beacon. */
  readonly words: readonly Hash32[];
}

/** The calls over a JSON-RPC client. */
export function tokenCodeCalls(rpc: JsonRpcClient): TokenCodeCalls {
  return {
    async tokenCodes(queries, options) {
      const asked: Asked[] = [];
      for (let start = 0; start < queries.length; start += CONTRACTS_AT_ONCE) {
        const part = queries.slice(start, start + CONTRACTS_AT_ONCE);
        const outcomes = await rpc.batch(part.flatMap(callsOf), options);
        part.forEach((query, index) => {
          const first = index * CALLS_PER_CONTRACT;
          const [code, ...words] = outcomes.slice(first, first + CALLS_PER_CONTRACT);
          asked.push({
            ...query,
            code: readHex(resultOf(code), "code"),
            words: words.map((outcome) => readHash(resultOf(outcome), "storage")),
          });
        });
      }
      const answers = await askBeacons(rpc, asked.filter(hasBeacon), options);
      return asked.map((one) => {
        if (one.code === "0x") return undefined;
        const codeHash = keccak256Hex(hexToBytes(one.code));
        return { codeHash, implementation: implementationOf(one, answers.get(one)) };
      });
    },
  };
}

function callsOf({ contract, at }: Pick<Asked, "contract" | "at">): RpcCall[] {
  const block = encodeStateAt(at);
  return [
    { method: "eth_getCode", params: [contract, block] },
    ...[...IMPLEMENTATION_SLOTS, BEACON_SLOT].map((slot) => {
      return { method: "eth_getStorageAt", params: [contract, slot, block] };
    }),
  ];
}

function beaconWord({ words }: Asked): Hash32 {
  return words.at(-1) ?? ZERO_HASH;
}

function hasBeacon(asked: Asked): boolean {
  return asked.code !== "0x" && beaconWord(asked) !== ZERO_HASH;
}

/** What beacons answer to the proxies that name them; nothing where they fail. */
async function askBeacons(
  rpc: JsonRpcClient,
  proxies: readonly Asked[],
  options: RpcOptions,
): Promise<ReadonlyMap<Asked, Uint8Array>> {
  const answers = new Map<Asked, Uint8Array>();
  for (let start = 0; start < proxies.length; start += MAX_QUERIES_AT_ONCE) {
    const part = proxies.slice(start, start + MAX_QUERIES_AT_ONCE);
    const outcomes = await rpc.batch(part.map(beaconCall), options);
    part.forEach((proxy, index) => {
      const outcome = outcomes[index];
      const hasFailed = outcome?.ok === false && isExecutionFailure(outcome.error);
      const answer = hasFailed ? "0x" : readHex(resultOf(outcome), "implementation");
      answers.set(proxy, hexToBytes(answer));
    });
  }
  return answers;
}

function beaconCall(proxy: Asked): RpcCall {
  const to = parseAddress(`0x${beaconWord(proxy).slice(-40)}`);
  const gas = toQuantity(BEACON_GAS);
  const message = { from: proxy.contract, to, gas, data: IMPLEMENTATION_VIEW };
  return { method: "eth_call", params: [message, encodeStateAt(proxy.at)] };
}

function implementationOf({ words }: Asked, beaconAnswer: Uint8Array | undefined): Hash32 {
  const [word = ZERO_HASH, ...others] = words.filter((one) => one !== ZERO_HASH);
  if (others.length === 0 && beaconAnswer === undefined) return word;
  return keccak256Hex(Buffer.concat([...words.map(hexToBytes), beaconAnswer ?? new Uint8Array()]));
}
