/** Our genesis as CometBFT's `GenesisDoc`: the whole of our file is its `app_state`. */
import { formatTime, msToNs } from "../../../../chain/consensus/block-id.js";
import type { ConsensusParams } from "../../../../chain/consensus/consensus-params.js";
import { paramsJson, publicKeyJson, upperHex } from "./encode.js";
import type { CometGenesis } from "../ports.js";

/** Bytes of one chunk of `genesis_chunked`. */
const CHUNK_BYTES = 16 * 1024 * 1024;

/** The genesis as served: once as text, and the same text in chunks. */
export interface ServedGenesis {
  readonly document: unknown;
  /** Base64. */
  readonly chunks: readonly string[];
}

/** Builds what the two routes answer. */
export function serveGenesis(genesis: CometGenesis, params: ConsensusParams): ServedGenesis {
  const appState: unknown = JSON.parse(genesis.appState);
  const document = {
    genesis_time: formatTime(msToNs(genesis.timeMs)),
    chain_id: genesis.chainId,
    initial_height: "1",
    consensus_params: paramsJson(params, genesis.appVersion),
    validators: genesis.validators.map(({ address, publicKey, power, name }) => ({
      address: upperHex(address),
      pub_key: publicKeyJson(publicKey),
      power: power.toString(),
      name,
    })),
    app_hash: upperHex(genesis.appHash),
    app_state: appState,
  };
  const bytes = Buffer.from(JSON.stringify(document), "utf8");
  const chunks: string[] = [];
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    chunks.push(bytes.subarray(at, at + CHUNK_BYTES).toString("base64"));
  }
  return { document, chunks };
}
