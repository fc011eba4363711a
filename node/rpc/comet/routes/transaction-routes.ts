/** Mined transactions by hash and by event, blocks by event, and module queries. */
import type { ExecutedTransaction } from "../../../../chain/abci-event.js";
import { SDK_CODE } from "../../../../chain/cosmos/sdk-fault.js";
import { type ProvenRoot, provenRootSteps } from "../../../../chain/consensus/merkle.js";
import { sha256 } from "../../../../chain/hashes.js";
import { bytesToHash32, type Height, hexToBytes } from "../../../../chain/hex.js";
import type { Steps } from "../../../../chain/steps/steps.js";
import { breathe, doBreathing } from "../../../../runtime/process/main-thread.js";
import type { Asker } from "../../../../runtime/turns/resting-lane.js";
import {
  type AbciAnswer,
  abciAnswer,
  INVALID_REQUEST,
  queryFailure,
} from "../../cosmos/abci-answer.js";
import type { QueryRegistry } from "../../cosmos/registry.js";
import type { Arguments } from "../arguments.js";
import {
  blockResult,
  bytesOf,
  dataPages,
  executedAt,
  latestHeight,
  sizeBytesOf,
} from "../chain-reads.js";
import { base64, transactionProofJson, upperHexOf } from "../json/encode.js";
import { refused } from "../errors.js";
import { searchBlocks, searchTransactions } from "../search/event-search.js";
import { isDescending, pageOf } from "../paging.js";
import type { CometChain } from "../ports.js";
import { type EventQuery, parseQuery } from "../search/query.js";
import { JsonPieces, piecesOfList } from "../json/json-pieces.js";
import { resultTextSteps } from "../json/results.js";
import { SearchLane } from "../search/search-lane.js";
import { type Route, type RouteContext, route } from "../route.js";
import { newestAppVersion } from "./status.js";

/** Bytes of what is on one page: the answer is held whole, and one of blocks is a third larger. */
const MAX_PAGE_BYTES = 64 * 1024 * 1024;

/** The routes of this file. */
export function transactionRoutes(
  chain: CometChain,
  queries: QueryRegistry,
  version: string,
): readonly (readonly [string, Route])[] {
  const lane = new SearchLane();
  return [
    route("tx", ["hash", "prove"], async (values, { signal }) => {
      const hash = values.bytes("hash");
      if (hash.length === 0) throw refused("transaction hash cannot be empty");
      const place =
        hash.length === 32 ? chain.view.locateBySdkHash(bytesToHash32(hash)) : undefined;
      if (place === undefined) throw refused(`tx (${upperHexOf(hash)}) not found`);
      const isProved = values.boolean("prove");
      const executed = await executedAt(chain, place, signal);
      const proofs = isProved ? await proofsOf(chain, place.height, signal) : undefined;
      return new JsonPieces(
        await doBreathing(transactionTextSteps(place.height, executed, proofs), signal),
      );
    }),
    // What cannot be read is refused before it waits for others.
    route("tx_search", ["query", "prove", "page", "per_page", "order_by"], (values, context) => {
      const query = parseQuery(values.text("query"));
      return lane.forTransactions(query, askerOf(context), (signal) =>
        txSearch(chain, query, values, signal),
      );
    }),
    route("block_search", ["query", "page", "per_page", "order_by"], (values, context) => {
      const query = parseQuery(values.text("query"));
      return lane.run(askerOf(context), (signal) => blockSearch(chain, query, values, signal));
    }),
    route("abci_info", [], () => {
      const { height, hash } = chain.view.head();
      return {
        response: {
          data: "causeway",
          version,
          app_version: newestAppVersion(chain.consensus).toString(),
          last_block_height: height.toString(),
          last_block_app_hash: base64(hexToBytes(hash)),
        },
      };
    }),
    route("abci_query", ["path", "data", "height", "prove"], (values, context) =>
      abciQuery(chain, queries, values, context),
    ),
  ];
}

/** Proofs of one block's transactions. */
async function proofsOf(
  chain: CometChain,
  height: Height,
  signal: AbortSignal,
): Promise<ProvenRoot> {
  const leaves: Uint8Array[] = [];
  for (const page of dataPages(chain.view, height)) {
    leaves.push(...page.map((bytes) => sha256(bytes)));
    await breathe(signal);
  }
  return doBreathing(provenRootSteps(leaves), signal);
}

/** Where the result stands in the text of a transaction without one. */
const NO_RESULT = '"tx_result":null';

/** A transaction as JSON text in pieces, in steps: it may have tens of thousands of logs. */
function* transactionTextSteps(
  height: Height,
  executed: ExecutedTransaction,
  proved?: ProvenRoot,
): Steps<string[]> {
  const { index } = executed;
  const bytes = bytesOf(executed);
  const proof = proved?.proofs[index];
  const text = JSON.stringify({
    hash: upperHexOf(sha256(bytes)),
    height: height.toString(),
    index,
    tx_result: null,
    tx: base64(bytes),
    ...(proof === undefined || proved === undefined
      ? {}
      : { proof: transactionProofJson(proved.root, bytes, proof) }),
  });
  const end = text.indexOf(NO_RESULT) + NO_RESULT.length;
  const result = yield* resultTextSteps(executed);
  return [text.slice(0, end - "null".length), ...result, text.slice(end)];
}

async function txSearch(
  chain: CometChain,
  query: EventQuery,
  values: Arguments,
  signal: AbortSignal,
) {
  const isReversed = isDescending(values, "asc");
  const isProved = values.boolean("prove");
  const found = await searchTransactions(chain, query, signal);
  const page = pageOf(values, isReversed ? found.toReversed() : found);
  const txs: JsonPieces[] = [];
  let sizeBytes = 0;
  let proofs: { height: Height; of: ProvenRoot } | undefined;
  for (const { height, index } of page) {
    // Neighbours share a block.
    if (isProved && proofs?.height !== height) {
      proofs = { height, of: await proofsOf(chain, height, signal) };
    }
    const executed = await executedAt(chain, { height, index }, signal);
    const text = await doBreathing(transactionTextSteps(height, executed, proofs?.of), signal);
    sizeBytes += text.reduce((sum, { length }) => sum + length, 0);
    if (sizeBytes > MAX_PAGE_BYTES) {
      throw refused("the transactions are large: use a smaller per_page");
    }
    txs.push(new JsonPieces(text));
    await breathe(signal);
  }
  const end = `,"total_count":"${found.length}"}`;
  return new JsonPieces(['{"txs":', ...piecesOfList(txs), end]);
}

async function blockSearch(
  chain: CometChain,
  query: EventQuery,
  values: Arguments,
  signal: AbortSignal,
) {
  const isReversed = isDescending(values, "desc");
  const found = await searchBlocks(chain, query, signal);
  const page = pageOf(values, isReversed ? found.toReversed() : found);
  const blocks: JsonPieces[] = [];
  let sizeBytes = 0;
  for (const height of page) {
    sizeBytes += await sizeBytesOf(chain, height, signal);
    if (sizeBytes > MAX_PAGE_BYTES) throw refused("the blocks are large: use a smaller per_page");
    blocks.push(await blockResult(chain, height, signal));
  }
  const end = `,"total_count":"${found.length}"}`;
  return new JsonPieces(['{"blocks":', ...piecesOfList(blocks), end]);
}

/** Whose turn it is. */
function askerOf({ signal, clientAddress: client }: RouteContext): Asker {
  return { signal, client };
}

async function abciQuery(
  chain: CometChain,
  queries: QueryRegistry,
  values: Arguments,
  context: RouteContext,
) {
  const path = values.text("path");
  const data = values.hexBytes("data");
  const wanted = values.integer("height") ?? 0;
  const isProofWanted = values.boolean("prove");
  const latest = latestHeight(chain);
  const height = wanted === 0 ? latest : wanted;
  const answer = await queryOrRefuse(
    queries,
    { path, data, height, latest, isProofWanted },
    askerOf(context),
  );
  return {
    response: {
      code: answer.code,
      log: answer.log,
      info: "",
      index: "0",
      key: null,
      value: answer.code === 0 ? base64(answer.value) : null,
      proofOps: null,
      height: answer.height.toString(),
      codespace: answer.codespace,
    },
  };
}

/** An answer without the proof that was asked for would be believed as if it had one. */
async function queryOrRefuse(
  queries: QueryRegistry,
  query: {
    readonly path: string;
    readonly data: Uint8Array;
    readonly height: Height;
    readonly latest: Height;
    readonly isProofWanted: boolean;
  },
  asker: Asker,
): Promise<AbciAnswer> {
  const { height, latest, isProofWanted } = query;
  if (isProofWanted) {
    return queryFailure(
      INVALID_REQUEST,
      "proofs of queries are not served: eth_getProof proves accounts against the EVM block " +
        "whose hash is app_hash of the next header: invalid request",
    );
  }
  if (!isServed(height, latest)) {
    const text = "cannot query with height in the future or below 0: invalid height";
    return queryFailure(SDK_CODE.invalidHeight, text);
  }
  return abciAnswer(queries, query, asker);
}

function isServed(height: Height, latest: Height): boolean {
  return height > 0 && height <= latest;
}
