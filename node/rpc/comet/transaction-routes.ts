/** Mined transactions by hash and by event, blocks by event, and module queries. */
import { setImmediate as yieldToLoop } from "node:timers/promises";
import { type MerkleProof, merkleProofs, merkleRootOf } from "../../../chain/consensus/merkle.js";
import { sha256 } from "../../../chain/crypto.js";
import { bytesToHash32, type Height, hexToBytes } from "../../../chain/hex.js";
import { encodeSdkTransaction } from "../../../chain/sdk-transaction.js";
import type { CommittedBlock } from "../../event-bus.js";
import { queryModule } from "./abci-query.js";
import type { Arguments } from "./arguments.js";
import { blockResult, committedAt, latestHeight, needSummary } from "./chain-reads.js";
import { base64, transactionProofJson, upperHexOf } from "./encode.js";
import { refused } from "./errors.js";
import { searchBlocks, searchTransactions } from "./event-search.js";
import { isDescending, pageOf } from "./paging.js";
import type { CometChain } from "./ports.js";
import { parseQuery } from "./query.js";
import { transactionResultJson } from "./results.js";
import { SearchLane } from "./search-lane.js";
import { type Route, type RouteContext, route } from "./route.js";

/** Bytes of the blocks on one page: the answer is held whole, and is a third larger. */
const MAX_PAGE_BYTES = 64 * 1024 * 1024;

/** The routes of this file. */
export function transactionRoutes(
  chain: CometChain,
  node: { readonly version: string; readonly appVersion: string },
): readonly (readonly [string, Route])[] {
  const lane = new SearchLane();
  return [
    route("tx", ["hash", "prove"], (values) => {
      const hash = values.bytes("hash");
      const place =
        hash.length === 32 ? chain.view.locateBySdkHash(bytesToHash32(hash)) : undefined;
      if (place === undefined) throw refused(`tx (${upperHexOf(hash)}) not found`);
      const committed = committedAt(chain, place.height);
      const proofs = values.boolean("prove") ? proofsOf(committed) : undefined;
      return transactionJson(committed, place.index, proofs);
    }),
    route("tx_search", ["query", "prove", "page", "per_page", "order_by"], (values, context) =>
      lane.run(context.signal, () => txSearch(chain, values, context)),
    ),
    route("block_search", ["query", "page", "per_page", "order_by"], (values, context) =>
      lane.run(context.signal, () => blockSearch(chain, values, context)),
    ),
    route("abci_info", [], () => {
      const { height, hash } = chain.view.head();
      return {
        response: {
          data: "causeway",
          version: node.version,
          app_version: node.appVersion,
          last_block_height: height.toString(),
          last_block_app_hash: base64(hexToBytes(hash)),
        },
      };
    }),
    route("abci_query", ["path", "data", "height", "prove"], (values) => abciQuery(chain, values)),
  ];
}

/** Proofs of one block's transactions. */
interface BlockProofs {
  readonly root: Uint8Array;
  readonly proofs: readonly MerkleProof[];
}

function proofsOf(committed: CommittedBlock): BlockProofs {
  const leaves = committed.block.transactions.map(({ tx, from }) =>
    sha256(encodeSdkTransaction(tx, from)),
  );
  return { root: merkleRootOf(leaves), proofs: merkleProofs(leaves) };
}

function transactionJson(committed: CommittedBlock, index: number, proved?: BlockProofs) {
  const { height } = committed.block.header;
  const mined = committed.block.transactions[index];
  if (mined === undefined) throw new RangeError("a block has no such transaction");
  const bytes = encodeSdkTransaction(mined.tx, mined.from);
  const proof = proved?.proofs[index];
  return {
    hash: upperHexOf(sha256(bytes)),
    height: height.toString(),
    index,
    tx_result: transactionResultJson(committed, index),
    tx: base64(bytes),
    ...(proof === undefined || proved === undefined
      ? {}
      : { proof: transactionProofJson(proved.root, bytes, proof) }),
  };
}

async function txSearch(chain: CometChain, values: Arguments, { signal }: RouteContext) {
  const query = parseQuery(values.text("query"));
  const isReversed = isDescending(values, "asc");
  const isProved = values.boolean("prove");
  const found = await searchTransactions(chain, query, signal);
  const page = pageOf(values, isReversed ? found.toReversed() : found);
  const txs = [];
  let proofs: { height: Height; of: BlockProofs } | undefined;
  for (const { height, index } of page) {
    const committed = committedAt(chain, height);
    // Neighbours share a block; between blocks others get their turn.
    if (isProved && proofs?.height !== height) {
      await yieldToLoop();
      proofs = { height, of: proofsOf(committed) };
    }
    txs.push(transactionJson(committed, index, proofs?.of));
  }
  return { txs, total_count: found.length.toString() };
}

async function blockSearch(chain: CometChain, values: Arguments, { signal }: RouteContext) {
  const query = parseQuery(values.text("query"));
  const isReversed = isDescending(values, "desc");
  const found = await searchBlocks(chain, query, signal);
  const page = pageOf(values, isReversed ? found.toReversed() : found);
  const blocks = [];
  let sizeBytes = 0;
  for (const height of page) {
    sizeBytes += needSummary(chain, height).sizeBytes;
    if (sizeBytes > MAX_PAGE_BYTES) throw refused("the blocks are large: use a smaller per_page");
    blocks.push(blockResult(chain, height));
    await yieldToLoop();
  }
  return { blocks, total_count: found.length.toString() };
}

/** Code of a height that the node does not have yet (SDK root codespace). */
const INVALID_HEIGHT = 26;

async function abciQuery(chain: CometChain, values: Arguments) {
  const path = values.text("path");
  const data = values.hexBytes("data");
  const wanted = values.integer("height") ?? 0;
  values.boolean("prove");
  const latest = latestHeight(chain);
  const height = wanted === 0 ? latest : wanted;
  const answer = isServed(height, latest)
    ? await queryModule(chain.view, { path, data, height })
    : {
        code: INVALID_HEIGHT,
        log: "cannot query with height in the future or below 0: invalid height",
        codespace: "sdk",
        value: new Uint8Array(0),
      };
  return {
    response: {
      code: answer.code,
      log: answer.log,
      info: "",
      index: "0",
      key: null,
      value: answer.code === 0 ? base64(answer.value) : null,
      proofOps: null,
      height: answer.code === 0 ? height.toString() : "0",
      codespace: answer.codespace,
    },
  };
}

function isServed(height: Height, latest: Height): boolean {
  return height > 0 && height <= latest;
}
