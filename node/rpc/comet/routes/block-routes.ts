/** Blocks, headers, commits, results, validators and parameters by height or hash. */
import type { BlockOutline } from "../../../../chain/block.js";
import { blockEvents } from "../../../../chain/abci-event.js";
import { bytesToHash32, type Height, hexToBytes } from "../../../../chain/hex.js";
import { ownerOf } from "../../../../runtime/process/work-owner.js";
import type { Arguments } from "../arguments.js";
import {
  assertResults,
  blockResult,
  committedOutline,
  latestHeight,
  needOutline,
  sizeBytesOf,
} from "../chain-reads.js";
import {
  base64,
  blockIdJson,
  commitJson,
  headerJson,
  paramsJson,
  validatorJson,
} from "../json/encode.js";
import { refused } from "../errors.js";
import { heightOf, pageOf } from "../paging.js";
import type { CometChain } from "../ports.js";
import { JsonPieces } from "../json/json-pieces.js";
import type { ResultTexts } from "../json/result-texts.js";
import { validatorUpdateJson, validatorUpdates } from "../json/results.js";
import { type Route, route } from "../route.js";

/** Most blocks that `blockchain` shows at once. */
const MAX_BLOCK_METAS = 20;

/** What a hash that no block has is answered with. */
const NO_BLOCK = { block_id: blockIdJson(undefined), block: null };

/** The routes of this file. */
export function blockRoutes(
  chain: CometChain,
  texts: ResultTexts,
): readonly (readonly [string, Route])[] {
  const stored = (values: Arguments) =>
    heightOf(values, latestHeight(chain), chain.consensus.base());
  /** Validators and parameters are known for the height in progress as well. */
  const known = (values: Arguments) => {
    const ahead = chain.consensus.isCatchingUp() ? 0 : 1;
    return heightOf(values, latestHeight(chain) + ahead, chain.consensus.base());
  };
  return [
    route("blockchain", ["minHeight", "maxHeight"], (values, { signal }) =>
      blockchain(chain, values, signal),
    ),
    route("block", ["height"], (values, { signal }) => blockResult(chain, stored(values), signal)),
    route("block_by_hash", ["hash"], (values, { signal }) => {
      const height = heightOfHash(chain, values.bytes("hash"));
      return height === undefined ? NO_BLOCK : blockResult(chain, height, signal);
    }),
    route("header", ["height"], (values) => ({
      header: headerJson(needOutline(chain, stored(values)).header),
    })),
    route("header_by_hash", ["hash"], (values) => {
      const height = heightOfHash(chain, values.hexBytes("hash"));
      if (height === undefined) return { header: null };
      return { header: headerJson(needOutline(chain, height).header) };
    }),
    route("commit", ["height"], (values) => commit(chain, stored(values))),
    route("block_results", ["height"], (values, { signal }) =>
      blockResults(chain, texts, { height: stored(values), signal }),
    ),
    route("validators", ["height", "page", "per_page"], (values) =>
      validators(chain, known(values), values),
    ),
    route("consensus_params", ["height"], (values) => {
      const height = known(values);
      const appVersion = chain.consensus.appVersion(height);
      if (appVersion === undefined) throw refused(`block of height ${height} is not available`);
      return {
        block_height: height.toString(),
        consensus_params: paramsJson(chain.consensus.params(height), appVersion),
      };
    }),
  ];
}

function heightOfHash(chain: CometChain, hash: Uint8Array): Height | undefined {
  if (hash.length !== 32) return undefined;
  const height = chain.consensus.heightOfHash(bytesToHash32(hash));
  return height !== undefined && height <= latestHeight(chain) ? height : undefined;
}

/** Newest first; bounded from below, so that the newest of the range are shown. */
async function blockchain(chain: CometChain, values: Arguments, signal: AbortSignal) {
  const latest = latestHeight(chain);
  const wantedMin = values.integer("minHeight") ?? 0;
  const wantedMax = values.integer("maxHeight") ?? 0;
  if (wantedMin < 0 || wantedMax < 0) throw refused("heights must be non-negative");
  const max = Math.min(latest, wantedMax === 0 ? latest : wantedMax);
  const min = Math.max(chain.consensus.base(), wantedMin, 1, max - MAX_BLOCK_METAS + 1);
  if (min > max) {
    throw refused(`min height ${min} can't be greater than max height ${max}`);
  }
  const block_metas = [];
  for (let height = max; height >= min; height--) {
    const { header, blockId } = needOutline(chain, height);
    block_metas.push({
      block_id: blockIdJson(blockId),
      block_size: (await sizeBytesOf(chain, height, signal)).toString(),
      header: headerJson(header),
      num_txs: countOf(committedOutline(chain, height)).toString(),
    });
  }
  return { last_height: latest.toString(), block_metas };
}

/** Transactions of both kinds. */
function countOf({ transactionCount, cosmosPlaces }: BlockOutline): number {
  return transactionCount + cosmosPlaces.length;
}

/** The canonical commit is in the next block; the newest height has only what was seen. */
function commit(chain: CometChain, height: Height) {
  const { header, commit: seenCommit } = needOutline(chain, height);
  const canonical = height < latestHeight(chain);
  const found = canonical ? needOutline(chain, height + 1).lastCommit : seenCommit;
  const signed_header = { header: headerJson(header), commit: commitJson(found) };
  return { signed_header, canonical };
}

async function blockResults(
  chain: CometChain,
  texts: ResultTexts,
  { height, signal }: { readonly height: Height; readonly signal: AbortSignal },
): Promise<JsonPieces> {
  assertResults(chain, height);
  const { hash } = committedOutline(chain, height);
  const results = await texts.of(height, ownerOf(signal));
  const rest = JSON.stringify({
    finalize_block_events: blockEvents(chain.view.blockChanges(height)),
    validator_updates: validatorUpdates(chain.consensus, height).map(validatorUpdateJson),
    consensus_param_updates: null,
    app_hash: base64(hexToBytes(hash)),
  });
  const start = `{"height":"${height}","txs_results":`;
  return new JsonPieces([start, ...results.pieces, `,${rest.slice(1)}`]);
}

function validators(chain: CometChain, height: Height, values: Arguments) {
  const set = chain.consensus.validators(height);
  if (set === undefined) throw refused(`validators of height ${height} are not available`);
  const page = pageOf(values, set.validators);
  return {
    block_height: height.toString(),
    validators: page.map(validatorJson),
    count: page.length.toString(),
    total: set.size.toString(),
  };
}
