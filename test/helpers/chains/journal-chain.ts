/** A small chain as the node's JSON: genesis, a block of transfers, a block of everything else. */
import { keccak256Hex } from "../../../chain/hashes.js";
import type { Hash32 } from "../../../chain/hex.js";
import { toQuantity } from "../../../chain/hex.js";
import {
  type FakeNode,
  type Method,
  type NodeHooks,
  RpcFault,
  startFakeNode,
} from "./fake-node.js";

export const ALICE = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
export const BOB = "0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359";
export const CONTRACT = "0xdbf03b407c01e7cd3cbea99509d93f8dddc8c6fb";
export const COLLECTOR = "0x00000000000000000000000000000000000fee00";
export const TREASURY = "0x000000000000000000000000000000000007ea50";
export const POOL = "0x0000000000000000000000000000000000009001";

export const TOKEN = 10n ** 18n;

export function hashOf(text: string): Hash32 {
  return keccak256Hex(Buffer.from(text));
}

interface ChangeSpec {
  reason: string;
  from?: string;
  to?: string;
  amount: bigint;
  effective?: boolean;
  tracePath?: string;
  error?: string;
}

/** A change as the node writes it. */
export function change(spec: ChangeSpec) {
  return {
    reason: spec.reason,
    from: spec.from ?? null,
    to: spec.to ?? null,
    amount: toQuantity(spec.amount),
    effective: spec.effective ?? true,
    tracePath: spec.tracePath ?? null,
    error: spec.error ?? null,
  };
}

const FEE = 21_000n * 25_000_000n;

function fee(payer: string) {
  return change({ reason: "FEE", from: payer, to: COLLECTOR, amount: FEE });
}

/** A transaction of a journal. */
export function transaction(name: string, index: number, fields: Record<string, unknown>) {
  return {
    hash: hashOf(name),
    index,
    status: "0x1",
    from: ALICE,
    to: BOB,
    contractAddress: null,
    gasUsed: "0x5208",
    gasPrice: toQuantity(25_000_000),
    nonce: toQuantity(index),
    input: "0x",
    changes: [],
    logs: [],
    ...fields,
  };
}

/** The end of a block that took `fees`: half burned (up), half to the treasury, and a mint. */
function blockEnd(fees: bigint) {
  const burned = (fees + 1n) / 2n;
  return {
    burned,
    changes: [
      change({ reason: "FEE_BURN", from: COLLECTOR, amount: burned }),
      change({ reason: "TREASURY", from: COLLECTOR, to: TREASURY, amount: fees - burned }),
      change({ reason: "MINT", to: POOL, amount: 1_000n }),
    ],
  };
}

/** Journals by height. */
export function journals(): Record<string, unknown>[] {
  const end1 = blockEnd(2n * FEE);
  const end2 = blockEnd(3n * FEE);
  const blocks: Record<string, unknown>[] = [
    {
      transactions: [],
      blockChanges: [
        change({ reason: "GENESIS", to: ALICE, amount: 1_000n * TOKEN }),
        change({ reason: "GENESIS", to: BOB, amount: 5n * TOKEN }),
      ],
      minted: toQuantity(1_005n * TOKEN),
      burned: "0x0",
    },
    {
      transactions: [
        transaction("plain", 0, {
          changes: [
            fee(ALICE),
            change({ reason: "CALL", from: ALICE, to: BOB, amount: TOKEN, tracePath: "" }),
          ],
        }),
        transaction("memo", 1, {
          input: `0x${Buffer.from("invoice 7 – danke").toString("hex")}`,
          changes: [
            fee(ALICE),
            change({ reason: "CALL", from: ALICE, to: BOB, amount: 7n, tracePath: "" }),
          ],
        }),
      ],
      blockChanges: end1.changes,
      minted: toQuantity(1_000),
      burned: toQuantity(end1.burned),
    },
    {
      transactions: [
        transaction("forward", 0, {
          to: CONTRACT,
          // As nodes give what is longer than 1,024 bytes.
          input: `0xa9059cbb${"00".repeat(1_020)}`,
          inputBytes: 2_004,
          changes: [
            fee(ALICE),
            change({ reason: "CALL", from: ALICE, to: CONTRACT, amount: 9n, tracePath: "" }),
            change({ reason: "CALL", from: CONTRACT, to: BOB, amount: 9n, tracePath: "0_1" }),
          ],
        }),
        transaction("failed", 1, {
          status: "0x0",
          to: CONTRACT,
          input: `0x${"61".repeat(1_024)}`,
          inputBytes: 1_500,
          changes: [
            fee(ALICE),
            change({
              reason: "CALL",
              from: ALICE,
              to: CONTRACT,
              amount: 3n,
              effective: false,
              tracePath: "",
              error: "execution reverted",
            }),
          ],
        }),
        transaction("create", 2, {
          to: null,
          contractAddress: CONTRACT,
          input: "0x6001",
          changes: [
            fee(ALICE),
            change({ reason: "CREATE", from: ALICE, to: CONTRACT, amount: 0n, tracePath: "" }),
          ],
        }),
      ],
      blockChanges: end2.changes,
      minted: toQuantity(1_000),
      burned: toQuantity(end2.burned),
    },
  ];
  return blocks.map((block, height) => ({
    blockHash: hashOf(`block ${height}`),
    blockNumber: toQuantity(height),
    parentHash: height === 0 ? `0x${"00".repeat(32)}` : hashOf(`block ${height - 1}`),
    timestampMs: 1_790_000_000_123 + height * 2_000,
    ...(height === 0 ? {} : { consensusBlockHash: hashOf(`consensus header ${height}`) }),
    ...block,
  }));
}

/** Balance and nonce that the fake node answers: both tell the height, so mixing shows. */
export function balanceAt(height: number): bigint {
  return 100n * TOKEN + BigInt(height);
}

const header = (journal: Record<string, unknown> | undefined) =>
  journal === undefined
    ? null
    : {
        number: journal["blockNumber"],
        hash: journal["blockHash"],
        parentHash: journal["parentHash"],
        timestamp: toQuantity(Math.floor(Number(journal["timestampMs"]) / 1_000)),
      };

/** A node over these journals; `methods` replaces or adds single ones, `hooks` those of the wire. */
export function startFakeChain(
  methods: Record<string, Method> = {},
  blocks = journals(),
  hooks: NodeHooks = {},
): Promise<FakeNode> {
  const heightOf = (tag: unknown) => (tag === "latest" ? blocks.length - 1 : Number(tag));
  const byHash = (hash: unknown) => blocks.find((block) => block["blockHash"] === hash);
  /** A state by its block's height or tag, or by EIP-1898's hash. */
  const heightOfState = (tag: unknown) => {
    if (typeof tag !== "object" || tag === null || !("blockHash" in tag)) return heightOf(tag);
    return blocks.findIndex((block) => block["blockHash"] === tag.blockHash);
  };
  const known = (tag: unknown) => {
    const height = tag === "pending" ? blocks.length - 1 : heightOfState(tag);
    if (blocks[height] === undefined) throw new RpcFault(-32000, "header not found");
    return height;
  };
  return startFakeNode(
    {
      eth_chainId: () => "0x1b1c",
      eth_syncing: () => false,
      eth_blockNumber: () => toQuantity(blocks.length - 1),
      eth_gasPrice: () => toQuantity(25_000_000),
      eth_estimateGas: () => toQuantity(21_000),
      eth_call: () => "0x",
      eth_getBlockByNumber: ([tag]) => header(blocks[heightOf(tag)]),
      eth_getBlockByHash: ([hash]) => header(byHash(hash)),
      eth_getBalance: ([, tag]) => toQuantity(balanceAt(known(tag))),
      eth_getTransactionCount: ([, tag]) => toQuantity(known(tag)),
      eth_getTransactionReceipt: () => null,
      causeway_getAccountHeights: () => ({ heights: [], next: null }),
      causeway_getBlockJournal: ([hash]) => byHash(hash) ?? null,
      ...methods,
    },
    hooks,
  );
}
