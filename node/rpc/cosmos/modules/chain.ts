/**
 * What the node says of itself and of consensus: `cosmos.base.tendermint.v1beta1`,
 * `cosmos.base.node.v1beta1` and `cosmos.consensus.v1`.
 */
import { consensusText } from "../../../../chain/address.js";
import { encodeConsensusHeader } from "../../../../chain/consensus/consensus-header.js";
import type { Validator } from "../../../../chain/consensus/validator-set.js";
import { type Height, hexToBytes } from "../../../../chain/hex.js";
import { decodeMessage } from "../../../../chain/protobuf/codec.js";
import type { MessageReader, ProtoMessage } from "../../../../chain/protobuf/values.js";
import { appVersion, FIRST_APP_VERSION } from "../../../modules/reads/gov-reads.js";
import { latestHeight } from "../../comet/chain-reads.js";
import { COMET_VERSION } from "../../comet/routes/status.js";
import { INVALID_REQUEST, nestedAnswer, queryFailure } from "../abci-answer.js";
import { decidedBlock, decidedOutline, needHeight } from "../decided-block.js";
import { notFound } from "../errors.js";
import { orderKey, pageOf, pageRequest } from "../paging.js";
import type { QueryContext, QueryHandlers, QueryRegistry } from "../registry.js";
import { anyOf, type QuerySources } from "../sources.js";

const TENDERMINT = "/cosmos.base.tendermint.v1beta1.Service";
const NODE = "/cosmos.base.node.v1beta1.Service";

/** The query that asks for a query by its path. */
const ABCI_QUERY = `${TENDERMINT}/ABCIQuery`;

/** The release of the SDK whose interfaces these are; explorers choose their requests by it. */
const SDK_VERSION = "v0.53.7";

const NS_PER_SECOND = 1_000_000_000n;

/** The queries of these services. @param queries gives the registry, for queries inside a query */
export function chainQueries(sources: QuerySources, queries: () => QueryRegistry): QueryHandlers {
  const { chain } = sources;
  return {
    [`${TENDERMINT}/GetNodeInfo`]: async (_request, context) =>
      nodeInfo(sources, await rulesVersion(sources, context)),
    [`${TENDERMINT}/GetSyncing`]: () => ({ syncing: chain.consensus.isCatchingUp() }),
    [`${TENDERMINT}/GetLatestBlock`]: (_request, { signal }) =>
      blockAnswer(sources, latestHeight(chain), signal),
    [`${TENDERMINT}/GetBlockByHeight`]: (request, { signal }) =>
      blockAnswer(sources, needHeight(sources, request.bigint("height")), signal),
    [`${TENDERMINT}/GetLatestValidatorSet`]: (request) =>
      validatorSet(sources, request, latestHeight(chain)),
    [`${TENDERMINT}/GetValidatorSetByHeight`]: (request) =>
      validatorSet(sources, request, needHeight(sources, request.bigint("height"))),
    [ABCI_QUERY]: (request, context) => abciQuery(queries(), request, context),
    [`${NODE}/Config`]: () => ({
      minimum_gas_price: sources.node.minimumGasPrices,
      pruning_keep_recent: sources.node.pruningKeepRecent,
      pruning_interval: sources.node.pruningInterval,
      halt_height: BigInt(sources.node.haltHeight),
    }),
    [`${NODE}/Status`]: () => status(sources),
    "/cosmos.consensus.v1.Query/Params": async (_request, context) => ({
      params: consensusParams(sources, context.height, await rulesVersion(sources, context)),
    }),
  };
}

/** Version of the rules that the state of a height says; without upgrades it is the first. */
async function rulesVersion(
  { modules }: QuerySources,
  { height, signal }: QueryContext,
): Promise<bigint> {
  return BigInt((await modules?.at(height).read(appVersion, signal)) ?? FIRST_APP_VERSION);
}

function nodeInfo({ chain, node }: QuerySources, app: bigint): ProtoMessage {
  return {
    default_node_info: {
      protocol_version: { p2p: 8n, block: 11n, app },
      default_node_id: node.nodeId,
      listen_addr: node.p2pListenAddress,
      network: chain.genesis.chainId,
      version: COMET_VERSION,
      channels: Buffer.from("40202122233038606100", "hex"),
      moniker: node.moniker,
      other: { tx_index: "on", rpc_address: node.rpcListenAddress },
    },
    application_version: {
      name: "causeway",
      app_name: "causeway",
      version: node.version,
      cosmos_sdk_version: SDK_VERSION,
    },
  };
}

async function blockAnswer(sources: QuerySources, height: Height, signal: AbortSignal) {
  if (height === 0) throw notFound("there is no block yet");
  const { outline, block_id, block } = await decidedBlock(sources, height, signal);
  const header = decodeMessage(
    sources.types.message("tendermint.types.Header"),
    encodeConsensusHeader(outline.header),
  );
  // The SDK's own form of a block differs in this one field.
  const proposer_address = consensusText(outline.header.proposerAddress);
  return { block_id, block, sdk_block: { ...block, header: { ...header, proposer_address } } };
}

function validatorSet(sources: QuerySources, request: MessageReader, height: Height): ProtoMessage {
  const set = sources.chain.consensus.validators(height === 0 ? 1 : height);
  if (set === undefined) throw notFound(`validators of height ${height} are not available`);
  // By power, as consensus has them: their keys are their places.
  const placed = set.validators.map((validator, place) => ({ validator, place: BigInt(place) }));
  const { items, response } = pageOf(placed, pageRequest(request), ({ place }) => orderKey(place));
  return {
    block_height: BigInt(height),
    validators: items.map(({ validator }) => validatorMessage(sources, validator)),
    pagination: { ...response, total: BigInt(set.validators.length) },
  };
}

function validatorMessage({ types }: QuerySources, validator: Validator): ProtoMessage {
  const { address, publicKey, power, priority } = validator;
  return {
    address: consensusText(address),
    pub_key: anyOf(types, "cosmos.crypto.ed25519.PubKey", { key: publicKey }),
    voting_power: power,
    proposer_priority: priority,
  };
}

async function abciQuery(
  queries: QueryRegistry,
  request: MessageReader,
  { height, ...asker }: QueryContext,
): Promise<ProtoMessage> {
  const wanted = request.bigint("height");
  const asked = wanted > 0n ? queries.heightOf(wanted.toString()) : height;
  const query = { path: request.text("path"), data: request.bytes("data"), height: asked };
  const refusal = refusalOf(request);
  const answer =
    refusal === undefined
      ? await nestedAnswer(queries, query, asker)
      : queryFailure(INVALID_REQUEST, `${refusal}: invalid request`);
  const { code, log, codespace, value } = answer;
  return { code, log, codespace, value, height: BigInt(answer.height) };
}

/** Why a query inside a query is not looked up. */
function refusalOf(request: MessageReader): string | undefined {
  if (request.boolean("prove")) return "proofs of queries are not served";
  // A level of them costs its sender fifty bytes, and the node a copy of all that is inside.
  return request.text("path") === ABCI_QUERY ? "a query does not ask for queries" : undefined;
}

function status(sources: QuerySources): ProtoMessage {
  const { chain } = sources;
  const height = latestHeight(chain);
  if (height === 0) return { earliest_store_height: 0n, height: 0n };
  const { header } = decidedOutline(sources, height);
  return {
    earliest_store_height: BigInt(chain.view.oldest().state),
    height: BigInt(height),
    timestamp: {
      seconds: header.timeNs / NS_PER_SECOND,
      nanos: Number(header.timeNs % NS_PER_SECOND),
    },
    app_hash: hexToBytes(header.appHash),
    validator_hash: hexToBytes(header.nextValidatorsHash),
  };
}

function consensusParams({ chain }: QuerySources, height: Height, app: bigint): ProtoMessage {
  const params = chain.consensus.params(Math.max(1, height));
  return {
    block: { max_bytes: BigInt(params.blockMaxBytes), max_gas: params.blockMaxGas },
    evidence: {
      max_age_num_blocks: BigInt(params.evidenceMaxAgeBlocks),
      max_age_duration: {
        seconds: params.evidenceMaxAgeNs / NS_PER_SECOND,
        nanos: Number(params.evidenceMaxAgeNs % NS_PER_SECOND),
      },
      max_bytes: BigInt(params.evidenceMaxBytes),
    },
    validator: { pub_key_types: ["ed25519"] },
    version: { app },
    abci: {},
  };
}
