/**
 * Proofs as files: what a node answered, passed on as it is, for the script in the browser and for
 * any other program. Nothing here is checked, because whoever checks must not rely on us.
 */
import { type Height, toQuantity } from "../../chain/hex.js";
import { readHex, readList } from "../../rpc-client/answer-fields.js";
import { NodeFault } from "../../rpc-client/errors.js";
import { readAddress, readHash, readHeight } from "../decode/identifiers.js";
import { badRequest, PageError, notFound } from "../../web/errors.js";
import type { Download, PageRequest, PageRoute } from "../server/page.js";
import type { PageContext } from "./context.js";

/** First field of every proof. */
const FORMAT = "causeway-explorer-proof/1";

/** Headers of one answer, as CometBFT bounds it. */
const MAX_HEADERS = 20;

/** "/proof/address/<a>", "/proof/tx/<hash>", "/proof/header/<height>", "/proof/headers/<to>". */
export function proofRoutes(context: PageContext): readonly PageRoute[] {
  const route = (
    path: string,
    handle: (request: PageRequest) => Promise<Download>,
    query: readonly string[] = [],
  ): PageRoute => ({ path, hasParameter: true, isCostly: true, query, handle });
  return [
    route("/proof/address", (request) => accountProof(context, request), ["height"]),
    route("/proof/tx", (request) => transactionProof(context, request)),
    route("/proof/header", (request) => headerProof(context, request)),
    route("/proof/headers", (request) => headerRange(context, request)),
  ];
}

async function accountProof(context: PageContext, request: PageRequest): Promise<Download> {
  const { parameter, query, signal } = request;
  const address = readAddress(parameter);
  if (address === undefined) throw badRequest("not an address");
  const { chain } = context;
  const head = await chain.head({ signal });
  const text = query.get("height");
  // The commit of the next height names the block: the newest block has none yet.
  const height = text === null ? head.height - 1 : readHeight(text);
  if (height === undefined) throw badRequest("height is no height");
  assertSigned(height, head.height);
  const [state, block] = await Promise.all([
    chain.evm.proofObject({ address, storageKeys: [] }, height, { signal }),
    signedBlock(context, height, signal),
  ]);
  return {
    json: {
      format: FORMAT,
      kind: "account",
      ...block,
      address,
      balance: BigInt(String(state["balance"])).toString(),
      nonce: BigInt(String(state["nonce"])).toString(),
      codeHash: state["codeHash"],
      storageHash: state["storageHash"],
      accountProof: readList(state["accountProof"], "accountProof"),
    },
    fileName: `proof-${address}-${height}.json`,
    isFinal: text !== null,
  };
}

async function transactionProof(context: PageContext, request: PageRequest): Promise<Download> {
  const { parameter, signal } = request;
  const hash = readHash(parameter);
  if (hash === undefined) throw badRequest("not a transaction hash");
  const { chain } = context;
  const head = await chain.head({ signal });
  const found = await chain.transaction(hash, { signal });
  if (found?.place === undefined) throw notFound("the transaction is in no block");
  const { height } = found.place;
  assertSigned(height, head.height);
  try {
    const read = () =>
      Promise.all([
        signedBlock(context, height, signal),
        chain.raw("debug_getRawBlock", [toQuantity(height)], { signal }),
        chain.raw("debug_getRawReceipts", [toQuantity(height)], { signal }),
      ]);
    const [signed, raw, receipts] = await chain.ofWholeBlock(read, { signal });
    const { header: _partOfTheBlock, ...block } = signed;
    return {
      json: {
        format: FORMAT,
        kind: "transaction",
        ...block,
        hash,
        block: readHex(raw, "raw block"),
        receipts: readList(receipts, "receipts"),
      },
      fileName: `proof-${hash}.json`,
      isFinal: true,
    };
  } catch (error) {
    if (!(error instanceof NodeFault) || error.code !== "ANSWER_TOO_LARGE") throw error;
    throw new PageError("UNAVAILABLE", "the block is too large for a proof from here", {
      cause: error,
    });
  }
}

async function headerProof(context: PageContext, request: PageRequest): Promise<Download> {
  const { parameter, signal } = request;
  const { chain, consensus } = context;
  const head = await chain.head({ signal });
  const height = parameter === "newest" ? head.height - 1 : readHeight(parameter);
  if (height === undefined) throw badRequest("not a height");
  if (height < 1 || height > head.height) throw notFound("no such header");
  const commit = await consensus.rawCommit(height, { signal });
  if (commit === undefined) throw notFound("the node no longer has that header");
  const validators = await consensus.rawValidators(height, { signal });
  return {
    json: {
      format: FORMAT,
      kind: "header",
      chainId: context.network.cosmosChainId,
      commit,
      validators,
    },
    fileName: `header-${height}.json`,
    isFinal: parameter !== "newest" && height < head.height,
  };
}

async function headerRange(context: PageContext, request: PageRequest): Promise<Download> {
  const { parameter, signal } = request;
  const to = readHeight(parameter);
  if (to === undefined || to < 1) throw badRequest("not a height");
  const head = await context.chain.head({ signal });
  if (to > head.height) throw notFound("no such header");
  const from = Math.max(1, to - MAX_HEADERS + 1);
  const found = await context.consensus.rawHeaders(from, to, { signal });
  if (found === undefined) throw notFound("the node no longer has these headers");
  const headers = readList(found["block_metas"], "block_metas").map((meta) =>
    typeof meta === "object" && meta !== null && "header" in meta ? meta.header : undefined,
  );
  return {
    json: { format: FORMAT, kind: "headers", headers },
    fileName: `headers-${to}.json`,
    isFinal: true,
  };
}

/** A block that validators have signed for: its header, and the commit of the height above. */
async function signedBlock(context: PageContext, height: Height, signal: AbortSignal) {
  const { chain, consensus, network } = context;
  const [header, commit, validators] = await Promise.all([
    chain.raw("debug_getRawHeader", [toQuantity(height)], { signal }),
    consensus.rawCommit(height + 1, { signal }),
    consensus.rawValidators(height + 1, { signal }),
  ]);
  if (commit === undefined) throw notFound("the node no longer has that commit");
  return {
    chainId: network.cosmosChainId,
    height,
    header: readHex(header, "raw header"),
    commit,
    validators,
  };
}

function assertSigned(height: Height, headHeight: Height): void {
  if (height < 0 || height >= headHeight) {
    throw notFound("only blocks below the newest can be proven: the next one names them");
  }
}
